"""A command that really runs, for one Triton and for several at once."""

from __future__ import annotations

import sys
import venv
from pathlib import Path
from textwrap import indent
from types import SimpleNamespace

import pytest

from tritonsmith.build.suites import command
from tritonsmith.compiler import tritons
from tritonsmith.compiler.tritons import Triton
from tritonsmith.core.errors import StepError, UsageError
from tritonsmith.lab.bisect import program_tests
from tritonsmith.lab.bisect.program_tests import CheckoutTests, CommandTests, TestFile
from tritonsmith.lab.journal import Observation, Verdict

pytestmark = pytest.mark.unit

GOOD, BAD, SKIP = Verdict.GOOD, Verdict.BAD, Verdict.SKIP


def _run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str) -> Observation:
    python = tmp_path / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True, exist_ok=True)
    python.unlink(missing_ok=True)
    python.symlink_to(sys.executable)
    monkeypatch.setattr(tritons, "place_of", lambda _: SimpleNamespace(python=python))
    argv = ("python", "-c", program)
    return CommandTests(argv, tmp_path, tmp_path / "tests").test(Triton("3.5.0", version="3.5.0"))


@pytest.mark.parametrize(("code", "verdict"), [(0, GOOD), (1, BAD), (124, BAD), (125, SKIP), (127, BAD)])
def test_exit_codes_mean_what_they_mean_to_git(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, verdict: Verdict
) -> None:
    outcome = _run(tmp_path, monkeypatch, f"print('seen'); raise SystemExit({code})")
    assert (outcome.verdict, outcome.figures) == (verdict, f"exit code {code}: seen")


@pytest.mark.parametrize("program", ["raise SystemExit(128)", "import os; os.kill(os.getpid(), 9)"])
def test_a_command_can_end_the_bisect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    with pytest.raises(StepError, match="the command ended the bisect"):
        _run(tmp_path, monkeypatch, program)


def test_a_command_runs_with_the_python_of_its_triton_and_caches_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = "import os; print(os.environ['VIRTUAL_ENV'], os.environ['TRITON_CACHE_DIR'], os.getcwd())"
    outcome = _run(tmp_path, monkeypatch, program)
    log = next((tmp_path / "tests").glob("*/log")).read_text().split()
    assert outcome.verdict is GOOD
    assert log[0] == str(tmp_path / "venv")
    assert log[1].startswith(str(tmp_path / "tests"))
    assert log[2] == str(tmp_path)


ONCE = """
import os, pathlib
cache = pathlib.Path(os.environ["TRITON_CACHE_DIR"])
assert not list(cache.glob("*"))
(cache / "compiled").mkdir(parents=True)
(cache / "compiled" / "k.cubin").write_text("x")
"""


@pytest.mark.slow
def test_each_test_of_a_triton_compiles_anew_and_leaves_no_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the second test of `--confirm` reads what the first one compiled, and confirms nothing."""
    outcomes = [_run(tmp_path, monkeypatch, ONCE) for _ in range(2)]
    test = tmp_path / "test_once.py"
    test.write_text(f"def test_it():{indent(ONCE, '    ')}", encoding="utf-8")
    monkeypatch.setattr(tritons, "place_of", lambda _: SimpleNamespace(python=Path(sys.executable)))
    triton = Triton("3.6.0", version="3.6.0")
    by_pytest = CheckoutTests(TestFile(str(test)), tmp_path / "tests", lambda: triton, lambda: triton)
    outcomes += [by_pytest.test(triton) for _ in range(2)]
    assert [(outcome.verdict, outcome.why) for outcome in outcomes] == [(GOOD, "")] * 4
    assert not list((tmp_path / "tests").rglob("k.cubin"))


def test_a_pythonpath_with_a_triton_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    program_tests.check()
    (tmp_path / "triton").mkdir()
    (tmp_path / "triton" / "__init__.py").touch()
    with pytest.raises(UsageError, match="PYTHONPATH contains a Triton"):
        program_tests.check()


MEET = """
import pathlib, sys, time
mine, end = pathlib.Path(sys.prefix), time.monotonic() + 60
(mine / "here").touch()
while time.monotonic() < end and len(list(mine.parent.glob("*/here"))) < 2:
    time.sleep(0.01)
sys.exit(len(list(mine.parent.glob("*/here"))) != 2 or mine.name == "bad")
"""


@pytest.mark.slow
def test_commands_run_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITONSMITH_HOME", str(tmp_path / "home"))
    tritons = [Triton(name, python=_interpreter(tmp_path / name)) for name in ("fine", "bad")]
    tested = CommandTests(("python", "-c", MEET), tmp_path, tmp_path / "tests", jobs=2)
    found = {triton.label: outcome.verdict for triton, outcome in tested.outcomes(tritons)}
    assert found == {"fine": GOOD, "bad": BAD}


@pytest.mark.slow
def test_an_error_of_one_of_several_commands_ends_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITONSMITH_HOME", str(tmp_path / "home"))
    tritons = [Triton(name, python=_interpreter(tmp_path / name)) for name in ("waits", "ends")]
    program = "import sys, time; sys.exit(128) if sys.prefix.endswith('ends') else time.sleep(600)"
    tested = CommandTests(("python", "-c", program), tmp_path, tmp_path / "tests", jobs=2)
    with pytest.raises(StepError, match="the command ended the bisect: exit code 128"):
        list(tested.outcomes(tritons))


def test_a_machine_without_the_folder_says_so(tmp_path: Path) -> None:
    with pytest.raises(StepError, match="this machine has no such folder"):
        command.run_isolated(("true",), Path(sys.executable), tmp_path / "elsewhere", tmp_path / "tests")


def _interpreter(folder: Path) -> str:
    venv.create(folder, symlinks=True)
    return str(folder / "bin" / "python")
