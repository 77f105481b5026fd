# ruff: noqa: E501 - as it is printed
"""Small kernels in MLIR's generic form, as a Triton would print them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from tritonsmith.check.answer import CheckResult
from tritonsmith.check.check import PassCheck, inputs_of, more_inputs
from tritonsmith.compiler.dump.index import Dump, DumpedKernel, DumpIndex

# out[i] = x[i] * y[i] + x[i], for i below n; the placeholder is what stands before the store.
ADD = """\
#loc = loc("add.py":3:0)
"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {}, {}, {}], function_type = (!tt.ptr<f32>, !tt.ptr<f32>, !tt.ptr<f32>, i32) -> (), sym_name = "add", sym_visibility = "public"}> ({
  ^bb0(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %out: !tt.ptr<f32>, %n: i32):
    %pid = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %size = "arith.constant"() <{value = 16 : i32}> : () -> i32
    %start = "arith.muli"(%pid, %size) : (i32, i32) -> i32
    %range = "tt.make_range"() <{end = 16 : i32, start = 0 : i32}> : () -> tensor<16xi32>
    %starts = "tt.splat"(%start) : (i32) -> tensor<16xi32>
    %at = "arith.addi"(%starts, %range) : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi32>
    %ns = "tt.splat"(%n) : (i32) -> tensor<16xi32>
    %mask = "arith.cmpi"(%at, %ns) <{predicate = 2 : i64}> : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi1>
    %xs = "tt.splat"(%x) : (!tt.ptr<f32>) -> tensor<16x!tt.ptr<f32>>
    %xp = "tt.addptr"(%xs, %at) : (tensor<16x!tt.ptr<f32>>, tensor<16xi32>) -> tensor<16x!tt.ptr<f32>>
    %a = "tt.load"(%xp, %mask) <{operandSegmentSizes = array<i32: 1, 1, 0>}> : (tensor<16x!tt.ptr<f32>>, tensor<16xi1>) -> tensor<16xf32>
    %ys = "tt.splat"(%y) : (!tt.ptr<f32>) -> tensor<16x!tt.ptr<f32>>
    %yp = "tt.addptr"(%ys, %at) : (tensor<16x!tt.ptr<f32>>, tensor<16xi32>) -> tensor<16x!tt.ptr<f32>>
    %b = "tt.load"(%yp, %mask) <{operandSegmentSizes = array<i32: 1, 1, 0>}> : (tensor<16x!tt.ptr<f32>>, tensor<16xi1>) -> tensor<16xf32>
    %product = "arith.mulf"(%a, %b) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
    %sum = "arith.addf"(%product, %a) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32> loc(#loc7)
    %os = "tt.splat"(%out) : (!tt.ptr<f32>) -> tensor<16x!tt.ptr<f32>>
    %op = "tt.addptr"(%os, %at) : (tensor<16x!tt.ptr<f32>>, tensor<16xi32>) -> tensor<16x!tt.ptr<f32>>
    "tt.store"(%op, %sum, %mask) : (tensor<16x!tt.ptr<f32>>, tensor<16xf32>, tensor<16xi1>) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
#loc7 = loc("add.py":7:4)
"""
# out[i] = the sum of x[i] for as many rounds as n says, with a loop.
LOOP = """\
"builtin.module"() ({
  "tt.func"() <{function_type = (!tt.ptr<f32>, !tt.ptr<f32>, i32) -> (), sym_name = "loop", sym_visibility = "public"}> ({
  ^bb0(%x: !tt.ptr<f32>, %out: !tt.ptr<f32>, %n: i32):
    %zero = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %one = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %none = "arith.constant"() <{value = dense<0.000000e+00> : tensor<8xf32>}> : () -> tensor<8xf32>
    %range = "tt.make_range"() <{end = 8 : i32, start = 0 : i32}> : () -> tensor<8xi32>
    %xs = "tt.splat"(%x) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
    %os = "tt.splat"(%out) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
    %total = "scf.for"(%zero, %n, %one, %none) ({
    ^bb0(%i: i32, %so: tensor<8xf32>):
      %is = "tt.splat"(%i) : (i32) -> tensor<8xi32>
      %at = "arith.addi"(%is, %range) : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi32>
      %p = "tt.addptr"(%xs, %at) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
      %v = "tt.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (tensor<8x!tt.ptr<f32>>) -> tensor<8xf32>
      %new = "arith.addf"(%so, %v) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
      "scf.yield"(%new) : (tensor<8xf32>) -> ()
    }) : (i32, i32, i32, tensor<8xf32>) -> tensor<8xf32>
    %op = "tt.addptr"(%os, %range) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
    "tt.store"(%op, %total) : (tensor<8x!tt.ptr<f32>>, tensor<8xf32>) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
"""
# The kernel in LLVM's dialect.
LOWERED = """\
"builtin.module"() ({
  "llvm.func"() ({
  ^bb0:
    "llvm.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
"""


def indexed(texts: tuple[str, ...], folder: Path = Path()) -> DumpIndex:
    """A dump of texts, as if each were the input of a pass: the first one of `pass-0`, and so on."""
    digests = [hashlib.sha256(text.encode()).hexdigest() for text in texts]
    dumps = [
        Dump(number, "k", "ttir", f"Pass{number}", f"pass-{number}", "", "builtin.module", "", "before",
             f"{number}.mlir", len(text), 1, sha, None, None, True)
        for number, (text, sha) in enumerate(zip(texts, digests, strict=True))
    ]  # fmt: skip
    kernel = DumpedKernel("k", "k", "cuda:90")
    return DumpIndex(folder, kernels=(kernel,), dumps=tuple(dumps))


def checked(
    *texts: str,
    seeds: int | None = 3,
    through_llvm: bool = False,
    until: str = "",
    stop: Callable[[], bool] = lambda: False,
) -> CheckResult:
    """Check texts; with more seeds where they are cheap, as the command does, if none are named."""
    index = indexed(texts)
    kernel, dumps = index.kernels[0], list(index.dumps)
    generic = {one.sha256: text for one, text in zip(dumps, texts, strict=True)}
    wanted, more = inputs_of(seeds or 3), () if seeds else more_inputs(3)
    check = PassCheck(
        index, kernel, dumps, generic, wanted, more, through_llvm=through_llvm, until=until, stop=stop
    )
    return check.run()
