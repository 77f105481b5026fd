"""Runs passes on one piece of IR after the other, in an interpreter that has Triton 3.0 or later.

    python worker.py REPLAY_WORKER

A request is a line of JSON on standard input, an answer one on standard output. libtriton is loaded once;
each request runs in a child of its own, so that a crash is an answer. As passes/replay/worker.py, whose
functions it uses: one file, Triton and the standard library, Python 3.8 and later.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from functools import partial
from typing import Any

# In the log: the IR was parsed, and the passes begin. What fails before is no failure of theirs.
MARK = "=== passes ===\n"


def load(path: str) -> Any:
    """The module of replay's worker."""
    spec = importlib.util.spec_from_file_location("replay_worker", path)
    assert spec is not None  # noqa: S101 - for the type checker
    assert spec.loader is not None  # noqa: S101
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(replay: Any, lib: Any, request: Any) -> None:
    """In the child: parse, run the passes, write what came out where a file is named."""
    context = replay.context_of(lib)
    if hasattr(context, "disable_multithreading"):
        context.disable_multithreading()
    module = lib.ir.parse_mlir_module(request["input"], context)
    if request["calls"]:
        manager = lib.ir.pass_manager(context)
        for call in request["calls"]:
            replay.add(lib, manager, call["binding"], call["arguments"])
        os.write(2, MARK.encode())
        tagged = ": str" in (manager.run.__doc__ or "")  # since 3.5: a name for the reproducer
        manager.run(module, *(["reduce"] if tagged else []))
    if request["out"]:
        text = module.str_nodebug() if hasattr(module, "str_nodebug") else str(module)  # since 3.3
        replay.write(request["out"], text)


def main(path: str) -> int:
    """Answer requests until there are no more."""
    replay = load(path)
    try:
        lib = replay.load(replay.library())
    except (replay.UnusableError, ImportError) as error:
        print(json.dumps({"refused": str(error)}), flush=True)
        return int(replay.EXIT_REFUSED)
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        answer = replay.in_child(partial(run, replay, lib, request), request["log"], request["timeout"])
        print(json.dumps({key: answer.get(key, "") for key in ("status", "error", "seconds")}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
