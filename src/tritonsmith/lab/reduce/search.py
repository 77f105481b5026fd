"""The search for a smaller text of IR: what is removed from it, and in which order."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from tritonsmith.ir.ir_text import IrText, parse
from tritonsmith.lab.reduce.delta_search import DeltaSearch, Part
from tritonsmith.lab.reduce.reductions import attributes, control_flow, loops
from tritonsmith.lab.reduce.reductions.operations import Cutter

T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True, order=True)
class Size:
    """The size of a text; fewer operations are smaller, whatever the rest.

    Attributes:
        ops: operations, modules and functions aside.
        size: bytes.
        lines: number of them.
    """

    ops: int
    size: int
    lines: int


def size_of(text: str) -> Size:
    """Measure a text."""
    return Size(parse(text).count(), len(text.encode()), len(text.splitlines()))


class Search(DeltaSearch[str]):
    """Shrinks a text while it stays interesting: see `DeltaSearch`."""

    def __init__(
        self, text: str, *, jobs: int = 1, on_better: Callable[[str, int], None] = lambda *_: None
    ) -> None:
        super().__init__(text, size_of, jobs=jobs, on_better=on_better)

    def moves(self) -> Sequence[Callable[[], Part[str, bool]]]:
        """See `DeltaSearch`."""
        return (
            self._functions,
            self._cut,
            partial(self._parsed, loops.unwrapped),
            partial(self._parsed, control_flow.straighter),
            partial(self._parsed, control_flow.merged),
            partial(self._without, control_flow.parameters, control_flow.without),
            partial(self._parsed, loops.lighter),
            partial(self._parsed, lambda source: [attributes.without_aliases(source)]),
            partial(self._without, attributes.unused_arguments, attributes.without),
            partial(self._without, attributes.attributes, attributes.without),
        )

    def _functions(self) -> Part[str, bool]:
        """Whole functions."""
        cutter = Cutter(parse(self.best))
        return self._delta([op for op in cutter.items if op.function], cutter.cut, cutter.left)

    def _cut(self) -> Part[str, bool]:
        """Operations, users first."""
        cutter = Cutter(parse(self.best))
        return self._delta(list(reversed(cutter.items)), cutter.cut, cutter.left)

    def _parsed(self, candidates: Callable[[IrText], Iterable[str]]) -> Part[str, bool]:
        """Single changes."""
        return self._repeat(lambda text: candidates(parse(text)))

    def _without(
        self,
        find: Callable[[IrText], Sequence[T]],
        without: Callable[[IrText, Sequence[T]], str | None],
    ) -> Part[str, bool]:
        """Things that go alone or together."""
        source = parse(self.best)
        return self._delta(find(source), partial(without, source))
