"""Run a warp-specialized program: partitions run side by side, and wait for each other at barriers.

Each partition has a thread of its own, but only one runs at a time: until it waits for a barrier that nothing
completes yet, or ends. So a run is the same each time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Turns:
    """The turns of the partitions of a program.

    Attributes:
        slow: number of the partition that runs only while all others wait; None if there is none.
        now: number of the partition that runs.
        alive: partitions that have not ended.
        waiting: partitions that have waited since a barrier last moved.
    """

    slow: int | None = None
    now: int = 0
    alive: list[int] = field(default_factory=list)
    waiting: set[int] = field(default_factory=set)
    _moved: threading.Condition = field(default_factory=threading.Condition)
    _failed: list[BaseException] = field(default_factory=list)

    def run(self, parts: Sequence[Callable[[], Any]]) -> Any:
        """Run all parts, and return the result of the first one, which runs in this thread.

        The first error is raised again here.
        """
        self.alive = list(range(len(parts)))
        threads = [
            threading.Thread(target=self._part, args=(number, part), daemon=True)
            for number, part in enumerate(parts)
            if number
        ]
        for thread in threads:
            thread.start()
        result = self._part(0, parts[0])
        for thread in threads:
            thread.join()
        if self._failed:  # an interrupt, or the first error
            raise next(
                (failure for failure in self._failed if not isinstance(failure, Exception)), self._failed[0]
            )
        return result

    def _part(self, number: int, part: Callable[[], Any]) -> Any:
        # Threads are only a way to stop in the middle of a partition: never do two run at the same time.
        with self._moved:
            self._moved.wait_for(lambda: self.now == number)
        result = None
        try:
            if not self._failed:
                result = part()
        except BaseException as error:  # noqa: BLE001 - raised again where the parts began
            self._failed.append(error)
        with self._moved:
            # The successor is computed first: `_after` needs the place of this part among the living ones.
            following = self._after(number)
            self.alive.remove(number)
            self.waiting.clear()
            self._go(following)
        return result

    def pass_on(self) -> bool:
        """Let the others run while this part waits; False if they wait as well, or if one has failed."""
        number = self.now
        self.waiting.add(number)
        # If all living parts have waited since a barrier last moved, none of them can move one: a deadlock.
        if stuck := self.waiting.issuperset(self.alive):
            self.waiting.discard(number)
        else:
            self.step_aside()
        return not stuck and not self._failed

    def step_aside(self) -> None:
        """Let the others run until they wait."""
        number = self.now
        with self._moved:
            self._go(self._after(number))
            self._moved.wait_for(lambda: self.now == number)
            self.waiting.discard(number)

    def moved(self) -> None:
        """Wake the waiting parts: a barrier has moved, or work arrived that will move it."""
        self.waiting.clear()

    def _after(self, number: int) -> int:
        place = self.alive.index(number) + 1
        following = [*self.alive[place:], *self.alive[:place]]
        # The slow part runs when nobody else can: whoever reads what it has yet to write shows it.
        quick = [part for part in following if part not in (self.slow, number) and part not in self.waiting]
        return quick[0] if quick else following[0]

    def _go(self, number: int) -> None:
        self.now = number
        self._moved.notify_all()
