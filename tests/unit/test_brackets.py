from __future__ import annotations

import pytest

from tritonsmith.core import command_line


@pytest.mark.parametrize(
    ("text", "separator", "parts"),
    [
        ("", ",", [""]),
        ("a, b", ",", ["a", "b"]),
        ("tensordesc<fp16[128,64]>,(i32,1)", ",", ["tensordesc<fp16[128,64]>", "(i32,1)"]),
        ('any(cse,"a,b"),inline{x="}"}', ",", ['any(cse,"a,b")', 'inline{x="}"}']),
        (r'"a\",b",c', ",", [r'"a\",b"', "c"]),
        ("(f32) -> i32, x", ",", ["(f32) -> i32", "x"]),
        ("(f32) -> (i32, i32)", "->", ["(f32)", "(i32, i32)"]),
        ("%0 = op %1 : i32 : f32", " : ", ["%0 = op %1", "i32", "f32"]),
        ("a), b", ",", ["a)", "b"]),
        ("it's, b", ",", ["it's", "b"]),
    ],
)
def test_split(text: str, separator: str, parts: list[str]) -> None:
    assert command_line.split(text, separator) == parts


def test_either_quote_may_count() -> None:
    assert command_line.split("'a,b',\"c,d\"", ",", quotes="'\"") == ["'a,b'", '"c,d"']
