"""Waits, barriers and buffers: kernels whose result depends on when a copy, a dot or a store is done."""

from __future__ import annotations

import pytest

from tests.unit.check.texts import ADD, LOOP, checked
from tritonsmith.check.answer import ResultChange, answer_lines, verdict

pytestmark = pytest.mark.unit

_HEAD = """\
"builtin.module"() ({
  "tt.func"() <{function_type = (PARAMETERS) -> (), sym_name = "k", sym_visibility = "public"}> ({
  ^bb0(ARGUMENTS):
    %zero = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %one = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %two = "arith.constant"() <{value = 2 : i32}> : () -> i32
    %true = "arith.constant"() <{value = true}> : () -> i1
    %false = "arith.constant"() <{value = false}> : () -> i1
"""
_TAIL = """\
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
"""


def module(body: str, **parameters: str) -> str:
    """A kernel of these parameters."""
    head = _HEAD.replace("PARAMETERS", ", ".join(parameters.values()))
    listed = ", ".join(f"%{name}: {of}" for name, of in parameters.items())
    return head.replace("ARGUMENTS", listed) + body + _TAIL


_ROW, _POINTERS, _BUFFER = "tensor<8xf32>", "tensor<8x!tt.ptr<f32>>", "!ttg.memdesc<8xf32, #s, #m, mutable>"


def _copy(number: str, slot: str, name: str) -> str:
    """Row `number` of x to a slot of the buffer."""
    return f"""\
      %{name}first = "arith.muli"({number}, %eight) : (i32, i32) -> i32
      %{name}splat = "tt.splat"(%{name}first) : (i32) -> tensor<8xi32>
      %{name}at = "arith.addi"(%{name}splat, %range) : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi32>
      %{name}p = "tt.addptr"(%xs, %{name}at) : ({_POINTERS}, tensor<8xi32>) -> {_POINTERS}
      %{name}in = "arith.cmpi"({number}, %turns) <{{predicate = 2 : i64}}> : (i32, i32) -> i1
      %{name}mask = "tt.splat"(%{name}in) : (i1) -> tensor<8xi1>
      %{name}to = "ttg.memdesc_index"(%buffer, {slot}) : (!ttg.memdesc<2x8xf32, #s, #m, mutable>, i32) -> {_BUFFER}
      %{name}t = "ttg.async_copy_global_to_local"(%{name}p, %{name}to, %{name}mask) <{{operandSegmentSizes = array<i32: 1, 1, 1, 0>}}> : ({_POINTERS}, {_BUFFER}, tensor<8xi1>) -> !ttg.async.token
      %{name}g = "ttg.async_commit_group"(%{name}t) : (!ttg.async.token) -> !ttg.async.token
"""  # noqa: E501 - as it is printed


# As LOOP, with two buffers: the next row is copied while this one is added. It takes six turns at most:
# what depends on the order shows itself in the first ones, and each test runs some 80 of these loops.
PIPELINED = (
    module(
        f"""\
    %six = "arith.constant"() <{{value = 6 : i32}}> : () -> i32
    %turns = "arith.minsi"(%n, %six) : (i32, i32) -> i32
    %eight = "arith.constant"() <{{value = 8 : i32}}> : () -> i32
    %none = "arith.constant"() <{{value = dense<0.000000e+00> : {_ROW}}}> : () -> {_ROW}
    %range = "tt.make_range"() <{{end = 8 : i32, start = 0 : i32}}> : () -> tensor<8xi32>
    %xs = "tt.splat"(%x) : (!tt.ptr<f32>) -> {_POINTERS}
    %os = "tt.splat"(%out) : (!tt.ptr<f32>) -> {_POINTERS}
    %buffer = "ttg.local_alloc"() : () -> !ttg.memdesc<2x8xf32, #s, #m, mutable>
"""
        + _copy("%zero", "%zero", "a")
        + f"""\
    %total = "scf.for"(%zero, %turns, %one, %none) ({{
    ^bb0(%i: i32, %so: {_ROW}):
      %next = "arith.addi"(%i, %one) : (i32, i32) -> i32
      %slot = "arith.remsi"(%next, %two) : (i32, i32) -> i32
      %mine = "arith.remsi"(%i, %two) : (i32, i32) -> i32
"""
        + _copy("%next", "%slot", "b")
        + f"""\
      %w = "ttg.async_wait"() <{{num = 1 : i32}}> : () -> !ttg.async.token
      %from = "ttg.memdesc_index"(%buffer, %mine) : (!ttg.memdesc<2x8xf32, #s, #m, mutable>, i32) -> {_BUFFER}
      %v = "ttg.local_load"(%from) : ({_BUFFER}) -> {_ROW}
      %new = "arith.addf"(%so, %v) : ({_ROW}, {_ROW}) -> {_ROW}
      "scf.yield"(%new) : ({_ROW}) -> ()
    }}) : (i32, i32, i32, {_ROW}) -> {_ROW}
    %drained = "ttg.async_wait"() <{{num = 0 : i32}}> : () -> !ttg.async.token
    "ttg.local_dealloc"(%buffer) : (!ttg.memdesc<2x8xf32, #s, #m, mutable>) -> ()
    %op = "tt.addptr"(%os, %range) : ({_POINTERS}, tensor<8xi32>) -> {_POINTERS}
    "tt.store"(%op, %total) : ({_POINTERS}, {_ROW}) -> ()
""",
        x="!tt.ptr<f32>",
        out="!tt.ptr<f32>",
        n="i32",
    )
    .replace(", #s, #m", "")
)  # fmt: skip


