"""TableGen files that are not well-formed are read once, from the beginning to the end."""

from __future__ import annotations

import pytest

from tritonsmith.atlas import tablegen

pytestmark = pytest.mark.unit

OP = 'def D_Dialect : Dialect { let name = "d"; }\ndef A_Op : Op<D_Dialect, "a"> { let summary = "one"; }\n'
MANY = 100_000


class OneFile:
    """A tree of one file."""

    def __init__(self, text: str) -> None:
        self._text = text

    def having(self, _suffix: str) -> list[str]:
        return ["a.td"]

    def text(self, _name: str) -> str:
        return self._text


@pytest.mark.parametrize(
    "rest", ["/* ", "[{ ", "class a< ", "class a { ", 'let x = "', "class b { let x = ( "]
)
def test_what_is_opened_and_never_closed_hides_nothing_before_it(rest: str) -> None:
    """In time that is proportional to the text: otherwise this takes hours."""
    found = tablegen.read_td(OneFile(OP + rest * MANY))  # type: ignore[arg-type]
    assert [one.name for one in found if one.kind == "op"] == ["d.a"]


def test_parameters_that_double_in_class_upon_class_are_left_as_they_are() -> None:
    classes = "".join(f"class C{at + 1}<string a> : C{at}<a # a>;\n" for at in range(60))
    found = tablegen.read_td(OneFile(f"class C0<string a> : Op<D, a>;\n{classes}def X : C60<zzzz>;\n"))  # type: ignore[arg-type]
    assert [one.record for one in found] == ["X"]
    assert len(found[0].name) < 1 << 20
