"""Operations cut out of a text; who used what they made uses a new argument of the function."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence

from tritonsmith.ir.ir_text import MODULE, IrText, Op, bracketed, scope
from tritonsmith.lab.reduce import text_edits
from tritonsmith.lab.reduce.reductions import result_types
from tritonsmith.lab.reduce.text_edits import Edit

_VALUE = re.compile(r"(%[\w$\-]+(?:\.\w+)*)(?:#(\d+))?")
_Use = tuple[int, int, int]  # begin, end, which of the results


class Cutter:
    """Cuts operations out of one source."""

    def __init__(self, source: IrText) -> None:
        self._source = source
        self._ops = source.ops()
        self._begins = [op.begin for op in self._ops]
        self._parents = {inner: op for op in self._ops for region in op.regions for inner in region.ops}
        self._types: dict[Op, tuple[str, ...] | None] = {}
        self._named: dict[str, list[_Use]] = defaultdict(list)
        for match in _VALUE.finditer(source.text):
            self._named[match[1]].append((match.start(), match.end(), int(match[2] or 0)))

    @property
    def items(self) -> tuple[Op, ...]:
        """Return the operations that can be cut out: no module, and no terminator of a block."""
        return tuple(op for op in self._ops if op.name not in MODULE and not op.terminator)

    def left(self, ops: Sequence[Op], gone: Iterable[Op]) -> list[Op]:
        """Return the operations that do not go with one of the others."""
        cut = set(gone)
        return [op for op in ops if op not in cut and not self._covered(op, cut)]

    def cut(self, ops: Iterable[Op]) -> str | None:
        """The text without these operations; None if it cannot be without them."""
        gone = set(ops)
        while True:
            more, arguments, renamed = self._patch(gone)
            if more is None:
                return None
            if not more:
                break
            gone |= more
        spans = [Edit(op.begin, op.end) for op in gone]
        added = [argument(self._source.text, function, texts) for function, texts in arguments.items()]
        if None in added:
            return None
        return text_edits.apply(self._source.text, [*spans, *renamed, *(one for one in added if one)])

    def _patch(self, gone: set[Op]) -> tuple[set[Op] | None, dict[Op, list[str]], list[Edit]]:
        """Operations that have to go too, or None; new arguments of functions; uses that change."""
        arguments: dict[Op, list[str]] = defaultdict(list)
        renamed: list[Edit] = []
        more: set[Op] = set()
        outer = sorted((op for op in gone if not self._covered(op, gone)), key=lambda op: op.begin)
        spans = [(op.begin, op.end) for op in outer]
        begins = [begin for begin, _ in spans]
        fresh = 0
        for op in outer:
            left = [use for use in self._uses(op) if not _within(use[1][0], begins, spans)]
            if not left:
                continue
            function = self._function(op)
            known = self._known(op)
            if known is None or function is None:
                users = {self._at(use[0]) for _, use in left}
                if any(user is None or user.terminator for user in users):
                    return None, {}, []
                more |= {user for user in users if user}
                continue
            names: dict[int, str] = {}
            for number, (begin, end, _) in left:
                if number >= len(known):
                    return None, {}, []
                if number not in names:
                    while f"%cut{fresh}" in self._named:
                        fresh += 1
                    names[number] = f"%cut{fresh}"
                    fresh += 1
                    arguments[function].append(f"{names[number]}: {known[number]}")
                renamed.append(Edit(begin, end, names[number]))
        return more, arguments, renamed

    def _covered(self, op: Op, gone: set[Op]) -> bool:
        """Report whether an operation is inside one of these."""
        one = self._parents.get(op)
        while one is not None and one not in gone:
            one = self._parents.get(one)
        return one is not None

    def _uses(self, op: Op) -> Iterable[tuple[int, _Use]]:
        """Yield the uses of an operation's results: the result's number, and the place."""
        first = 0
        begin, end = scope(op)
        for name, count in op.results:
            for use in self._named[name]:
                if begin <= use[0] < end and not op.begin <= use[0] < op.end:
                    yield first + use[2], use
            first += count

    def _known(self, op: Op) -> tuple[str, ...] | None:
        if op not in self._types:
            self._types[op] = result_types.results(op, self._source.text)
        return self._types[op]

    def _function(self, op: Op) -> Op | None:
        one: Op | None = op
        while one is not None and not one.function:
            one = self._parents.get(one)
        return one

    def _at(self, offset: int) -> Op | None:
        """The innermost operation that has this place in its own text."""
        at = bisect_right(self._begins, offset) - 1
        one: Op | None = self._ops[at] if at >= 0 else None
        while one is not None and offset >= one.end:
            one = self._parents.get(one)
        return one


def arguments(text: str, function: Op) -> tuple[int, int] | None:
    """Return the offsets of a function's arguments, between the brackets; None if it has none of its own."""
    at = function.head.find("(", max(function.head.find("@"), 0))
    return bracketed(text, function.begin + at, function.end) if at >= 0 else None


def argument(text: str, function: Op, added: Sequence[str]) -> Edit | None:
    """The change that gives a function more arguments; None if it has no list of them."""
    found = arguments(text, function)
    if found is None:
        return None
    comma = ", " if text[found[0] : found[1]].strip() else ""
    return Edit(found[1], found[1], comma + ", ".join(added))


def _within(offset: int, begins: Sequence[int], spans: Sequence[tuple[int, int]]) -> bool:
    at = bisect_right(begins, offset) - 1
    return at >= 0 and offset < spans[at][1]
