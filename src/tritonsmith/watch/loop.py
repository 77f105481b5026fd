"""The loop: build what is stale, run, show, wait for a save; a save meanwhile starts it anew."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from tritonsmith.errors import InterruptedRunError
from tritonsmith.watch.command import WatchedCommand
from tritonsmith.watch.report import WatchReport
from tritonsmith.watch.saves import SavedError, Saves, WatchedFiles


def follow(command: WatchedCommand, watched: Sequence[WatchedFiles]) -> None:
    """Run a command, and again at each save, until ^C.

    Args:
        command: the command.
        watched: the files that it depends on.

    Raises:
        SmithError: the files cannot be watched.
        KeyboardInterrupt: ^C, after all that ran was stopped.
    """
    report = WatchReport()
    saved: frozenset[Path] = frozenset()
    with Saves(watched) as saves:
        while True:
            began = time.monotonic()
            try:
                with saves.heeded():
                    made = command.run(report.part)
            except (SavedError, InterruptedRunError):
                if not saves.interrupted:
                    raise
                saved |= saves.wait()
                continue
            report.run(made, saved, {"run": time.monotonic() - began})
            saved = saves.wait()
