"""Programs in parts: a producer, a consumer, and the barriers between them."""

from __future__ import annotations

import re

import pytest

from tests.unit.check.test_in_flight import module
from tests.unit.check.texts import checked
from tritonsmith.check import runs
from tritonsmith.check.answer import ResultChange

pytestmark = pytest.mark.unit

_MEMORY, _TILE = "!ttg.memdesc<8x8xf32, mutable>", "tensor<8x8xf32>"
_BARRIER, _DESCRIPTOR = "!ttg.memdesc<1xi64, mutable>", "!tt.tensordesc<tensor<8x8xf32>>"
_GIVEN = "%x, %out, %memory, %full, %empty"
_EACH = (_DESCRIPTOR, _DESCRIPTOR, _MEMORY, _BARRIER, _BARRIER)
_TYPES = ", ".join(_EACH)
_HERE = ", ".join(f"%{name}: {of}" for name, of in zip("dotfe", _EACH, strict=True))
_STORED = f"({_DESCRIPTOR}, i32, i32, {_MEMORY}) -> ()"

_LOOP = """\
      %none = "arith.constant"() <{value = 0 : i32}> : () -> i32
      %step = "arith.constant"() <{value = 1 : i32}> : () -> i32
      %three = "arith.constant"() <{value = 3 : i32}> : () -> i32
      %eight = "arith.constant"() <{value = 8 : i32}> : () -> i32
      %yes = "arith.constant"() <{value = true}> : () -> i1
      "scf.for"(%none, %three, %step) ({
      ^bb0(%i: i32):
        %row = "arith.muli"(%i, %eight) : (i32, i32) -> i32
        %odd = "arith.andi"(%i, %step) : (i32, i32) -> i32
        %other = "arith.xori"(%odd, %step) : (i32, i32) -> i32
BODY
        "scf.yield"() : () -> ()
      }) : (i32, i32, i32) -> ()
"""
_PRODUCE = _LOOP.replace(
    "BODY",
    f"""\
        "ttng.wait_barrier"(%empty, %other) : ({_BARRIER}, i32) -> ()
        "ttng.barrier_expect"(%full, %yes) <{{size = 256 : i32}}> : ({_BARRIER}, i1) -> ()
        "ttng.async_tma_copy_global_to_local"(%x, %row, %none, %full, %memory, %yes) <{{isVolatile = false}}> : ({_DESCRIPTOR}, i32, i32, {_BARRIER}, {_MEMORY}, i1) -> ()""",  # noqa: E501
)
_CONSUME = _LOOP.replace(
    "BODY",
    f"""\
        "ttng.wait_barrier"(%f, %odd) : ({_BARRIER}, i32) -> ()
        "ttng.async_tma_copy_local_to_global"(%o, %row, %none, %t) : {_STORED}
        "ttng.async_tma_store_wait"() <{{pendings = 0 : i32}}> : () -> ()
        "ttng.arrive_barrier"(%e) <{{count = 1 : i32, perThread}}> : ({_BARRIER}) -> ()""",
)


def kernel(produce: str = _PRODUCE, consume: str = _CONSUME, *, given: str = "partitions") -> str:
    """Three blocks of x to out: copied by the default part, stored by the other one of two warps."""
    outer = ("", "()") if given == "partitions" else (_GIVEN, f"({_TYPES})")
    inner = (_GIVEN, f"({_TYPES})") if given == "partitions" else ("", "()")
    text = module(
        f"""\
    %memory = "ttg.local_alloc"() : () -> {_MEMORY}
    %full = "ttg.local_alloc"() : () -> {_BARRIER}
    %empty = "ttg.local_alloc"() : () -> {_BARRIER}
    "ttng.init_barrier"(%full) <{{count = 1 : i32}}> : ({_BARRIER}) -> ()
    "ttng.init_barrier"(%empty) <{{count = 64 : i32}}> : ({_BARRIER}) -> ()
    "ttg.warp_specialize"({outer[0]}) <{{partitionNumWarps = array<i32: 2>}}> ({{
{produce}
      "ttg.warp_yield"() : () -> ()
    }}, {{
      "ttg.warp_specialize.partitions"({inner[0]}) ({{
      ^bb0({_HERE}):
{consume}
        "ttg.warp_return"() : () -> ()
      }}) : {inner[1]} -> ()
    }}) : {outer[1]} -> ()
""",
        x=_DESCRIPTOR,
        out=_DESCRIPTOR,
    )
    closed = "}) : () -> ()\n}) : () -> ()\n"
    return text.replace(closed, closed.replace("\n})", '\n}) {"ttg.threads-per-warp" = 32 : i32}', 1))


