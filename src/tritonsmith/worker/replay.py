"""Run single passes, each on its own input."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from .forked_call import in_child
from .libtriton import UnusableError, add, context_of, library, load
from .refusal import EXIT_REFUSED

if TYPE_CHECKING:
    from .json_types import Table


def replay_all(request_path: str) -> int:
    """Run every job of a request; results go to the file that it names."""
    with open(request_path, encoding="utf-8") as file:
        request = json.load(file)
    with open(request["results"], "w", encoding="utf-8") as results:
        return write_rows(replay(request), results)


def write_rows(rows: Iterator[Table], out: Any) -> int:
    """Write rows as they come, and return the exit code."""
    try:
        for row in rows:
            out.write(json.dumps(row) + "\n")
            out.flush()
    except (UnusableError, ImportError) as error:
        out.write(json.dumps({"refused": str(error)}) + "\n")
        return EXIT_REFUSED
    return 0


def replay(request: Table) -> Iterator[Table]:
    """Run passes on their inputs."""
    lib = load(library())
    for job in request["jobs"]:
        answer = in_child(partial(_replay, lib, job), job["log"], request["timeout"])
        yield {
            "number": job["number"],
            **{key: answer.get(key, "") for key in ("status", "error", "seconds")},
        }
        print(f"[{job['number']}] {answer['status']}", flush=True)


def _replay(lib: Any, job: Table) -> None:
    context = context_of(lib)
    module = lib.ir.parse_mlir_module(job["input"], context)
    manager = lib.ir.pass_manager(context)
    for call in job["calls"]:
        add(lib, manager, call["binding"], call["arguments"])
    tagged = ": str" in (manager.run.__doc__ or "")  # since 3.5: a name for the reproducer
    manager.run(module, *(["replay"] if tagged else []))
    write(job["out"], str(module))


def write(path: str, text: str) -> None:
    """Write the whole content of a file."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
