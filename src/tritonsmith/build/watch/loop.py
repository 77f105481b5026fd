"""The loop: build what is stale, run, show, wait for a save; a save meanwhile starts it anew."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tritonsmith.build.watch import build as watched_build
from tritonsmith.build.watch.build import WatchedBuild
from tritonsmith.build.watch.command import OnPart, WatchedCommand
from tritonsmith.build.watch.outcome import RunOutcome
from tritonsmith.build.watch.report import WatchReport
from tritonsmith.build.watch.saves import SavedError, Saves, WatchedFiles
from tritonsmith.core.errors import InterruptedRunError
from tritonsmith.core.ui import console

_RUNS = 3  # that a file may be saved in before we ask whether the command writes it
_AT_ONCE = 1.0  # seconds after a run in which nobody saves again and again


def follow(
    command: WatchedCommand, watched: Sequence[WatchedFiles], build: WatchedBuild | None = None
) -> None:
    """Run a command, and again at each save, until ^C.

    Args:
        command: the command.
        watched: the files that it depends on.
        build: what it needs to have built; None if nothing.

    Raises:
        SmithError: the files cannot be watched.
        KeyboardInterrupt: ^C, after all that ran was stopped.
    """
    attempts = _Attempts(command, build)
    report = WatchReport()
    saved: frozenset[Path] = frozenset()
    own = _OwnSaves()
    with Saves(watched) as saves:
        while True:
            try:
                with saves.heeded():
                    made, seconds = attempts.make(saved, report.part)
            except (SavedError, InterruptedRunError) as error:
                cause = error.__context__ if isinstance(error, InterruptedRunError) else error
                if not isinstance(cause, SavedError):  # ^C, maybe while a save stopped the build
                    raise
                saved |= own.wait(saves)
                continue
            report.run(made, saved, seconds)
            saved = own.wait(saves)


class _OwnSaves:
    """Notices files that are saved in, or right after, one run after the other."""

    def __init__(self) -> None:
        self._again: Counter[Path] = Counter()

    def wait(self, saves: Saves) -> frozenset[Path]:
        """The next save; where it looks as if the command writes these files itself, a note says so once."""
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
    """Builds, where something must be built, and runs."""

    def __init__(self, command: WatchedCommand, build: WatchedBuild | None) -> None:
        self._command, self._build = command, build
        self._stale = True

    def make(self, saved: frozenset[Path], on_part: OnPart) -> tuple[RunOutcome, dict[str, float]]:
        """The outcome after these files were saved, and how long each part took."""
        seconds: dict[str, float] = {}
        self._stale = self._stale or watched_build.stale(saved)
        if self._build and self._stale:
            began = time.monotonic()
            failed = self._build.run()
            seconds["build"] = time.monotonic() - began
            if failed:
                return failed, seconds
        self._stale = False
        began = time.monotonic()
        made = self._command.run(on_part)
        seconds["run"] = time.monotonic() - began
        return made, seconds
