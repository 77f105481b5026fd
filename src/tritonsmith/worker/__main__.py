"""Entry point of the worker, in an interpreter that has Triton.

    compile REQUEST      compile a kernel for many points: results to the request's file, progress to stdout
    attend REQUEST       compile the kernel, or print the files, of one request after the other
    describe JSON        describe a kernel: one JSON object to stdout
    serve REQUEST POINT  load the file for one target, and compile
    bindings JSON        list which binding adds which pass, and where its arguments appear
    rehearse JSON        list the bindings that a backend calls, with their arguments; compiles nothing
    replay REQUEST       run passes, each on its own input
    stage REQUEST        run one stage of the pipeline on the text of the stage before
    layout JSON          convert layouts of tensors and memory to linear ones: one line of JSON each
    plugin JSON          load a plugin, and report its own description and Triton's
    operate REQUEST      skip or repeat passes in all further compiles of this process
    check REQUEST SCRIPT run a script, then compare two of its values
    scripts PACKAGES     run one script after the other, each in a fork that has imported the packages
    canary               try in this process what `torch.compile` needs, for captures
    capture REQUEST      record the launches of this process from here on: called, not started
    reduce               run passes on one piece of IR after the other
    generic REQUEST      print IR in MLIR's generic form
    interpret REQUEST    run programs of a kernel in Triton's interpreter, on the request's memory
    fill REQUEST         write the entries that Triton's JIT looks up into a cache
    cache-facts JSON     describe what a cache is good for that this interpreter fills: one JSON object
    cache-check RECORD   tell whether this interpreter uses what a cache was filled with
    look-up REQUEST      record the entries that this process looks up: called, not started
    profile REQUEST      measure all further launches of this process with Proton

Each command imports only what it needs: the worker starts in no more time than `import triton` takes.
"""

from __future__ import annotations

import importlib
import os
import sys
import traceback
import types

EXIT_INTERRUPTED = 130
COMMANDS = {  # module and function of each
    "compile": ("compile", "compile_points"),
    "attend": ("compile", "compile_each"),
    "describe": ("load", "describe"),
    "serve": ("compile", "serve_alone"),
    "bindings": ("introspect", "print_bindings"),
    "rehearse": ("introspect", "print_rehearsal"),
    "replay": ("passes", "replay_all"),
    "stage": ("stage", "run_stage"),
    "reduce": ("passes", "answer_requests"),
    "generic": ("passes", "print_all"),
    "interpret": ("interpret", "run_programs"),
    "canary": ("torch_accelerator", "sing"),
    "capture": ("capture", "start_capture"),
    "fill": ("fill", "fill"),
    "cache-facts": ("fill", "print_facts"),
    "cache-check": ("fill", "check_record"),
    "look-up": ("fill", "look_up"),
    "layout": ("introspect", "print_layouts"),
    "profile": ("capture", "start_profile"),
    "check": ("check", "run_script"),
    "scripts": ("check", "run_each"),
    "plugin": ("passes", "try_plugin"),
    "operate": ("surgery", "start"),
}


def run(what: str, *arguments: str) -> int:
    """Run the command, and return its exit code."""
    # Python puts this folder first on the path. A kernel's file may be called `reduce.py`, or import a
    # `passes` of its own: so the modules here become a package with a name that nobody else has.
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
    # Past Python's own end: Triton's destructors take time, and nanobind prints a list of what they leak.
    os._exit(exit_code)
