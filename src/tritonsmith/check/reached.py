"""Report code that the inputs of a check do not exercise: loops of one iteration, blocks that never run."""

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
    """The code of a text that ran, under all inputs together.

    Attributes:
        blocks: the blocks that ran.
        turns: the largest number of iterations of each loop in one execution.
    """

    blocks: set[Block] = field(default_factory=set)
    turns: dict[Operation, int] = field(default_factory=dict)

    def add(self, other: ReachedCode) -> None:
        """Merge the code that another run reached."""
        self.blocks |= other.blocks
        for loop, times in other.turns.items():
            self.turned(loop, times)

    def turned(self, loop: Operation, times: int) -> None:
        """Record the number of iterations of a loop that has ended."""
        self.turns[loop] = max(self.turns.get(loop, 0), times)

    def gaps(self, functions: Mapping[str, Operation], text: str) -> tuple[str, ...]:
        """Return sentences about code that did not run, or loops that ran once, outside such code.

        Args:
            functions: the functions of the module.
            text: the module's text, with its locations.
        """
        line = partial(line_of, text)
        called = [
            function
            for function in functions.values()
            if not self.blocks.isdisjoint(function.regions[0].blocks)
        ]
        return tuple(dict.fromkeys(gap for function in called for gap in self._of(function, line)))

    def _of(self, operation: Operation, line: partial[str]) -> Iterator[str]:
        if name_of(operation) in _LOOPS and self.turns.get(operation, 0) == 1 and not _is_fixed(operation):
            within = (
                line(candidate) for candidate in (operation, *operation.walk())
            )  # its own stands at its end
            yield f"the loop at {next(filter(None, within), 'an unknown line')} ran once at most"
        for block in (block for region in operation.regions for block in region.blocks):
            if block in self.blocks:
                for inner in block.ops:
                    yield from self._of(inner, line)
            elif first := next(
                (candidate for candidate in block.ops if name_of(candidate) not in _NOTHING), None
            ):
                yield f"{line(first) or name_of(first)} was not reached"


def _is_fixed(loop: Operation) -> bool:
    """Return whether a loop's bounds are constants: no inputs make it longer."""
    return name_of(loop) == "scf.for" and all(constant_of(bound) is not None for bound in loop.operands[:3])
