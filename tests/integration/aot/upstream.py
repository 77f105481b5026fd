"""Runs upstream's own triton.tools.compile or triton.tools.link where there is no GPU.

    python upstream.py BACKEND ARCH WARP MODULE FLAGS...

tools/compile.py asks the active driver which GPU is here and what a type is called in C: a stand-in answers,
with the C types of that backend's own driver.
"""

import importlib
import runpy
import sys
import types
from typing import Any

sys.modules.setdefault("setuptools", types.ModuleType("setuptools"))  # 3.0 to 3.3 import it for launchers
triton = importlib.import_module("triton")
compiler = importlib.import_module("triton.backends.compiler")

backend, arch, warp, module, *flags = sys.argv[1:]


class Driver:
    """Knows a target, and nothing of a GPU."""

    def get_current_target(self) -> Any:
        return compiler.GPUTarget(backend, int(arch) if arch.isdecimal() else arch, int(warp))

    def map_python_to_cpp_type(self, kind: str) -> Any:
        package = {"cuda": "nvidia", "hip": "amd"}[backend]
        return importlib.import_module(f"triton.backends.{package}.driver").ty_to_cpp(kind)


triton.runtime.driver.set_active(Driver())
sys.argv = [module, *flags]
runpy.run_module(module, run_name="__main__")
