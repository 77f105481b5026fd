"""Runs a command in a terminal and draws what the screen shows at its end.

    HOME=/home/you .venv/bin/python docs/images/terminal.py up.svg 96 ./bootstrap up

Its paths are in the picture: run it in a clone, and with a home, whose names may be seen.
"""
# ruff: noqa: INP001 - a script, beside what it makes

from __future__ import annotations

import io
import os
import pty
import re
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

# Up, erase the line, and what changes nothing that is drawn; colours stay in the text.
_CURSOR = re.compile(r"\x1b\[(\d*)A|(\x1b\[2K)|(\r?\n)|\x1b\[\?\d+[hl]|\r")


def shown(command: list[str], columns: int) -> str:
    """All that a command writes to a terminal of so many columns."""
    written: list[bytes] = []

    def read(descriptor: int) -> bytes:
        written.append(os.read(descriptor, 1 << 16))
        return written[-1]

    os.environ |= {"COLUMNS": str(columns), "LINES": "60", "TERM": "xterm-256color"}
    pty.spawn(command, read)
    return b"".join(written).decode()


def screen(text: str) -> str:
    """The lines that are left, once progress bars have moved up and erased theirs."""
    lines, row, at = [""], 0, 0
    for match in _CURSOR.finditer(text):
        lines[row] += text[at : match.start()]
        at = match.end()
        up, erase, down = match.groups()
        if up is not None:
            row = max(0, row - int(up or 1))
        elif erase:
            lines[row] = ""
        elif down:
            row += 1
            lines += [""] * (row + 1 - len(lines))
    lines[row] += text[at:]
    return "\n".join(lines).rstrip()


def picture(command: str, text: str, columns: int) -> str:
    """An SVG, which takes no font from the network."""
    console = Console(record=True, width=columns, file=io.StringIO(), force_terminal=True, color_system="256")
    console.print(Text(f"$ {command}"))
    console.print(Text.from_ansi(text))
    svg = re.sub(r"@font-face \{.*?\}", "", console.export_svg(title=""), flags=re.DOTALL)
    svg = svg.replace("Fira Code, monospace", "ui-monospace, Menlo, Consolas, monospace")
    return "".join(f"{line.rstrip()}\n" for line in svg.splitlines())


if __name__ == "__main__":
    name, width, *argv = sys.argv[1:]
    drawn = picture(" ".join(argv), screen(shown(argv, int(width))), int(width))
    Path(__file__).with_name(name).write_text(drawn, encoding="utf-8")
