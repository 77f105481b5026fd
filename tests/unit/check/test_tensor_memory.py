"""Products in tensor memory, and who waits for them."""

from __future__ import annotations

import pytest

from tests.unit.check.test_in_flight import module
from tests.unit.check.texts import checked
from tritonsmith.check.answer import ResultChange
from tritonsmith.check.memory import Contents

pytestmark = pytest.mark.unit

_TILE, _TILES = "tensor<8x8xf32>", "tensor<8x8x!tt.ptr<f32>>"
_SHARED, _TENSOR = "!ttg.memdesc<8x8xf32, mutable>", "!ttg.memdesc<8x8xf32, #ttng.tensor_memory, mutable>"
_BARRIER = "!ttg.memdesc<1xi64, mutable>"

# out = 2 x x, by a product and one that is added to it.
KERNEL = module(
    f"""\
    %zeros = "arith.constant"() <{{value = dense<0.000000e+00> : {_TILE}}}> : () -> {_TILE}
    %range = "tt.make_range"() <{{end = 64 : i32, start = 0 : i32}}> : () -> tensor<64xi32>
    %at = "tt.reshape"(%range) : (tensor<64xi32>) -> tensor<8x8xi32>
    %xs = "tt.splat"(%x) : (!tt.ptr<f32>) -> {_TILES}
    %xp = "tt.addptr"(%xs, %at) : ({_TILES}, tensor<8x8xi32>) -> {_TILES}
    %v = "tt.load"(%xp) <{{operandSegmentSizes = array<i32: 1, 0, 0>}}> : ({_TILES}) -> {_TILE}
    %shared = "ttg.local_alloc"(%v) : ({_TILE}) -> {_SHARED}
    %tensor = "ttng.tmem_alloc"() : () -> {_TENSOR}
    %barrier = "ttg.local_alloc"() : () -> {_BARRIER}
    "ttng.init_barrier"(%barrier) <{{count = 1 : i32}}> : ({_BARRIER}) -> ()
    "ttng.tmem_store"(%tensor, %zeros, %true) : ({_TENSOR}, {_TILE}, i1) -> ()
FIRST
SECOND
    %r = "ttng.tmem_load"(%tensor) <{{resultSegmentSizes = array<i32: 1, 0, 0>}}> : ({_TENSOR}) -> {_TILE}
    %os = "tt.splat"(%out) : (!tt.ptr<f32>) -> {_TILES}
    %op = "tt.addptr"(%os, %at) : ({_TILES}, tensor<8x8xi32>) -> {_TILES}
    "tt.store"(%op, %r) : ({_TILES}, {_TILE}) -> ()
""",
    x="!tt.ptr<f32>",
    out="!tt.ptr<f32>",
)


def _product(*, use: str = "%true", barrier: bool = False, late: bool = False) -> str:
    operands = f"%shared, %shared, %tensor, {use}, %true" + (", %barrier, %true" if barrier else "")
    types = f"{_SHARED}, {_SHARED}, {_TENSOR}, i1, i1" + (f", {_BARRIER}, i1" if barrier else "")
    sizes = f"1, 1, 1, 0, 1, 1, {int(barrier)}, {int(barrier)}"
    async_ = "is_async, " if late else ""
    return (
        f'    "ttng.tc_gen5_mma"({operands}) <{{{async_}operandSegmentSizes = array<i32: {sizes}>}}> : '
        f"({types}) -> ()"
    )


def _wait(phase: str) -> str:
    return f'    "ttng.wait_barrier"(%barrier, {phase}) : ({_BARRIER}, i32) -> ()'


COMMIT = f'    "ttng.tc_gen5_commit"(%barrier) : ({_BARRIER}) -> ()'


def kernel(first: list[str], second: list[str]) -> str:
    """A kernel of these lines."""
    return KERNEL.replace("FIRST", "\n".join(first)).replace("SECOND", "\n".join(second))


