"""Show one progress bar per phase, with an estimate of the time left; plain lines without a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

from tritonsmith.core.redact import printable
from tritonsmith.core.text import duration
from tritonsmith.core.ui.console import err, record_progress, writes_records

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


PLAIN_INTERVAL = 30.0  # seconds between lines in a log
_MANY = 100_000  # no build has as many steps, so a larger total counts bytes


class PhaseProgress:
    """Shows phases as they run. Use as a context manager.

    On a terminal each phase is a bar with an ETA and the current step; elsewhere (CI, a pipe) it is a
    line when the phase begins, one every half minute, and one when it ends.
    """

    def __init__(
        self,
        *,
        live: bool | None = None,
        silent: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._live = err().is_terminal if live is None else live
        self._silent = silent
        self._clock = clock
        self._bars: Progress | None = None
        self._bar: TaskID | None = None
        self._phase = ""
        self._began = self._printed = 0.0

    def __enter__(self) -> Self:
        if self._live:
            from rich.progress import (  # noqa: PLC0415
                BarColumn,
                Progress,
                TextColumn,
                TimeElapsedColumn,
                TimeRemainingColumn,
            )

            self._bars = Progress(
                TextColumn("{task.description:<22}", markup=False),
                BarColumn(bar_width=24),
                TextColumn("{task.fields[share]:>9}", markup=False),
                TimeElapsedColumn(),
                TextColumn("left"),
                TimeRemainingColumn(),
                TextColumn("{task.fields[current]}", markup=False, style="dim"),
                console=err(),
            )
            self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bars:
            self._bars.stop()

    def begin(self, phase: str) -> None:
        """Start a phase of still unknown extent."""
        self._phase, self._began = phase, self._clock()
        self._printed = self._began
        if self._bars:
            # A phase may be called as a kernel of a stranger's archive is, with control characters.
            title = " ".join(printable(phase).split())
            self._bar = self._bars.add_task(title, total=None, current="", share="")
        else:
            self._print("...", minor=True)

    def update(self, done: int, total: int | None, current: str = "", part: float | None = None) -> None:
        """Update the current phase.

        Args:
            done: steps or bytes.
            total: of how many, if known.
            current: the current step.
            part: the part of the work that is done, from 0 to 1, where steps differ in how long they take.
        """
        if part is None:
            part = done / total if total else 0.0
        if self._bars and self._bar is not None:
            share = _share(done, total)
            shown = " ".join(printable(current[:60]).split())
            completed = part * total if total else done
            self._bars.update(self._bar, completed=completed, total=total, current=shown, share=share)
            return
        now = self._clock()
        # A line for each of Ninja's 5,000 steps would bury the rest of a CI log.
        if now - self._printed < PLAIN_INTERVAL:
            return
        self._printed = now
        left = f", {duration((now - self._began) / part * (1 - part))} left" if part and total else ""
        self._print(f"{_share(done, total)}{left}: {current}")

    def end(self, seconds: float) -> None:
        """End the current phase, which took so long."""
        if self._bars and self._bar is not None:
            # A phase of unknown extent would otherwise stay a moving bar after its end.
            task = self._bars.tasks[self._bar]
            total = task.total or 1
            self._bars.update(self._bar, completed=total, total=total, current="")
        else:
            self._print(duration(seconds), minor=True)

    def _print(self, text: str, *, minor: bool = False) -> None:
        line = f"[{self._phase}] {text}"
        # What is silent for a person is not for a program that asks; but for the phases of the many small
        # plans of an experiment, which reports its tests itself.
        if not (minor and self._silent) and record_progress(line):
            return
        if not self._silent and not writes_records():
            err().print(line, markup=False)


def _share(done: int, total: int | None) -> str:
    """Return `12/189` for steps, a percentage for bytes, nothing if the total is unknown."""
    if not total:
        return ""
    return f"{done}/{total}" if total < _MANY else f"{100 * done / total:.0f} %"
