"""Remove debug locations from IR, as far as needed to compare two dumps."""

from __future__ import annotations

import re

_STRING = rb'"(?:[^"\\]|\\.)*+"'
_PLAIN = rb'[^()"\n]++'
_NESTED = rb"(?:" + _PLAIN + rb"|" + _STRING + rb")*+"
for _ in range(6):  # callsite(fused("file":1:2 ...) at ...), and so on
    _NESTED = rb"(?:" + _PLAIN + rb"|" + _STRING + rb"|\(" + _NESTED + rb"\))*+"
_MLIR = re.compile(rb" ?\bloc\(" + _NESTED + rb"\)|(?m:^)#loc[^\n]*\n")
_LLVM = re.compile(
    rb",? !dbg !\d+|(?m:^) *(?:#dbg_\w+\([^\n]*|![\w.]+ = [^\n]*)\n"
    rb"|,? *debug-location [^\n,]*|; [\w./-]+:\d+:\d+"
)
_FEW = 64  # lines that differ by their locations alone, before all locations are taken out


def without(kind: str, text: bytes) -> bytes:
    """Return the IR without locations.

    Args:
        kind: `mlir`, `ll` or `mir`; other texts are returned unchanged.
        text: one dump, or a line of one.
    """
    pattern = {"mlir": _MLIR, "ll": _LLVM, "mir": _LLVM}.get(kind)
    return pattern.sub(b"", text) if pattern else text


def same(kind: str, one: bytes, other: bytes) -> bool:
    """Report whether two dumps are equal except for their locations."""
    # Most dumps that differ do so on an early line, by more than a location: that is tried first.
    if one == other:
        return True
    left, right = (_body(one), _body(other)) if kind == "mlir" else (one, other)
    if _differ_soon(kind, left, right):
        return False
    return without(kind, one).strip() == without(kind, other).strip()


def _body(text: bytes) -> bytes:
    """Return the operation itself: aliases of locations come before and after it."""
    begin = text.find(b"\nmodule") + 1
    close = text.find(b"\n}", begin)
    return text[begin : close if close >= 0 else len(text)]


def _differ_soon(kind: str, one: bytes, other: bytes) -> bool:
    """Report whether one of the first differing lines differs in more than its locations."""
    left = right = 0
    for _ in range(_FEW):
        step = _common(one, other, left, right)
        left, right = left + step, right + step
        if left >= len(one) or right >= len(other):
            return False
        first, second = one.rfind(b"\n", 0, left) + 1, other.rfind(b"\n", 0, right) + 1
        last, end = one.find(b"\n", left), other.find(b"\n", right)
        last, end = len(one) if last < 0 else last, len(other) if end < 0 else end
        before, after = one[first:last], other[second:end]
        if before.startswith((b"#loc", b"!")) or after.startswith((b"#loc", b"!")):
            return False
        if without(kind, before) != without(kind, after):
            return True
        left, right = last, end
    return False


def _common(one: bytes, other: bytes, left: int, right: int) -> int:
    """Return the number of equal bytes from these places on."""
    size = min(len(one) - left, len(other) - right)
    low, step = 0, 256
    while low < size:  # in growing steps, so that a difference nearby is found without a look at the rest
        step = min(step, size - low)
        if one[left + low : left + low + step] != other[right + low : right + low + step]:
            break
        low, step = low + step, step * 2
    else:
        return size
    while step > 1:
        half = step // 2
        if one[left + low : left + low + half] == other[right + low : right + low + half]:
            low, step = low + half, step - half
        else:
            step = half
    return low
