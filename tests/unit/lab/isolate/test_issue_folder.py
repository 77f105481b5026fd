"""Tests of what `reduce` takes from a file, a folder of passes.isolate, or a dump."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tritonsmith.compiler.dump import index
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.lab.experiment import Rules
from tritonsmith.lab.isolate.issue_folder import IrSource

pytestmark = pytest.mark.unit

IR = "module {\n}\n"


def source(file: Path, **fields: object) -> IrSource:
    plain = IrSource(
        file=file,
        passes="",
        command=(),
        wrong=False,
        kernel="",
        env="",
        python=None,
        triton_opt=None,
        option=(),
    )
    return replace(plain, **fields)  # type: ignore[arg-type]


def test_the_passes_of_a_file_are_those_of_its_run_line(tmp_path: Path) -> None:
    file, opt = tmp_path / "fails.mlir", tmp_path / "triton-opt"
    file.write_text(f"// RUN: triton-opt %s --pass-pipeline='builtin.module(cse)'\n{IR}")
    opt.write_text("#!/bin/sh\n")
    opt.chmod(0o755)
    space = Workspace(tmp_path / "space")
    failing = source(file, triton_opt=opt).read(space, Rules(), silent=True)
    assert failing.runner.opt == opt
    assert failing.runner.pipeline == "builtin.module(cse)"
    assert failing.out == tmp_path / "fails.reduced.mlir"
    # --pass overrides them.
    failing = source(file, triton_opt=opt, passes="canonicalize").read(space, Rules(), silent=True)
    assert failing.runner.pipeline == "builtin.module(canonicalize)"


def test_a_command_reads_the_input_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "input.mlir").write_text(IR)
    folder = source(tmp_path, command=("true", "{}"))
    failing = folder.read(Workspace(tmp_path / "space"), Rules(), silent=True)
    assert failing.text == IR
    assert failing.runner.command == ("true", "{}")
    assert failing.out == tmp_path / "reduced.mlir"
    assert folder.file_name == "in.mlir"
    assert source(tmp_path / "input.mlir", command=("true",)).file_name == "input.mlir"


@pytest.mark.parametrize(
    ("fields", "error", "text"),
    [
        ({}, UsageError, "no failing pass is named"),
        ({"passes": "cse", "command": ("true",)}, UsageError, "contradict each other"),
        ({"command": ("no-such-program-anywhere",)}, FactError, "no program no-such-program-anywhere"),
    ],
)
def test_what_cannot_be_reduced(
    tmp_path: Path, fields: dict[str, object], error: type[Exception], text: str
) -> None:
    file = tmp_path / "fails.mlir"
    file.write_text(IR)
    with pytest.raises(error, match=text):
        source(file, **fields).read(Workspace(tmp_path / "space"), Rules(), silent=True)


def test_a_dump_is_searched_unless_something_names_what_fails(tmp_path: Path) -> None:
    (tmp_path / index.FILE).write_text("{}")
    assert source(tmp_path).is_searched
    assert source(tmp_path, wrong=True, passes="cse").is_searched
    assert not source(tmp_path, passes="cse").is_searched
    assert not source(tmp_path, command=("true",)).is_searched
    assert not source(tmp_path / index.FILE).is_searched
    assert source(tmp_path, passes="cse").journal_folder(Workspace(tmp_path / "space")) is None


def test_the_input_is_recognized_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "input.mlir").write_text(IR)
    (tmp_path / "link.mlir").symlink_to("input.mlir")
    assert source(tmp_path).is_input(tmp_path / "link.mlir")
    assert not source(tmp_path).is_input(tmp_path / "reduced.mlir")
