"""Run passes on one piece of IR after the other.

A request is a line of JSON on standard input, an answer one on standard output. libtriton is loaded once;
each request runs in its own child process, so that a crash is an answer.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import Any

from .border import EXIT_REFUSED, WorkerRefusal, refusal_text, request_of, text_of
from .forked_call import in_child
from .generic import generic_text
from .libtriton import UnusableError, context_of, library, load
from .messages import ChildRow, ReadyRow, ReduceRequest
from .replay import add_all, run_passes, write

# In the log: the IR was parsed, and the passes begin. An earlier failure is not theirs.
MARK = "=== passes ===\n"


def answer_requests() -> int:
    """Answer requests until the input ends."""
    try:
        lib = load(library())
    except (UnusableError, ImportError) as error:
        print(refusal_text(WorkerRefusal("unusable", str(error))), flush=True)
        return EXIT_REFUSED
    print(text_of(ReadyRow(ready=True)), flush=True)
    for line in sys.stdin:
        request = request_of(ReduceRequest, line)
        answer = in_child(partial(run, lib, request), request.log, request.timeout)
        row = ChildRow(answer["status"], answer.get("error", ""), answer["seconds"])
        print(text_of(row), flush=True)
    return 0


def run(lib: Any, request: ReduceRequest) -> None:
    """Parse, run the passes, and write the output or its generic form, if requested; runs in the child."""
    context = context_of(lib)
    if hasattr(context, "disable_multithreading"):
        context.disable_multithreading()
    module = lib.ir.parse_mlir_module(request.input, context)
    if request.calls:
        manager = lib.ir.pass_manager(context)
        add_all(lib, manager, request.calls)
        os.write(2, MARK.encode())
        run_passes(manager, module, "reduce")
    if request.generic:
        write(request.out, generic_text(lib, context, module))
    elif request.out:
        text = module.str_nodebug() if hasattr(module, "str_nodebug") else str(module)  # since 3.3
        write(request.out, text)
