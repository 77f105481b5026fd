"""`triton-opt` as an oracle: here a script that prints what the real one does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import script_of_python
from tritonsmith.core.errors import UsageError
from tritonsmith.lab.failure import Failure
from tritonsmith.lab.reduce.oracles import OptOracle

pytestmark = pytest.mark.unit

FAKE = """\
import os, signal, sys
text = open(sys.argv[1]).read()
passes = [word for word in sys.argv if word.startswith("--pass-pipeline=")]
if "broken" in text:
    sys.exit("in.mlir:1:1: error: op is wrong")
if passes and "nope" in passes[0]:
    sys.exit("x: error: 'nope' does not refer to a registered pass or pass pipeline")
if passes and passes[0].count("{") != passes[0].count("}"):
    sys.exit("MLIR Textual PassPipeline Parser:1:19: error: missing closing '}'")
if passes and "wrong" in text:
    sys.exit("in.mlir:1:1: error: op is wrong")
if passes and "crash" in text:
    os.kill(os.getpid(), signal.SIGSEGV)
if passes and "hang" in text:
    signal.pause()
open(sys.argv[sys.argv.index("-o") + 1], "w").write(text)
"""


@pytest.fixture
def opt(tmp_path: Path) -> Path:
    return script_of_python(tmp_path / "triton-opt", FAKE)


def test_only_a_pass_can_fail(opt: Path, tmp_path: Path) -> None:
    oracle = OptOracle(opt, "builtin.module(cse)", tmp_path, 60)
    assert oracle.ask("wrong").failure == Failure("error", "op is wrong")
    broken = oracle.ask("broken")  # the same words, by the parser
    assert (broken.failure, broken.began) == (None, False)
    assert oracle.ask("fine").failure is None
    assert oracle.printed("fine") == "fine\n"
    assert oracle.printed("broken") is None


def test_a_crash_and_a_pass_that_hangs(opt: Path, tmp_path: Path) -> None:
    assert OptOracle(opt, "builtin.module(cse)", tmp_path, 60).ask("crash").failure == Failure(
        "signal", "SIGSEGV"
    )
    assert OptOracle(opt, "builtin.module(cse)", tmp_path, 0.5).ask("hang").failure == Failure("timeout", "")


@pytest.mark.parametrize("pipeline", ["builtin.module(nope)", "builtin.module(cse{a=1)"])
def test_a_pipeline_that_is_none_is_no_failure_of_the_file(opt: Path, tmp_path: Path, pipeline: str) -> None:
    with pytest.raises(UsageError):
        OptOracle(opt, pipeline, tmp_path, 60).ask("fine")
