"""Trace a difference to its origin: the store that wrote the element, and the first value that is new."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.ir import Operation

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

    digests: set[bytes] = field(default_factory=set)
    order: list[tuple[Operation, bytes]] = field(default_factory=list)

    def __call__(self, operation: Operation, results: tuple[Any, ...]) -> None:  # noqa: D102 - what it is
        for result, value in zip(operation.results, results, strict=True):
            if isinstance(value, np.ndarray) and "memdesc<" not in str(result.type):  # a place
                kept = hashlib.blake2b(np.ascontiguousarray(value).tobytes(), digest_size=8)
                kept.update(str(value.dtype).encode())
                self.digests.add(kept.digest())
                self.order.append((operation, kept.digest()))


@dataclass
class LargestValue:
    """The largest absolute value among the finite floats of a run."""

    found: float = 0.0

    def __call__(self, operation: Operation, results: tuple[Any, ...]) -> None:  # noqa: D102 - what it is
        for result, value in zip(operation.results, results, strict=True):
            if not isinstance(value, np.ndarray) or "memdesc<" in str(result.type):  # no value
                continue
            if value.dtype.kind in "fV" and value.size:
                wide = np.abs(value.astype(np.float64))
                self.found = max(self.found, float(wide[np.isfinite(wide)].max(initial=0.0)))


def first_new(before: ValueRecorder, after: ValueRecorder) -> Operation | None:
    """Return the first operation whose value the run before never had; None if there is none.

    Values that a pass takes apart, such as the tiles of a dot, are new as well: this is a hint, not a proof.

    """
    for operation, digest in after.order:
        if digest not in before.digests and name_of(operation) not in _TRIVIAL:
            return operation
    return None


def line_of(text: str, operation: Operation) -> str:
    """Return FILE:LINE of the source that an operation comes from; empty if the IR does not say.

    For code inlined from Triton's own library it is the line of the call.

    """
    name, module = name_of(operation), operation
    while parent := module.parent_op():
        module = parent
    same = [
        candidate for candidate in module.walk() if name_of(candidate) == name
    ]  # in the order of the text
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
    inlined = _line(places, inner, deep + 1)
    return _line(places, caller, deep + 1) or inlined if not inlined or _LIBRARY.search(inlined) else inlined


def _text(escaped: re.Match[str]) -> str:
    return bytes.fromhex(escaped[0].replace("\\", "")).decode("utf-8", errors="replace")
