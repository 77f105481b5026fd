"""The start of the worker, in an interpreter that has Triton.

    compile REQUEST      a kernel for many points: results to the request's file, progress to stdout
    describe JSON        one JSON object about a kernel, to stdout
    serve REQUEST POINT  a process that loads the file for one target, and compiles
    bindings JSON        which binding adds which pass, and where its arguments show
    rehearse JSON        which bindings a backend calls, with which arguments; compiles nothing
    replay REQUEST       passes, each on its own input
    reduce               passes on one piece of IR after the other

The folder leaves `sys.path`, and the modules beside this one become a package whose name nobody else has: a
kernel's file may be called `reduce.py`, or import a `replay` of its own. Each command imports only what it
needs: the worker starts in no more time than `import triton` takes.
"""

from __future__ import annotations

import importlib
import os
import sys
import traceback
import types

EXIT_INTERRUPTED = 130
COMMANDS = {  # module and function of each
    "compile": ("compile", "compile_all"),
    "describe": ("describe", "describe"),
    "serve": ("serve", "serve_alone"),
    "bindings": ("introspect", "print_bindings"),
    "rehearse": ("introspect", "print_rehearsal"),
    "replay": ("replay", "replay_all"),
    "reduce": ("reduce", "answer_requests"),
}


def run(what: str, *arguments: str) -> int:
    """What the command line asks for; its exit code."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [part for part in sys.path if os.path.abspath(part or ".") != here]
    package = types.ModuleType("_tritonsmith_worker")
    package.__path__ = [here]
    sys.modules[package.__name__] = package
    module, function = COMMANDS[what]
    code: int = getattr(importlib.import_module(f"{package.__name__}.{module}"), function)(*arguments)
    return code


if __name__ == "__main__":
    exit_code = 1
    try:
        exit_code = run(*sys.argv[1:])
    except KeyboardInterrupt:
        exit_code = EXIT_INTERRUPTED
    except BaseException:  # noqa: BLE001 - a full disk, say: nothing may be printed after it
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(exit_code)  # Triton's destructors take time, and nanobind lists what they leave
