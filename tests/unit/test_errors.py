from __future__ import annotations

import pytest

from tritonsmith.build.suites.command import NothingRunError
from tritonsmith.check.against import NoIrError
from tritonsmith.core import errors
from tritonsmith.core.errors import SmithError, did_you_mean
from tritonsmith.lab.bisect.stages import NotReproducedError


def kinds(kind: type[SmithError] = SmithError) -> list[type[SmithError]]:
    return [kind, *(below for child in kind.__subclasses__() for below in kinds(child))]


def test_text_says_what_where_why_and_what_to_try() -> None:
    error = SmithError("it broke", where="/x", why="because\nof this", hints=("do a", "do b"))
    assert str(error).splitlines() == [
        "it broke",
        "  where: /x",
        "  why:   because",
        "         of this",
        "Things to try:",
        "  - do a",
        "  - do b",
    ]


def test_parts_that_are_unknown_are_left_out() -> None:
    assert str(SmithError("it broke")) == "it broke"
    assert SmithError("it broke").where is None


_MANY = [f"n{number:02}" for number in range(31)]


@pytest.mark.parametrize("kind", kinds())
def test_exit_codes(kind: type[SmithError]) -> None:
    special = {
        errors.UsageError: 2,
        NotReproducedError: 4,
        errors.UndecidedError: 5,
        NoIrError: 5,
        NothingRunError: 6,
        errors.InterruptedRunError: 130,
    }
    assert kind.exit_code == special.get(kind, 1)


@pytest.mark.parametrize(
    ("name", "known", "hints"),
    [
        ("dctor", ["doctor", "up"], ("did you mean 'doctor'?", "known names: doctor, up")),
        ("zzz", ["doctor", "up"], ("known names: doctor, up",)),
        ("n7x", [f"n{number}" for number in range(31)], ("did you mean 'n7'?",)),
        ("zzz", [f"n{number:02}" for number in range(31)], (f"known names: {', '.join(_MANY)}",)),
        ("x", [], ("no known names",)),
        ("", ["a"], ("known names: a",)),
    ],
)
def test_did_you_mean(name: str, known: list[str], hints: tuple[str, ...]) -> None:
    assert did_you_mean(name, iter(known)) == hints
