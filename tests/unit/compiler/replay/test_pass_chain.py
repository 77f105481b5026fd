"""Which dump is what a pass made."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.compiler.replay.dumps import dump
from tritonsmith.compiler.replay import pass_chain
from tritonsmith.compiler.replay.pass_chain import PipelineForm
from tritonsmith.core.errors import UsageError

INLINING = (
    dump(0, "inline"),
    dump(1, "canonicalize", "helper"),
    dump(2, "canonicalize", "kernel"),
    dump(3, "canonicalize"),
    dump(4, "cse"),
)


def numbers(links: tuple[pass_chain.PassLink, ...]) -> list[tuple[int, int | None, str]]:
    return [(link.dump.number, link.after.number if link.after else None, link.inside) for link in links]


def test_what_inline_made_comes_after_its_own_passes() -> None:
    assert numbers(pass_chain.of(INLINING)) == [
        (0, 3, ""),
        (1, None, "inline"),
        (2, None, "inline"),
        (3, 4, ""),
        (4, None, ""),
    ]


def test_what_the_pipelines_do_not_run_is_a_part_of_the_pass_before() -> None:
    dumps = (dump(0, "dots"), dump(1, "canonicalize"), dump(2, "cse"))
    assert numbers(pass_chain.of(dumps)) == [(0, 1, ""), (1, 2, ""), (2, None, "")]
    assert numbers(pass_chain.of(dumps, own={0, 2})) == [(0, 2, ""), (1, None, "dots"), (2, None, "")]


def test_a_pass_on_each_function_ends_after_the_last() -> None:
    dumps = (dump(0, "a"), dump(1, "f", "one"), dump(2, "f", "two"), dump(3, "cse"))
    expected = [(0, 1, ""), (1, 3, ""), (2, 3, ""), (3, None, "")]
    assert numbers(pass_chain.of(dumps)) == expected
    assert numbers(pass_chain.of(dumps, own={0, 1, 3})) == expected


def test_what_is_no_input_of_a_pass_is_left_out() -> None:
    cut = replace(dump(4, "cut"), whole=False)
    failed = replace(dump(3, "bad"), when="failed")
    inner = replace(dump(1, ""), when="after", name="SoftwarePipeliner: LowerLoops")
    llvm = replace(dump(2, "instcombine"), path="k/002-instcombine.ll")
    assert numbers(pass_chain.of((dump(0, "cse"), inner, llvm, failed, cut))) == [(0, None, "")]


def chosen(
    number: str = "", first: int | None = None, last: int | None = None, *, everything: bool = False
) -> list[int]:
    links = pass_chain.chosen(pass_chain.of(INLINING), number, first, last, everything=everything)
    return [link.dump.number for link in links]


def test_one_a_range_or_all() -> None:
    assert chosen("2") == [2]
    assert chosen("cse") == [4]
    assert chosen(first=0, last=3) == [0, 3]
    assert chosen(last=3) == [0, 3]
    assert chosen(first=3) == [3, 4]
    assert chosen(everything=True) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("asked", "what"),
    [
        ({"number": "9"}, "no pass 9"),
        ({"number": "canonicalize"}, "ran 3 times"),
        ({"first": 4, "last": 1}, "no pass from 4 to 1"),
        ({"number": "1", "everything": True}, "exactly one"),
        ({}, "exactly one"),
    ],
)
def test_what_cannot_be_chosen(asked: dict[str, object], what: str) -> None:
    with pytest.raises(UsageError, match=what):
        chosen(**asked)  # type: ignore[arg-type]


CANONICALIZE = (
    "canonicalize{cse-between-iterations=false    max-iterations=10 max-num-rewrites=-1 "
    "region-simplify=normal test-convergence=false top-down=true}"
)


def test_options_with_doubled_blanks() -> None:
    form = pass_chain.parse_form(CANONICALIZE)
    assert form.argument == "canonicalize"
    assert dict(form.options)["max-num-rewrites"] == "-1"
    assert len(form.options) == 6


def test_the_nesting_of_a_pass_manager_and_of_a_reproducer() -> None:
    assert pass_chain.parse_form("any(cse)") == PipelineForm("cse")
    assert pass_chain.parse_form("any(llvm.func(canonicalize-llvm-ir))") == PipelineForm(
        "canonicalize-llvm-ir", (), ("llvm.func",)
    )
    assert pass_chain.parse_form("builtin.module(any(tritongpu-pipeline{num-stages=3}))") == PipelineForm(
        "tritongpu-pipeline", (("num-stages", "3"),), ("builtin.module",)
    )


def test_of_several_passes_the_first() -> None:
    assert pass_chain.parse_form("any(a{x=1,2 y=b},c)") == PipelineForm("a", (("x", "1,2"), ("y", "b")))


@pytest.mark.parametrize(
    ("printed", "operation", "text"),
    [
        ("any(cse)", "builtin.module", "cse"),
        ("builtin.module(any(cse))", "builtin.module", "cse"),
        ("any(llvm.func(x{a=1}))", "llvm.func", "llvm.func(x{a=1})"),
        (
            "inline{default-pipeline=canonicalize  max-iterations=4 }",
            "builtin.module",
            "inline{default-pipeline=canonicalize max-iterations=4}",
        ),
    ],
)
def test_what_parses_again(printed: str, operation: str, text: str) -> None:
    assert pass_chain.parsable_form(printed, operation) == (text, ())


def test_a_pipeline_as_a_value_gets_braces() -> None:
    text, changes = pass_chain.parsable_form(
        "inline{default-pipeline=canonicalize{top-down=true} max-iterations=4}", "builtin.module"
    )
    assert text == "inline{default-pipeline={canonicalize{top-down=true}} max-iterations=4}"
    assert changes == ("inline: braces around the value of default-pipeline",)
