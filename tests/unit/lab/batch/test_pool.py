"""What comes back from a pool whose workers refuse, die or say nothing; and in which order units begin."""

from __future__ import annotations

from concurrent.futures import Executor, Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.unit.lab.compare import compiler
from tritonsmith.compiler import targets, tritons
from tritonsmith.compiler.manifest import Manifest
from tritonsmith.compiler.request import CompileRequest, Sweep
from tritonsmith.core.errors import FactError
from tritonsmith.lab.batch import pool, run, work_unit
from tritonsmith.lab.batch.kept import CompileJob
from tritonsmith.lab.batch.pool import ExecutorPool, LostError
from tritonsmith.lab.batch.work_unit import UnfitWorkerError


class Workers(Executor):
    """A cluster: what a worker answers is what the unit says of it."""

    def __init__(self, *names: str) -> None:
        self.names, self.chosen = names, list[str]()

    def submit(self, fn: Any, /, *args: Any, workers: Any = (), **_: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.chosen.append(next(iter(workers), self.names[0]))
        future.set_result(fn(*args, worker=self.chosen[-1]))
        return future


def remote(workers: Workers) -> ExecutorPool:
    return ExecutorPool(workers, 1, remote=True, workers=lambda: workers.names)


def refusal(worker: str) -> UnfitWorkerError:
    error = UnfitWorkerError("another Triton (3.5.0) is there")
    error.worker = worker
    return error


def answer(fits: str, worker: str = "") -> str | UnfitWorkerError:
    return "done" if worker == fits else refusal(worker)


@pytest.mark.parametrize(("fits", "end"), [("a", "done"), ("c", "done"), ("nobody", "refused")])
def test_a_unit_goes_on_to_a_worker_that_can_run_it(fits: str, end: str) -> None:
    workers, unfit = Workers("a", "b", "c"), set[str]()
    cluster = remote(workers)

    def again(unit: str, result: Any) -> Future[Any] | None:
        if isinstance(result, str):
            return None
        unfit.add(result.worker)
        return cluster.submit_elsewhere(unfit, answer, unit)

    pending = {workers.submit(answer, fits): fits}
    ((unit, result),) = cluster.results(pending, again)
    assert (unit, result if isinstance(result, str) else "refused") == (fits, end)
    assert workers.chosen == {"a": ["a"], "c": ["a", "b", "c"], "nobody": ["a", "b", "c"]}[fits]
    assert not pending  # a future that somebody holds keeps the result in the memory of its worker


@pytest.mark.parametrize(("names", "what"), [(("a",), "no worker has answered"), ((), "no worker is left")])
def test_what_never_comes_is_given_up(
    names: tuple[str, ...], what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "_TICK", 0.01)
    monkeypatch.setattr(pool, "_ALONE", 0.02)
    done: Future[str] = Future()
    done.set_result("done")
    pending: dict[Future[Any], int] = {done: 1, Future(): 2, Future(): 3}
    results: dict[int, Any] = dict(remote(Workers(*names)).results(pending, patience=0.05))
    assert results.pop(1) == "done"
    assert {type(lost) for lost in results.values()} == {LostError}
    assert all(what in str(lost) for lost in results.values())


def unit(
    folder: Path, name: str, signature: str, text: str = "", sweeps: tuple[Sweep, ...] = ()
) -> run._Unit:
    file = compiler.kernel(folder, name)
    file.write_text(f"{file.read_text()}    {text}\n\nLONG = {'x' * 5000!r}\n")
    both = targets.parse_all(["a100", "mi300x"])
    request = CompileRequest(file, name, signature, both, sweeps=sweeps)
    job = CompileJob(request, tritons.parse("3.6.0"), folder / "3.6.0" / name)
    return run._Unit(job, request, None)


def test_the_longest_is_first(tmp_path: Path) -> None:
    units = [
        unit(tmp_path, "small", "*fp32,64"),
        unit(tmp_path, "large_tile", "p=*fp32, N = 4096"),
        unit(tmp_path, "long", "*fp32,64", text="; ".join(["pass"] * 400)),
        unit(tmp_path, "swept", "*fp32", sweeps=(Sweep("N", ("64", "128")),)),
    ]
    names = [row.request.kernel for _, row in run._in_order(units, {})]
    assert names == ["long", "swept", "large_tile", "small"]
    # What another Triton took tells more; of the others it tells how many seconds their sizes stand for.
    lengths = {
        row.request.kernel: seconds for seconds, row in run._in_order(units, {"small": 90.0, "long": 1.0})
    }
    assert (lengths["small"], lengths["long"]) == (180.0, 2.0)
    other = replace(units[2].job, triton=tritons.parse("3.9.0"))
    later = [replace(units[2], job=other), *units]
    order = [(row.job.triton.label, row.request.kernel) for _, row in run._in_order(later, {})]
    assert order[0] == ("3.9.0", "long")  # the Triton that is named first goes first, with all of its units
    assert order[1] == ("3.6.0", "long")


def test_a_refusal_by_workers_decides_nothing(tmp_path: Path) -> None:
    wanted = unit(tmp_path, "k", "*fp32,64")
    for error, status in (
        (refusal("a"), "lost"),
        (LostError("no worker is left"), "lost"),
        (FactError("it is refused"), "failed"),
    ):
        made: Manifest = run._refusal(wanted, error, "wheel")
        assert {point.status for point in made.points} == {status}
        assert not made.file_sha256  # so that the next run tries again


def test_a_worker_of_another_version_is_refused(tmp_path: Path) -> None:
    python = compiler.make(tmp_path / "venv")
    request = CompileRequest(compiler.kernel(tmp_path), "", "*fp32,64", targets.parse_all(["a100"]))
    side = tritons.parse(str(python))
    mark = run._fingerprint(side, "")
    assert mark == tritons.fingerprint(python)
    sent = work_unit.pack(request, side, 60, "wheel", mark)
    assert isinstance(work_unit.compile_there(sent), work_unit.RemoteResult)
    other = work_unit.compile_there(replace(sent, fingerprint="0" * 16))
    assert isinstance(other, UnfitWorkerError)
    assert other.what == "another Triton (3.4.0) is there"
    older = work_unit.compile_there(replace(sent, tool="0" * 16))
    assert isinstance(older, UnfitWorkerError)
    assert "another tritonsmith" in older.what
