"""What a stranger's text can do to a terminal: nothing."""

from __future__ import annotations

import io
import sys

import pytest
from rich.text import Text

from tritonsmith.core.redact import printable
from tritonsmith.core.ui import console
from tritonsmith.core.ui.console import Screen
from tritonsmith.core.ui.progress import PhaseProgress

EVIL = "a\x1b]0;title\x07b\x1b[2J\x9b31mc\rd\u202ee\udcfff"
SHOWN = "a\\x1b]0;title\\x07b\\x1b[2J\\x9b31mc\\x0dd\\u202ee\\xfff"


class Terminal(io.StringIO):
    """Somebody looks at it."""

    def isatty(self) -> bool:
        return True


def test_control_characters_are_shown() -> None:
    assert printable(EVIL) == SHOWN
    assert printable("tab\tline\nné ✓ 漢") == "tab\tline\nné ✓ 漢"


@pytest.mark.parametrize("what", [EVIL, Text(EVIL), Text(EVIL, style="bold")])
def test_a_terminal_gets_only_what_rich_writes_itself(what: object) -> None:
    file = Terminal()
    Screen(file=file, width=200, highlight=False, soft_wrap=True, color_system=None).print(what, markup=False)
    known = SHOWN.replace("\\x07", "").replace("\\x0d", "")  # which Rich leaves out
    assert file.getvalue() == f"{known}\n"


def test_a_line_that_is_written_again_stays_so() -> None:
    file = Terminal()
    Screen(file=file, width=80, soft_wrap=True, color_system=None).print("12 candidates", end="\r")
    assert file.getvalue() == "12 candidates\r"


def test_a_file_gets_everything_to_the_letter(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    console.write("a\x1b[2J")
    assert capsys.readouterr().out == "a\x1b[2J\n"
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    console.write("a\x1b[2J", end="")
    assert terminal.getvalue() == "a\\x1b[2J"


def test_what_is_being_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    console.err.cache_clear()
    with PhaseProgress(live=True) as shown:
        shown.begin("build")
        shown.update(1, 2, "\x1b]0;owned\x07.cpp")
    assert "\\x1b]0;owned\\x07.cpp" in terminal.getvalue()
    assert "\x1b]0;owned" not in terminal.getvalue()
