"""What a dump names is run only if the dump was made here."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tritonsmith.compiler.dump import import_log
from tritonsmith.compiler.dump import index as indexes
from tritonsmith.compiler.dump import run as dump_run
from tritonsmith.compiler.dump.index import DumpIndex
from tritonsmith.compiler.dump.run import Choices
from tritonsmith.compiler.replay import replayer
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import FactError

pytestmark = pytest.mark.unit

FOREIGN = DumpIndex(Path("there"), command="python k.py", python=sys.executable)


def _chosen(index: DumpIndex) -> Path | None:
    return replayer.choose(index, workspace.default(), env="", python=None, triton_opt=None).python


def test_a_dump_of_a_program_that_was_run_here(tmp_path: Path) -> None:
    space = workspace.default()
    prepared, step = dump_run.of_program((sys.executable, "-c", ""), space, Choices(), tmp_path / "out")
    dump_run.dump_program(prepared, step, space)
    made = indexes.read(tmp_path / "out")
    assert _chosen(made) == Path(sys.executable)
    indexes.require_own(made, space)
    for other in (replace(made, python="/bin/sh"), replace(made, command="python other.py")):
        assert indexes.own_interpreter(other, space) is None
        with pytest.raises(FactError, match="not made here"):
            indexes.require_own(other, space)


def test_a_log_that_was_imported_with_its_interpreter(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("// -----// IR Dump Before Inliner (inline) //----- //\nmodule {\n}\n", encoding="utf-8")
    assert _chosen(import_log.read(str(log), tmp_path / "out", python=sys.executable)) == Path(sys.executable)


def test_of_somebody_elses_dump_an_interpreter_is_asked_for() -> None:
    with pytest.raises(FactError, match="the interpreter that it names is not run") as error:
        _chosen(FOREIGN)
    assert f"if you trust it: --python {shlex.quote(sys.executable)}" in error.value.hints
    with pytest.raises(FactError, match="does not record which Triton"):
        _chosen(replace(FOREIGN, python=""))


def test_an_interpreter_of_an_environment_may_be_named(tmp_path: Path) -> None:
    space = workspace.default()
    ours = space.root / "envs" / "dev" / "venv" / "bin" / "python"
    assert indexes.own_interpreter(replace(FOREIGN, python=str(ours)), space) == ours
    out = space.root / "envs" / ".." / ".." / "evil"
    assert indexes.own_interpreter(replace(FOREIGN, python=str(out)), space) is None
    assert indexes.own_interpreter(replace(FOREIGN, python=str(tmp_path / "envs" / "python")), space) is None
