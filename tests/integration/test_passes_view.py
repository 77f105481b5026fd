"""`passes.show DIR` in a terminal: the viewer of a dump by the newest wheel, driven by its keys."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.integration.harness import SMITH, Smith

KERNEL = """
import triton
import triton.language as tl


@triton.jit
def scale(a_ptr, b_ptr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    tl.store(b_ptr + at, tl.load(a_ptr + at) * 2)
"""
PATIENCE = 120.0  # seconds; the machine may have other work
_ESCAPES = re.compile(r"\x1b\[[\d;?<>=]*[ $]?[A-Za-z]|\x1b[()][A-Z0-9]|\x1b[=>78]")


@pytest.fixture(scope="module")
def smith(with_wheel: Smith, tmp_path_factory: pytest.TempPathFactory) -> Smith:
    """The tool beside a dump of one kernel."""
    root = tmp_path_factory.mktemp("passes view")
    (root / "kernels.py").write_text(KERNEL)
    smith = with_wheel.beside(root)
    signature = ("--signature", "*fp32:16,*fp32:16,SIZE=32")
    smith("passes.dump", "kernels.py:scale", *signature, "--target", "h100", "--out", "scale")
    return smith


class Terminal:
    """A program in a terminal of its own, and what it has drawn so far."""

    def __init__(self, process: subprocess.Popen[bytes], handle: int) -> None:
        self.process, self.handle, self.output = process, handle, ""

    def type(self, keys: str) -> None:
        os.write(self.handle, keys.encode())

    def size(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self.handle, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.process.send_signal(signal.SIGWINCH)

    def wait_for(self, text: str) -> None:
        """Wait until a text is drawn that was not there at the last call."""
        end = time.monotonic() + PATIENCE
        while text not in _ESCAPES.sub("", self.output):
            assert time.monotonic() < end, f"{text!r} is not in {_ESCAPES.sub('', self.output)[-4000:]!r}"
            if not self._read():
                raise AssertionError(f"it ended without {text!r}: {self.output[-4000:]!r}")
        self.output = ""

    def wait(self) -> int:
        """Wait for the end of the program, and return its exit code."""
        while self._read():
            pass
        return self.process.wait(PATIENCE)

    def _read(self) -> bool:
        if select.select([self.handle], [], [], 0.1)[0]:
            try:
                piece = os.read(self.handle, 1 << 16)
            except OSError:  # Linux's way to say that nobody has the other side any more
                return False
            self.output += piece.decode("utf-8", "replace")
            return bool(piece)
        return self.process.poll() is None


@contextmanager
def terminal(smith: Smith, *words: str, columns: int, lines: int, **change: str) -> Iterator[Terminal]:
    handle, inside = pty.openpty()
    fcntl.ioctl(handle, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    before = termios.tcgetattr(inside)
    process = subprocess.Popen(
        (SMITH, *words),
        cwd=smith.cwd,
        env={**smith.environ, "TERM": "xterm-256color", **change},
        stdin=inside,
        stdout=inside,
        stderr=inside,
        start_new_session=True,
    )
    try:
        yield Terminal(process, handle)
        # Whatever ended it: the user's shell gets the terminal as it was.
        assert termios.tcgetattr(inside) == before
    finally:
        process.kill()
        process.wait()
        os.close(handle)
        os.close(inside)


@pytest.mark.parametrize(("columns", "lines"), [(80, 24), (200, 50)])
def test_the_viewer_in_a_terminal(smith: Smith, columns: int, lines: int) -> None:
    with terminal(smith, "passes.show", "scale", columns=columns, lines=lines) as screen:
        screen.wait_for("q quit")
        screen.type("G")
        screen.wait_for("compiled/scale.sass")  # the last row is the machine code
        screen.type("/")
        screen.wait_for("search all passes")
        screen.type("ttg.num-warps\r")
        screen.wait_for("escape ends")
        screen.size(100, 30)
        screen.type("?")
        screen.wait_for("escape ends the search")
        screen.type("xx")  # the second one comes before the list is gone
        screen.wait_for("n N next")
        screen.type("q")
        assert screen.wait() == 0
        assert "\x1b[?1049l" in screen.output  # back to the shell's own screen


def test_a_signal_leaves_the_terminal_as_it_was(smith: Smith) -> None:
    with terminal(smith, "passes.show", "scale", columns=80, lines=24) as screen:
        screen.wait_for("q quit")
        screen.process.send_signal(signal.SIGTERM)
        assert screen.wait() == 130
    with terminal(smith, "passes.show", "scale", columns=80, lines=24) as screen:
        screen.wait_for("q quit")
        screen.type("\x03")
        assert screen.wait() == 130


def test_no_colours_where_none_are_wanted(smith: Smith) -> None:
    with terminal(smith, "passes.show", "scale", columns=80, lines=24, NO_COLOR="1") as screen:
        screen.wait_for("scale cuda:90")
        screen.type("nnn")
        screen.type("q")
        assert screen.wait() == 0
        assert not re.search(r"\x1b\[(?:\d+;)*(?:3[0-7]|9[0-7]|4[0-7]|38|48)[;m]", screen.output)


def test_without_a_terminal_or_with_no_tui_a_pass_is_needed(smith: Smith) -> None:
    piped = smith("passes.show", "scale", code=2).error
    assert "passes.show needs PASS" in piped
    assert "tui" not in piped
    with terminal(smith, "passes.show", "scale", "--no-tui", columns=80, lines=24) as screen:
        assert screen.wait() == 2
        assert "passes.show needs PASS" in screen.output
    first = smith("passes.show", "scale", "0").out
    assert smith("passes.show", "scale", "0", "--no-tui").out == first
    assert "tt.func public @scale" in first


def test_without_textual_it_says_what_to_install(smith: Smith, tmp_path: Path) -> None:
    # `find_spec` finds nothing behind a name that `sys.modules` maps to None.
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['textual'] = None\n")
    screens = terminal(smith, "passes.show", "scale", columns=120, lines=24, PYTHONPATH=str(tmp_path))
    with screens as screen:
        assert screen.wait() == 2
        assert "pip install 'tritonsmith[tui]'" in screen.output
