"""What is printed after a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tritonsmith.build.watch.outcome import RunOutcome
from tritonsmith.build.watch.report import WatchReport
from tritonsmith.core.ui import tables


class Screen:
    """A report, and what it prints."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._report, self._capsys = WatchReport(), capsys

    def after(self, made: RunOutcome, *saved: str) -> list[str]:
        """The lines of a run, without the time of day."""
        for part in made.parts if not made.what else ():
            self._report.part(part)
        self._report.run(made, map(Path, saved), {"run": 1.0})
        lines = self._capsys.readouterr().out.splitlines()
        return [line.split(" ", 1)[1] if line[2:3] == ":" else line for line in lines]


@pytest.fixture
def screen(capsys: pytest.CaptureFixture[str]) -> Screen:
    return Screen(capsys)


def lit_run(result: str, *lines: str, code: int = 0) -> RunOutcome:
    rows = [("a.mlir", result), ("b.mlir", "PASS")]
    return RunOutcome(code, (tables.plain("lit tests", ["test", "result"], rows), *lines))


def test_the_first_run_is_shown_as_it_comes(screen: Screen) -> None:
    assert screen.after(RunOutcome(0, ("one", "two"))) == ["one", "two", "ok (run 1.0 s)"]


def test_later_runs_show_what_has_changed(screen: Screen) -> None:
    screen.after(RunOutcome(0, ("one", "two")))
    assert screen.after(RunOutcome(0, ("one", "two")), "a.py") == ["a.py: unchanged, ok (run 1.0 s)"]
    lines = screen.after(RunOutcome(0, ("one", "three")), "/there/a.py", "b.py")
    assert lines == ["a.py, b.py: changed, ok (run 1.0 s)", "@@ -1,2 +1,2 @@", " one", "-two", "+three"]
    names = screen.after(RunOutcome(0), "a", "b", "c", "d", "e")[0]
    assert names == "a, b, c, 2 more: changed, ok (run 1.0 s)"


def test_times_that_are_not_shown_are_not_denied(screen: Screen) -> None:
    screen.after(RunOutcome(0, ("matmul: 12.5 us",)))
    made = RunOutcome(0, ("matmul: 99.5 us",))
    assert screen.after(made, "a.py") == ["a.py: unchanged except for times, ok (run 1.0 s)"]
    assert screen.after(made, "a.py") == ["a.py: unchanged, ok (run 1.0 s)"]


def test_a_failure_is_shown_whole_and_the_next_one_as_a_difference(screen: Screen) -> None:
    screen.after(RunOutcome(0, ("one",)))
    failed = RunOutcome(1, ("error: this", "why"))
    assert screen.after(failed, "a.py") == ["a.py: ok → exit code 1 (run 1.0 s)", "error: this", "why"]
    assert screen.after(failed, "a.py") == ["a.py: unchanged, still exit code 1 (run 1.0 s)"]
    other = screen.after(RunOutcome(1, ("error: that", "why")), "a.py")
    assert other[0] == "a.py: changed, still exit code 1 (run 1.0 s)"
    assert other[-3:] == ["-error: this", "+error: that", " why"]
    assert screen.after(RunOutcome(0, ("one",)), "a.py") == ["a.py: exit code 1 → ok, unchanged (run 1.0 s)"]


def test_the_results_of_tests_that_begin_to_fail(screen: Screen) -> None:
    screen.after(lit_run("PASS"))
    lines = screen.after(lit_run("FAIL", "a.mlir:3: expected", code=1), "Pass.cpp")
    assert lines[0] == "Pass.cpp: ok → exit code 1 (run 1.0 s)"
    assert [line.split() for line in lines if line.startswith("a.mlir ")] == [["a.mlir", "PASS", "→", "FAIL"]]
    assert not any(line.startswith("b.mlir") for line in lines)
    assert lines[-1] == "a.mlir:3: expected"


def test_a_first_build_that_fails_is_shown(screen: Screen) -> None:
    failed = RunOutcome(1, ("error: build triton-opt failed",), what="build")
    assert screen.after(failed) == ["error: build triton-opt failed", "build, exit code 1 (run 1.0 s)"]


def test_ir_is_compared_with_the_last_that_there_was(screen: Screen) -> None:
    def ran(value: int) -> RunOutcome:
        return RunOutcome(0, (), {"out/3-pass.txt": f"{value}\n"})

    screen.after(ran(1))
    screen.after(RunOutcome(1, ("error",)), "a.cpp")
    assert screen.after(ran(2), "a.cpp")[-3:] == ["@@ -1 +1 @@", "-1", "+2"]


def test_a_long_diff_is_cut(screen: Screen) -> None:
    screen.after(RunOutcome(0, tuple(f"a{number}" for number in range(200))))
    lines = screen.after(RunOutcome(0, tuple(f"b{number}" for number in range(200))), "a.py")
    assert len(lines) == 201
    assert lines[-1].startswith("-a")
