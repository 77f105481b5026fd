"""Compare two texts of one stage in normal form, and count the operations of a text.

The second text is written with the names of the first where values correspond, so each remaining difference
is a real change: another operation, type, constant or operand.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise

from tritonsmith.ir import normalize
from tritonsmith.ir.normalize.renaming import MARK, NormalForm, filled, kind

_SHORT = 64  # lines of a piece that difflib may have
_DEEPEST = 12  # anchors between anchors
_CONTEXT = 3  # lines around a change
_ROUNDS = 4  # a value is found by its operands, those by theirs ...
_HUNK = re.compile(r"@@ -(\d+),\d+ \+(\d+),\d+ @@")
_COUNTER = re.compile(r"\.\d+$")
_WORD = re.compile(r"[A-Za-z_][\w.]*")

_MLIR = re.compile(r'^\s*(?:%[^="\n]*= )?"?([a-z_]\w*(?:\.\w+)+)', re.MULTILINE)
_LLVM = re.compile(
    r"^[ \t]+(?:%\S+ = )?(?:(?:tail|musttail|notail) )?([a-z]\w*)"
    r"(?:(?<=call)(?:[^@\n]*?@(llvm\.[\w.]+)\(|[^@\n]*? (asm) ))?",
    re.MULTILINE,
)
_PTX = re.compile(r"^\s*(?:@!?%?[\w.]+\s+)?([a-z]\w*(?:\.[\w:]+)*)(?=[\s;])(?!\s*[:=])", re.MULTILINE)
_SASS = re.compile(r"^\s+(?:/\*[0-9a-f]+\*/\s+)?(?:@!?U?P\w+\s+)?([A-Z][\w.]*)(?=[\s;])", re.MULTILINE)
_AMD = re.compile(r"^\s+([a-z]\w+)(?=\s|$)(?!:)", re.MULTILINE)
_LAYOUT = re.compile(r"#(\w+(?:\.\w+)+)<")
# Lines about the whole module, which a release changes in all kernels at once: attributes, the data layout.
_OF_MODULE = re.compile(
    r"\s*(?:module\b|target |declare |define |attributes |source_filename|!|\.version|\.target)"
)
_RENAMED = (
    0.8  # likeness of two names of one operation: `amdgpu.in_thread_transpose`, `amdg.in_thread_transpose`
)
_OPERATIONS = {
    **dict.fromkeys(("mlir", "source", "ttir", "glir", "ttgir"), _MLIR),
    **dict.fromkeys(("llvm", "llir"), _LLVM),
    "ptx": _PTX,
    "sass": _SASS,
    **dict.fromkeys(("amdgcn", "gcnasm"), _AMD),
}


@dataclass(frozen=True)
class Diff:
    """The difference between two texts.

    Attributes:
        stage: the stage of both.
        removed: the number of lines that only the first has.
        added: the number of lines that only the second has.
        lines: a unified diff of the normal forms, without the lines for file names; corresponding values have
            the first text's name. A name that ends with `'` is not the first text's value of that name.
    """

    stage: str
    removed: int
    added: int
    lines: tuple[str, ...]

    @property
    def same(self) -> bool:
        """True if nothing differs."""
        return not self.lines


@dataclass(frozen=True)
class OperationChange:
    """The operation in which two texts of a stage differ most.

    Attributes:
        operation: its name, or the kind of a layout; empty if only the order or the operands differ.
        before: how often the first text has it.
        after: how often the second has it; as often if it only has other operands, types or attributes.
    """

    operation: str
    before: int
    after: int


def of(a: str, b: str, stage: str) -> Diff:
    """Compare two texts of a stage; a stage without normal form is compared as it is."""
    first, second = normalize.form(a, stage), normalize.form(b, stage)
    lines, others = first.lines(), second.lines()
    if lines == others:
        return Diff(stage, 0, 0, ())
    others = second.lines(corresponding_names(first, second))
    common = pairs(lines, others)
    removed, added = len(lines) - len(common), len(others) - len(common)
    return Diff(stage, removed, added, tuple(_unified(lines, others, common)))


def printed_lines(text: str, stage: str) -> list[int | None]:
    """Return the place of each line of the normal form in the printed text; None if that is not certain."""
    # The normal form drops and moves lines, and names depend on the whole text. Its lines without names do
    # not, so those of each printed line by itself are matched with those of the whole.
    known: dict[str, list[str]] = {}
    places, masks = [], []
    for place, line in enumerate(text.split("\n")):
        if line not in known:
            known[line] = normalize.form(line, stage).masks
        masks += known[line]
        places += [place] * len(known[line])
    whole = normalize.form(text, stage).masks
    result: list[int | None] = [None] * len(whole)
    for at, other in pairs(whole, masks):
        result[at] = places[other]
    return result


def numbered(lines: Iterable[str]) -> Iterator[tuple[str, int] | None]:
    """Yield the side and the place of each line of a unified diff: `-` the first text, `+` the second.

    A line that both have counts as one of the second. The head of a hunk yields None.
    """
    first = second = 0
    for line in lines:
        if match := _HUNK.match(line):
            first, second = int(match[1]) - 1, int(match[2]) - 1
            yield None
            continue
        yield ("-", first) if line.startswith("-") else ("+", second)
        first += not line.startswith("+")
        second += not line.startswith("-")


def operations(text: str, stage: str) -> Counter[str]:
    """Count the occurrences of each operation.

    Args:
        text: the text of a stage, in normal form or not.
        stage: `ttir` counts `tt.load`; `llir` counts opcodes, intrinsics by name and `asm`; `ptx`, `sass` and
            AMD's count mnemonics. Nothing is counted for an unknown stage.
    """
    pattern = _OPERATIONS.get(stage)
    if pattern is None:
        return Counter()
    if pattern is _LLVM:
        return Counter(match[2] or match[3] or match[1] for match in pattern.finditer(text))
    return Counter(pattern.findall(text))


def main_change(a: str, b: str, stage: str) -> OperationChange | None:
    """Return the operation that differs most; None if only names, places of constants or the module do."""
    first, second = normalize.form(a, stage), normalize.form(b, stage)
    if _of_functions(first.lines()) == _of_functions(second.lines()):
        return None
    before, after = operations(a, stage), operations(b, stage)
    if changes := _changed_counts(before, after):
        # An operation that is new or gone tells more than one of hundreds that changed by as much.
        name = min(changes, key=lambda name: (-abs(changes[name]), max(before[name], after[name]), name))
        return OperationChange(name, before[name], after[name])
    masks, others = (Counter(_of_functions(form.masks)) for form in (first, second))
    names: Counter[str] = Counter()
    for line in (*(masks - others), *(others - masks)):
        written = line.replace(MARK, "%0")  # as a value is written, which an operation's pattern looks for
        names += operations(written, stage) or Counter(_LAYOUT.findall(line)[:1])
    name = min(names, key=lambda name: (-names[name], name), default="")
    return OperationChange(name, before[name], before[name])


def _of_functions(lines: Iterable[str]) -> list[str]:
    """Return the lines in which a change of the code shows."""
    # Where a constant stands follows from the uniquing of the pass before, and nothing follows from it.
    return [line for line in lines if not _OF_MODULE.match(line) and "= arith.constant " not in line]


def _changed_counts(before: Counter[str], after: Counter[str]) -> dict[str, int]:
    """Return the changes of counts, without operations that only have another name."""
    changes = {name: after[name] - before[name] for name in before | after if after[name] != before[name]}
    gone = [name for name in changes if not after[name]]
    for name in [name for name in changes if not before[name]]:
        twins = (old for old in gone if before[old] == after[name])
        twin = next((old for old in twins if SequenceMatcher(None, old, name).ratio() >= _RENAMED), None)
        if twin:
            gone.remove(twin)
            del changes[twin], changes[name]
    return changes


def _unified(first: Sequence[str], second: Sequence[str], common: Sequence[tuple[int, int]]) -> Iterator[str]:
    for hunk in _hunks(_changes(first, second, common)):
        low, high = max(0, hunk[0][0].start - _CONTEXT), min(len(first), hunk[-1][0].stop + _CONTEXT)
        below = max(0, hunk[0][1].start - _CONTEXT)
        above = min(len(second), hunk[-1][1].stop + _CONTEXT)
        yield f"@@ -{low + 1},{high - low} +{below + 1},{above - below} @@"
        at = low
        for removed, added in hunk:
            yield from (f" {line}" for line in first[at : removed.start])
            yield from (f"-{first[place]}" for place in removed)
            yield from (f"+{second[place]}" for place in added)
            at = removed.stop
        yield from (f" {line}" for line in first[at:high])


def _changes(
    first: Sequence[str], second: Sequence[str], common: Sequence[tuple[int, int]]
) -> Iterator[tuple[range, range]]:
    at, other = 0, 0
    for first_at, second_at in [*common, (len(first), len(second))]:
        if first_at > at or second_at > other:
            yield range(at, first_at), range(other, second_at)
        at, other = first_at + 1, second_at + 1


def _hunks(changes: Iterator[tuple[range, range]]) -> Iterator[list[tuple[range, range]]]:
    """Yield groups of changes to show together, because their contexts touch."""
    hunk: list[tuple[range, range]] = []
    for change in changes:
        if hunk and change[0].start - hunk[-1][0].stop > 2 * _CONTEXT:
            yield hunk
            hunk = []
        hunk.append(change)
    if hunk:
        yield hunk


def corresponding_names(first: NormalForm, second: NormalForm) -> list[str]:
    """Return names for the second form: corresponding values get the first form's name."""
    # Names come from the neighbourhood of a value, so a change renames values close to it. Hence lines are
    # matched although their names differ, the most certain ones first: equal lines; between them lines with
    # equal uses, whatever the names of their definitions; between those, lines that are equal with names
    # masked; then lines of the same operation. What such lines define corresponds, and then what they use.
    #
    # A layout in both texts is the same layout; others correspond as values do, so that 8 warps instead of 4
    # show in the definitions of layouts, not in every line.
    matches = _Correspondence(first, second)
    matches.the_same([number for number, scope in enumerate(first.scopes) if not scope])
    matches.the_same(range(len(first.names)), alone=True)
    anchors = pairs(_uncounted(first), _uncounted(second))
    matches.defined(anchors)
    matches.used(anchors)
    ends = _undefined(first, first.names)
    for _ in range(_ROUNDS):
        more = _between(anchors, ends, _undefined(second, matches.names()))
        if not more:
            break
        matches.used(more)
        anchors = sorted(anchors + more)
    masked = _between(anchors, _masked(first), _masked(second))
    headed = _between(sorted(anchors + masked), _heads(first.masks), _heads(second.masks))
    matches.defined(masked)
    matches.the_same(range(len(first.names)))
    matches.defined(headed)
    matches.used(masked)
    return matches.names()


class _Correspondence:
    """The correspondences so far; the first one of a value counts."""

    def __init__(self, first: NormalForm, second: NormalForm) -> None:
        self._first, self._second = first, second
        self._there: dict[int, int] = {}  # first's number to second's
        self._back: dict[int, int] = {}
        self._named = {
            (scope, name): number
            for number, (scope, name) in enumerate(zip(second.scopes, second.names, strict=True))
        }
        self._alike = _alike(first) | _alike(second)

    def defined(self, lines: Iterable[tuple[int, int]]) -> None:
        """Match the definitions of corresponding lines."""
        for first_line, other in lines:
            self.all_of(zip(self._first.defines[first_line], self._second.defines[other], strict=False))

    def used(self, lines: Iterable[tuple[int, int]]) -> None:
        """Match the uses of corresponding lines that differ in names only."""
        for first_line, other in lines:
            self.all_of(zip(self._first.uses[first_line], self._second.uses[other], strict=False))

    def all_of(self, couples: Iterable[tuple[int, int]]) -> None:
        for number, other in couples:
            free = number not in self._there and other not in self._back
            if free and self._sort(self._first, number) == self._sort(self._second, other):
                self._there[number], self._back[other] = other, number

    @staticmethod
    def _sort(form: NormalForm, number: int) -> str:
        """Return the kind of a name: a value, a block, or a layout of some kind."""
        name = form.names[number]
        return name[:1] if form.scopes[number] else f"of the module: {kind(name)}"

    def the_same(self, numbers: Iterable[int], *, alone: bool = False) -> None:
        """Match things of equal names; with `alone`, only if no other thing would have the same name."""
        for number in numbers:
            key = (self._first.scopes[number], self._first.names[number])
            several = alone and _COUNTER.sub("", key[1]) in self._alike
            if (other := self._named.get(key)) is not None and not several:
                self.all_of([(number, other)])

    def names(self) -> list[str]:
        taken = set(self._first.names)
        return [
            self._first.names[self._back[number]]
            if number in self._back
            else f"{name}'"
            if name in taken
            else name
            for number, name in enumerate(self._second.names)
        ]


def _alike(form: NormalForm) -> set[str]:
    """Return the names that several values would have without the counter."""
    return {name.removesuffix(".2") for name in form.names if name.endswith(".2")}


def _uncounted(form: NormalForm) -> list[str]:
    """Return the lines without counters: an insertion shifts all counters after it."""
    return form.lines([_COUNTER.sub("", name) for name in form.names])


def _undefined(form: NormalForm, corresponding_names: Sequence[str]) -> list[str]:
    """Return the lines with the names of their uses, without those of their definitions."""
    return [
        filled(mask, [MARK if use in defines else corresponding_names[use] for use in uses])
        for mask, uses, defines in zip(form.masks, form.uses, form.defines, strict=True)
    ]


def _masked(form: NormalForm) -> list[str]:
    """Return the lines without names; a layout keeps its kind."""
    return form.lines(
        [MARK if scope else kind(name) for scope, name in zip(form.scopes, form.names, strict=True)]
    )


def _heads(masks: Sequence[str]) -> list[str]:
    """Return the operation of each line: its first word that is not a name."""
    return [match[0] if (match := _WORD.search(mask)) else mask for mask in masks]


def _between(
    anchors: Sequence[tuple[int, int]], first: Sequence[str], second: Sequence[str]
) -> list[tuple[int, int]]:
    """Return further pairs from the gaps between pairs."""
    result = []
    for left, other in gaps(anchors, len(first), len(second)):
        inside = pairs(first[left.start : left.stop], second[other.start : other.stop])
        result += [(left.start + a, other.start + b) for a, b in inside]
    return result


def pairs(first: Sequence[Hashable], second: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Return pairs of places whose items are equal; both places rise from pair to pair."""
    # Patience diff: unique lines are anchors, the longest rising chain of them is kept, and the text between
    # two anchors is aligned in the same way. Its time is near to linear. difflib's is quadratic in repeated
    # lines, of which unrolled code has many.
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
    # Nothing here is unique. In a long piece the first of the equal lines is paired with the first, the
    # second with the second, and so on.
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
    """Return the longest subsequence whose second places rise as well; the first ones already do."""
    # Patience sorting: for each length of a chain, the smallest place that ends one, and the pair that has
    # it.
    ends: list[int] = []
    last: list[int] = []
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
