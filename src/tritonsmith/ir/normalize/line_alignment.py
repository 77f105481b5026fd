"""Align the lines of two texts: their common head and tail, then lines that are unique in both.

This is patience diff: unique lines are anchors, their longest rising chain is kept, and the text between two
anchors is aligned in the same way. If nothing is unique, a short piece goes to difflib; in a long one, the
first of the equal lines is paired with the first, the second with the second, and so on. So the time is near
to linear; difflib's is quadratic in repeated lines, and unrolled code has many of these.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Sequence
from difflib import SequenceMatcher
from itertools import pairwise

_SHORT = 64  # lines of a piece that difflib may have
_DEEPEST = 12  # anchors between anchors


def pairs(first: Sequence[Hashable], second: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Return places of equal items that correspond; both rise."""
    result: list[tuple[int, int]] = []
    work = [(0, len(first), 0, len(second), 0)]
    while work:
        low, high, below, above, depth = work.pop()
        while low < high and below < above and first[low] == second[below]:
            result.append((low, below))
            low, below = low + 1, below + 1
        while low < high and below < above and first[high - 1] == second[above - 1]:
            high, above = high - 1, above - 1
            result.append((high, above))
        if low == high or below == above:
            continue
        a, b = first[low:high], second[below:above]
        anchors = _unique(a, b) if depth < _DEEPEST else []
        if not anchors:
            result += [(low + place, below + other) for place, other in _rest(a, b)]
            continue
        result += [(low + place, below + other) for place, other in anchors]
        work += [
            (low + left.start, low + left.stop, below + other.start, below + other.stop, depth + 1)
            for left, other in gaps(anchors, len(a), len(b))
        ]
    return sorted(result)


def gaps(anchors: Sequence[tuple[int, int]], length: int, other: int) -> list[tuple[range, range]]:
    """Return the places between rising pairs, in the first text and in the second, where both have some."""
    return [
        (range(start + 1, after), range(begin + 1, beyond))
        for (start, begin), (after, beyond) in pairwise([(-1, -1), *anchors, (length, other)])
        if after > start + 1 and beyond > begin + 1
    ]


def _unique(a: Sequence[Hashable], b: Sequence[Hashable]) -> list[tuple[int, int]]:
    once, other = Counter(a), Counter(b)
    places = {item: place for place, item in enumerate(b) if other[item] == 1}
    return _rising(
        [(place, places[item]) for place, item in enumerate(a) if once[item] == 1 and item in places]
    )


def _rest(a: Sequence[Hashable], b: Sequence[Hashable]) -> list[tuple[int, int]]:
    if len(a) <= _SHORT and len(b) <= _SHORT:
        blocks = SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks()
        return [(block.a + at, block.b + at) for block in blocks for at in range(block.size)]
    places = {item: place for place, item in enumerate(_counted(b))}
    return _rising([(place, places[item]) for place, item in enumerate(_counted(a)) if item in places])


def _counted(items: Sequence[Hashable]) -> list[tuple[Hashable, int]]:
    counts: Counter[Hashable] = Counter()
    unique_items = []
    for item in items:
        counts[item] += 1
        unique_items.append((item, counts[item]))
    return unique_items


def _rising(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest part whose second places rise too; the first ones do already."""
    ends: list[int] = []  # the smallest last place of a chain of each length
    last: list[int] = []  # and the pair that has it
    before = [-1] * len(pairs)
    for at, (_, place) in enumerate(pairs):
        length = bisect_left(ends, place)
        before[at] = last[length - 1] if length else -1
        ends[length : length + 1] = [place]
        last[length : length + 1] = [at]
    chain = []
    at = last[-1] if last else -1
    while at >= 0:
        chain.append(pairs[at])
        at = before[at]
    return chain[::-1]