SIMPLE = kernel([_product()], [_product()])
WITH_BARRIERS = kernel(
    [_product(barrier=True, late=True), _wait("%zero")], [_product(barrier=True, late=True), _wait("%one")]
)
WITH_A_COMMIT = kernel([_product(late=True)], [_product(late=True), COMMIT, _wait("%zero")])


WITH_ONE_THAT_IS_DONE_AT_ONCE = kernel([_product(late=True)], [_product()])


@pytest.mark.parametrize("text", [WITH_BARRIERS, WITH_A_COMMIT, WITH_ONE_THAT_IS_DONE_AT_ONCE])
def test_products_that_are_waited_for(text: str) -> None:
    answer = checked(SIMPLE, text)
    assert [(one.status, one.waits) for one in answer.passes] == [("reference", ""), ("equal", "")]


def _dot(precision: int) -> list[str]:
    """The first product by `tt.dot`."""
    flags = f"inputPrecision = {precision} : i32, maxNumImpreciseAcc = 0 : i32"
    return [
        f'    %d = "tt.dot"(%v, %v, %zeros) <{{{flags}}}> : ({_TILE}, {_TILE}, {_TILE}) -> {_TILE}',
        f'    "ttng.tmem_store"(%tensor, %d, %true) : ({_TENSOR}, {_TILE}, i1) -> ()',
    ]


def test_a_product_of_fp32_is_one_of_tf32() -> None:
    """As the tensor core knows no other: found where the kernel asks for `ieee`."""
    product = kernel([_product()], [])
    assert [one.status for one in checked(kernel(_dot(0), []), product).passes] == ["reference", "equal"]
    culprit = checked(kernel(_dot(2), []), product).culprit
    assert culprit
    assert culprit.contents is Contents.PRECISE


def test_a_product_that_does_not_add() -> None:
    found = checked(SIMPLE, kernel([_product()], [_product(use="%false")])).culprit
    assert found
    assert found.change is ResultChange.RESULT


@pytest.mark.parametrize(
    "text",
    [
        WITH_BARRIERS.replace(_wait("%one"), _wait("%zero")),
        WITH_BARRIERS.replace(f"{_wait('%one')}\n", ""),
        kernel([_product(late=True), COMMIT], [_product(late=True), _wait("%zero")]),
    ],
)
def test_a_product_that_nobody_waits_for(text: str) -> None:
    """By the phase before, by nothing, and by a commit that comes too early."""
    found = checked(SIMPLE, text).culprit
    assert found
    assert (found.change, found.operation) == (ResultChange.READS, "ttng.tmem_load")


def test_operands_that_are_written_before_the_product_has_read_them() -> None:
    store = f'    "ttg.local_store"(%zeros, %shared) : ({_TILE}, {_SHARED}) -> ()'
    last = [_product(barrier=True, late=True), store, _wait("%one")]
    found = checked(SIMPLE, kernel([_product(barrier=True, late=True), _wait("%zero")], last)).culprit
    assert found
    assert found.change is ResultChange.READS


def test_columns_of_tensor_memory() -> None:
    half = "!ttg.memdesc<8x4xf32, #ttng.tensor_memory, mutable>"
    tile = "tensor<8x4xf32>"
    store = f'    "ttng.tmem_store"(%half, %some, %true) : ({half}, {tile}, i1) -> ()'
    lines = [
        f'    %half = "ttng.tmem_subslice"(%tensor) <{{N = 4 : i32}}> : ({_TENSOR}) -> {half}',
        f'    %some = "ttng.tmem_load"(%half) : ({half}) -> {tile}',
        f'    %none = "arith.subf"(%some, %some) : ({tile}, {tile}) -> {tile}',
        store,
    ]
    assert checked(SIMPLE, kernel([_product()], [_product(), *lines])).culprit is None
    found = checked(
        SIMPLE, kernel([_product()], [_product(), *lines[:-1], store.replace("%some", "%none")])
    ).culprit
    assert found
    assert found.difference
    assert (found.difference.offset, found.difference.count) == (4, 32)
