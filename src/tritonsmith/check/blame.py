"""Trace a difference to the first value that is new and its line, and find code that no input reaches."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from xdsl.ir import Block, Operation

from tritonsmith.check.inputs import constant_of
from tritonsmith.check.module import name_of

_NAMED = re.compile(
    r'^(#loc\d*) = loc\("?([^"\n]+?)"?(?::(\d+):\d+)?(?:\((#loc\d*)(?: at (#loc\d*))?[^)]*\))?\)$',
    re.MULTILINE,
)
_BYTES = re.compile(r"(?:\\[0-9A-F]{2})+")  # as MLIR prints what is not ASCII
_DEEP = 100  # locations in locations
_LIBRARY = re.compile(r"[/\\]triton[/\\](language|experimental)[/\\]")
_USED = re.compile(r"loc\((#loc\d*)\)$")
_TRIVIAL = {
    "arith.constant", "tt.make_range", "tt.get_program_id", "tt.splat", "ub.poison", "llvm.mlir.undef",
    "llvm.mlir.poison",
}  # fmt: skip


@dataclass
class ValueRecorder:
    """The digests of all values of a run, in the order in which they were computed.

    Attributes:
        digests: every digest that occurred.
        order: each operation with the digest of its result.
    """

    # Digests, as the values of a run may be gigabytes.

    digests: set[bytes] = field(default_factory=set)
    order: list[tuple[Operation, bytes]] = field(default_factory=list)

    def __call__(self, operation: Operation, results: tuple[Any, ...]) -> None:  # noqa: D102 - what it is
        for result, value in zip(operation.results, results, strict=True):
            # A descriptor of shared memory is a place, whose contents change later.
            if isinstance(value, np.ndarray) and "memdesc<" not in str(result.type):
                kept = hashlib.blake2b(np.ascontiguousarray(value).tobytes(), digest_size=8)
                # The shape is left out: a pass may reshape a value without changing it.
                kept.update(str(value.dtype).encode())
                self.digests.add(kept.digest())
                self.order.append((operation, kept.digest()))


@dataclass
class LargestValue:
    """The largest absolute value among the finite floats of a run."""

    largest: float = 0.0

    def __call__(self, operation: Operation, results: tuple[Any, ...]) -> None:  # noqa: D102 - what it is
        for result, value in zip(operation.results, results, strict=True):
            if not isinstance(value, np.ndarray) or "memdesc<" in str(result.type):  # no value
                continue
            if value.dtype.kind in "fV" and value.size:
                wide = np.abs(value.astype(np.float64))
                self.largest = max(self.largest, float(wide[np.isfinite(wide)].max(initial=0.0)))


def first_new(before: ValueRecorder, after: ValueRecorder) -> Operation | None:
    """Return the first operation whose value the run before never had; None if there is none."""
    # A hint, not a proof: values that a pass takes apart, such as the tiles of a dot, are new as well.
    # Constants and ranges are skipped: every pass makes some, and they explain nothing.
    for operation, digest in after.order:
        if digest not in before.digests and name_of(operation) not in _TRIVIAL:
            return operation
    return None


def line_of(text: str, operation: Operation) -> str:
    """Return FILE:LINE of the source that an operation comes from; empty if the IR does not say."""
    name, module = name_of(operation), operation
    while parent := module.parent_op():
        module = parent
    # xDSL keeps no locations: the operation's line is found by its place among those of its name, which stand
    # in the text in the order of a walk.
    same = [candidate for candidate in module.walk() if name_of(candidate) == name]
    lines = [line for line in text.splitlines() if f'"{name}"(' in line]
    number = next(number for number, candidate in enumerate(same) if candidate is operation)
    used = _USED.search(lines[number]) if number < len(lines) else None
    places = {match[1]: match for match in _NAMED.finditer(text)}
    return _line(places, used[1]) if used else ""


def _line(places: dict[str, re.Match[str]], at: str | None, deep: int = 0) -> str:
    """Resolve a location to FILE:LINE, visiting each only once: they may refer to each other in a circle."""
    if at is None or deep > _DEEP or (here := places.pop(at, None)) is None:
        return ""
    _, file, line, inner, caller = here.groups()
    if line:
        return f"{_BYTES.sub(_text, file)}:{line}"
    # `callsite(inner at caller)`: the inner line, but for code of Triton's own library the line that calls
    # it.
    inlined = _line(places, inner, deep + 1)
    return _line(places, caller, deep + 1) or inlined if not inlined or _LIBRARY.search(inlined) else inlined


def _text(escaped: re.Match[str]) -> str:
    return bytes.fromhex(escaped[0].replace("\\", "")).decode("utf-8", errors="replace")


_LOOPS = ("scf.for", "scf.while")
_NOTHING = {  # operations of a block that does nothing
    "arith.constant",
    "ub.poison",
    "llvm.mlir.undef",
    "cf.br",
    "scf.yield",
    "tt.return",
}


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
        called = self._called(functions)
        return tuple(dict.fromkeys(gap for function in called for gap in self._of(function, line)))

    def missed(self, functions: Mapping[str, Operation]) -> Counter[str]:
        """Count the operations in code that did not run, by name.

        Args:
            functions: the functions of the module.
        """
        return Counter(
            name_of(inner)
            for function in self._called(functions)
            for operation in function.walk()
            if operation.parent in self.blocks
            for region in operation.regions
            for block in region.blocks
            if block not in self.blocks
            for candidate in block.ops
            for inner in candidate.walk()
            if name_of(inner) not in _NOTHING
        )

    def _called(self, functions: Mapping[str, Operation]) -> list[Operation]:
        return [
            function
            for function in functions.values()
            if not self.blocks.isdisjoint(function.regions[0].blocks)
        ]

    def _of(self, operation: Operation, line: partial[str]) -> Iterator[str]:
        if name_of(operation) in _LOOPS and self.turns.get(operation, 0) == 1 and not _is_fixed(operation):
            # The location of a loop stands at its end, and is often unknown: its body's serves as well.
            within = (line(candidate) for candidate in (operation, *operation.walk()))
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
