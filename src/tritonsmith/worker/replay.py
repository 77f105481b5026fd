"""Run single passes, each on its own input."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, TextIO

from .border import EXIT_REFUSED, WorkerRefusal, read_request, refusal_text, text_of
from .forked_call import in_child
from .libtriton import UnusableError, add, context_of, library, load
from .messages import CallRequest, ReplayedRow, ReplayJobRequest, ReplayRequest


def replay_all(request_path: str) -> int:
    """Run every job of a request; results go to the file that it names."""
    request = read_request(ReplayRequest, request_path)
    with open(request.results, "w", encoding="utf-8") as results:
        return write_rows(replay(request), results)


def write_rows(rows: Iterator[Any], out: TextIO) -> int:
    """Write rows as they come, and return the exit code."""
    try:
        for row in rows:
            out.write(text_of(row) + "\n")
            out.flush()
    except (UnusableError, ImportError) as error:
        out.write(refusal_text(WorkerRefusal("unusable", str(error))) + "\n")
        return EXIT_REFUSED
    return 0


def replay(request: ReplayRequest) -> Iterator[ReplayedRow]:
    """Run passes on their inputs."""
    lib = load(library())
    for job in request.jobs:
        answer = in_child(partial(_replay, lib, job), job.log, request.timeout)
        yield ReplayedRow(answer["status"], answer.get("error", ""), answer["seconds"], job.number)
        print(f"[{job.number}] {answer['status']}", flush=True)


def _replay(lib: Any, job: ReplayJobRequest) -> None:
    context = context_of(lib)
    module = lib.ir.parse_mlir_module(job.input, context)
    manager = lib.ir.pass_manager(context)
    add_all(lib, manager, job.calls)
    run_passes(manager, module, "replay")
    write(job.out, str(module))


def add_all(lib: Any, manager: Any, calls: Iterable[CallRequest]) -> None:
    """Add passes to a pass manager."""
    for call in calls:
        add(lib, manager, call.binding, call.arguments)


def run_passes(manager: Any, module: Any, name: str) -> None:
    """Run the passes; `name` is for the reproducer, which has one since 3.5."""
    tagged = ": str" in (manager.run.__doc__ or "")
    manager.run(module, *([name] if tagged else []))


def write(path: str, text: str) -> None:
    """Write the whole content of a file."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