def plain() -> str:
    """The same in one part."""
    loop = _LOOP.replace(
        "BODY",
        f"""\
        %v = "tt.descriptor_load"(%x, %row, %none) : ({_DESCRIPTOR}, i32, i32) -> {_TILE}
        "tt.descriptor_store"(%out, %v, %row, %none) : ({_DESCRIPTOR}, {_TILE}, i32, i32) -> ()""",
    )
    return module(loop, x=_DESCRIPTOR, out=_DESCRIPTOR)


@pytest.mark.parametrize("given", ["partitions", "whole"])
def test_parts_that_wait_for_each_other(given: str) -> None:
    """What they are given stands at one operation or the other, by release."""
    answer = checked(plain(), kernel(given=given))
    assert [(one.status, one.waits) for one in answer.passes] == [("reference", ""), ("equal", "")]


def test_a_phase_of_minus_one_is_odd() -> None:
    """3.9.0 extends an i1 with its sign for it."""
    signed = """\
        %bit = "arith.trunci"(%odd) : (i32) -> i1
        %signed = "arith.extsi"(%bit) : (i1) -> i32
        "ttng.wait_barrier"(%f, %signed)"""
    consume = _CONSUME.replace('        "ttng.wait_barrier"(%f, %odd)', signed)
    assert consume != _CONSUME
    assert [one.status for one in checked(plain(), kernel(consume=consume)).passes] == ["reference", "equal"]


@pytest.mark.parametrize("line", ["%empty, %other", "%f, %odd"])
def test_a_part_that_does_not_wait(line: str) -> None:
    """The other one arrives once too often, or waits for ever: that tells nothing of the result."""
    produce, consume = (
        "\n".join(one for one in text.splitlines() if f'"ttng.wait_barrier"({line})' not in one)
        for text in (_PRODUCE, _CONSUME)
    )
    answer = checked(plain(), kernel(produce, consume))
    assert answer.culprit is None
    assert "barrier" in answer.reasons[0]


def test_a_buffer_that_is_given_back_before_it_was_read() -> None:
    *loop, store, wait, arrive, ending, closing = _CONSUME.splitlines()
    assert "arrive_barrier" in arrive
    early = "\n".join((*loop, arrive, store, wait, ending, closing))
    found = checked(plain(), kernel(consume=early)).culprit
    assert found
    assert (found.change, found.suspects) == (ResultChange.READS, ("pass-0",))


def test_a_buffer_that_a_store_still_reads() -> None:
    found = checked(plain(), kernel(consume=_CONSUME.replace("pendings = 0", "pendings = 1"))).culprit
    assert found
    assert found.change is ResultChange.READS


@pytest.mark.parametrize(
    ("old", "new"), [("count = 1 : i32, perThread", "count = 1 : i32"), ("%e) <", "%f) <")]
)
def test_parts_that_all_wait_are_no_verdict(old: str, new: str) -> None:
    consume = _CONSUME.replace(old, new)
    assert consume != _CONSUME
    answer = checked(plain(), kernel(consume=consume))
    assert answer.culprit is None
    assert [one.status for one in answer.passes] == ["reference", "unknown"]
    assert "barrier" in answer.reasons[0]


@pytest.mark.parametrize("which", ["produce", "consume"])
def test_what_is_not_known_in_a_part_is_named(which: str) -> None:
    parts = {"produce": _PRODUCE, "consume": _CONSUME}
    parts[which] = parts[which].replace('"arith.xori"', '"arith.strange"')
    answer = checked(plain(), kernel(**parts))
    assert answer.reasons == ["arith.strange"]


def _two_consumers(produce: str) -> str:
    """A second consumer, of one warp, stores the same blocks to y; it has a barrier of its own."""
    each = (*_EACH, _DESCRIPTOR, _BARRIER)
    here = ", ".join(f"%{name}: {of}" for name, of in zip("dotfewg", each, strict=True))
    other = _CONSUME.replace("(%o,", "(%w,").replace("(%e)", "(%g)")
    second = re.sub(r"%(\w+)", r"%\1_2", f"      ^bb0({here}):\n{other}")
    return module(
        f"""\
    %memory = "ttg.local_alloc"() : () -> {_MEMORY}
    %full = "ttg.local_alloc"() : () -> {_BARRIER}
    %empty = "ttg.local_alloc"() : () -> {_BARRIER}
    %free = "ttg.local_alloc"() : () -> {_BARRIER}
    "ttng.init_barrier"(%full) <{{count = 1 : i32}}> : ({_BARRIER}) -> ()
    "ttng.init_barrier"(%empty) <{{count = 1 : i32}}> : ({_BARRIER}) -> ()
    "ttng.init_barrier"(%free) <{{count = 1 : i32}}> : ({_BARRIER}) -> ()
    "ttg.warp_specialize"() <{{partitionNumWarps = array<i32: 2, 1>}}> ({{
{produce}
      "ttg.warp_yield"() : () -> ()
    }}, {{
      "ttg.warp_specialize.partitions"({_GIVEN}, %y, %free) ({{
      ^bb0({here}):
{_CONSUME}
        "ttg.warp_return"() : () -> ()
      }}, {{
{second}
        "ttg.warp_return"() : () -> ()
      }}) : ({", ".join(each)}) -> ()
    }}) : () -> ()
""".replace(", perThread", ""),
        x=_DESCRIPTOR,
        out=_DESCRIPTOR,
        y=_DESCRIPTOR,
    )


