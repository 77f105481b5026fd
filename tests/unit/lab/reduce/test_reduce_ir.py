"""Reducing by a command, here a Python script: no Triton."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.unit.lab.reduce.test_search import PROGRAM
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import SmithError
from tritonsmith.lab.reduce import reduce_ir
from tritonsmith.lab.reduce.oracles import PassRunner
from tritonsmith.lab.reduce.reduce_ir import ReduceOptions

pytestmark = pytest.mark.unit


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "work space")


def way(condition: str) -> PassRunner:
    script = (
        f"import sys; text = open(sys.argv[1]).read(); print('seen', len(text)); sys.exit(not ({condition}))"
    )
    return PassRunner(command=(sys.executable, "-c", script))


def test_a_command_says_what_is_interesting(space: Workspace) -> None:
    seen: list[int] = []
    found = reduce_ir.reduce(
        PROGRAM, way("'test.c' in text"), space, ReduceOptions(), lambda size, _: seen.append(size.ops)
    )
    assert "test.c" in found.text
    assert found.after.ops <= 2
    assert found.before.ops == 7
    assert not found.why
    assert seen == sorted(seen, reverse=True)


def test_what_is_not_interesting_at_the_start_is_said_with_what_was_printed(space: Workspace) -> None:
    with pytest.raises(SmithError) as error:
        reduce_ir.reduce(PROGRAM, way("False"), space, ReduceOptions())
    assert f"seen {len(PROGRAM)}" in str(error.value)
    assert "exit code 1" in str(error.value)


def test_what_does_not_fail_again_is_no_result(space: Workspace, tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    once = (
        f"'test.c' in text and open({str(asked)!r}, 'a').write('x') and len(open({str(asked)!r}).read()) < 3"
    )
    with pytest.raises(SmithError) as error:
        reduce_ir.reduce(PROGRAM, way(once), space, ReduceOptions(jobs=1))
    assert "does not fail in a new process" in str(error.value)


def test_time_that_is_up_leaves_the_best(space: Workspace) -> None:
    found = reduce_ir.reduce(PROGRAM, way("'test.c' in text"), space, ReduceOptions(timeout=0.001))
    assert found.why
    assert "--timeout" in found.why
    assert "test.c" in found.text
    assert found.after <= found.before
