"""Pipelines that a person writes, and the bindings for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tritonsmith.compiler.replay import bindings
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.lab.isolate import issue_folder
from tritonsmith.lab.reduce import oracles
from tritonsmith.worker.messages import BindingRow, FormRow

pytestmark = pytest.mark.unit

PYTHON = Path("python")
PIPELINES = (
    ((7001, False), "any(tritongpu-pipeline{dump=false num-stages=7001 fixed=3})"),
    ((7002, False), "any(tritongpu-pipeline{dump=false num-stages=7002 fixed=3})"),
    ((7001, True), "any(tritongpu-pipeline{dump=true num-stages=7001 fixed=3})"),
)
KNOWN = bindings.read_bindings(
    [
        BindingRow("passes.add_pipeline", ("int", "bool"), tuple(FormRow(*form) for form in PIPELINES), ""),
        BindingRow("passes.add_cse", (), (FormRow((), "any(cse)"),), ""),
    ]
)


def test_a_pipeline_is_spelled_as_triton_opt_takes_it() -> None:
    assert oracles.spelled("cse") == "builtin.module(cse)"
    assert oracles.spelled("builtin.module(any(cse), tt.func(canonicalize{  a=1 b}))") == (
        "builtin.module(cse,tt.func(canonicalize{a=1 b}))"
    )
    with pytest.raises(UsageError):
        oracles.spelled("builtin.module()")


def test_options_become_arguments_and_the_rest_is_the_bindings_own() -> None:
    (first, second) = oracles.calls("tritongpu-pipeline{num-stages=3 dump=true},cse", KNOWN, PYTHON)
    assert (first.binding, first.arguments) == ("passes.add_pipeline", (3, True))
    assert (second.binding, second.arguments) == ("passes.add_cse", ())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("", r"tritongpu-pipeline\{dump=\.\.\. num-stages=\.\.\.\}"),
        ("{num-stages=3 dump=true fixed=4}", "fixed=3, not 4"),
    ],
)
def test_an_option_that_is_missing_or_that_no_binding_gives_is_named(options: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        oracles.calls(f"tritongpu-pipeline{options}", KNOWN, PYTHON)


def test_a_pass_without_a_binding_names_triton_opt() -> None:
    with pytest.raises(FactError) as error:
        oracles.calls("tritongpu-pipelin", KNOWN, PYTHON)
    assert "--triton-opt" in str(error.value)
    assert "did you mean 'tritongpu-pipeline'?" in str(error.value)


def test_the_run_line_is_read_back() -> None:
    pipeline = "builtin.module(tritongpu-pipeline{num-stages=3})"
    assert issue_folder.pipeline_of(issue_folder.headed("module {\n}\n", pipeline)) == pipeline
    assert not issue_folder.pipeline_of("module {\n}\n")
