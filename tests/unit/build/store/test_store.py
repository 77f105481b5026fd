from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support import as_plain_user
from tests.unit.build.store import made
from tritonsmith.build.store.entry import LlvmNeeds
from tritonsmith.build.store.store import Store, open_store
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, LockedError, OwnershipError, SmithError, UsageError
from tritonsmith.core.plan import files
from tritonsmith.core.plan.steps import store_entry


def status(store: Store) -> dict[str, str]:
    return {entry.name: entry.status for entry in store.entries()}


def test_a_store_that_does_not_exist_is_empty(tmp_path: Path) -> None:
    store = open_store(Workspace(tmp_path / "space"))
    assert store.root == tmp_path / "space" / "llvm"
    assert store.entries() == ()
    assert store.find(LlvmNeeds()).entry is None
    assert not store.root.exists()
    assert store.writable


@pytest.mark.parametrize("mode", [0o555, 0o000])
def test_whether_a_store_may_be_changed_is_a_fact(tmp_path: Path, mode: int) -> None:
    space, above = Workspace(tmp_path / "space"), tmp_path / "of others"
    above.mkdir(mode=mode)
    store = as_plain_user(lambda: open_store(space, str(above / "store")))
    above.chmod(0o755)
    assert not store.writable
    assert open_store(space, str(above / "store")).writable
    assert replace(store, writable=True) == open_store(space, str(above / "store"))


def test_a_store_that_cannot_be_read_is_not_empty(tmp_path: Path) -> None:
    (tmp_path / "of others" / "store").mkdir(parents=True)
    (tmp_path / "of others").chmod(0o000)
    with pytest.raises(SmithError, match="cannot read the store"):
        as_plain_user(open_store(Workspace(tmp_path / "space"), str(tmp_path / "of others/store")).entries)
    (tmp_path / "of others").chmod(0o755)


def test_an_entry_is_there_once_its_manifest_is(store: Store, space: Workspace) -> None:
    made.tree(store.path("one"))
    assert status(store) == {"one": "unfinished"}
    assert store.find(LlvmNeeds()).refused[0][0] == "one"
    written = made.manifest()
    made.act(space, *store.publish(written))
    assert status(store) == {"one": "ready"}
    found = store.find(LlvmNeeds(commit=made.COMMIT))
    assert found.entry == store.entry("one")
    assert found.entry is not None
    assert (found.entry.manifest, found.entry.path) == (written, store.path("one"))


def test_it_is_unfinished_again_when_it_is_retracted(store: Store, space: Workspace) -> None:
    made.put(store, space)
    made.act(space, *store.retract("one"))
    assert status(store) == {"one": "unfinished"}


def test_what_is_wrong_with_an_entry(store: Store, space: Workspace) -> None:
    for name in ("damaged", "other", "gone"):
        made.put(store, space, name)
    store.manifest("damaged").write_text("{", encoding="utf-8")
    shutil.copy(store.manifest("gone"), store.manifest("other"))
    shutil.rmtree(store.path("gone"))
    assert status(store) == {"damaged": "unreadable", "gone": "gone", "other": "unreadable"}
    assert store.entry("other").problem == "its manifest belongs to gone"
    assert "no LLVM in" in store.entry("gone").problem
    assert store.find(LlvmNeeds()).entry is None


def test_what_is_no_entry_is_passed_over(store: Store, space: Workspace) -> None:
    made.put(store, space)
    for name in (".trash-one-1", ".import-two", "users"):
        (store.root / name).mkdir(exist_ok=True)
    for name in ("one.lock", "one.lock.holder", "one.used", ".one.json.tritonsmith", "notes.txt"):
        (store.root / name).touch()
    assert status(store) == {"one": "ready"}


def test_an_adopted_tree_lies_elsewhere(store: Store, space: Workspace, tmp_path: Path) -> None:
    tree = made.tree(tmp_path / "theirs")
    made.put(store, space, kind="adopted", tree=str(tree))
    assert store.entry("one").path == tree
    shutil.rmtree(tree)
    assert status(store) == {"one": "gone"}


