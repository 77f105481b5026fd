"""The first test of a reduction: the file as `ast` writes it, without comments."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tritonsmith.core.errors import SmithError, UndecidedError
from tritonsmith.lab.journal import UNNEEDED, Journal, Observation, Verdict
from tritonsmith.lab.reduce.shrink import PendingTest
from tritonsmith.lab.triage.reduce import reduce_kernel, testers
from tritonsmith.lab.triage.reduce.kernel_search import KernelCandidate
from tritonsmith.lab.triage.reduce.testers import CommandTester, Symptom

pytestmark = pytest.mark.unit

TEXT = "# why\ndef k(a):\n    pass\n"


class Fixed:
    """A tester with one answer."""

    def __init__(self, observation: Observation) -> None:
        self.observation, self.timeout = observation, 1.0

    def begin(self) -> None:
        """Nothing has to be started."""

    def test(self, candidate: KernelCandidate, _: PendingTest) -> Observation:
        assert "#" not in candidate.text
        return self.observation

    def close(self) -> None:
        """Nothing is left to stop."""


@pytest.mark.parametrize(
    ("verdict", "error", "text"),
    [
        (Verdict.GOOD, SmithError, "the symptom is gone when the file stands alone"),
        (Verdict.OTHER, SmithError, "the symptom is gone when the file stands alone"),
        (Verdict.SKIP, UndecidedError, "no answer about the file without its comments"),
    ],
)
def test_no_answer_is_not_a_symptom_that_is_gone(
    tmp_path: Path, verdict: Verdict, error: type[SmithError], text: str
) -> None:
    observation = Observation(verdict, "not decided: tt.dot_scaled")
    start = reduce_kernel._Start(
        KernelCandidate(TEXT),
        "k",
        "k",
        Symptom("3.9.0", "wrong", 3, "k.py", wrong=True),
        None,
        testers.TesterPool([Fixed(observation)]),
        lambda _file, _candidate: observation,
        observation,
        "key",
    )
    with pytest.raises(error, match=text) as caught:
        reduce_kernel._reduced(start, tmp_path / "k.py", 0.0, lambda *_: None, Journal())
    assert isinstance(caught.value, UndecidedError) == (verdict is Verdict.SKIP)
    assert not (tmp_path / "k.py").exists()


@pytest.mark.parametrize(
    ("argv", "packages"),
    [
        (("python", "check.py", "{}"), ("numpy", "triton")),
        (("/opt/venv/bin/python3.11", "check.py"), ("numpy", "triton")),
        (("python", "-O", "check.py"), ()),
        (("sh", "check.py"), ()),
        (("python", "absent.py"), ()),
        (("python", "broken.py"), ()),
        (("check.py",), ()),
    ],
)
def test_only_a_script_of_python_is_run_in_forks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, argv: tuple[str, ...], packages: tuple[str, ...]
) -> None:
    """They import what it imports, or the file, of what takes long; a module beside it stays its own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "check.py").write_text("import neighbour, numpy.linalg\nfrom . import torch\n")
    (tmp_path / "broken.py").write_text("def\n")
    assert testers.packages_of(argv, "def f():\n    from triton.language import dot\n") == packages


def test_a_tester_that_is_closed_starts_nothing(tmp_path: Path) -> None:
    """Neither its interpreter nor its command, and it knows nothing of the candidate."""
    script = tmp_path / "script.py"
    script.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    command = CommandTester((sys.executable, str(script), "{}"), None, tmp_path / "0", "k.py", 60)
    tester = testers.ScriptTester(command, ())
    tester.begin()
    tester.close()
    assert tester.fork(KernelCandidate(TEXT)) is None
    assert tester.test(KernelCandidate(TEXT), PendingTest()) is UNNEEDED
    assert command.test(KernelCandidate(TEXT), PendingTest()) is UNNEEDED
    tester.close()
    assert not (tmp_path / "ran").exists()


def test_a_command_that_nobody_needs_is_killed(tmp_path: Path) -> None:
    command = CommandTester(("sh", "-c", "sleep 600 & wait; : {}"), None, tmp_path, "k.py", 600)
    needs = iter([True])  # once only: what it would say later must not decide
    pending = PendingTest(lambda: next(needs, False))
    assert command.test(KernelCandidate(TEXT), pending) is UNNEEDED
