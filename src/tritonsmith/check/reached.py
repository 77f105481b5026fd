"""What the inputs of a check do not try: loops that have no second turn, and blocks that never run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from xdsl.ir import Block, Operation

from tritonsmith.check.blame import line_of
from tritonsmith.check.inputs import constant_of
from tritonsmith.check.module import name_of

_LOOPS = ("scf.for", "scf.while")
_NOTHING = {
    "arith.constant",
    "ub.poison",
    "llvm.mlir.undef",
    "cf.br",
    "scf.yield",
    "tt.return",
}  # what a block may have and do nothing


@dataclass
class ReachedCode:
    """What ran of a text, under all inputs together.

    Attributes:
        blocks: that ran.
        turns: of each loop, the most that it had at one time.
    """

    blocks: set[Block] = field(default_factory=set)
    turns: dict[Operation, int] = field(default_factory=dict)

    def add(self, other: ReachedCode) -> None:
        """What another run reached, too."""
        self.blocks |= other.blocks
        for loop, times in other.turns.items():
            self.turned(loop, times)

    def turned(self, loop: Operation, times: int) -> None:
        """A loop has ended."""
        self.turns[loop] = max(self.turns.get(loop, 0), times)

    def gaps(self, functions: Mapping[str, Operation], text: str) -> tuple[str, ...]:
        """Sentences about what did not run, or only once; none about what lies in a block that did not.

        Args:
            functions: of the module.
            text: of it, with its locations.
        """
        line = partial(line_of, text)
        called = [one for one in functions.values() if not self.blocks.isdisjoint(one.regions[0].blocks)]
        return tuple(dict.fromkeys(gap for one in called for gap in self._of(one, line)))

    def _of(self, operation: Operation, line: partial[str]) -> Iterator[str]:
        if name_of(operation) in _LOOPS and self.turns.get(operation, 0) == 1 and not _is_fixed(operation):
            within = (line(one) for one in (operation, *operation.walk()))  # its own stands at its end
            yield f"the loop at {next(filter(None, within), 'an unknown line')} ran once at most"
        for block in (block for region in operation.regions for block in region.blocks):
            if block in self.blocks:
                for inner in block.ops:
                    yield from self._of(inner, line)
            elif first := next((one for one in block.ops if name_of(one) not in _NOTHING), None):
                yield f"{line(first) or name_of(first)} was not reached"


def _is_fixed(loop: Operation) -> bool:
    """Whether its bounds are constants: no inputs make it longer."""
    return name_of(loop) == "scf.for" and all(constant_of(one) is not None for one in loop.operands[:3])
