"""What makes a Triton bad, by compiles that never were and by commands that really run."""

from __future__ import annotations

import sys
import venv
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.unit.lab.compare.making import point, written
from tritonsmith.build.suites import isolated_run
from tritonsmith.compiler import tritons
from tritonsmith.compiler.tritons import Triton
from tritonsmith.core.errors import StepError, UsageError
from tritonsmith.lab import terms as language
from tritonsmith.lab.bisect.predicate import command
from tritonsmith.lab.bisect.predicate.checkout_test import TestPredicate
from tritonsmith.lab.bisect.predicate.command import CommandPredicate
from tritonsmith.lab.bisect.predicate.kernel_compiles import (
    FailurePredicate,
    KernelCompiles,
    LimitPredicate,
    Manifests,
    UntestableError,
)
from tritonsmith.lab.bisect.tested_file import TestFile
from tritonsmith.lab.model import Observation, Verdict

pytestmark = pytest.mark.unit

GOOD, BAD, SKIP = Verdict.GOOD, Verdict.BAD, Verdict.SKIP


@dataclass(frozen=True)
class FakeCompiles(KernelCompiles):
    """Compiles by label that were written before; `none` cannot be had."""

    def of(self, triton: Triton) -> Manifests:
        """What was written."""
        if triton.label not in self._known:
            raise UntestableError("the package index has no such Triton")
        return self._known[triton.label]


def spec(label: str) -> Triton:
    return Triton(label, version=label)


PTX = {"ptx": "ld.global.b8", "ttir": "module {\n}\n"}


@pytest.fixture
def compiles(tmp_path: Path) -> FakeCompiles:
    def one(label: str, *points: object, **more: object) -> Manifests:
        return (written(tmp_path / label / "k", points, **more),)  # type: ignore[arg-type]

    crash = point(status="crashed", error="the compiler died: SIGSEGV")
    assertion = "x.cpp:12: void f(int): Assertion `a == b' failed."
    known = {
        "lean": one("lean", point(seconds=2.0), registers=32),
        "fat": one("fat", point(seconds=3.0), registers=64),
        "b8": one("b8", point(), texts=PTX),
        "crash": one("crash", crash),
        "assert": one("assert", point(status="crashed", error=assertion)),
        "assert again": one("assert again", point(status="crashed", error=assertion.replace(":12:", ":99:"))),
        "amd": one("amd", point("hip:gfx942:64")),
    }
    return FakeCompiles((), tmp_path, _known=known)


@pytest.mark.parametrize(
    ("term", "triton", "verdict", "figures"),
    [
        ("registers>40", "lean", GOOD, "registers 32"),
        ("registers>40", "fat", BAD, "registers 64"),
        ("registers>+10%", "lean", GOOD, "registers 32"),
        ("registers>+10%", "fat", BAD, "registers 64"),
        ("registers>+90, compile_seconds>2.5", "fat", BAD, "registers 64, compile_seconds 3"),
        ("ptx contains ld.global.b8", "b8", BAD, "ptx contains ld.global.b8"),
        ("ptx contains ld.global.b16", "b8", GOOD, "ptx does not contain ld.global.b16"),
        ("ptx not contains ld.global.b16", "b8", BAD, "ptx does not contain ld.global.b16"),
        ("ptx does not contain ld.global.b8", "b8", GOOD, "ptx contains ld.global.b8"),
        ("ptx contains ld.global.b8", "lean", SKIP, ""),
        ("registers>40", "crash", SKIP, ""),
        ("registers>40", "none", SKIP, ""),
        ("registers>+10%", "amd", SKIP, ""),
    ],
)
def test_limits(compiles: FakeCompiles, term: str, triton: str, verdict: Verdict, figures: str) -> None:
    predicate = LimitPredicate(compiles, language.parse([term], "--when"), lambda: spec("lean"))
    outcome = predicate.test(spec(triton))
    assert (outcome.verdict, outcome.figures) == (verdict, figures), outcome
    assert bool(outcome.why) == (verdict is SKIP)


def test_what_is_no_limit_is_refused() -> None:
    for text in ("spills", "ptxx contains a", "spils>0"):
        with pytest.raises(UsageError):
            language.parse([text], "--when")


@pytest.mark.parametrize(
    ("bad", "triton", "verdict"),
    [
        ("crash", "crash", BAD),
        ("crash", "lean", GOOD),
        ("crash", "assert", SKIP),
        ("assert", "assert again", BAD),
        ("assert", "crash", SKIP),
        ("lean", "lean", GOOD),
        ("lean", "crash", GOOD),
        ("crash", "amd", SKIP),
        ("crash", "none", SKIP),
    ],
)
def test_a_failure_counts_if_it_is_the_same(
    compiles: FakeCompiles, bad: str, triton: str, verdict: Verdict
) -> None:
    outcome = FailurePredicate(compiles, lambda: spec(bad)).test(spec(triton))
    assert outcome.verdict is verdict, outcome
    assert bool(outcome.why) == (verdict is SKIP)


