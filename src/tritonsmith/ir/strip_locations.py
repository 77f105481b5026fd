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


def same(kind: str, first_text: bytes, second_text: bytes) -> bool:
    """Report whether two dumps are equal except for their locations."""
    # Most dumps that differ do so on an early line, by more than a location: that is tried first.
    if first_text == second_text:
        return True
    left, right = (_body(first_text), _body(second_text)) if kind == "mlir" else (first_text, second_text)
    if _differ_soon(kind, left, right):
        return False
    return without(kind, first_text).strip() == without(kind, second_text).strip()


def _body(text: bytes) -> bytes:
    """Return the operation itself: aliases of locations come before and after it."""
    begin = text.find(b"\nmodule") + 1
    close = text.find(b"\n}", begin)
    return text[begin : close if close >= 0 else len(text)]


def _differ_soon(kind: str, first_text: bytes, second_text: bytes) -> bool:
    """Report whether one of the first differing lines differs in more than its locations."""
    left = right = 0
    for _ in range(_FEW):
        step = _common(first_text, second_text, left, right)
        left, right = left + step, right + step
        if left >= len(first_text) or right >= len(second_text):
            return False
        first, second = first_text.rfind(b"\n", 0, left) + 1, second_text.rfind(b"\n", 0, right) + 1
        last, end = first_text.find(b"\n", left), second_text.find(b"\n", right)
        last, end = len(first_text) if last < 0 else last, len(second_text) if end < 0 else end
        before, after = first_text[first:last], second_text[second:end]
        if before.startswith((b"#loc", b"!")) or after.startswith((b"#loc", b"!")):
            return False
        if without(kind, before) != without(kind, after):
            return True
        left, right = last, end
    return False


def _common(first_text: bytes, second_text: bytes, left: int, right: int) -> int:
    """Return the number of equal bytes from these places on."""
    size = min(len(first_text) - left, len(second_text) - right)
    low, step = 0, 256
    while low < size:  # in growing steps, so that a difference nearby is found without a look at the rest
        step = min(step, size - low)
        if first_text[left + low : left + low + step] != second_text[right + low : right + low + step]:
            break
        low, step = low + step, step * 2
    else:
        return size
    while step > 1:
        half = step // 2
        if first_text[left + low : left + low + half] == second_text[right + low : right + low + half]:
            low, step = low + half, step - half
        else:
            step = half
    return low
