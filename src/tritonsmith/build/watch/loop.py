"""The loop: build stale files, run, show, and wait for a save; a save during a run restarts it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tritonsmith.build.watch import command as watched_build
from tritonsmith.build.watch.command import OnPart, WatchedBuild, WatchedCommand
from tritonsmith.build.watch.files import SavedError, Saves, WatchedFiles
from tritonsmith.build.watch.outcome import RunOutcome, WatchReport
from tritonsmith.core.errors import InterruptedRunError
from tritonsmith.core.ui import console

_RUNS = 3  # consecutive runs with saves of one file before we ask whether the command writes it
_AT_ONCE = 1.0  # seconds after a run in which no person keeps saving


def follow(
    command: WatchedCommand, watched: Sequence[WatchedFiles], build: WatchedBuild | None = None
) -> None:
    """Run a command, and again at each save, until ^C.

    Args:
        command: the command.
        watched: the files that it depends on.
        build: the build that it needs; None for none.

    Raises:
        SmithError: the files cannot be watched.
        KeyboardInterrupt: ^C; all processes were stopped.
    """
    attempts = _Attempts(command, build)
    report = WatchReport()
    saved: frozenset[Path] = frozenset()
    own = _OwnSaves()
    with Saves(watched) as saves:
        while True:
            try:
                with saves.heeded():
                    result, seconds = attempts.make(saved, report.part)
            except (SavedError, InterruptedRunError) as error:
                cause = error.__context__ if isinstance(error, InterruptedRunError) else error
                if not isinstance(cause, SavedError):  # ^C, perhaps while a save stopped the build
                    raise
                saved |= own.wait(saves)
                continue
            report.run(result, saved, seconds)
            saved = own.wait(saves)


class _OwnSaves:
    """Notices files that are saved during, or right after, consecutive runs."""

    def __init__(self) -> None:
        self._again: Counter[Path] = Counter()

    def wait(self, saves: Saves) -> frozenset[Path]:
        """Wait for the next save; note, once, that the command itself seems to write these files."""
        began = time.monotonic()
        saved = saves.wait()
        at_once = saved if time.monotonic() - began < _AT_ONCE else frozenset()
        self._again = Counter({path: self._again[path] + 1 for path in at_once})
        if suspects := sorted(path.name for path, count in self._again.items() if count == _RUNS):
            console.note(
                f"{', '.join(suspects)} was saved at each of the last {_RUNS} runs: "
                "does the command write this? Then let git ignore it, or name what to watch by --path"
            )
        return saved


class _Attempts:
    """Build if something is stale, then run."""

    def __init__(self, command: WatchedCommand, build: WatchedBuild | None) -> None:
        self._command, self._build = command, build
        self._stale = True

    def make(self, saved: frozenset[Path], on_part: OnPart) -> tuple[RunOutcome, dict[str, float]]:
        """Return the outcome after these files were saved, and the duration of each part in seconds."""
        seconds: dict[str, float] = {}
        self._stale = self._stale or watched_build.stale_files(saved)
        if self._build and self._stale:
            began = time.monotonic()
            failed = self._build.run()
            seconds["build"] = time.monotonic() - began
            if failed:
                return failed, seconds
        self._stale = False
        began = time.monotonic()
        result = self._command.run(on_part)
        seconds["run"] = time.monotonic() - began
        return result, seconds
