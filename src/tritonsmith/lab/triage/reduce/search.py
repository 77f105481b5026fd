"""The search for a smaller kernel: what is tried, in the order of what it is worth."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from tritonsmith.compiler import signature
from tritonsmith.lab.reduce.delta_search import DeltaSearch, Part
from tritonsmith.lab.triage.reduce.candidate import KernelCandidate, size_of
from tritonsmith.lab.triage.reduce.edits import expressions, helpers, parameters, statements, tree
from tritonsmith.lab.triage.reduce.edits.statements import Place

_Move = Part[KernelCandidate, bool]
_SCALARS = {"i": 1024, "u": 1024, "f": 1.0, "b": 1.0}  # what an argument is replaced by, by its type


class KernelSearch(DeltaSearch[KernelCandidate]):
    """Shrinks a kernel's file while a symptom stays: see `DeltaSearch`.

    Args:
        start: which shows it.
        kernel: name of the function that is compiled; empty where a command decides, so any function may go.
        jobs: how many.
        on_better: called with each candidate that is better than the last.
    """

    def __init__(
        self,
        start: KernelCandidate,
        kernel: str,
        *,
        jobs: int = 1,
        on_better: Callable[[KernelCandidate, int], None] = lambda *_: None,
    ) -> None:
        super().__init__(start, size_of, jobs=jobs, on_better=on_better)
        self._kernel = kernel

    def moves(self) -> Sequence[Callable[[], _Move]]:
        """See `DeltaSearch`."""
        return (
            self._needed,
            partial(self._statements, top=True),
            self._sizes,
            self._statements,
            self._keywords,
            partial(self._onward, statements.unwrapped),
            partial(self._texts, helpers.inlined),
            self._unused,
            partial(self._onward, expressions.simpler),
            partial(self._texts, statements.copies),
            self._merged,
            partial(self._onward, expressions.constants),
            self._options,
            self._valued,
        )

    # ------------------------------------------------------------ moves

    def _needed(self) -> _Move:
        """Only what the kernel needs of its module."""
        if not self._kernel:
            return False
        return (
            yield from self._repeat(
                lambda best: [self._with(statements.needed_only(best.text, self._kernel))]
            )
        )

    def _statements(self, *, top: bool = False) -> _Move:
        """Statements, users first."""
        text = self.best.text
        items = statements.removable(text, self._kernel, top=top)
        return self._delta(items, lambda gone: self._with(tree.without(text, gone)))

    def _keywords(self) -> _Move:
        """Keyword arguments, and decorators."""
        text = self.best.text
        return self._delta(expressions.keywords(text), lambda gone: self._with(tree.without(text, gone)))

    def _sizes(self) -> _Move:
        """Constants of the signature halved: all at once, then one by one."""
        return self._repeat(_halved)

    def _options(self) -> _Move:
        """Options of the backend."""
        return self._repeat(
            lambda best: [replace(best, options=_others(best.options, one)) for one in best.options]
        )

    def _unused(self) -> _Move:
        """Parameters that nothing uses, of all functions."""
        changed = False
        for function in tree.functions(ast.parse(self.best.text)):
            best, name = self.best, function.name
            items = parameters.unused(best.text, name)
            make = partial(self._without_parameters, best, name)
            changed = (yield from self._delta(items, make)) or changed
        return changed

    def _without_parameters(
        self, best: KernelCandidate, function: str, gone: Sequence[str]
    ) -> KernelCandidate | None:
        entries = [one for one in best.entries if function != self._kernel or one[0] not in gone]
        return _made(best, parameters.without(best.text, function, gone), entries)

    def _merged(self) -> _Move:
        """Two parameters of the kernel with the same type become one."""
        return self._repeat(self._merge)

    def _merge(self, best: KernelCandidate) -> Iterator[KernelCandidate | None]:
        for number, (name, entry) in enumerate(best.entries):
            for other, same in best.entries[:number]:
                if same == entry:
                    yield self._in_place(best, name, ast.Name(other, ast.Load()))

    def _valued(self) -> _Move:
        """Parameters of the kernel become constants; last: sizes in the signature are halved at all uses."""
        return self._repeat(self._values)

    def _values(self, best: KernelCandidate) -> Iterator[KernelCandidate | None]:
        for name, entry in best.entries:
            value = signature.parse_value(entry)
            if isinstance(value, str) and entry[:1] not in "'\"":
                value = _SCALARS.get(entry[:1], {})
            if value is None or isinstance(value, (bool, int, float, str)):
                yield self._in_place(best, name, ast.Constant(value))

    def _in_place(self, best: KernelCandidate, name: str, value: ast.expr) -> KernelCandidate | None:
        text = parameters.valued(best.text, self._kernel, {name: value})
        return _made(best, text, [one for one in best.entries if one[0] != name])

    # ------------------------------------------------------------ how they are tried

    def _texts(self, candidates: Callable[[str], Iterable[str | None]]) -> _Move:
        return self._repeat(lambda best: map(self._with, candidates(best.text)))

    def _onward(self, candidates: Callable[[str, int], Iterator[Place]]) -> _Move:
        """Single changes, on from the place of each that is taken."""
        begin, changed = 0, False
        while True:
            places: list[int] = []

            def each(begin: int = begin, places: list[int] = places) -> Iterator[KernelCandidate | None]:
                for place, text in candidates(self.best.text, begin):
                    places.append(place)
                    yield self._with(text)

            hit = yield from self._first(each())
            if hit is None:
                return changed
            begin, changed = places[hit], True

    def _with(self, text: str | None) -> KernelCandidate | None:
        return _made(self.best, text, self.best.entries)


def _made(
    best: KernelCandidate, text: str | None, entries: Iterable[tuple[str, str]]
) -> KernelCandidate | None:
    return None if text is None else replace(best, text=text, entries=tuple(entries))


def _halved(best: KernelCandidate) -> Iterator[KernelCandidate]:
    each = {name: half for name, entry in best.entries if (half := _half(entry))}
    for names in [list(each), *([name] for name in each)]:
        entries = ((name, each[name] if name in names else entry) for name, entry in best.entries)
        yield replace(best, entries=tuple(entries))


def _half(entry: str) -> str:
    """Half of a size; nothing for what is none."""
    value = signature.parse_value(entry)
    whole = isinstance(value, int) and not isinstance(value, bool)
    return str(value // 2) if whole and value > 1 else ""


def _others(options: tuple[tuple[str, str], ...], gone: tuple[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(one for one in options if one != gone)
