"""Each edit: what it makes is Python that names nothing new, and smaller where it says so."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest
from hypothesis import given, settings

from tests.unit.lab.triage.reduce.sources import KERNEL, modules
from tritonsmith.lab.reduce import python_source

pytestmark = [pytest.mark.unit, pytest.mark.filterwarnings("ignore::SyntaxWarning")]  # of `0[1]`, say


def edited(text: str) -> Iterator[str | None]:
    """Everything that any edit makes of a text."""
    yield python_source.needed_only(text, "kernel")
    removable = python_source.removable(text, "kernel")
    yield from (python_source.without(text, [one]) for one in removable)
    yield python_source.without(text, removable)
    yield python_source.without(text, removable[::2])
    yield from (one for _, one in python_source.unwrapped(text, 0))
    yield from python_source.copies(text)
    words = python_source.keywords(text)
    yield from (python_source.without(text, [one]) for one in words)
    yield python_source.without(text, words)
    yield from (one for _, one in python_source.simpler(text, 0))
    yield from (one for _, one in python_source.constants(text, 0))
    yield from python_source.inlined(text)
    for function in ("kernel", "helper", "no_such"):
        yield python_source.without_parameters(
            text, function, python_source.unused_parameters(text, function)
        )
        yield python_source.with_values(
            text, function, {"a": ast.Constant(1), "x": ast.Name("N", ast.Load())}
        )


@pytest.mark.slow
@settings(deadline=None, max_examples=8)
@given(modules())
def test_whatever_is_made_is_python_and_names_nothing_new(text: str) -> None:
    for made in edited(text):
        if made is not None:
            compile(made, "made", "exec")
            assert python_source.unbound(made) <= python_source.unbound(text)


def made(text: str | None) -> str:
    assert text is not None
    return text


def test_only_what_the_kernel_needs() -> None:
    text = made(python_source.needed_only(KERNEL, "kernel"))
    assert "scaled" in text
    assert "torch" not in text
    assert "host" not in text


def test_a_statement_that_others_need_stays_with_them() -> None:
    text = "def f(x):\n    return g(x)\n\n\ndef g(x):\n    return x\n"
    first, *_ = python_source.removable(text, "f", top=True)
    assert python_source.without(text, [first]) is None
    assert python_source.removable(text, "f", top=True) == [first]


def test_the_kernel_stays_and_an_empty_body_passes() -> None:
    text = "def kernel(x):\n    y = x\n"
    assert (
        made(python_source.without(text, python_source.removable(text, "kernel")))
        == "def kernel(x):\n    pass\n"
    )


def test_branches_and_loops() -> None:
    choice = "        if a:\n            b = i\n        else:\n            b = 2\n"
    text = f"def f(a, N):\n    for i in range(4, N, 2):\n{choice}"
    found = [one for _, one in python_source.unwrapped(text, 0) if one]
    assert "def f(a, N):\n    i = 4\n    if a:\n        b = i\n    else:\n        b = 2\n" in found
    assert "def f(a, N):\n    for i in range(4, N, 2):\n        b = i\n" in found
    assert "def f(a, N):\n    for i in range(4, N, 2):\n        b = 2\n" in found
    assert "def f(a, N):\n    for i in range(4, N, 2):\n        if a:\n            b = i\n" in found


def test_a_body_that_breaks_out_of_its_loop_does_not_stand_alone() -> None:
    text = "def f(a):\n    while a:\n        break\n"
    assert [one for _, one in python_source.unwrapped(text, 0)] == [None]


def test_copies_and_equal_values_are_replaced_where_they_are_used() -> None:
    text = "def f(x):\n    y = x\n    z = abs(1)\n    w = abs(1)\n    return y + z + w\n"
    assert list(python_source.copies(text)) == [
        "def f(x):\n    z = abs(1)\n    w = abs(1)\n    return x + z + w\n",
        "def f(x):\n    y = x\n    z = abs(1)\n    return y + z + z\n",
    ]


def test_a_constant_of_the_compile_is_a_copy() -> None:
    text = "def f(x):\n    n: constexpr = 32\n    return x + n\n"
    assert list(python_source.copies(text)) == ["def f(x):\n    return x + 32\n"]


def test_a_name_that_is_bound_twice_is_no_copy_but_may_be_another_name() -> None:
    assert list(python_source.copies("def f(x):\n    y = 1\n    y = 2\n    return y + x\n")) == []
    text = "def f(x):\n    y = x\n    y += 2\n    return y\n"
    assert list(python_source.copies(text)) == ["def f(x):\n    x += 2\n    return x\n"]


def test_decorators_but_jit_and_keywords_may_go() -> None:
    text = made(python_source.without(KERNEL, python_source.keywords(KERNEL)))
    assert "heuristics" not in text
    assert text.count("@triton.jit") == 2
    assert "mask" not in text


def test_expressions_become_operands_and_constants() -> None:
    found = {one for _, one in python_source.simpler("import tl\nx = 5\ny = tl.where(x, x.to(2), -x)\n", 0)}
    ends = {(one or "").splitlines()[-1] for one in found}
    assert ends >= {
        "y = 0",
        "y = x",
        "y = -x",
        "y = x.to(2)",
        "y = tl.where(x, x, -x)",
        "y = tl.where(x, x.to(2))",
    }
    assert not any("y = tl\n" in (one or "") for one in found)


@pytest.mark.parametrize(
    ("value", "tried"),
    [
        (128, (0, 1, 64)),
        (3, (0, 1)),
        (2, (0, 1)),
        (1, (0,)),
        (0, ()),
        (True, ()),
        (0.5, (0.0, 1.0)),
        ("x", ()),
    ],
)
def test_smaller_numbers(value: object, tried: tuple[float, ...]) -> None:
    assert python_source.smaller(value) == tried


def test_a_parameter_goes_with_its_arguments() -> None:
    assert python_source.unused_parameters(KERNEL, "scaled") == ["UNUSED"]
    text = made(python_source.without_parameters(KERNEL, "scaled", ["UNUSED"]))
    assert "def scaled(x, factor):" in text
    assert "scaled(x, 3.5)" in text
    launched = "def k(a, b=1, *, c=2):\n    return c\n\n\nk[1](0, 5, c=3)\n"
    assert (
        python_source.without_parameters(launched, "k", ["a", "b"])
        == "def k(*, c=2):\n    return c\nk[1](c=3)\n"
    )
    assert python_source.without_parameters("def k(a):\n    pass\n\n\nk(*[1])\n", "k", ["a"]) is None


def test_a_value_stands_for_a_parameter() -> None:
    text = made(python_source.with_values(KERNEL, "kernel", {"BLOCK": ast.Constant(64)}))
    assert "tl.arange(0, 64)" in text
    assert "BLOCK" not in text
    assert python_source.with_values("def k(a):\n    a = a + 1\n", "k", {"a": ast.Constant(1)}) is None


def test_a_helper_is_put_in_the_place_of_its_call() -> None:
    (text,) = filter(None, python_source.inlined(KERNEL))
    assert "scaled" not in text
    assert "doubled = x * 2\n        y = doubled * 3.5" in text


def test_names_of_a_helper_do_not_meet_those_of_the_kernel() -> None:
    helper = "def h(x):\n    y = x + 1\n    x = y\n    return x\n"
    text = f"{helper}\n\ndef k(y):\n    z = h(y * 2)\n    return y + z\n"
    assert list(python_source.inlined(text)) == [
        "def k(y):\n    x = y * 2\n    y_2 = x + 1\n    x = y_2\n    z = x\n    return y + z\n"
    ]


def test_a_helper_that_returns_in_the_middle_stays() -> None:
    text = "def h(x):\n    if x:\n        return 1\n    return x\n\n\ndef k(y):\n    z = h(y)\n"
    assert list(python_source.inlined(text)) == []
