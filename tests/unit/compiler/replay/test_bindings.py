"""From a recorded pass to the call of a binding: what the worker saw of Triton 3.9, in short."""

from __future__ import annotations

from typing import Any

from tests.unit.compiler.replay.dumps import dump
from tritonsmith.compiler.replay import bindings, pass_chain
from tritonsmith.compiler.replay.bindings import Call, TracedCall
from tritonsmith.worker.messages import BindingRow, FormRow


def row(path: str, *tries: tuple[list[Any], str]) -> BindingRow:
    forms = tuple(FormRow(tuple(arguments), form) for arguments, form in tries)
    return BindingRow(path, (), forms, "")


KNOWN = bindings.read_bindings(
    [
        row("passes.ttgpuir.add_coalesce", ([], "any(tritongpu-coalesce)")),
        row(
            "passes.ttgpuir.add_pipeline",
            ([7001, False], "any(tritongpu-pipeline{dump-intermediate-steps=false num-stages=7001})"),
            ([7002, False], "any(tritongpu-pipeline{dump-intermediate-steps=false num-stages=7002})"),
            ([7001, True], "any(tritongpu-pipeline{dump-intermediate-steps=true num-stages=7001})"),
        ),
        row("nvidia.passes.add_hidden", (["first"], "any(hidden)"), (["second"], "any(hidden)")),
        row("nvidia.passes.add_plan", ([{"class": "a::ClusterInfo"}], "any(plan)")),
        row("passes.common.add_canonicalizer", ([], "any(canonicalize{  top-down=true})")),
        row("passes.gluon.add_canonicalizer", ([], "any(canonicalize{  top-down=false})")),
    ]
)


def resolved(printed: str, rehearsed: Call | None = None) -> Call | str:
    form = pass_chain.parse_form(printed)
    return bindings.resolve(KNOWN, form.argument, form, rehearsed)


def test_options_become_arguments() -> None:
    made = resolved("tritongpu-pipeline{dump-intermediate-steps=true num-stages=4}")
    assert made == Call("passes.ttgpuir.add_pipeline", (4, True))
    assert str(made) == "passes.ttgpuir.add_pipeline(4, True)"


def test_of_two_bindings_the_one_whose_options_are_right() -> None:
    assert resolved("canonicalize{  top-down=false}") == Call("passes.gluon.add_canonicalizer")


def test_an_option_that_no_binding_gives_is_named() -> None:
    made = resolved("canonicalize{ top-down=maybe}")
    assert isinstance(made, str)
    assert "passes.common.add_canonicalizer adds the pass with top-down=true, not maybe" in made


def test_a_pass_without_a_binding() -> None:
    assert resolved("reconcile-unrealized-casts") == "no binding adds reconcile-unrealized-casts"


def test_an_argument_that_no_option_shows_is_the_rehearsed_one() -> None:
    assert (
        resolved("hidden") == "argument 1 of nvidia.passes.add_hidden does not appear in the pass's options"
    )
    rehearsed = Call("nvidia.passes.add_hidden", ("gfx942",))
    assert resolved("hidden", rehearsed) == rehearsed


def test_an_object_is_a_new_one() -> None:
    assert resolved("plan") == Call("nvidia.passes.add_plan", ({"class": "a::ClusterInfo"},))


def test_a_dump_that_does_not_tell_options() -> None:
    rehearsed = Call("passes.ttgpuir.add_pipeline", (5, False))
    assert bindings.resolve(KNOWN, "tritongpu-pipeline", None, rehearsed) == rehearsed
    assert bindings.resolve(KNOWN, "tritongpu-coalesce", None) == Call("passes.ttgpuir.add_coalesce")
    refused = bindings.resolve(KNOWN, "tritongpu-pipeline", None)
    assert refused == (
        "the dump does not contain the options of tritongpu-pipeline, which passes.ttgpuir.add_pipeline needs"
    )


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
    found = bindings.align(DUMPS, made("inline", "canonicalize", "dots", "cse"))
    assert {number: one.call.binding for number, one in found.calls.items()} == {
        0: "add_inline",
        2: "add_canonicalize",
        3: "add_dots",
        5: "add_cse",
    }
    assert found.own == frozenset({0, 2, 3, 5})


def test_a_dump_that_ends_early_is_complete_as_far_as_it_goes() -> None:
    found = bindings.align(DUMPS[:4], made("inline", "canonicalize", "dots", "cse", "symbol-dce"))
    assert found.own == frozenset({0, 2, 3})


def test_a_backend_that_would_run_more_proves_nothing() -> None:
    found = bindings.align(DUMPS, made("inline", "canonicalize", "warp-specialize", "dots", "cse"))
    assert found.calls[5].call == Call("add_cse", (4,))
    assert found.own is None


def test_nothing_to_lay_beside() -> None:
    assert bindings.align(DUMPS, []).own is None
    assert bindings.align((), made("cse")).calls == {}
