"""What ends the loop."""

from __future__ import annotations

import time
from pathlib import Path
from typing import cast

import pytest

from tritonsmith.build.watch import command
from tritonsmith.build.watch.command import WatchedBuild, WatchedCommand
from tritonsmith.build.watch.files import NamedPaths, SavedError
from tritonsmith.core.errors import InterruptedRunError


class _StoppedBuild:
    """A build that a save stops, and then ^C, before it has ended: the runner makes one error of both."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def run(self) -> None:
        try:
            self._stop()
        except KeyboardInterrupt:
            raise InterruptedRunError("interrupted") from None

    def _stop(self) -> None:
        try:
            while True:
                self._file.write_text(str(time.monotonic()), "utf-8")
                time.sleep(0.05)
        except SavedError:
            raise KeyboardInterrupt from None


def test_an_interrupt_while_a_save_stops_the_build_ends_the_loop(tmp_path: Path) -> None:
    build = cast("WatchedBuild", _StoppedBuild(tmp_path / "saved.py"))
    with pytest.raises(InterruptedRunError):
        command.follow(cast("WatchedCommand", None), [NamedPaths([tmp_path])], build)
