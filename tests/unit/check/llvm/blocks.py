# ruff: noqa: E501 - as it is printed
"""Runs a few operations by a block of threads; each thread stores one result."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritonsmith.check.llvm.machine import lowered
from tritonsmith.check.memory import RecordingMemory, base

MODULE = """\
"builtin.module"() ({
  "llvm.func"() <{arg_attrs = [{tt.pointee_type = f32}, {tt.pointee_type = f32}], function_type = !llvm.func<void (ptr<1>, ptr<1>)>, linkage = #llvm.linkage<external>, sym_name = "k"}> ({
  ^bb0(%x: !llvm.ptr<1>, %out: !llvm.ptr<1>):
    %tid = "nvvm.read.ptx.sreg.tid.x"() : () -> i32
BODY
    %to = "llvm.getelementptr"(%out, %tid) <{elem_type = f32, rawConstantIndices = array<i32: -2147483648>}> : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>
    "llvm.store"(%r, %to) <{ordering = 0 : i64}> : (KIND, !llvm.ptr<1>) -> ()
    "llvm.return"() : () -> ()
  }) : () -> ()
}) {ttg.shared = 2048 : i32, "ttg.num-warps" = WARPS : i32, "ttg.threads-per-warp" = WARP : i32} : () -> ()
"""


def number(name: str, value: object, kind: str = "i32") -> str:
    """A constant."""
    return f'    %{name} = "llvm.mlir.constant"() <{{value = {value} : {kind}}}> : () -> {kind}\n'


def assembly(code: str, constraints: str, operands: str, types: str) -> str:
    """An inline assembly whose text is given as PTX has it."""
    code = code.replace("\n", "\\0A\\09")
    return f'"llvm.inline_asm"({operands}) <{{asm_string = "{code}", constraints = "{constraints}"}}> : {types}\n'


def ran(body: str, dtype: str = "int32", warps: int = 1, warp: int = 32) -> Any:
    """What each thread stores as `%r`, of 32 bits; `%x` points to floats, `%tid` is the thread."""
    kind = {"int32": "i32", "float32": "f32"}[dtype]
    text = MODULE.replace("BODY", body).replace("KIND", kind)
    text = text.replace("WARPS", str(warps)).replace("WARP", str(warp))
    reference = RecordingMemory(1)
    at = base(1) + 4 * np.arange(warps * warp)
    reference.store(at, np.zeros(at.size, dtype))
    given = (np.asarray(np.int64(base(0))), np.asarray(np.int64(base(1))))
    written = lowered_run(text, given, reference)
    assert np.isin(at, written.at).all()
    return written.values(written.index(at), np.dtype(dtype))


def lowered_run(text: str, given: tuple[Any, ...], reference: RecordingMemory) -> Any:
    """What a kernel writes, as program 1 of 5."""
    kernel = lowered(text)
    assert kernel
    return kernel.run(given, reference, (1, 0, 0), (5, 3, 2), 100_000).written


def contents(count: int) -> Any:
    """The floats behind `%x`."""
    return RecordingMemory(1).load(base(0) + 4 * np.arange(count), np.dtype(np.float32))