def test_one_whose_deletion_was_stopped(store: Store, space: Workspace) -> None:
    made.put(store, space)
    store.manifest("one").rename(store_entry.tombstone(store.root, "one"))
    assert (store.entry("one").status, store.entry("one").problem) == (
        "unfinished",
        "deletion interrupted: `invoke store --gc` finishes it",
    )


def test_a_wrong_name_is_met_by_the_right_ones(store: Store, space: Workspace) -> None:
    with pytest.raises(UsageError, match="the store is empty"):
        store.entry("one")
    made.put(store, space)
    for name in ("on", "../one", ""):
        with pytest.raises(UsageError, match="known names: one"):
            store.entry(name)


def test_two_at_one_entry_and_two_at_two(store: Store) -> None:
    with store.hold("one", purpose="setup-mlir --env dev"):
        with pytest.raises(LockedError) as caught, store.hold("one", purpose="store.gc"):
            pytest.fail("two hold one entry")
        with store.hold("two", purpose="store.gc"):
            pass
    assert "another run is busy with one in the store of LLVMs" in str(caught.value)
    assert "runs `setup-mlir --env dev` since 2" in str(caught.value)


def test_who_builds_an_entry_again_stops_its_deletion(store: Store) -> None:
    grave = store_entry.tombstone(store.root, "one")
    grave.touch()
    with store.hold("one", purpose="setup-mlir"):
        assert not grave.exists()


def test_a_store_outside_of_the_workspace_is_marked_itself(space: Workspace, tmp_path: Path) -> None:
    shared = tmp_path / "shared store"
    store = made.store_in(space, str(shared))
    assert files.is_marked(shared)
    assert (store.root, store.owner) == (shared, shared)
    made.put(store, space)
    assert status(store) == {"one": "ready"}
    inside = open_store(space, str(space.root / "more" / "llvm"))
    assert inside.owner == space.root
    assert open_store(space, "~/llvm").root == Path("~/llvm").expanduser()


def test_neither_a_file_nor_a_folder_of_somebody_else_is_a_store(space: Workspace, tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    file = tmp_path / "theirs" / "file"
    file.touch()
    with pytest.raises(FactError, match="not a folder"):
        open_store(space, str(file))
    with pytest.raises(FactError, match="not a store of LLVMs"):
        open_store(space, str(tmp_path / "theirs"))
    for folder in (space.root, tmp_path, Path("/")):
        with pytest.raises(FactError, match="cannot be or contain the workspace"):
            open_store(space, str(folder))
    late = open_store(space, str(tmp_path / "late"))
    late.root.mkdir()
    (late.root / "theirs").touch()  # between the look and the claim
    with pytest.raises(OwnershipError, match="--store PATH"):
        late.claim()
    with pytest.raises(SmithError, match=r"no folder|cannot write"):
        open_store(space, str(file / "below")).claim()


def test_another_workspace_is_no_store(space: Workspace, tmp_path: Path) -> None:
    other = Workspace(tmp_path / "other")
    made.store_in(other)
    (other.root / "envs").mkdir()
    with pytest.raises(FactError, match="not a store of LLVMs"):
        open_store(space, str(other.root))
    assert open_store(space, str(other.llvm)).entries() == ()  # whose store it is, to be read


def test_a_claim_that_was_stopped_goes_on(space: Workspace, tmp_path: Path) -> None:
    root = tmp_path / "store"
    files.mark(root)
    (root / "users").mkdir()
    store = open_store(space, str(root))
    store.claim()
    assert made.put(store, space).name == "one"
    assert open_store(space, str(root)) == store


def test_when_an_entry_was_used(store: Store, space: Workspace) -> None:
    made.put(store, space)
    made.age(store.manifest("one"), 1000)
    before = store.last_used(store.entry("one"))
    made.act(space, *store.record_use("one", datetime(2026, 1, 1, tzinfo=UTC)))
    assert store.last_used(store.entry("one")) > before + 900
    (store.path("two")).mkdir()
    made.age(store.path("two"), 5000)
    assert store.last_used(store.entry("two")) < before
    (store.path("two") / ".ninja_log").touch()
    assert store.last_used(store.entry("two")) > before
