"""The subject of experiments under test: it answers from a table, counts its tests, and may be killed."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

import pytest

from tritonsmith.compiler.tritons import Triton
from tritonsmith.lab import journal
from tritonsmith.lab.experiment import Change
from tritonsmith.lab.journal import Journal, Observation, Verdict

A = TypeVar("A")


class KilledError(Exception):
    """The process is gone."""


@dataclass(frozen=True)
class FakeChange:
    """A change that is nothing but its name."""

    name: str


def unexpected(name: str) -> Any:
    """The rule of a subject whose table has everything."""
    raise AssertionError(f"nobody was to test {name}")


@dataclass
class FakeSubject(Generic[A]):
    """A subject that needs no compiler.

    Attributes:
        rule: the answer to a name that the table does not have.
        answers: the table. Of an iterator, each test takes the next answer: so a subject is flaky.
        lives: tests before the one that is killed; none is if it is negative.
        killed: what ends that one.
        tested: the names, in order.
    """

    rule: Callable[[str], A]
    answers: Mapping[str, A | Iterator[A]] = field(default_factory=dict)
    lives: int = -1
    killed: BaseException | type[BaseException] = KilledError
    tested: list[str] = field(default_factory=list)

    def ask(self, name: str) -> A:
        """Test one thing by its name."""
        # Of tests at once, two may have passed this line before: so it is no equality.
        if 0 <= self.lives <= len(self.tested):
            raise self.killed
        self.tested.append(name)
        answer = self.answers[name] if name in self.answers else self.rule(name)
        return next(answer) if isinstance(answer, Iterator) else answer

    def test(self, tested: Triton | Change) -> A:
        """Test a Triton by its label, or a change by its name."""
        return self.ask(tested.label if isinstance(tested, Triton) else tested.name)

    def each(self, changes: Iterable[Change]) -> Iterator[A]:
        """Test changes one after the other, as the loop of an experiment wants them tested."""
        return map(self.test, changes)

    def outcomes(self, tritons: Iterable[Triton]) -> Generator[tuple[Triton, A], None, None]:
        """Test Tritons one after the other, as a bisect wants them tested."""
        return ((triton, self.test(triton)) for triton in tritons)


def bad_from(names: Iterable[str], culprit: int) -> dict[str, Observation]:
    """The table in which the names from a number on are bad."""
    verdicts = (Verdict.BAD if number >= culprit else Verdict.GOOD for number, _ in enumerate(names))
    return dict(zip(names, map(Observation, verdicts), strict=True))


def quiet(_name: str, _seen: Observation) -> None:
    """Tell nobody of a test."""


def begin(path: Path, **more: object) -> Journal:
    """A new journal on disk."""
    notes = Journal(path, "key", **more)  # type: ignore[arg-type]
    notes.begin()
    return notes


def read(path: Path, **more: bool) -> Journal:
    """The journal on disk."""
    notes = journal.read(path, **more)
    assert notes is not None
    return notes


def stop(notes: Journal, run: Callable[[Journal], object]) -> Journal:
    """Run an experiment until its subject is killed; what the next run reads is the result."""
    assert notes.path
    with pytest.raises(KilledError):
        run(notes)
    return read(notes.path)
