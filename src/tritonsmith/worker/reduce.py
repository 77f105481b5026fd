"""Run passes on one piece of IR after the other.

A request is a line of JSON on standard input, an answer one on standard output. libtriton is loaded once;
each request runs in its own child process, so that a crash is an answer.
"""

from __future__ import annotations

import json
import os
import sys
from functools import partial
from typing import Any

from .forked_call import in_child
from .generic import text_of
from .libtriton import UnusableError, add, context_of, library, load
from .refusal import EXIT_REFUSED
from .replay import write

# In the log: the IR was parsed, and the passes begin. An earlier failure is not theirs.
MARK = "=== passes ===\n"


def answer_requests() -> int:
    """Answer requests until the input ends."""
    try:
        lib = load(library())
    except (UnusableError, ImportError) as error:
        print(json.dumps({"refused": str(error)}), flush=True)
        return EXIT_REFUSED
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        answer = in_child(partial(run, lib, request), request["log"], request["timeout"])
        print(json.dumps({key: answer.get(key, "") for key in ("status", "error", "seconds")}), flush=True)
    return 0


def run(lib: Any, request: Any) -> None:
    """Parse, run the passes, and write the output or its generic form, if requested; runs in the child."""
    context = context_of(lib)
    if hasattr(context, "disable_multithreading"):
        context.disable_multithreading()
    module = lib.ir.parse_mlir_module(request["input"], context)
    if request["calls"]:
        manager = lib.ir.pass_manager(context)
        for call in request["calls"]:
            add(lib, manager, call["binding"], call["arguments"])
        os.write(2, MARK.encode())
        tagged = ": str" in (manager.run.__doc__ or "")  # since 3.5: a name for the reproducer
        manager.run(module, *(["reduce"] if tagged else []))
    if request["generic"]:
        write(request["out"], text_of(lib, context, module))
    elif request["out"]:
        text = module.str_nodebug() if hasattr(module, "str_nodebug") else str(module)  # since 3.3
        write(request["out"], text)
