"""The command that runs again at each save: a task of this tool, or any program."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from tritonsmith.build.watch.outcome import RunOutcome
from tritonsmith.core import untrusted
from tritonsmith.core.plan.fork_server import ForkServer
from tritonsmith.core.ui import recording, redact
from tritonsmith.core.ui.tables import Grid

OnPart = Callable[[str | Grid], None]
_TASK = ("tritonsmith.core.ui.recording:begin", "tritonsmith.cli.program:main")
_PROGRAM = "tritonsmith.core.plan.process:exec_argv"
# Python considers bytecode current if the source has the same size and time stamp in seconds: two saves
# within one second would run the first one's code twice.
_NO_BYTECODE = {"PYTHONDONTWRITEBYTECODE": "1"}


class WatchedCommand(Protocol):
    """A command that `watch` runs."""

    def run(self, on_part: OnPart) -> RunOutcome:
        """Run it until it ends.

        Args:
            on_part: called with each line and table as it arrives.

        Raises:
            KeyboardInterrupt: ^C; all of its processes were stopped.
        """


class WatchedTask:
    """A task of this tool.

    Args:
        server: the server that runs it.
        words: its name and arguments.
    """

    def __init__(self, server: ForkServer, words: Sequence[str]) -> None:
        self._server, self._argv = server, (sys.argv[0], *words)

    @staticmethod
    def server() -> ForkServer:
        """Return the server that runs tasks, a context manager."""
        return ForkServer(*_TASK, environ=_NO_BYTECODE)

    def run(self, on_part: OnPart) -> RunOutcome:
        """Run the task, as described in `WatchedCommand`."""
        parts: list[str | Grid] = []
        files: list[Path] = []

        def on_line(line: str) -> None:
            record = recording.parse(line)
            if "file" in record:
                files.append(Path(record["file"]))
                return
            parts.append(Grid.of_json(record["table"]) if record else line)
            on_part(parts[-1])

        code = self._server.run(self._argv, on_line)
        texts = {str(path): untrusted.read_text(path) for path in files if untrusted.is_file(path)}
        return RunOutcome(code, tuple(parts), texts)


class WatchedProgram:
    """A command of the user's, in the current folder.

    Args:
        server: the server that runs it, and ends it with its children when this process is killed.
        argv: program and arguments.
    """

    def __init__(self, server: ForkServer, argv: Sequence[str]) -> None:
        self._server, self._argv = server, tuple(argv)

    @staticmethod
    def server() -> ForkServer:
        """Return the server that runs commands, a context manager."""
        return ForkServer(_PROGRAM, environ=_NO_BYTECODE)

    def run(self, on_part: OnPart) -> RunOutcome:
        """Run the program, as described in `WatchedCommand`."""
        parts: list[str] = []
        hide = redact.SecretLines()

        def on_line(line: str) -> None:
            parts.append(hide(line))
            on_part(parts[-1])

        return RunOutcome(self._server.run(self._argv, on_line), tuple(parts))