@pytest.mark.slow
def test_a_consumer_that_comes_last() -> None:
    """In turn, both are as quick; where one of them lags, it misses a phase, and waits for ever."""
    lines = _PRODUCE.splitlines()
    at = next(number for number, line in enumerate(lines) if '"ttng.wait_barrier"(%empty' in line)
    both = "\n".join((*lines[: at + 1], lines[at].replace("%empty", "%free"), *lines[at + 1 :]))
    right = _two_consumers(both)
    answer = checked(right, right.replace("%row", "%line"))
    assert [(one.status, one.waits) for one in answer.passes] == [("reference", ""), ("equal", "")]
    answer = checked(right, _two_consumers(_PRODUCE))
    assert answer.passes[-1].status == "equal"
    assert "barrier" in answer.reasons[0]


@pytest.mark.slow
def test_a_part_with_more_to_do_than_the_first_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit of a run counts what all parts did in the reference."""
    monkeypatch.setattr(runs, "_SOME", 100)  # else it takes 12,000 turns in some hundred runs to come near it
    busy = """\
      %low = "arith.constant"() <{value = 0 : i32}> : () -> i32
      %by = "arith.constant"() <{value = 1 : i32}> : () -> i32
      %high = "arith.constant"() <{value = 1000 : i32}> : () -> i32
      "scf.for"(%low, %high, %by) ({
      ^bb0(%turn: i32):
        %more = "arith.addi"(%turn, %by) : (i32, i32) -> i32
        "scf.yield"() : () -> ()
      }) : (i32, i32, i32) -> ()
"""
    text = kernel(consume=busy + _CONSUME)
    answer = checked(text, text.replace("%row", "%line"))
    assert [(one.status, one.waits) for one in answer.passes] == [("reference", ""), ("equal", "")]


def test_a_part_that_ends_with_a_store_under_way() -> None:
    """The program ends after it, and its shared memory is somebody else's."""
    once = [text.replace("value = 3 : i32", "value = 1 : i32") for text in (plain(), _PRODUCE, _CONSUME)]
    unwanted = ("store_wait", "arrive_barrier")
    consume = "\n".join(line for line in once[2].splitlines() if not any(word in line for word in unwanted))
    found = checked(once[0], kernel(once[1], consume)).culprit
    assert found
    assert found.change is ResultChange.READS
    waits = consume.replace(
        _STORED, f'{_STORED}\n        "ttng.async_tma_store_wait"() <{{pendings = 0 : i32}}> : () -> ()'
    )
    assert [one.status for one in checked(once[0], kernel(once[1], waits)).passes] == ["reference", "equal"]


_BEFORE = f"""\
    %nought = "arith.constant"() <{{value = 0 : i32}}> : () -> i32
    %ones = "arith.constant"() <{{value = dense<1.000000e+00> : {_TILE}}}> : () -> {_TILE}
    %at = "arith.constant"() <{{value = 8 : i32}}> : () -> i32
    %own = "ttg.local_alloc"(%ones) : ({_TILE}) -> {_MEMORY}
    "ttng.async_tma_copy_local_to_global"(%out, %at, %nought, %own) : {_STORED}
"""
_INSIDE = f"""\
      "ttng.async_tma_store_wait"() <{{pendings = 0 : i32}}> : () -> ()
      %twos = "arith.addf"(%ones, %ones) : ({_TILE}, {_TILE}) -> {_TILE}
      "ttg.local_store"(%twos, %own) : ({_TILE}, {_MEMORY}) -> ()
"""


def test_the_first_part_has_under_way_what_was_before_it() -> None:
    once = [text.replace("value = 3 : i32", "value = 1 : i32") for text in (plain(), _PRODUCE, _CONSUME)]
    first, parts = "      %none = ", '    "ttg.warp_specialize"('
    wait = '    "ttng.async_tma_store_wait"() <{pendings = 0 : i32}> : () -> ()\n'
    before = once[0].replace(first, _BEFORE + wait + first, 1)
    after = kernel(_INSIDE + once[1], once[2]).replace(parts, _BEFORE + parts, 1)
    answer = checked(before, after)
    assert [(one.status, one.waits) for one in answer.passes] == [("reference", ""), ("equal", "")]
