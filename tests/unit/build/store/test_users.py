from __future__ import annotations

import json
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.build.store import made
from tritonsmith.build.store import housekeeping
from tritonsmith.build.store.store import Store, find_uses, register_user, this_user
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import StepError
from tritonsmith.core.plan.steps.store_entry import Discard

DAY = 86400.0


@pytest.fixture
def entry(store: Store, space: Workspace) -> str:
    return made.put(store, space).name


def register(store: Store, space: Workspace, env: str = "dev", entry: str = "one") -> Path:
    user = this_user(space.env(env), Path("/src/triton"), entry)
    made.act(space, *register_user(store, user))
    return store.users / user.file


def seen(store: Store, space: Workspace, *, later: float = 2 * DAY) -> dict[str, list[str]]:
    usage = find_uses(store, space, time.time() + later)
    return {name: [f"{use.in_words}: {use.why}" for use in uses] for name, uses in usage.uses.items()}


def test_nobody_uses_it(store: Store, space: Workspace, entry: str) -> None:
    assert seen(store, space) == {}
    assert entry == "one"


@pytest.mark.parametrize(
    ("task", "key"), [("setup-mlir", "prefix"), ("build-triton", "llvm"), ("install-triton", "llvm")]
)
def test_a_receipt_names_it(store: Store, space: Workspace, entry: str, task: str, key: str) -> None:
    register(store, space)
    made.receipt(space, "dev", store.path(entry) / "lib", task, key)
    assert seen(store, space) == {"one": [f"dev (/src/triton): {task}"]}


def test_a_receipt_may_name_what_no_file_is_called(store: Store, space: Workspace, entry: str) -> None:
    register(store, space)
    made.receipt(space, "dev", store.path("one\0two"), "build-triton", "llvm")
    made.receipt(space, "dev", store.path(entry), "install-triton", "llvm")
    assert seen(store, space) == {"one": ["dev (/src/triton): install-triton"]}


def test_a_build_folder_names_it(store: Store, space: Workspace, entry: str) -> None:
    register(store, space)
    cache = space.env("dev").build / "CMakeCache.txt"
    cache.parent.mkdir(parents=True)
    cache.write_text(f"LLVM_DIR:UNINITIALIZED={store.path(entry)}/lib/cmake/llvm\n", encoding="utf-8")
    assert seen(store, space) == {"one": ["dev (/src/triton): CMakeCache.txt"]}


def test_a_registration_alone_counts_for_a_day(store: Store, space: Workspace, entry: str) -> None:
    record = register(store, space)
    assert seen(store, space, later=0) == {"one": ["dev (/src/triton): registered recently"]}
    assert seen(store, space) == {}
    usage = find_uses(store, space, time.time() + 2 * DAY)
    assert [(stale.name, stale.changed) for stale in usage.stale] == [
        (record.name, record.stat().st_mtime_ns)
    ]
    assert entry == "one"


def test_an_environment_has_one_record(store: Store, space: Workspace, entry: str) -> None:
    made.put(store, space, "two")
    first = register(store, space)
    assert register(store, space, entry="two") == first
    made.receipt(space, "dev", store.path("two"))
    assert seen(store, space) == {"two": ["dev (/src/triton): setup-mlir"]}
    assert entry == "one"


def test_it_says_what_it_used_and_what_it_uses(store: Store, space: Workspace, entry: str) -> None:
    """Registered for the second, while what was built last still links the first."""
    made.put(store, space, "two")
    register(store, space, entry="two")
    made.receipt(space, "dev", store.path("two"))
    made.receipt(space, "dev", store.path(entry), "build-triton", "llvm")
    assert set(seen(store, space)) == {"one", "two"}


def test_environments_of_this_workspace_need_no_record(store: Store, space: Workspace, entry: str) -> None:
    made.receipt(space, "dev", store.path(entry))
    assert seen(store, space) == {"one": [f"dev ({space.root}): setup-mlir"]}


def test_another_workspace_counts_as_well(store: Store, space: Workspace, entry: str, tmp_path: Path) -> None:
    other = Workspace(tmp_path / "another")
    other.claim()
    register(store, other)
    made.receipt(other, "dev", store.path(entry))
    assert seen(store, space) == {"one": ["dev (/src/triton): setup-mlir"]}
    shutil.rmtree(other.root)
    assert seen(store, space) == {}


def test_what_cannot_be_read_is_kept(store: Store, space: Workspace, entry: str, tmp_path: Path) -> None:
    other = Workspace(tmp_path / "another")
    other.claim()
    register(store, other)
    receipt = made.receipt(other, "dev", store.path(entry))
    receipt.write_text("{", encoding="utf-8")
    assert "is damaged" in seen(store, space)["one"][0]
    receipt.unlink()
    receipt.mkdir()
    assert "cannot be checked: Is a directory" in seen(store, space)["one"][0]


def test_so_is_everything_that_an_unreadable_environment_of_ours_may_use(
    store: Store, space: Workspace, entry: str
) -> None:
    made.put(store, space, "two")
    made.receipt(space, "dev", store.path(entry)).write_text("{", encoding="utf-8")
    assert set(seen(store, space)) == {"one", "two"}


def test_what_lies_on_another_machine_is_kept(store: Store, space: Workspace, entry: str) -> None:
    user = this_user(Workspace(Path("/no/such/workspace")).env("dev"), None, entry)
    made.act(space, *register_user(store, replace(user, host="elsewhere")))
    assert seen(store, space)["one"] == ["dev (/no/such/workspace): can only be checked on elsewhere"]


def test_a_record_that_cannot_be_read_may_name_anything(store: Store, space: Workspace, entry: str) -> None:
    (store.users / "folder.json").mkdir()
    made.put(store, space, "two")
    found = seen(store, space)
    assert set(found) == {entry, "two"}
    assert "cannot be checked: Is a directory" in found["two"][0]
    made.act(space, Discard(store.root, entry, store.owner, phase="gc"))
    assert store.entry(entry).status == "ready"


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"entry": "one"}'])
def test_a_damaged_record_names_nobody(store: Store, space: Workspace, entry: str, text: str) -> None:
    (store.users / "damaged.json").write_text(text, encoding="utf-8")
    assert seen(store, space) == {}
    assert entry == "one"


def test_an_entry_that_went_meanwhile_cannot_be_registered_for(store: Store, space: Workspace) -> None:
    with pytest.raises(StepError, match="was just deleted from the store"):
        register(store, space)


def test_a_path_through_a_link_is_the_same(
    store: Store, space: Workspace, entry: str, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(store.root)
    made.receipt(space, "dev", tmp_path / "link" / entry)
    assert set(seen(store, space)) == {"one"}


def test_a_listing(store: Store, space: Workspace, entry: str) -> None:
    register(store, space)
    made.receipt(space, "dev", store.path(entry))
    store.path("half").mkdir()
    big = store.path(entry) / "big"
    big.write_bytes(b"x" * 100_000)
    (store.path(entry) / "hard").hardlink_to(big)
    found = housekeeping.list_entries(store, space, time.time())
    assert [(row.entry.name, row.entry.status) for row in found.rows] == [
        ("half", "unfinished"),
        ("one", "ready"),
    ]
    assert 100_000 <= found.bytes < 180_000
    plain = json.loads(json.dumps(found.as_json()))
    one = plain["entries"][1]
    assert (one["users"][0]["env"], one["users"][0]["why"]) == ("dev", "setup-mlir")
    assert one["manifest"]["commit"] == made.COMMIT


def test_the_size_of_what_is_not_there() -> None:
    assert housekeeping.on_disk(Path("/no/such/folder")) == 0
