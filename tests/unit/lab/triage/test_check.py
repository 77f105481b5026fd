"""`--check`: real scripts, whose values hold, differ, or cannot be had."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.lab.triage.scripts import COMPILED, judged, subject, under
from tritonsmith.core.errors import UsageError
from tritonsmith.lab.journal import Verdict
from tritonsmith.lab.triage.program import parse_check, script_of
from tritonsmith.lab.triage.verdict import Conclusion

CHECK = "out ~ reference"
INTERPRETED = "import os\nassert os.environ.get('TRITON_INTERPRET'), 'no GPU'\n"


@pytest.mark.parametrize(
    ("values", "asked", "seen"),
    [
        ("out, reference = 2, 2", "out ~ reference", Verdict.GOOD),
        ("out, reference = 2, 3", "out ~ reference", Verdict.BAD),
        ("import numpy\nout = numpy.ones(3)", "out ~ [1, 1, 1.000001]", Verdict.GOOD),
        ("import numpy\nout = numpy.ones(3)", "out ~ [1, 1, 1.01]", Verdict.BAD),
        ("import numpy\nout = numpy.ones(3)", "out ~ [1, 1, 1.01], atol=0.1", Verdict.GOOD),
        ("import numpy\nout = numpy.ones(3)", "out ~ [1, 1]", Verdict.BAD),
        ("import numpy\nout = numpy.array([numpy.nan])", "out ~ out", Verdict.BAD),
        ("def out():\n    return 5", "out ~ 5", Verdict.GOOD),
        ("def same():\n    assert 1 == 2, 'no'", "same", Verdict.BAD),
        ("def same():\n    assert 1 == 1", "same", Verdict.GOOD),
        ("out = 1", "out == 1", Verdict.GOOD),
        ("import sys\nout = 1\nsys.exit(0)", "out ~ 1", Verdict.GOOD),
        ("out = 1", "out ~ reference", Verdict.SKIP),
        ("import os\nout = reference = 1\nos._exit(0)", "out ~ reference", Verdict.SKIP),
        ("out = 1\nreference = 2\nraise KeyError", "out ~ reference", Verdict.SKIP),
        ("import sys\nout = reference = 1\nsys.exit(3)", "out ~ reference", Verdict.SKIP),
    ],
)
def test_what_a_check_says(tmp_path: Path, values: str, asked: str, seen: Verdict) -> None:
    assert subject(tmp_path, COMPILED + values, asked).baseline().verdict is seen


@pytest.mark.slow
def test_a_cause_of_wrong_values(tmp_path: Path) -> None:
    helps = "any(map(os.environ.get, ('DISABLE_LLVM_OPT', 'TRITON_INTERPRET')))"
    found = judged(tmp_path, f"{COMPILED}out = 1 if {helps} else 2\nreference = 1", CHECK)
    assert found.conclusion is Conclusion.DECIDED
    assert found.text == "LLVM's optimizations"
    assert under(found, "num_warps=1").verdict is Verdict.SKIP, "nothing was compiled by Triton's own compile"
    assert found.baseline.figures == "2 is not 1, and neither torch nor numpy compares them"


@pytest.mark.slow
def test_another_failure_under_a_variant_is_not_a_wrong_value(tmp_path: Path) -> None:
    text = f"{COMPILED}assert 'DISABLE_LLVM_OPT' not in os.environ\nout, reference = 1, 2"
    found = judged(tmp_path, text, CHECK)
    assert under(found, "LLVM not optimizing").verdict is Verdict.OTHER
    assert under(found, "ptxas not optimizing").verdict is Verdict.BAD


@pytest.mark.parametrize(
    ("text", "why", "reason"),
    [
        (
            f"{INTERPRETED}out = reference = 1",
            "it ends before the check",
            "the check holds there: what is left",
        ),
        (f"{INTERPRETED}out, reference = 1, 2", "it ends before the check", "does not hold there, either"),
        ("raise KeyError('x')", "it ends before the check", "exit code 1: KeyError: 'x'"),
        ("out = reference = 1", "no kernel was compiled for a GPU", "the check holds there: what is left"),
        ("out, reference = 1, 2", "no kernel was compiled for a GPU", "does not hold there, either"),
    ],
)
def test_without_a_gpu_nothing_is_decided(tmp_path: Path, text: str, why: str, reason: str) -> None:
    found = judged(tmp_path, text, CHECK)
    assert not found.decided
    assert why in found.text
    assert [one.variant.name for one in found.tried] == ["interpreter"]
    assert reason in found.reasons[0]


def test_the_script_is_the_main_module(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("value = 7", encoding="utf-8")
    text = (
        f"{COMPILED}import sys, beside\nmain = sys.modules['__main__']\n"
        "out = (__name__, sys.argv, pathlib.Path(__file__).name, beside.value, main.sys is sys)"
    )
    asked = "out == ('__main__', ['script.py'], 'script.py', 7, True)"
    assert subject(tmp_path, text, asked).baseline().verdict is Verdict.GOOD


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("out ~", "is not Python"),
        ("", "is not Python"),
        ("out~reference", "is not Python"),
        ("a ~ b ~ c", "--check compares two expressions, not 3"),
        ("a ~ b, eps=3", "'eps=3' is not a tolerance"),
        ("a ~ b, rtol=x", "'rtol=x' is not a tolerance"),
    ],
)
def test_what_is_no_check(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_check(text)


@pytest.mark.parametrize("argv", [("make",), ("python", "-m", "pytest"), ("make", "x.py"), ()])
def test_a_check_needs_a_script(argv: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="about a Python script"):
        script_of(argv)


def test_commas_of_an_expression_are_no_tolerances() -> None:
    made = parse_check("f(a, b) ~ g([1, 2], c), rtol=1e-2")
    assert (made.left, made.right, made.rtol, made.atol) == ("f(a, b)", "g([1, 2], c)", 0.01, None)
