"""What makes a Triton bad by its compiles, of which none is made."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.lab.compare import compiler
from tests.unit.lab.compare.making import point, written
from tests.unit.lab.fake_subject import FakeSubject
from tritonsmith.compiler import targets, tritons
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.compiler.tritons import Triton
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import StepError, UsageError
from tritonsmith.lab import terms as language
from tritonsmith.lab.batch import run, work_unit
from tritonsmith.lab.bisect.kernels import (
    KernelCompiles,
    Manifests,
    UntestableError,
    broken_limit,
    same_failure,
)
from tritonsmith.lab.compare.two_sides import ComparedKernel
from tritonsmith.lab.journal import Verdict

pytestmark = pytest.mark.unit

GOOD, BAD, SKIP = Verdict.GOOD, Verdict.BAD, Verdict.SKIP


def spec(label: str) -> Triton:
    return Triton(label, version=label)


PTX = {"ptx": "ld.global.b8", "ttir": "module {\n}\n"}


@pytest.fixture
def compiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KernelCompiles:
    """Compiles by label that were written before; `none` cannot be had."""

    def refuse(_: str) -> Manifests:
        raise UntestableError("the package index has no such Triton")

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
    subject = FakeSubject(refuse, known)
    monkeypatch.setattr(KernelCompiles, "of", lambda _, triton: subject.test(triton))
    return KernelCompiles((), tmp_path)


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
def test_limits(compiles: KernelCompiles, term: str, triton: str, verdict: Verdict, figures: str) -> None:
    tests = broken_limit(compiles, language.parse([term], "--when"), lambda: spec("lean"))
    outcome = tests.test(spec(triton))
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
    compiles: KernelCompiles, bad: str, triton: str, verdict: Verdict
) -> None:
    outcome = same_failure(compiles, lambda: spec(bad)).test(spec(triton))
    assert outcome.verdict is verdict, outcome
    assert bool(outcome.why) == (verdict is SKIP)


@pytest.mark.usefixtures("in_threads")
def test_a_refusal_is_the_same_outcome_alone_and_beside_another_triton(tmp_path: Path) -> None:
    file = compiler.kernel(tmp_path, "bad", "refuse")
    asked = CompileRequest(file, "bad", "*fp32,64", targets.parse_all(["a100"]))
    sides = [tritons.parse(str(compiler.make(tmp_path / name))) for name in ("early", "middle", "late")]
    compiles = KernelCompiles((ComparedKernel("bad", asked),), tmp_path / "out", count=2, silent=True)
    tests = same_failure(compiles, lambda: sides[-1])
    pair = [outcome.verdict for _, outcome in tests.outcomes(sides[1:])]
    assert [*pair, tests.test(sides[0]).verdict] == [BAD, BAD, BAD]


@pytest.mark.usefixtures("in_threads")
def test_a_full_disk_is_no_outcome_of_a_triton(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = StepError("cannot write", why="No space left on device")
    monkeypatch.setattr(work_unit, "compile_here", lambda *_, **__: full)
    asked = CompileRequest(compiler.kernel(tmp_path, "k"), "k", "*fp32,64", targets.parse_all(["a100"]))
    sides = [tritons.parse(str(compiler.make(tmp_path / name))) for name in ("early", "late")]
    compiles = KernelCompiles((ComparedKernel("k", asked),), tmp_path / "out", count=2, silent=True)
    with pytest.raises(StepError, match="cannot write"):
        list(same_failure(compiles, lambda: sides[1]).outcomes(sides))


def test_the_time_of_a_compile_is_the_least_of_several(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = iter([3.0, 1.5, 2.0, 4.0, 5.0, 0.1])

    def compiled(*_: object, **__: object) -> Manifests:
        return (written(tmp_path / "k", (point(seconds=next(seconds)),)),)

    monkeypatch.setattr(run, "compile_all", compiled)
    asked = CompileRequest(compiler.kernel(tmp_path, "k"), "k", "*fp32,64", targets.parse_all(["a100"]))
    kernels = (ComparedKernel("k", asked),)
    workspace.default().claim()
    for timed, least in ((True, 1.5), (False, 0.1)):
        compiles = KernelCompiles(kernels, workspace.default().root, timed=timed, silent=True)
        assert compiles.of(spec("3.9.0"))[0].points[0].seconds == least
