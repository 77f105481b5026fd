"""The search for a smaller kernel: candidates, their size, and the order of the edits that are tried."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from tritonsmith.compiler import signature
from tritonsmith.compiler.signature import parse_value
from tritonsmith.core import untrusted
from tritonsmith.lab.reduce import python_source
from tritonsmith.lab.reduce.python_source import Place
from tritonsmith.lab.reduce.shrink import DeltaSearch, Part

# Constants in the place of arguments, by the first letter of their type.
_SCALARS = {"i": 1024, "u": 1024, "f": 1.0, "b": 1.0}
# The nodes that count as size; operators and contexts only come with these.
_COUNTED = (ast.stmt, ast.expr, ast.arg, ast.keyword, ast.alias)


@dataclass(frozen=True)
class KernelCandidate:
    """A file with a kernel.

    Attributes:
        text: of the file.
        entries: parameter and entry of its signature; empty where a command decides.
        options: of the backend, name and value as `values.spell` writes it.
    """

    text: str
    entries: tuple[tuple[str, str], ...] = ()
    options: tuple[tuple[str, str], ...] = ()

    @property
    def signature(self) -> str:
        """The value of `--signature`."""
        return ",".join(f"{name}={entry}" for name, entry in self.entries)


@dataclass(frozen=True, order=True)
class CandidateSize:
    """The size of a candidate; the first field that differs decides.

    Attributes:
        nodes: number of nodes of its tree, and of options.
        names: number of names that are read or bound, as a constant is simpler.
        digits: binary digits of its constants, and of those of the signature.
        characters: of the text and the signature.
    """

    nodes: int
    names: int
    digits: int
    characters: int


@dataclass(frozen=True)
class SourceCounts:
    """The counts that a report shows.

    Attributes:
        lines: lines that are neither blank nor a comment.
        statements: statements of all functions and of the module.
        arguments: arguments of the kernel.
    """

    lines: int
    statements: int
    arguments: int


def size_of(candidate: KernelCandidate) -> CandidateSize:
    """Measure a candidate."""
    nodes = list(ast.walk(untrusted.parse(candidate.text)))
    counted = sum(isinstance(node, _COUNTED) for node in nodes)
    digits = [_digits(node.value) for node in nodes if isinstance(node, ast.Constant)]
    digits += [_digits(parse_value(entry)) for _, entry in candidate.entries if not entry.startswith("*")]
    return CandidateSize(
        counted + len(candidate.options),
        sum(isinstance(node, ast.Name) for node in nodes),
        sum(digits),
        len(candidate.text) + len(candidate.signature),
    )


def counts(text: str, kernel: str) -> SourceCounts:
    """Count lines and arguments for a report; no arguments where the kernel's head cannot be found."""
    tree = untrusted.parse(text)
    lines = [line.strip() for line in text.splitlines()]
    heads = [
        node.args for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == kernel
    ]
    return SourceCounts(
        sum(bool(line) and not line.startswith("#") for line in lines),
        sum(isinstance(node, ast.stmt) for node in ast.walk(tree)),
        sum(len(head.posonlyargs) + len(head.args) + len(head.kwonlyargs) for head in heads[:1]),
    )


def _digits(value: Any) -> int:
    if isinstance(value, int):  # True and False, too
        return abs(value).bit_length()
    if isinstance(value, float) and math.isfinite(value):  # 0 and 1 are plain, all others alike
        return 1 + 2 * (value not in (0.0, 1.0)) if value else 0
    return 0


_Move = Part[KernelCandidate, bool]