def _changed(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1, old
    return text.replace(old, new)


def test_waits_that_are_right_are_no_finding() -> None:
    answer = checked(PIPELINED, PIPELINED.replace("%new", "%more"))
    assert [(one.status, one.waits) for one in answer.passes] == [("reference", ""), ("equal", "")]
    assert (answer.culprit, answer.open) == (None, ())


def test_a_wait_for_too_few_copies() -> None:
    answer = checked(PIPELINED, _changed(PIPELINED, "num = 1 : i32", "num = 2 : i32"))
    found = answer.culprit
    assert found
    assert (found.change, found.suspects, found.operation) == (
        ResultChange.COPIES,
        ("pass-0",),
        "ttg.local_load",
    )
    assert verdict(answer) == "k: pass-0 makes a race: the result depends on when copies land"


def test_what_is_wrong_at_once_is_no_race() -> None:
    other = _changed(PIPELINED, '"arith.remsi"(%i, %two)', '"arith.remsi"(%next, %two)')
    found = checked(PIPELINED, other).culprit
    assert found
    assert found.change is ResultChange.RESULT


def test_a_copy_that_nobody_commits_is_not_waited_for() -> None:
    line = next(line for line in PIPELINED.splitlines() if line.lstrip().startswith("%bg ="))
    found = checked(PIPELINED, PIPELINED.replace(f"{line}\n", "")).culprit
    assert found
    assert found.change is ResultChange.COPIES


def _without(text: str, start: str) -> tuple[list[str], str]:
    """The lines but one, and that one."""
    lines = text.splitlines()
    at = next(number for number, line in enumerate(lines) if line.lstrip().startswith(start))
    return lines[:at] + lines[at + 1 :], lines[at]


def test_a_copy_into_the_buffer_that_is_read_next() -> None:
    """With one buffer, and all that is under way waited for first: a copy that lands late hides it."""
    lines, wait = _without(PIPELINED, "%w =")
    at = next(number for number, line in enumerate(lines) if line.lstrip().startswith("%mine =")) + 1
    two = "\n".join((*lines[:at], wait.replace("num = 1", "num = 0"), *lines[at:]))
    assert checked(PIPELINED, two).culprit is None
    one = two.replace("(%buffer, %slot)", "(%buffer, %zero)").replace("(%buffer, %mine)", "(%buffer, %zero)")
    found = checked(PIPELINED, one).culprit
    assert found
    assert (found.change, found.suspects) == (ResultChange.RESULT, ("pass-0",))


def test_a_kernel_with_a_race_of_its_own_blames_no_pass() -> None:
    racing = _changed(PIPELINED, "num = 1 : i32", "num = 2 : i32")
    answer = checked(racing, racing.replace("%new", "%more"))
    assert answer.culprit is None
    assert [one.status for one in answer.passes] == ["reference", "equal"]
    assert answer.reasons == ["the kernel itself has a race: copies land late"]
    wrong = racing.replace('"arith.addf"', '"arith.subf"')
    found = checked(racing, wrong).culprit
    assert found
    assert found.change is ResultChange.RESULT


def test_a_copy_without_its_mask_reads_outside() -> None:
    unmasked = PIPELINED.replace(", %bmask) <{operandSegmentSizes = array<i32: 1, 1, 1, 0>}>",
                                 ") <{operandSegmentSizes = array<i32: 1, 1, 0, 0>}>")  # fmt: skip
    unmasked = unmasked.replace("tensor<8xi1>) -> !ttg", ") -> !ttg", 2).replace(", ) ->", ") ->")
    unmasked = unmasked.replace("%ap, %ato, %amask) <{operandSegmentSizes = array<i32: 1, 1, 1, 0>}>",
                                "%ap, %ato) <{operandSegmentSizes = array<i32: 1, 1, 0, 0>}>")  # fmt: skip
    answer = checked(PIPELINED, unmasked)
    found = answer.culprit
    assert found
    assert found.difference
    assert (found.change, found.store) == (ResultChange.OUTSIDE, "x")
    first, where, *_ = answer_lines(answer)
    assert first == "k: pass-0 makes the kernel read memory that it did not reach before"
    assert where == f"  first: x[{found.difference.offset}]"


def test_memory_that_others_of_the_same_inputs_read_is_not_outside() -> None:
    """Another element of those that the programs read together, times nothing."""
    line = next(line for line in ADD.splitlines() if "%sum = " in line)
    more = '%more = "tt.load"(%xs) : (tensor<16x!tt.ptr<f32>>) -> tensor<16xf32>'
    assert checked(ADD, ADD.replace(line, f"{line}\n    {more}")).culprit is None


def test_a_store_to_the_source_of_a_copy_that_is_under_way() -> None:
    """At once the copy has read the row before: only one that reads late gets what the store has put."""
    store = f"""\
      %sfirst = "arith.muli"(%i, %eight) : (i32, i32) -> i32
      %ssplat = "tt.splat"(%sfirst) : (i32) -> tensor<8xi32>
      %sat = "arith.addi"(%ssplat, %range) : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi32>
      %sp = "tt.addptr"(%xs, %sat) : ({_POINTERS}, tensor<8xi32>) -> {_POINTERS}
      "tt.store"(%sp, %none) : ({_POINTERS}, {_ROW}) -> ()
"""
    wait = next(f"{line}\n" for line in PIPELINED.splitlines() if line.lstrip().startswith("%w ="))
    after, before = (PIPELINED.replace(wait, pair) for pair in (wait + store, store + wait))
    assert checked(after, after.replace("%new", "%more")).culprit is None
    found = checked(after, before).culprit
    assert found
    assert (found.change, found.store) == (ResultChange.COPIES, "out")


def test_a_store_to_what_tma_copies() -> None:
    row = TMA.index('    "ttng.wait_barrier"(%barrier, %zero)')
    store = f"""\
    %none = "arith.constant"() <{{value = dense<0.000000e+00> : {_TILE}}}> : () -> {_TILE}
    "tt.descriptor_store"(%x, %none, %zero, %zero) : ({_DESCRIPTOR}, {_TILE}, i32, i32) -> ()
"""
    later = TMA.index('    "ttng.barrier_expect"', row)
    after = TMA[:later] + store + TMA[later:]
    assert checked(after, after.replace("%eight", "%far")).culprit is None
    found = checked(after, TMA[:row] + store + TMA[row:]).culprit
    assert found
    assert found.change is ResultChange.COPIES


def test_a_loop_that_does_not_end_any_more() -> None:
    endless = LOOP.replace('"scf.for"(%zero, %n, %one', '"scf.for"(%zero, %n, %zero')
    answer = checked(LOOP, endless)
    found = answer.culprit
    assert found
    assert (found.change, found.difference) == (ResultChange.ENDLESS, None)
    assert verdict(answer) == "k: pass-0 makes the kernel run without an end"


def test_a_loop_that_does_not_run_has_any_step() -> None:
    none = LOOP.replace('"scf.for"(%zero, %n, %one', '"scf.for"(%zero, %zero, %one')
    assert checked(none, none.replace("%zero, %zero, %one", "%zero, %zero, %zero")).culprit is None


_TILE, _TILES, _MEMORY = "tensor<8x8xf32>", "tensor<8x8x!tt.ptr<f32>>", "!ttg.memdesc<8x8xf32, mutable>"
_DOT = (
    '%NAME = "ttng.warp_group_dot"(%memory, %memory, %C) <{inputPrecision = 0 : i32, isAsync = ASYNC, '
    f"maxNumImpreciseAcc = 0 : i32}}> : ({_MEMORY}, {_MEMORY}, {_TILE}) -> {_TILE}"
)


def _dots(*, is_async: str) -> str:
    """A tile times itself, twice: the shared memory is written again between both."""
    first, second = (
        _DOT.replace("NAME", name).replace("%C", more).replace("ASYNC", is_async)
        for name, more in (("d", "%none"), ("e", "%w"))
    )
    return module(
        f"""\
    %none = "arith.constant"() <{{value = dense<0.000000e+00> : {_TILE}}}> : () -> {_TILE}
    %range = "tt.make_range"() <{{end = 64 : i32, start = 0 : i32}}> : () -> tensor<64xi32>
    %at = "tt.reshape"(%range) : (tensor<64xi32>) -> tensor<8x8xi32>
    %xs = "tt.splat"(%x) : (!tt.ptr<f32>) -> {_TILES}
    %xp = "tt.addptr"(%xs, %at) : ({_TILES}, tensor<8x8xi32>) -> {_TILES}
    %v = "tt.load"(%xp) <{{operandSegmentSizes = array<i32: 1, 0, 0>}}> : ({_TILES}) -> {_TILE}
    %twice = "arith.addf"(%v, %v) : ({_TILE}, {_TILE}) -> {_TILE}
    %memory = "ttg.local_alloc"(%v) : ({_TILE}) -> {_MEMORY}
    {first}
    %w = "ttng.warp_group_dot_wait"(%d) <{{pendings = 0 : i32}}> : ({_TILE}) -> {_TILE}
    "ttg.local_store"(%twice, %memory) : ({_TILE}, {_MEMORY}) -> ()
    {second}
    %z = "ttng.warp_group_dot_wait"(%e) <{{pendings = 0 : i32}}> : ({_TILE}) -> {_TILE}
    %os = "tt.splat"(%out) : (!tt.ptr<f32>) -> {_TILES}
    %op = "tt.addptr"(%os, %at) : ({_TILES}, tensor<8x8xi32>) -> {_TILES}
    "tt.store"(%op, %z) : ({_TILES}, {_TILE}) -> ()
""",
        x="!tt.ptr<f32>",
        out="!tt.ptr<f32>",
    )


def test_dots_that_are_waited_for() -> None:
    answer = checked(_dots(is_async="false"), _dots(is_async="true"))
    assert [one.status for one in answer.passes] == ["reference", "equal"]


def _late(which: str) -> str:
    return _dots(is_async="true").replace(f"({which}) <{{pendings = 0", f"({which}) <{{pendings = 1")


def test_a_dot_whose_memory_is_written_again_before_it_is_waited_for() -> None:
    found = checked(_dots(is_async="false"), _late("%d")).culprit
    assert found
    assert (found.change, found.suspects) == (ResultChange.READS, ("pass-0",))


def test_a_dot_before_the_store_that_it_needs() -> None:
    """Read late it would see it."""
    lines, store = _without(_dots(is_async="true"), '"ttg.local_store"')
    at = next(number for number, line in enumerate(lines) if line.lstrip().startswith("%e =")) + 1
    found = checked(_dots(is_async="false"), "\n".join((*lines[:at], store, *lines[at:]))).culprit
    assert found
    assert found.change is ResultChange.RESULT


def test_a_result_that_is_used_before_its_wait() -> None:
    """ptxas knows the registers of a dot, and waits; the next dot adds to them without that."""
    assert checked(_dots(is_async="false"), _late("%e")).culprit is None


_BARRIER, _DESCRIPTOR = "!ttg.memdesc<1xi64, mutable>", "!tt.tensordesc<tensor<8x8xf32>>"
_LOAD = '"ttng.async_tma_copy_global_to_local"(%x, %AT, %zero, %barrier, %memory, %true)'
_LOADS = f"<{{isVolatile = false}}> : ({_DESCRIPTOR}, i32, i32, {_BARRIER}, {_MEMORY}, i1) -> ()"
_STORE = '"ttng.async_tma_copy_local_to_global"(%out, %AT, %zero, %memory)'
_STORES = f": ({_DESCRIPTOR}, i32, i32, {_MEMORY}) -> ()"

# Two blocks through one buffer and one barrier, to out, with TMA.
TMA = module(
    f"""\
    %eight = "arith.constant"() <{{value = 8 : i32}}> : () -> i32
    %memory = "ttg.local_alloc"() : () -> {_MEMORY}
    %barrier = "ttg.local_alloc"() : () -> {_BARRIER}
    "ttng.init_barrier"(%barrier) <{{count = 1 : i32}}> : ({_BARRIER}) -> ()
    "ttng.barrier_expect"(%barrier, %true) <{{size = 256 : i32}}> : ({_BARRIER}, i1) -> ()
    {_LOAD.replace("%AT", "%zero")} {_LOADS}
    "ttng.wait_barrier"(%barrier, %zero) : ({_BARRIER}, i32) -> ()
    {_STORE.replace("%AT", "%zero")} {_STORES}
    "ttng.async_tma_store_wait"() <{{pendings = 0 : i32}}> : () -> ()
    "ttng.barrier_expect"(%barrier, %true) <{{size = 256 : i32}}> : ({_BARRIER}, i1) -> ()
    {_LOAD.replace("%AT", "%eight")} {_LOADS}
    "ttng.wait_barrier"(%barrier, %one) : ({_BARRIER}, i32) -> ()
    {_STORE.replace("%AT", "%eight")} {_STORES}
    "ttng.async_tma_store_wait"() <{{pendings = 0 : i32}}> : () -> ()
""",
    x=_DESCRIPTOR,
    out=_DESCRIPTOR,
)


def test_tma_with_barriers() -> None:
    answer = checked(TMA, TMA.replace("%eight", "%far"))
    assert [(one.status, one.waits) for one in answer.passes] == [("reference", ""), ("equal", "")]
    assert answer.elements > 0


def test_a_wait_for_the_phase_before() -> None:
    """That phase has ended long since, so it waits for nothing."""
    found = checked(TMA, _changed(TMA, "(%barrier, %one) : (", "(%barrier, %zero) : (")).culprit
    assert found
    assert found.change is ResultChange.COPIES


def test_a_buffer_that_a_store_still_reads() -> None:
    early = TMA.replace(
        '"ttng.async_tma_store_wait"() <{pendings = 0', '"ttng.async_tma_store_wait"() <{pendings = 1', 1
    )
    found = checked(TMA, early).culprit
    assert found
    assert found.change is ResultChange.READS


def test_a_program_that_ends_before_its_last_store_has_read() -> None:
    """Its shared memory is the next program's then."""
    head, wait, tail = TMA.rpartition('"ttng.async_tma_store_wait"() <{pendings = 0')
    found = checked(TMA, head + wait.replace("pendings = 0", "pendings = 1") + tail).culprit
    assert found
    assert (found.change, found.difference) == (ResultChange.READS, None)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("size = 256 : i32", "size = 512 : i32", "a wait for a barrier that nothing here completes"),
        ("count = 1 : i32", "count = 2 : i32", "a wait for a barrier that nothing here completes"),
        ('"ttng.init_barrier"(%barrier) <{count = 1 : i32}> : ', '"ttng.inval_barrier"(%barrier) : ',
         "a barrier that was not made"),
    ],
)  # fmt: skip
def test_a_barrier_that_nobody_completes_is_no_verdict(old: str, new: str, why: str) -> None:
    """Somebody else may: so that is open, and a text after it is none to blame a pass by."""
    answer = checked(TMA, TMA.replace(old, new, 1))
    assert answer.culprit is None
    assert [(one.status, one.waits) for one in answer.passes] == [("reference", ""), ("equal", why)]
    assert answer.reasons == [why]
    racing = _changed(TMA, "(%barrier, %one) : (", "(%barrier, %zero) : (")
    found = checked(TMA, TMA.replace(old, new, 1), racing).culprit
    assert found
    assert found.suspects == ("pass-0", "pass-1")


def test_a_copy_that_outlives_its_memory() -> None:
    """The last copy takes no element, but writes zeros: the next owner of that memory finds them."""
    answer = checked(PIPELINED, _changed(PIPELINED, "num = 0 : i32", "num = 1 : i32"))
    found = answer.culprit
    assert found
    assert (found.change, found.difference) == (ResultChange.COPIES, None)
    assert [*answer_lines(answer)][1].startswith("  program (0, 0, 0), inputs ")
