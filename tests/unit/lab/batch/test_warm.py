"""Units that are compiled by a worker which has imported Triton: which worker, and what if it is no use."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from tests.support import all_gone, command_of
from tests.unit.lab.compare import compiler
from tritonsmith.compiler import call, targets, tritons
from tritonsmith.compiler.manifest import Manifest
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import FactError, InterruptedRunError, SmithError
from tritonsmith.core.plan import Run, stopping
from tritonsmith.lab.batch import pool, run, work_unit
from tritonsmith.lab.batch.kept import CompileJob

A100 = targets.parse_all(["a100"])


@pytest.fixture(autouse=True)
def workers(monkeypatch: pytest.MonkeyPatch) -> Iterator[call.WarmWorkers]:
    """The workers of this test alone."""
    made = call.WarmWorkers()
    monkeypatch.setattr(work_unit, "_WORKERS", made)
    yield made
    made.close()


def compiled(file: Path, python: Path) -> Manifest | SmithError:
    place = tritons.place_of(tritons.parse(str(python)), 1, 60, "wheel")
    request = CompileRequest(file, "", "*fp32,64", A100)
    made = work_unit.compile_here(request, place, file.parent / "out" / file.stem / python.parents[1].name)
    assert not isinstance(made, work_unit.PackedResult)
    return made


def test_an_interpreter_is_started_once(tmp_path: Path) -> None:
    old, new = (compiler.make(tmp_path / version, version) for version in ("3.2.0", "3.4.0"))
    for name in ("one", "two", "three"):
        for python in (old, new):
            manifest = compiled(compiler.kernel(tmp_path, name), python)
            assert isinstance(manifest, Manifest)
            assert [point.status for point in manifest.points] == ["ok"]
            assert manifest.triton == python.parents[1].name
    assert compiler.starts(old) == compiler.starts(new) == ["attend"]
    assert not list((workspace.default().root / "kernels" / "work").iterdir())


def test_the_one_that_is_used_least_recently_gives_way(tmp_path: Path) -> None:
    first, *others = (compiler.make(tmp_path / str(number)) for number in range(4))
    file = compiler.kernel(tmp_path)
    before = psutil.Process().children()  # of other tests
    for python in (first, *others[:2], first, others[2], first, others[0]):
        compiled(file, python)
    starts = [len(compiler.starts(python)) for python in (first, *others)]
    assert starts == [1, 2, 1, 1]
    assert len(set(psutil.Process().children()) - set(before)) <= 3


def test_what_ends_the_worker_costs_only_the_worker(tmp_path: Path) -> None:
    python = compiler.make(tmp_path / "venv")
    for name, remark in (("one", ""), ("two", "leave"), ("three", "")):
        manifest = compiled(compiler.kernel(tmp_path, name, remark), python)
        assert isinstance(manifest, Manifest)
        assert [point.status for point in manifest.points] == ["ok"]
    assert compiler.starts(python) == ["attend", "compile", "attend"]


def test_workers_that_die_one_after_the_other_are_left_alone(tmp_path: Path) -> None:
    python = compiler.make(tmp_path / "venv")
    for number in range(5):
        compiled(compiler.kernel(tmp_path, f"k{number}", "leave"), python)
    assert compiler.starts(python) == ["attend", "compile"] * 3 + ["compile"] * 2


def test_a_refusal_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = compiler.make(tmp_path / "venv")
    bad = compiler.kernel(tmp_path, "bad", "refuse")
    warm = compiled(bad, python)
    assert compiler.starts(python) == ["attend"]
    monkeypatch.setattr(call, "_DEATHS", 0)
    cold = compiled(bad, python)
    assert compiler.starts(python) == ["attend", "compile"]
    assert isinstance(warm, FactError)
    assert isinstance(cold, FactError)
    assert (warm.what, warm.where, warm.why) == (cold.what, cold.where, cold.why)


def test_the_command_and_what_was_printed_are_in_the_log(tmp_path: Path) -> None:
    compiled(compiler.kernel(tmp_path), compiler.make(tmp_path / "venv"))
    (log,) = workspace.default().root.glob("logs/*-kernel.compile-*.log")
    text = log.read_text()
    assert f"{shlex.quote(str(call._MAIN.parent))} compile " in text
    assert "exit code 0, of a worker that had imported Triton" in text


def test_a_worker_outlives_the_thread_that_it_was_started_for(tmp_path: Path) -> None:
    python = compiler.make(tmp_path / "venv")
    for name in ("one", "two"):
        thread = threading.Thread(target=compiled, args=(compiler.kernel(tmp_path, name), python))
        thread.start()
        thread.join()
    assert compiler.starts(python) == ["attend"]


def test_threads_that_compile_at_once_have_a_worker_each(
    tmp_path: Path, workers: call.WarmWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = compiler.make(tmp_path / "venv")
    at_once = threading.Barrier(2, timeout=60)
    real = call.Conversation.hear

    def hear(self: call.Conversation, row: type[call.Row]) -> call.Row:
        at_once.wait()
        return real(self, row)

    monkeypatch.setattr(call.Conversation, "hear", hear)
    before = psutil.Process().children()
    with ThreadPoolExecutor(2) as threads:
        files = [compiler.kernel(tmp_path, f"k{number}") for number in range(4)]
        manifests = list(threads.map(lambda file: compiled(file, python), files))
    assert all(isinstance(manifest, Manifest) for manifest in manifests)
    assert compiler.starts(python) == ["attend"] * 2
    family = set(psutil.Process().children()) - set(before)
    assert len(family) == 2
    workers.close()
    assert all_gone(family)


def test_a_worker_that_imported_other_files_is_not_asked(tmp_path: Path) -> None:
    python = compiler.make(tmp_path / "venv")
    job = work_unit.pack(
        CompileRequest(compiler.kernel(tmp_path), "", "*fp32,64", A100), tritons.parse(str(python)), 60, ""
    )
    site = next((tmp_path / "venv").glob("lib/*/site-packages"))
    for number in range(3):
        assert isinstance(work_unit.compile_there(job), work_unit.RemoteResult)
        assert isinstance(work_unit.compile_there(job), work_unit.RemoteResult)
        # Triton itself, then a package beside it.
        (site / ("triton/other.py" if number == 0 else "torch.py")).write_text("")
    assert compiler.starts(python) == ["attend"] * 3


def test_a_worker_that_nobody_asks_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call, "_UNUSED", 0.1)
    python = compiler.make(tmp_path / "venv")
    before = psutil.Process().children()
    compiled(compiler.kernel(tmp_path, "one"), python)
    until = time.monotonic() + 60
    while set(psutil.Process().children()) - set(before):
        assert time.monotonic() < until
        time.sleep(0.05)
    compiled(compiler.kernel(tmp_path, "two"), python)
    assert compiler.starts(python) == ["attend"] * 2


def test_a_thread_that_is_interrupted_ends_what_it_waits_for(tmp_path: Path) -> None:
    """Whether a worker compiles or a process of its own, as of a worker that died before."""
    python = compiler.make(tmp_path / "venv")
    before = psutil.Process().children()
    for remark in ("hang", "leave hang"):
        file = compiler.kernel(tmp_path, "k", remark)
        count = len(compiler.compiled(python)) + (2 if "leave" in remark else 1)
        with stopping.interruptible(lambda: len(compiler.compiled(python)) == count) as interruption:  # noqa: B023
            assert isinstance(compiled(file, python), InterruptedRunError)
        assert interruption.happened
    assert compiler.starts(python) == ["attend", "attend", "compile"]
    assert not set(psutil.Process().children()) - set(before)


def test_a_path_that_cannot_be_said_goes_the_other_way(tmp_path: Path, workers: call.WarmWorkers) -> None:
    python = compiler.make(tmp_path / "venv")
    step = Run((str(python), "worker", "compile", "/no\udce9/request.json"), tmp_path / "w", phase="")
    (tmp_path / "w").mkdir()
    assert workers.answer(step) is None


@pytest.mark.parametrize(
    ("count", "tritons_of_units", "taken"),
    [
        # Each process its own Triton, until there is nothing else.
        (2, "abababb", [(0, "a"), (1, "b"), (0, "a"), (0, "a"), (1, "b"), (0, "b"), (0, "b")]),
        # One process, which has room for all: a kernel's results come together.
        (1, "abcabc", [(0, "a"), (0, "b"), (0, "c"), (0, "a"), (0, "b"), (0, "c")]),
        # No room for the fourth, which is therefore last.
        (1, "abcdabcd", [(0, part) for part in "abcabcdd"]),
        (2, "abcdabcd", [(0, "a"), (1, "b"), (0, "c"), (1, "d"), (1, "b"), (1, "d"), (0, "a"), (0, "c")]),
    ],
)
def test_a_process_takes_what_its_workers_can_compile(
    count: int, tritons_of_units: str, taken: list[tuple[int, str]]
) -> None:
    processes = pool.Processes(count)
    for name in tritons_of_units:
        processes._waiting.append(pool._Waiting(Future(), name, lambda: None))
        processes._tritons.setdefault(name, False)
    threads = [ThreadPoolExecutor(1) for _ in range(count)]
    found = [(number, threads[number].submit(processes._taken).result().triton) for number, _ in taken]
    assert found == taken
    for thread in threads:
        thread.shutdown()
    processes.shutdown()


@pytest.mark.slow
def test_a_pool_starts_an_interpreter_once(tmp_path: Path) -> None:
    pythons = [compiler.make(tmp_path / version, version) for version in ("3.2.0", "3.4.0")]
    jobs = [
        CompileJob(
            CompileRequest(compiler.kernel(tmp_path, name), "", "*fp32,64", A100),
            tritons.parse(str(python)),
            tmp_path / "out" / f"{name}-{python.parents[1].name}",
        )
        for name in ("one", "two", "three")
        for python in pythons
    ]
    made = run.compile_all(jobs, count=1, silent=True)
    assert [point.status for manifest in made for point in manifest.points] == ["ok"] * 6
    assert [compiler.starts(python) for python in pythons] == [["attend"]] * 2


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_of_a_tool_that_ends_nothing_goes_on(number: signal.Signals, tmp_path: Path) -> None:
    python = compiler.make(tmp_path / "venv")
    files = [compiler.kernel(tmp_path, "good"), compiler.kernel(tmp_path, "long", "hang")]
    program = f"""
from pathlib import Path
from tritonsmith.compiler import targets, tritons
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.lab.batch import pool, run, work_unit
from tritonsmith.lab.batch.kept import CompileJob
if __name__ == "__main__":
    run.compile_all([
        CompileJob(
            CompileRequest(Path(file), "", "*fp32,64", targets.parse_all(["a100"])),
            tritons.parse({str(python)!r}),
            Path(file + ".out"),
        )
        for file in {list(map(str, files))!r}
    ], count=1, silent=True)
"""
    (tmp_path / "program.py").write_text(program)
    environ = {**os.environ, "TRITONSMITH_HOME": str(workspace.default().root)}
    process = subprocess.Popen(
        [sys.executable, str(tmp_path / "program.py")],
        env=environ,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    until = time.monotonic() + 60
    while not compiler.compiled(python):  # the longer file comes first, and hangs
        assert time.monotonic() < until
        time.sleep(0.05)
    family = psutil.Process(process.pid).children(recursive=True)
    assert any("attend" in command_of(one) for one in family)
    assert compiler.starts(python) == ["attend"]
    os.kill(process.pid, number)
    process.wait(60)
    assert all_gone([one for one in family if "resource_tracker" not in command_of(one)])