class KernelSearch(DeltaSearch[KernelCandidate]):
    """Shrinks a kernel's file while a symptom stays: see `DeltaSearch`.

    Args:
        start: a candidate that shows it.
        kernel: name of the function that is compiled; empty where a command decides, so any function may go.
        jobs: number of candidates that are tested at once.
        on_better: called with each smaller candidate, and the number of tries.
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
        # What removes most comes first. Sizes are halved early, as smaller tiles make later tests quicker.
        return (
            self._needed,
            partial(self._statements, top=True),
            self._sizes,
            self._statements,
            self._keywords,
            partial(self._onward, python_source.unwrapped),
            partial(self._texts, python_source.inlined),
            self._unused,
            partial(self._onward, python_source.simpler),
            partial(self._texts, python_source.copies),
            self._merged,
            partial(self._onward, python_source.constants),
            self._options,
            self._valued,
        )

    def _needed(self) -> _Move:
        """Remove what the kernel does not need of its module."""
        if not self._kernel:
            return False
        return (
            yield from self._repeat(
                lambda best: [self._with(python_source.needed_only(best.text, self._kernel))]
            )
        )

    def _statements(self, *, top: bool = False) -> _Move:
        """Remove statements, users first."""
        text = self.best.text
        # Numbers of nodes in this very text, which is no longer the best one once something was removed.
        items = python_source.removable(text, self._kernel, top=top)
        return self._delta(items, lambda gone: self._with(python_source.without(text, gone)))

    def _keywords(self) -> _Move:
        """Remove keyword arguments and decorators."""
        text = self.best.text
        return self._delta(
            python_source.keywords(text), lambda gone: self._with(python_source.without(text, gone))
        )

    def _sizes(self) -> _Move:
        """Halve the constants of the signature: all at once, then one by one."""
        return self._repeat(_halved)

    def _options(self) -> _Move:
        """Remove options of the backend."""
        return self._repeat(
            lambda best: [replace(best, options=_others(best.options, option)) for option in best.options]
        )

    def _unused(self) -> _Move:
        """Remove unused parameters of all functions."""
        changed = False
        for function in python_source.functions(untrusted.parse(self.best.text)):
            best, name = self.best, function.name
            items = python_source.unused_parameters(best.text, name)
            make = partial(self._without_parameters, best, name)
            changed = (yield from self._delta(items, make)) or changed
        return changed

    def _without_parameters(
        self, best: KernelCandidate, function: str, gone: Sequence[str]
    ) -> KernelCandidate | None:
        # Only the kernel has a signature; of a helper, only the head and its calls change.
        entries = [entry for entry in best.entries if function != self._kernel or entry[0] not in gone]
        return _made(best, python_source.without_parameters(best.text, function, gone), entries)

    def _merged(self) -> _Move:
        """Make one parameter of two with the same type."""
        return self._repeat(self._merge)

    def _merge(self, best: KernelCandidate) -> Iterator[KernelCandidate | None]:
        for number, (name, entry) in enumerate(best.entries):
            # The later one goes, so that each pair comes once.
            for other, same in best.entries[:number]:
                if same == entry:
                    yield self._in_place(best, name, ast.Name(other, ast.Load()))

    def _valued(self) -> _Move:
        """Replace parameters of the kernel by constants."""
        # Last: a size in the signature is halved at all its uses at once, and a constant at each alone.
        return self._repeat(self._values)

    def _values(self, best: KernelCandidate) -> Iterator[KernelCandidate | None]:
        for name, entry in best.entries:
            # Of an argument, `{}` stands for a type that has no constant, such as a pointer.
            value = signature.parse_value(entry)
            if isinstance(value, str) and entry[:1] not in "'\"":
                value = _SCALARS.get(entry[:1], {})
            if value is None or isinstance(value, (bool, int, float, str)):
                yield self._in_place(best, name, ast.Constant(value))

    def _in_place(self, best: KernelCandidate, name: str, value: ast.expr) -> KernelCandidate | None:
        text = python_source.with_values(best.text, self._kernel, {name: value})
        return _made(best, text, [entry for entry in best.entries if entry[0] != name])

    def _texts(self, candidates: Callable[[str], Iterable[str | None]]) -> _Move:
        return self._repeat(lambda best: map(self._with, candidates(best.text)))

    def _onward(self, candidates: Callable[[str, int], Iterator[Place]]) -> _Move:
        """Make single changes, going on from the place of each that is taken."""
        # Not from the start: what was refused before this place is likely refused again.
        begin, changed = 0, False
        while True:
            places: list[int] = []

            def each(begin: int = begin, places: list[int] = places) -> Iterator[KernelCandidate | None]:
                for place, text in candidates(self.best.text, begin):
                    places.append(place)
                    yield self._with(text)

            def after(
                hit: int, taken: KernelCandidate, places: list[int] = places
            ) -> Iterator[KernelCandidate | None]:
                return (self._with(text) for _, text in candidates(taken.text, places[hit]))

            hit = yield from self._first(each(), after)
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
    # Tiles whose sizes have to agree can only shrink together.
    each = {name: half for name, entry in best.entries if (half := _half(entry))}
    for names in [list(each), *([name] for name in each)]:
        entries = ((name, each[name] if name in names else entry) for name, entry in best.entries)
        yield replace(best, entries=tuple(entries))


def _half(entry: str) -> str:
    """Return half of a size; empty for what is none."""
    value = signature.parse_value(entry)
    whole = isinstance(value, int) and not isinstance(value, bool)
    return str(value // 2) if whole and value > 1 else ""


def _others(options: tuple[tuple[str, str], ...], gone: tuple[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(option for option in options if option != gone)
