"""Pipeline forms, as compilers of several versions printed them."""

from __future__ import annotations

import pytest

from tritonsmith.compiler.replay import pass_chain
from tritonsmith.compiler.replay.pass_chain import PipelineForm

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
