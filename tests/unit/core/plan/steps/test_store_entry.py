from __future__ import annotations

import json
from pathlib import Path

import pytest

from tritonsmith.core.errors import OwnershipError, StepError
from tritonsmith.core.plan import Plan, Step, locks
from tritonsmith.core.plan.runner import Runner
from tritonsmith.core.plan.steps.store_entry import Discard, Expect, RemoveLeftovers, leftovers, tombstone
from tritonsmith.core.untrusted import SeenEntry


@pytest.fixture
def shelf(root: Path) -> Path:
    """One finished entry, and a neighbour."""
    for name in ("one", "two"):
        (root / name / "lib").mkdir(parents=True)
        (root / name / "lib" / "lib.a").write_text(name)
        (root / f"{name}.json").write_text("{}")
        (root / f"{name}.used").touch()
    (root / "users").mkdir()
    return root


def record(shelf: Path, entry: str, name: str = "record.json") -> SeenEntry:
    path = shelf / "users" / name
    path.write_text(json.dumps({"entry": entry}))
    return SeenEntry(name, path.stat().st_mtime_ns)


def names(shelf: Path) -> set[str]:
    return {path.name for path in shelf.iterdir() if "one" in path.name and path.name != "one.lock"}


def do(runner: Runner, *steps: Step) -> None:
    runner.run(Plan("test", steps))


def test_an_entry_goes_with_all_that_is_its(shelf: Path, runner: Runner) -> None:
    step = Discard(shelf, "one", shelf, phase="gc")
    assert f'rm -rf -- {shelf}/".trash-one-$$"' in step.shell()
    do(runner, step)
    assert not list(shelf.glob("*one*"))
    assert (shelf / "two" / "lib" / "lib.a").read_text() == "two"
    do(runner, step)  # nothing is there any more


def test_an_unfinished_one_too(shelf: Path, runner: Runner) -> None:
    (shelf / "one.json").unlink()
    do(runner, Discard(shelf, "one", shelf, phase="gc"))
    assert names(shelf) == set()


@pytest.mark.parametrize("finished", [True, False])
def test_it_stays_if_somebody_registered_meanwhile(shelf: Path, runner: Runner, finished: bool) -> None:
    if not finished:
        (shelf / "one.json").unlink()
    before = names(shelf)
    old = record(shelf, "one")
    record(shelf, "one", "new.json")
    do(runner, Discard(shelf, "one", shelf, (old,), phase="gc"))
    assert names(shelf) == before


def test_a_stale_record_holds_nothing_until_it_is_written_again(shelf: Path, runner: Runner) -> None:
    old = record(shelf, "one")
    (shelf / "users" / "damaged.json").write_text("{")
    do(runner, Discard(shelf, "one", shelf, (SeenEntry(old.name, old.changed - 1),), phase="gc"))
    assert "one" in names(shelf)
    do(runner, Discard(shelf, "one", shelf, (old,), phase="gc"))
    assert names(shelf) == set()


def test_it_stays_if_somebody_holds_it(shelf: Path, runner: Runner) -> None:
    with locks.hold(shelf / "one.lock", purpose="setup-mlir"):
        do(runner, Discard(shelf, "one", shelf, phase="gc"))
    assert {"one", "one.json"} <= names(shelf)


def test_a_link_in_its_place_is_not_followed(shelf: Path, runner: Runner, tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (shelf / "one").rename(tmp_path / "moved")
    (shelf / "one").symlink_to(tmp_path / "precious")
    do(runner, Discard(shelf, "one", shelf, phase="gc"))
    assert (tmp_path / "precious").is_dir()


def test_nothing_goes_outside_of_the_marked_folder(shelf: Path, runner: Runner, tmp_path: Path) -> None:
    with pytest.raises(OwnershipError):
        do(runner, Discard(tmp_path, "own", shelf, phase="gc"))
    assert (shelf / "one").is_dir()


def test_a_deletion_that_was_stopped_is_ended(shelf: Path, runner: Runner) -> None:
    (shelf / "one.json").rename(tombstone(shelf, "one"))
    (shelf / ".trash-three-1" / "lib").mkdir(parents=True)
    (shelf / ".import-four").mkdir()
    (shelf / ".trash-five.json").touch()
    assert len(leftovers(shelf)) == 4
    step = RemoveLeftovers(shelf, shelf, phase="gc")
    assert step.shell() == [f"rm -rf -- {shelf}/.trash-* {shelf}/.import-*"]
    do(runner, step)
    assert leftovers(shelf) == ()
    assert names(shelf) == set()
    assert (shelf / "two.json").exists()


def test_one_that_is_used_again_comes_back(shelf: Path, runner: Runner) -> None:
    (shelf / "one.json").rename(tombstone(shelf, "one"))
    record(shelf, "one")
    do(runner, RemoveLeftovers(shelf, shelf, phase="gc"))
    assert names(shelf) == {"one", "one.json", "one.used"}


def test_one_that_was_made_again_stays(shelf: Path, runner: Runner) -> None:
    tombstone(shelf, "one").touch()
    do(runner, RemoveLeftovers(shelf, shelf, phase="gc"))
    assert names(shelf) == {"one", "one.json", "one.used"}


def test_what_somebody_works_on_is_left_alone(shelf: Path, runner: Runner) -> None:
    (shelf / ".import-one").mkdir()
    tombstone(shelf, "two").touch()
    (shelf / "two.json").unlink()
    with (
        locks.hold(shelf / "one.lock", purpose="store.import"),
        locks.hold(shelf / "two.lock", purpose="setup-mlir"),
    ):
        do(runner, RemoveLeftovers(shelf, shelf, phase="gc"))
        assert len(leftovers(shelf)) == 2
        assert (shelf / "two").is_dir()


def test_a_shelf_that_does_not_exist(root: Path, runner: Runner) -> None:
    do(runner, RemoveLeftovers(root / "none", root, phase="gc"))
    assert leftovers(root / "none") == ()


def test_what_is_expected(root: Path, runner: Runner) -> None:
    do(runner, Expect(root, "it is there", phase="store"))
    step = Expect(root / "none", "it went", phase="store")
    assert step.shell() == [f"[ -e {root}/none ] || {{ echo 'it went'; exit 1; }}"]
    with pytest.raises(StepError, match="it went"):
        do(runner, step)
