"""Many units at once: what comes back, what is not done again, and what happens when a process dies."""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from tests.support import all_gone, command_of
from tests.unit.lab.compare import compiler
from tritonsmith.compiler import manifest, targets, tritons
from tritonsmith.compiler.manifest import Manifest
from tritonsmith.compiler.request import CompileRequest, Sweep
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import FactError, InterruptedRunError, UsageError
from tritonsmith.lab.batch import kept, run
from tritonsmith.lab.batch.kept import CompileJob

BOTH = targets.parse_all(["a100", "mi300x"])


# Where the subject is not the processes: a spawned one takes a third of a second to import the tool.
in_threads = pytest.mark.usefixtures("in_threads")


def job(tmp_path: Path, file: Path, words: str, out: str) -> CompileJob:
    """A kernel for one side, with both targets."""
    return CompileJob(CompileRequest(file, "", "*fp32,64", BOTH), tritons.parse(words), tmp_path / out)


@pytest.mark.slow
def test_results_come_in_the_order_of_the_jobs(tmp_path: Path) -> None:
    old, new = (compiler.make(tmp_path / version, version) for version in ("3.2.0", "3.4.0"))
    first, second = compiler.kernel(tmp_path, "one"), compiler.kernel(tmp_path, "two", "tell")
    jobs = [job(tmp_path, file, f"{python}", f"{file.stem}-{number}")
            for number, python in enumerate((old, new)) for file in (first, second)]  # fmt: skip
    made = run.compile_all(jobs, count=2, silent=True)
    assert [(one.kernel, one.triton) for one in made] == [
        ("one", "3.2.0"), ("two", "3.2.0"), ("one", "3.4.0"), ("two", "3.4.0"),
    ]  # fmt: skip
    for one, wanted in zip(made, jobs, strict=True):
        assert one == manifest.read(wanted.out)
        assert [point.target for point in one.points] == ["cuda:80:32", "hip:gfx942:64"]
        path = one.path(one.points[0], "ptx")
        assert path is not None
        assert path.read_text() == (str(second) if one.kernel == "two" else "// ptx")
    space = workspace.default().root / "kernels"
    assert not list((space / "units").iterdir())
    assert not list((space / "work").iterdir())


@in_threads
def test_what_is_there_is_not_compiled_again(tmp_path: Path) -> None:
    python = compiler.make(tmp_path / "venv")
    file = compiler.kernel(tmp_path)
    wanted = job(tmp_path, file, f"{python},a100", "out")
    run.compile_all([wanted], count=1, resume=True, silent=True)
    assert compiler.compiled(python) == ["k cuda-80-32"]
    more = job(tmp_path, file, f"{python},mi300x,a100", "out")
    (made,) = run.compile_all([more], count=1, resume=True, silent=True)
    assert compiler.compiled(python) == ["k cuda-80-32", "k hip-gfx942-64"]
    assert [point.target for point in made.points] == ["hip:gfx942:64", "cuda:80:32"]
    assert run.compile_all([more], count=1, resume=True, silent=True) == [made]
    assert len(compiler.compiled(python)) == 2
    run.compile_all([more], count=1, silent=True)  # nobody asked for what is there
    assert len(compiler.compiled(python)) == 4


def test_what_was_noted_of_each_part_is_noted_of_the_whole(tmp_path: Path) -> None:
    one = job(tmp_path, compiler.kernel(tmp_path), f"{compiler.make(tmp_path / 'venv')},mi300x,a100", "out")
    empty = Manifest(tmp_path, "k", "k.py", "", "", "", "", "", ())
    parts = [
        replace(empty, stand_ins={"torch.x": "k.py:1"}, warnings=("a", "b")),
        replace(empty, stand_ins={"torch.y": "k.py:2"}, warnings=("b", "c")),
    ]
    whole = kept.merged(one, "wheel", parts)
    assert whole.stand_ins == {"torch.x": "k.py:1", "torch.y": "k.py:2"}
    assert whole.warnings == ("a", "b", "c")


@in_threads
@pytest.mark.parametrize("change", ["file", "options", "lost", "triton", "crash", "checkout"])
def test_what_has_changed_is_compiled_again(change: str, tmp_path: Path) -> None:
    python = compiler.make(tmp_path / "venv")
    site = tmp_path / "venv" / "lib" / "python3.11" / "site-packages"
    if change == "checkout":  # somebody builds it: its version stays
        shutil.rmtree(site / "triton")
        (site / "triton-3.4.0.dist-info").mkdir()
        (site / "triton-3.4.0.dist-info" / "METADATA").write_text("Name: triton\nVersion: 3.4.0\n")
    file = compiler.kernel(tmp_path, remark="crash" if change == "crash" else "")
    wanted = job(tmp_path, file, f"{python},a100", "out")
    run.compile_all([wanted], count=1, resume=True, silent=True)
    if change == "file":
        compiler.kernel(tmp_path, remark="new")
    elif change == "options":
        wanted = job(tmp_path, file, f"{python},a100,num_warps=8", "out")
    elif change == "lost":
        (tmp_path / "out" / "cuda-80-32" / "k.ptx").unlink()
    elif change == "triton":
        (site / "triton" / "__init__.py").write_text('__version__ = "3.5.0"\n')
    run.compile_all([wanted], count=1, resume=True, silent=True)
    assert len(compiler.compiled(python)) == 2


