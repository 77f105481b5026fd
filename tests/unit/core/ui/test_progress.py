from __future__ import annotations

import io

import pytest
from rich.console import Console

from tritonsmith.core.ui import console, progress
from tritonsmith.core.ui.progress import PhaseProgress


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_plain_lines_come_at_the_beginning_every_half_minute_and_at_the_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = Clock()
    with PhaseProgress(live=False, clock=clock) as shown:
        shown.begin("build")
        for done in range(1, 101):
            clock.now += 1
            shown.update(done, 400, f"[x] {done}.cpp")
        shown.end(100)
    assert capsys.readouterr().err.splitlines() == [
        "[build] ...",
        "[build] 30/400, 6 min 10 s left: [x] 30.cpp",
        "[build] 60/400, 5 min 40 s left: [x] 60.cpp",
        "[build] 90/400, 5 min 10 s left: [x] 90.cpp",
        "[build] 1 min 40 s",
    ]


@pytest.mark.parametrize(
    ("done", "total", "says"),
    [
        (0, 400, "0/400: x"),
        (50_000_000, 200_000_000, "25 %, 3 min 00 s left: x"),
        (0, None, ": x"),
        (7, None, ": x"),
        (0, 0, ": x"),
    ],
)
def test_what_is_not_known_is_left_out(
    done: int, total: int | None, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = Clock()
    with PhaseProgress(live=False, clock=clock) as shown:
        shown.begin("p")
        clock.now += 60
        shown.update(done, total, "x")
    assert capsys.readouterr().err.splitlines()[1].removeprefix("[p] ") == says


def test_silence(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    with PhaseProgress(live=False, silent=True, clock=clock) as shown:
        shown.begin("p")
        clock.now += 60
        shown.update(1, 2, "x")
        shown.end(1)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("silent", [False, True])
def test_a_program_that_asks_gets_records(
    silent: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console._Records, "progress", True)
    clock = Clock()
    with PhaseProgress(live=False, silent=silent, clock=clock) as shown:
        shown.begin("p")
        clock.now += 60
        shown.update(1, 2, "x")
        shown.end(60)
    answer = capsys.readouterr()
    assert answer.out == ""
    lines = [console.parse_record(line)["progress"] for line in answer.err.strip("\n").split("\n")]
    middle = ["[p] 1/2, 1 min 00 s left: x"]
    # Phases of plans that are silent are those of an experiment, which has hundreds of them.
    assert lines == (middle if silent else ["[p] ...", *middle, "[p] 1 min 00 s"])


def test_bars_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.StringIO()
    monkeypatch.setattr(progress, "err", lambda: Console(file=file, force_terminal=True, width=120))
    with PhaseProgress() as shown:
        shown.begin("download [x]")
        shown.update(30_000_000, 120_000_000, "llvm.tar.gz")
        shown.end(1)
        shown.begin("build")
        shown.update(12, 189, "a [b] c")
        shown.update(13, None, "no total")
        shown.update(189, 189, "last")
        shown.end(1)
    last = file.getvalue()
    for part in ("download [x]", "25 %", "build", "189/189"):
        assert part in last


def test_bars_on_a_terminal_have_no_control_characters_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.StringIO()
    monkeypatch.setattr(progress, "err", lambda: Console(file=file, force_terminal=True, width=200))
    with PhaseProgress() as shown:
        shown.begin("compile k\x1b]0;title\x07\x9b2J\nnext")
        shown.update(1, 2, "a\x1b[2Jb\nc")
    text = file.getvalue()
    assert "compile k\\x1b]0;title\\x07\\x9b2J next" in text
    assert "a\\x1b[2Jb c" in text
    assert not {"\x07", "\x9b"} & {*text}
    assert "\x1b]" not in text


def test_a_pipe_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with PhaseProgress() as shown:
        shown.begin("p")
    assert capsys.readouterr().err == "[p] ...\n"
