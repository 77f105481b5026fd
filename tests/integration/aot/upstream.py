"""Runs upstream's own triton.tools.compile or triton.tools.link where there is no GPU.

Each line of the input is a command line, as JSON: `[BACKEND, ARCH, WARP, MODULE, FLAGS...]`. It runs in a
fork of this process, which has imported Triton and nothing else; the answer is a line with its exit code.

tools/compile.py asks the active driver which GPU is here and what a type is called in C: a stand-in answers,
with the C types of that backend's own driver.
"""

import importlib
import json
import os
import runpy
import sys
import traceback
import types
from typing import Any

sys.modules.setdefault("setuptools", types.ModuleType("setuptools"))  # 3.0 to 3.3 import it for launchers
triton = importlib.import_module("triton")
compiler = importlib.import_module("triton.backends.compiler")


class Driver:
    """Knows a target, and nothing of a GPU."""

    def __init__(self, backend: str, arch: str, warp: str) -> None:
        self._target = compiler.GPUTarget(backend, int(arch) if arch.isdecimal() else arch, int(warp))

    def get_current_target(self) -> Any:
        return self._target

    def map_python_to_cpp_type(self, kind: str) -> Any:
        package = {"cuda": "nvidia", "hip": "amd"}[self._target.backend]
        return importlib.import_module(f"triton.backends.{package}.driver").ty_to_cpp(kind)


def run(backend: str, arch: str, warp: str, module: str, *flags: str) -> None:
    """One command line."""
    triton.runtime.driver.set_active(Driver(backend, arch, warp))
    sys.argv = [module, *flags]
    runpy.run_module(module, run_name="__main__")


for line in sys.stdin:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.dup2(2, 1)  # the answers are ours
            run(*json.loads(line))
            code = 0
        except BaseException:  # noqa: BLE001 - the test tells what it was
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