@pytest.mark.slow
def test_a_large_sweep_is_cut_and_put_together(tmp_path: Path) -> None:
    python = compiler.make(tmp_path / "venv")
    sizes = tuple(str(2**number) for number in range(20))
    asked = CompileRequest(compiler.kernel(tmp_path), "k", "*fp32", BOTH, sweeps=(Sweep("N", sizes),))
    (made,) = run.compile_all(
        [CompileJob(asked, tritons.parse(str(python)), tmp_path / "out")], count=2, silent=True
    )
    ids = [f"{target},N={size}" for target in ("cuda-80-32", "hip-gfx942-64") for size in sizes]
    assert [point.id for point in made.points] == ids
    assert manifest.read(tmp_path / "out") == made


@pytest.mark.slow
def test_a_process_that_is_killed_is_replaced(tmp_path: Path) -> None:
    python = compiler.make(tmp_path / "venv")
    good = compiler.kernel(tmp_path, "good")
    once = compiler.kernel(tmp_path, "once", "die once")
    always = compiler.kernel(tmp_path, "always", "die always")
    jobs = [job(tmp_path, file, str(python), file.stem) for file in (once, good, always)]
    made = run.compile_all(jobs[:2], count=2, silent=True)
    assert [point.status for one in made for point in one.points] == ["ok"] * 4
    made = run.compile_all(jobs[1:], count=2, silent=True)
    assert [point.status for one in made for point in one.points] == ["ok", "ok", "crashed", "crashed"]
    assert "the compiling process died" in made[1].points[0].error
    assert manifest.read(tmp_path / "always") == made[1]


@in_threads
def test_what_is_refused_is_a_row_unless_everything_is(tmp_path: Path) -> None:
    python = compiler.make(tmp_path / "venv")
    good, bad = compiler.kernel(tmp_path, "good"), compiler.kernel(tmp_path, "bad", "refuse")
    jobs = [job(tmp_path, file, str(python), file.stem) for file in (good, bad)]
    made = run.compile_all(jobs, count=1, silent=True)
    assert [(point.status, point.error) for point in made[1].points] == [("failed", "it is refused")] * 2
    with pytest.raises(FactError, match="it is refused"):
        run.compile_all(jobs[1:], count=1, silent=True)
    # A sweep of two units counts as one job: beside a good kernel it is a row, and alone an error.
    sizes = Sweep("N", tuple(map(str, range(17))))
    swept = CompileJob(
        CompileRequest(bad, "bad", "*fp32", BOTH, sweeps=(sizes,)),
        tritons.parse(str(python)),
        tmp_path / "swept",
    )
    made = run.compile_all([jobs[0], swept], count=1, silent=True)
    assert {point.status for point in made[0].points} == {"ok"}
    assert {point.error for point in made[1].points} == {"it is refused"}
    with pytest.raises(FactError, match="it is refused"):
        run.compile_all([swept], count=1, silent=True)
    long = CompileJob(
        CompileRequest(good, "", "*fp32,64,32,16", BOTH), tritons.parse(str(python)), tmp_path / "long"
    )
    with pytest.raises(UsageError, match="has 4 entries"):
        run.compile_all([long], count=1, silent=True)


@pytest.mark.slow
def test_interrupted_it_leaves_no_process(tmp_path: Path) -> None:
    python = compiler.make(tmp_path / "venv")
    jobs = [
        job(tmp_path, compiler.kernel(tmp_path, name, "hang"), str(python), name) for name in ("a", "b", "c")
    ]
    before = psutil.Process().children(recursive=True)  # git, which GitPython keeps for other tests
    family: list[psutil.Process] = []

    def interrupt() -> None:
        while len(compiler.compiled(python)) < 4:  # two targets of two kernels
            time.sleep(0.01)
        family.extend(one for one in psutil.Process().children(recursive=True) if one not in before)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(InterruptedRunError) as caught:
        run.compile_all(jobs, count=2, silent=True)
    assert not caught.value.hints  # nothing goes on from here: only a study keeps what is there
    thread.join()
    workers = [one for one in family if "resource_tracker" not in command_of(one)]
    assert len(family) >= 4
    assert all_gone(workers)
