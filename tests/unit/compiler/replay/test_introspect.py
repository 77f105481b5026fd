"""What a backend would run, laid beside what it did."""

from __future__ import annotations

from tests.unit.compiler.replay.dumps import dump
from tritonsmith.compiler.replay import introspect
from tritonsmith.compiler.replay.bindings import Call
from tritonsmith.compiler.replay.introspect import TracedCall


def made(*arguments: str) -> list[TracedCall]:
    return [TracedCall(Call(f"add_{one}", (number,)), f"any({one})") for number, one in enumerate(arguments)]


DUMPS = (
    dump(0, "inline"),
    dump(1, "canonicalize", "kernel"),
    dump(2, "canonicalize"),
    dump(3, "dots"),
    dump(4, "canonicalize"),
    dump(5, "cse"),
)


def test_each_call_finds_its_dump() -> None:
    found = introspect.align(DUMPS, made("inline", "canonicalize", "dots", "cse"))
    assert {number: one.call.binding for number, one in found.calls.items()} == {
        0: "add_inline",
        2: "add_canonicalize",
        3: "add_dots",
        5: "add_cse",
    }
    assert found.own == frozenset({0, 2, 3, 5})


def test_a_dump_that_ends_early_is_complete_as_far_as_it_goes() -> None:
    found = introspect.align(DUMPS[:4], made("inline", "canonicalize", "dots", "cse", "symbol-dce"))
    assert found.own == frozenset({0, 2, 3})


def test_a_backend_that_would_run_more_proves_nothing() -> None:
    found = introspect.align(DUMPS, made("inline", "canonicalize", "warp-specialize", "dots", "cse"))
    assert found.calls[5].call == Call("add_cse", (4,))
    assert found.own is None


def test_nothing_to_lay_beside() -> None:
    assert introspect.align(DUMPS, []).own is None
    assert introspect.align((), made("cse")).calls == {}
