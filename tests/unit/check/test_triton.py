"""Operations that pick, count and map elements, against what they are defined to give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tritonsmith.check.evaluate import EvaluatedProgram
from tritonsmith.check.memory import GlobalMemory, base
from tritonsmith.check.module import UnsupportedIrError, name_of, parse

pytestmark = pytest.mark.unit

# What BODY makes of 0 ... 7 is stored.
KERNEL = """\
"builtin.module"() ({{
  "tt.func"() <{{function_type = (!tt.ptr<{of}>) -> (), sym_name = "k"}}> ({{
  ^bb0(%out: !tt.ptr<{of}>):
    %r = "tt.make_range"() <{{end = 8 : i32, start = 0 : i32}}> : () -> tensor<8xi32>
    %two = "arith.constant"() <{{value = dense<2> : tensor<8xi32>}}> : () -> tensor<8xi32>
    %five = "arith.constant"() <{{value = dense<5> : tensor<8xi32>}}> : () -> tensor<8xi32>
    {body}
    %i = "tt.make_range"() <{{end = {size} : i32, start = 0 : i32}}> : () -> tensor<{size}xi32>
    %os = "tt.splat"(%out) : (!tt.ptr<{of}>) -> tensor<{size}x!tt.ptr<{of}>>
    %op = "tt.addptr"(%os, %i) : (tensor<{size}x!tt.ptr<{of}>>, tensor<{size}xi32>) -> tensor<{size}x!tt.ptr<{of}>>
    "tt.store"(%op, %v) : (tensor<{size}x!tt.ptr<{of}>>, tensor<{size}x{of}>) -> ()
    "tt.return"() : () -> ()
  }}) : () -> ()
}}) : () -> ()
"""  # noqa: E501 - as it is printed
DTYPES = {"i32": np.int32, "f32": np.float32, "f16": np.float16}
EIGHT = "tensor<8xi32>"
FLOATS = '%x = "arith.sitofp"(%r) : (tensor<8xi32>) -> tensor<8xf32>\n'


def stored(body: str, of: str = "i32", size: int = 8) -> list[Any]:
    """What a kernel with these lines stores."""
    module = parse(KERNEL.format(body=body, of=of, size=size))
    functions = {"k": next(one for one in module.walk() if name_of(one) == "tt.func")}
    memory = GlobalMemory(1)
    run = EvaluatedProgram(functions, memory, (0, 0, 0), (1, 1, 1), 1000)
    run.call("k", (np.asarray(np.int64(base(0))),))
    written = memory.written
    found: list[Any] = written.values(np.arange(written.at.size), np.dtype(DTYPES[of])).tolist()
    return found


def test_a_gather() -> None:
    """9, which is out of range, gives 0."""
    indices = '%at = "arith.constant"() <{value = dense<[7, 0, 0, 9]> : tensor<4xi32>}> : () -> tensor<4xi32>'
    squares = f'%s = "arith.muli"(%r, %r) : ({EIGHT}, {EIGHT}) -> {EIGHT}'
    gather = f'%v = "tt.gather"(%s, %at) <{{axis = 0 : i32}}> : ({EIGHT}, tensor<4xi32>) -> tensor<4xi32>'
    assert stored(f"{indices}\n{squares}\n{gather}", size=4) == [49, 0, 0, 0]


MATRIX, INDEX = "tensor<4x2xi32>", "tensor<2x3xi32>"


def test_a_gather_of_fewer_rows_than_there_are() -> None:
    """Along the axis that is not gathered the indices may be fewer."""
    lines = (
        f'%m = "tt.reshape"(%r) : ({EIGHT}) -> {MATRIX}',
        f'%at = "arith.constant"() <{{value = dense<[[1, 1, 0], [0, 1, 1]]> : {INDEX}}}> : () -> {INDEX}',
        f'%g = "tt.gather"(%m, %at) <{{axis = 1 : i32}}> : ({MATRIX}, {INDEX}) -> {INDEX}',
        f'%v = "tt.reshape"(%g) : ({INDEX}) -> tensor<6xi32>',
    )
    assert stored("\n".join(lines), size=6) == [1, 1, 0, 2, 3, 3]


@pytest.mark.parametrize(("mask", "counts"), [(False, [2, 2, 2]), (True, [2, 2, 1])])
def test_a_histogram(mask: bool, counts: list[int]) -> None:
    """Each bin has two; the last values are in no bin, and what is masked is not counted."""
    halves = f'%h = "arith.divsi"(%r, %two) : ({EIGHT}, {EIGHT}) -> {EIGHT}'
    small = f'%n = "arith.cmpi"(%r, %five) <{{predicate = 2 : i64}}> : ({EIGHT}, {EIGHT}) -> tensor<8xi1>'
    given = ("%h, %n", f"{EIGHT}, tensor<8xi1>") if mask else ("%h", EIGHT)
    count = f'%v = "tt.histogram"({given[0]}) : ({given[1]}) -> tensor<3xi32>'
    assert stored(f"{halves}\n{small}\n{count}", size=3) == counts


MAPPED = """\
%v = "tt.map_elementwise"(%r, %five) <{pack = 1 : i32}> ({
^bb0(%a: i32, %b: i32):
  %c = "arith.cmpi"(%a, %b) <{predicate = 2 : i64}> : (i32, i32) -> i1
  "cf.cond_br"(%c)[^bb1, ^bb2] <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (i1) -> ()
^bb1:
  "tt.map_elementwise.return"(%b) : (i32) -> ()
^bb2:
  %d = "arith.muli"(%a, %a) : (i32, i32) -> i32
  "tt.map_elementwise.return"(%d) : (i32) -> ()
}) : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi32>
"""


def test_a_function_of_scalars() -> None:
    """With a branch that is another one for each element."""
    assert stored(MAPPED) == [5, 5, 5, 5, 5, 25, 36, 49]
    with pytest.raises(UnsupportedIrError, match="more than one"):
        stored(MAPPED.replace("pack = 1", "pack = 2"))


@pytest.mark.parametrize(
    ("symbol", "values"),
    [
        ("__nv_rsqrtf", [np.inf, 1, 0.5**0.5]), ("__ocml_rsqrt_f32", [np.inf, 1, 0.5**0.5]),
        ("__nv_roundf", [0, 1, 2]), ("__nv_erfcf", [1, 0.15729920705, 0.00467773498]),
        ("__ocml_tanh_f32", [0, 0.76159415595, 0.96402758]),
    ],
)  # fmt: skip
def test_a_library_function(symbol: str, values: list[float]) -> None:
    call = (
        f'%v = "tt.extern_elementwise"(%x) <{{libname = "", libpath = "", pure = true, symbol = "{symbol}"}}>'
        " : (tensor<8xf32>) -> tensor<8xf32>"
    )
    assert stored(FLOATS + call, of="f32")[:3] == pytest.approx(values)


def test_a_library_function_that_is_not_known_is_named() -> None:
    call = '%v = "tt.extern_elementwise"(%x) <{symbol = "__nv_strange"}> : (tensor<8xf32>) -> tensor<8xf32>'
    with pytest.raises(UnsupportedIrError, match="__nv_strange"):
        stored(FLOATS + call, of="f32")


def test_an_approximate_division() -> None:
    divide = '%v = "tt.approx_divf"(%x, %y) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>'
    four = '%y = "arith.constant"() <{value = dense<4.0> : tensor<8xf32>}> : () -> tensor<8xf32>\n'
    assert stored(FLOATS + four + divide, of="f32") == [0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75]


# A sum whose function makes tensors of its scalars, as Triton's promote_to_tensor does.
SUM = """\
({
^bb0(%a: i32, %b: i32):
  %as = "tt.splat"(%a) : (i32) -> tensor<1xi32>
  %bs = "tt.splat"(%b) : (i32) -> tensor<1xi32>
  %cs = "arith.addi"(%as, %bs) : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi32>
  %c = "tt.unsplat"(%cs) : (tensor<1xi32>) -> i32
  "tt.END.return"(%c) : (i32) -> ()
})"""


def test_a_function_of_scalars_that_makes_tensors() -> None:
    inner = SUM.replace("END", "reduce")
    total = f'%t = "tt.reduce"(%r) <{{axis = 0 : i32}}> {inner} : ({EIGHT}) -> i32'
    assert stored(f'{total}\n%v = "tt.splat"(%t) : (i32) -> tensor<2xi32>', size=2) == [28, 28]
    lines = (
        f'%m = "tt.reshape"(%r) : ({EIGHT}) -> {MATRIX}',
        (
            f'%s = "tt.scan"(%m) <{{axis = 0 : i32, reverse = false}}> {SUM.replace("END", "scan")} : '
            f"({MATRIX}) -> {MATRIX}"
        ),
        f'%v = "tt.reshape"(%s) : ({MATRIX}) -> {EIGHT}',
    )
    assert stored("\n".join(lines)) == [0, 1, 2, 4, 6, 9, 12, 16]


def test_a_dot_that_3_0_waits_for() -> None:
    """Of TritonNvidiaGPUOps.td before d86ae7b02, from tensors as from shared memory."""
    matrix, memory = "tensor<2x4xf32>", "!tt.memdesc<4x2xf32, #shared>"
    lines = (
        f'%a = "tt.reshape"(%x) : (tensor<8xf32>) -> {matrix}',
        f'%t = "tt.trans"(%a) <{{order = array<i32: 1, 0>}}> : ({matrix}) -> tensor<4x2xf32>',
        f'%b = "triton_gpu.local_alloc"(%t) : (tensor<4x2xf32>) -> {memory}',
        '%one = "arith.constant"() <{value = dense<1.0> : tensor<2x2xf32>}> : () -> tensor<2x2xf32>',
        (
            '%d = "triton_nvidia_gpu.dot_async"(%a, %b, %one) <{inputPrecision = 0 : i32, '
            f"maxNumImpreciseAcc = 0 : i32}}> : ({matrix}, {memory}, tensor<2x2xf32>) -> tensor<2x2xf32>"
        ),
        (
            '%w, %u = "triton_nvidia_gpu.dot_wait"(%d, %b) <{pendings = 0 : i32}> : '
            f"(tensor<2x2xf32>, {memory}) -> (tensor<2x2xf32>, {memory})"
        ),
        '%v = "tt.reshape"(%w) : (tensor<2x2xf32>) -> tensor<4xf32>',
    )
    assert stored(FLOATS + "\n".join(lines), of="f32", size=4) == [15, 39, 39, 127]
