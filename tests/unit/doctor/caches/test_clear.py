"""What a clear takes, and what it leaves."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.unit.doctor.caches import made
from tritonsmith.core.errors import UsageError
from tritonsmith.core.plan.steps.cache_entries import RemoveEntries
from tritonsmith.core.untrusted import TRASH
from tritonsmith.doctor import cache_clear, cache_list
from tritonsmith.doctor.cache_clear import Filters, Living, PreparedClear
from tritonsmith.facts.installed_tritons import TritonProcess
from tritonsmith.facts.triton_cache import Root

BUSY = (TritonProcess(4711, "python train.py"),)


def prepare(*roots: Path, living: Living = (), **wanted: object) -> PreparedClear:
    filters = Filters(**wanted)  # type: ignore[arg-type]
    return cache_clear.prepare([made.as_root(root) for root in roots], filters, living=living)


def test_everything_that_is_an_entry_goes_and_nothing_else(root: Path) -> None:
    for era in made.ERAS:
        made.kernel(root, era=era)
    made.launcher(root)
    made.unfinished(root)
    (root / "project").mkdir()
    (root / "notes.txt").write_text("precious")
    prepared = prepare(root)
    cache_clear.execute(prepared)
    assert sorted(path.name for path in root.iterdir()) == ["notes.txt", "project"]
    assert len(prepared.doomed) == 6
    assert cache_clear.still_there(prepared) == ()
    (sentence,) = cache_list.strangers_text(prepared.contents[0])
    assert "skipped: 2" in sentence
    assert "notes.txt" in sentence


def test_a_wrong_root_loses_nothing(tmp_path: Path) -> None:
    project = tmp_path / "projects"
    (project / "deep").mkdir(parents=True)
    (project / made.name_of("md5", 1)).mkdir()
    (project / made.name_of("md5", 1) / "thesis.json").write_text("precious")
    assert prepare(project).plan.steps == ()


def test_the_plan_has_one_step_for_each_cache(root: Path, tmp_path: Path) -> None:
    made.kernel(root)
    made.kernel(tmp_path / "other")
    (tmp_path / "empty").mkdir()
    prepared = prepare(root, tmp_path / "other", tmp_path / "empty")
    assert [step.root for step in prepared.plan.steps if isinstance(step, RemoveEntries)] == [
        root,
        tmp_path / "other",
    ]


def test_a_root_that_is_a_link_is_cleared_where_it_leads(root: Path, tmp_path: Path) -> None:
    made.kernel(root)
    (tmp_path / "alias").symlink_to(root)
    prepared = prepare(tmp_path / "alias")
    assert str(root) in prepared.plan.shell()
    cache_clear.execute(prepared)
    assert list(root.iterdir()) == []
    assert (tmp_path / "alias").is_symlink()


def test_entries_in_use_stay_and_are_told(root: Path) -> None:
    made.kernel(root, "fresh", ago=1)
    made.writing(made.unfinished(root), os.getpid(), ago=-1)
    old = made.kernel(root, "old")
    prepared = prepare(root, living=BUSY)
    assert [entry.name for entry in prepared.doomed] == [old.name]
    (sentence,) = cache_list.kept_text(prepared.in_use)
    assert sentence.startswith("kept, in use: 2 entries")
    assert list(cache_list.kept_text(())) == []


def test_readers_are_given_time_while_somebody_compiles(root: Path) -> None:
    made.kernel(root)
    graces = [step.grace for living in ((), BUSY) for step in prepare(root, living=living).plan.steps]  # type: ignore[attr-defined]
    assert graces[0] == 0 < graces[1]


def test_what_a_stopped_run_left_is_work_to_do(root: Path) -> None:
    made.kernel(root / f"{TRASH}0")
    prepared = prepare(root)
    assert prepared.doomed == ()
    cache_clear.execute(prepared)
    assert list(root.iterdir()) == []


def test_what_is_compiled_again_meanwhile_is_told(root: Path) -> None:
    path = made.kernel(root)
    prepared = prepare(root)
    made.age(path, 1)  # somebody has written to it
    cache_clear.execute(prepared)
    assert [entry.path for entry in cache_clear.still_there(prepared)] == [str(path)]


ROOTS = (
    Root("jit", Path("/a"), "TRITON_CACHE_DIR", current=True),
    Root("jit", Path("/b"), "the default"),
    Root("dump", Path("/c"), "the default"),
    Root("override", Path("/d"), "the default"),
    Root("env", Path("/e"), "environment dev"),
    Root("inductor", Path("/f"), "TorchInductor's default"),
)


def test_only_the_cache_in_use_is_meant_unless_more_is_said() -> None:
    assert cache_clear.select(ROOTS, ()) == ROOTS[:1]
    assert cache_clear.select(ROOTS, ("dump", "inductor")) == (ROOTS[0], ROOTS[2], ROOTS[5])
    assert cache_clear.select(ROOTS, ("jit", "dump", "env", "inductor")) == (*ROOTS[:3], *ROOTS[4:])


def test_a_named_root(root: Path) -> None:
    assert cache_clear.named(str(root)) == Root("named", root, "--root")
    with pytest.raises(UsageError, match="no such folder"):
        cache_clear.named(str(root / "gone"))


def test_a_summary_by_kernel(root: Path) -> None:
    for number in range(4):
        made.kernel(root, "matmul", seed=number)
    for kernel in ("softmax", "relu", "norm"):
        made.kernel(root, kernel)
    made.folder(root, "base32", "empty")
    rows = cache_list.kernels_text(prepare(root).doomed, 2)
    assert rows[0][:3] == ["named", "matmul", "4"]
    assert rows[-1][:3] == ["", "... 3 more kernels", "3"]
    assert ["named", "(unfinished)", "1", "0 B"] in cache_list.kernels_text(prepare(root).doomed, 9)


def test_a_cache_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    prepared = cache_clear.prepare([Root("jit", tmp_path / "file", "x")], Filters(), living=())
    assert list(cache_list.strangers_text(prepared.contents[0])) == [f"cannot read {tmp_path / 'file'}"]
