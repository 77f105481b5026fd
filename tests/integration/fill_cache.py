"""Compiles vector-add into Triton's cache: `python fill_cache.py FILE FOLDER BLOCK...`.

With `-` for FOLDER once; otherwise again and again, each from the cache or anew, until FOLDER/stop appears.
"""

import importlib.util
import inspect
import sys
from pathlib import Path

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

file, folder, *blocks = sys.argv[1:]
spec = importlib.util.spec_from_file_location("kernels", file)
assert spec is not None
assert spec.loader is not None
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
signature = {"x_ptr": "*fp32", "y_ptr": "*fp32", "out_ptr": "*fp32", "n_elements": "i32"}


def fill(block: int) -> None:
    constants = {"BLOCK": block}
    if "constexprs" in inspect.signature(ASTSource.__init__).parameters:  # since 3.3
        full = signature | dict.fromkeys(constants, "constexpr")
        source = ASTSource(fn=module.vector_add, signature=full, constexprs=constants)
    else:
        source = ASTSource(fn=module.vector_add, signature=signature, constants=constants)
    compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32))
    assert compiled.asm["cubin"].startswith(b"\x7fELF")


rounds = 0
while folder == "-" or not (Path(folder) / "stop").exists():
    for block in blocks:
        fill(int(block))
    if folder == "-":
        break
    rounds += 1
    (Path(folder) / "rounds").write_text(str(rounds))