def _run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str) -> Observation:
    python = tmp_path / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True, exist_ok=True)
    python.unlink(missing_ok=True)
    python.symlink_to(sys.executable)
    monkeypatch.setattr(tritons, "place_of", lambda _: SimpleNamespace(python=python))
    argv = ("python", "-c", program)
    return CommandPredicate(argv, tmp_path, tmp_path / "tests").test(spec("3.5.0"))


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


def test_a_pythonpath_with_a_triton_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    command.check()
    (tmp_path / "triton").mkdir()
    (tmp_path / "triton" / "__init__.py").touch()
    with pytest.raises(UsageError, match="PYTHONPATH contains a Triton"):
        command.check()


PYTESTS = {
    "good": "def test_a(): pass\ndef test_b(): assert False, 'always'\n",
    "bad": "def test_a(): raise ValueError('0x12 is wrong')\ndef test_b(): assert False, 'always'\n",
    "bad again": "def test_a(): raise ValueError('0x77 is wrong')\n",
    "otherwise": "def test_a(): raise KeyError('x')\n",
    "unreadable": "def test_a(:\n",
}


def test_a_test_is_bad_where_it_fails_as_at_the_bad_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    test = TestFile("python/test/test_x.py", of_commit=True)
    for name, text in PYTESTS.items():
        file = tmp_path / name / "source" / test.path
        file.parent.mkdir(parents=True)
        file.write_text(text)
        (tmp_path / name / "bin").mkdir()
        (tmp_path / name / "bin" / "python").symlink_to(sys.executable)
    (tmp_path / "none" / "bin").mkdir(parents=True)
    (tmp_path / "none" / "bin" / "python").symlink_to(sys.executable)
    monkeypatch.setenv("PYTHONPATH", next(folder for folder in sys.path if folder.endswith("site-packages")))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # these few tests need none of our plugins
    monkeypatch.setattr(
        tritons, "place_of", lambda one: SimpleNamespace(python=tmp_path / one.label / "bin" / "python")
    )
    predicate = TestPredicate(test, tmp_path / "tests", lambda: spec("good"), lambda: spec("bad"))
    outcomes = {name: predicate.test(spec(name)) for name in (*PYTESTS, "none")}
    assert {name: one.verdict for name, one in outcomes.items()} == {
        "good": GOOD, "bad": BAD, "bad again": BAD, "otherwise": SKIP, "unreadable": SKIP, "none": SKIP,
    }  # fmt: skip
    assert outcomes["otherwise"].why == "it fails in another way"
    assert outcomes["unreadable"].why.startswith("pytest did not run it: ")
    assert outcomes["none"].why == f"this commit has no {test.path}"
    nothing_new = TestPredicate(test, tmp_path / "tests", lambda: spec("bad"), lambda: spec("bad again"))
    assert nothing_new.test(spec("bad")).verdict is BAD


MEET = """
import pathlib, sys, time
mine, end = pathlib.Path(sys.prefix), time.monotonic() + 60
(mine / "here").touch()
while time.monotonic() < end and len(list(mine.parent.glob("*/here"))) < 2:
    time.sleep(0.01)
sys.exit(len(list(mine.parent.glob("*/here"))) != 2 or mine.name == "bad")
"""


def test_commands_run_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITONSMITH_HOME", str(tmp_path / "home"))
    tritons = [Triton(name, python=_interpreter(tmp_path / name)) for name in ("fine", "bad")]
    tested = CommandPredicate(("python", "-c", MEET), tmp_path, tmp_path / "tests", jobs=2)
    found = {triton.label: outcome.verdict for triton, outcome in tested.outcomes(tritons)}
    assert found == {"fine": GOOD, "bad": BAD}


def test_an_error_of_one_of_several_commands_ends_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITONSMITH_HOME", str(tmp_path / "home"))
    tritons = [Triton(name, python=_interpreter(tmp_path / name)) for name in ("waits", "ends")]
    program = "import sys, time; sys.exit(128) if sys.prefix.endswith('ends') else time.sleep(600)"
    tested = CommandPredicate(("python", "-c", program), tmp_path, tmp_path / "tests", jobs=2)
    with pytest.raises(StepError, match="the command ended the bisect: exit code 128"):
        list(tested.outcomes(tritons))


def test_a_machine_without_the_folder_says_so(tmp_path: Path) -> None:
    with pytest.raises(StepError, match="this machine has no such folder"):
        isolated_run.run(("true",), Path(sys.executable), tmp_path / "elsewhere", tmp_path / "tests")


def _interpreter(folder: Path) -> str:
    venv.create(folder, symlinks=True)
    return str(folder / "bin" / "python")
