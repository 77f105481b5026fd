from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.unit.build.store import made
from tritonsmith.build.store import housekeeping
from tritonsmith.build.store.housekeeping import GcLimits, PreparedGc
from tritonsmith.build.store.store import Store
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import UsageError
from tritonsmith.core.plan import compression

DAY = 86400.0
SIZE = 1 << 20


@pytest.fixture
def full(store: Store, space: Workspace, tmp_path: Path) -> Store:
    """Three entries of a MiB, the last one in use, an adopted tree and half an entry."""
    for days, name in ((30, "oldest"), (20, "older"), (40, "busy")):
        made.put(store, space, name)
        (store.path(name) / "big").write_bytes(b"x" * SIZE)
        made.age(store.manifest(name), days * DAY)
    made.receipt(space, "dev", store.path("busy"))
    made.put(store, space, "theirs", kind="adopted", tree=str(made.tree(tmp_path / "theirs")))
    store.path("half").mkdir()
    return store


def decide(store: Store, space: Workspace, limits: GcLimits = GcLimits()) -> PreparedGc:  # noqa: B008 - frozen
    return housekeeping.prepare_gc(housekeeping.list_entries(store, space, time.time()), limits)


def going(prepared: PreparedGc) -> list[str]:
    return [row.entry.name for row in prepared.going]


def test_all_that_nobody_uses_goes_the_least_recently_used_first(full: Store, space: Workspace) -> None:
    prepared = decide(full, space)
    assert going(prepared) == ["oldest", "older"]
    assert {row.entry.name: reason for row, reason in prepared.staying} == {
        "busy": f"used by dev ({space.root})",
        "theirs": "adopted: never deleted",
        "half": "changed recently (--name deletes it anyway)",
    }
    assert 2 * SIZE <= prepared.freed < 3 * SIZE
    made.act(space, *prepared.plan.steps)
    assert {entry.name for entry in full.entries()} == {"busy", "theirs", "half"}
    assert housekeeping.still_there(prepared, full) == ()


def test_until_there_is_room(full: Store, space: Workspace) -> None:
    total = housekeeping.list_entries(full, space, time.time()).bytes
    assert going(decide(full, space, GcLimits(max_bytes=total))) == []
    assert going(decide(full, space, GcLimits(max_bytes=total - 1))) == ["oldest"]
    assert going(decide(full, space, GcLimits(max_bytes=SIZE))) == ["oldest", "older"]
    reasons = [why for _, why in decide(full, space, GcLimits(max_bytes=total)).staying]
    assert reasons.count("within --max-size") == 2


def test_by_age(full: Store, space: Workspace) -> None:
    assert going(decide(full, space, GcLimits(older_than=25 * DAY))) == ["oldest"]
    assert going(decide(full, space, GcLimits(older_than=0.0))) == ["oldest", "older", "half"]


def test_by_name(full: Store, space: Workspace) -> None:
    assert going(decide(full, space, GcLimits(names=("half", "busy", "theirs")))) == ["half"]
    with pytest.raises(UsageError, match="did you mean 'older'"):
        decide(full, space, GcLimits(names=("elder",)))


def test_half_an_entry_goes_in_the_end(full: Store, space: Workspace) -> None:
    later = housekeeping.list_entries(full, space, time.time() + 2 * DAY)
    assert "half" in going(housekeeping.prepare_gc(later, GcLimits()))


def test_what_stopped_runs_left_goes_as_well(store: Store, space: Workspace) -> None:
    trash = store.root / ".trash-one-1"
    trash.mkdir()
    (trash / "big").write_bytes(b"x" * SIZE)
    prepared = decide(store, space)
    assert SIZE <= prepared.leftovers == prepared.freed
    made.act(space, *prepared.plan.steps)
    assert not trash.exists()
    assert decide(store, space).plan.steps == ()


def test_one_that_is_used_by_the_time_of_the_deletion_stays(full: Store, space: Workspace) -> None:
    prepared = decide(full, space)
    (full.users / "x.json").write_text(json.dumps({"entry": "older"}))
    made.act(space, *prepared.plan.steps)
    left = housekeeping.still_there(prepared, full)
    assert [row.entry.name for row in left] == ["older"]


def test_as_json(full: Store, space: Workspace) -> None:
    plain = json.loads(json.dumps(decide(full, space).as_json()))
    assert [row["name"] for row in plain["going"]] == ["oldest", "older"]
    assert plain["staying"][0]["users"][0]["env"] == "dev"


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("50GB", 50 * 10**9),
        ("1.5TiB", 3 << 39),
        ("800 mb", 800 * 10**6),
        ("10", 10),
        ("7k", 7000),
        ("1Gi", 1 << 30),
    ],
)
def test_sizes(text: str, number: int) -> None:
    assert compression.size(text) == number


@pytest.mark.parametrize("text", ["GB", "-1GB", "1PB", "1 G B", "1,5GB", "ten"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(UsageError, match="not a size"):
        compression.size(text)
