from __future__ import annotations

import pytest

from tritonsmith.core.text import (
    byte_size,
    describe_changed_words,
    duration,
    entry_count,
    short_age,
    split_outside_brackets,
    version_key,
)


@pytest.mark.parametrize(
    ("text", "key"),
    [("3.4.30", (3, 4, 30)), ("3.10", (3, 10)), ("v2.1.0-rc1", (2, 1, 0, 1)), ("19", (19,)), ("main", ())],
)
def test_version_key(text: str, key: tuple[int, ...]) -> None:
    assert version_key(text) == key


def test_versions_sort_as_numbers() -> None:
    assert sorted(["3.10", "3.9", "3.9.1"], key=version_key) == ["3.9", "3.9.1", "3.10"]


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
def test_split_outside_brackets(text: str, separator: str, parts: list[str]) -> None:
    assert split_outside_brackets(text, separator) == parts


def test_either_quote_may_count() -> None:
    assert split_outside_brackets("'a,b',\"c,d\"", ",", quotes="'\"") == ["'a,b'", '"c,d"']


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0.0 s"),
        (0.44, "0.4 s"),
        (59.9, "59.9 s"),
        (60, "1 min 00 s"),
        (125.4, "2 min 05 s"),
        (3599.6, "1 h 00 min"),
        (3720, "1 h 02 min"),
        (90_000, "25 h 00 min"),
    ],
)
def test_duration(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (3 << 20, "3.0 MiB"), (5 << 40, "5.0 TiB")],
)
def test_sizes(count: int, text: str) -> None:
    assert byte_size(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(-5, "0 s"), (59, "59 s"), (60, "1 min"), (7200, "2 h"), (86400 * 40, "40 d")]
)
def test_ages(seconds: float, text: str) -> None:
    assert short_age(seconds) == text


def test_entries() -> None:
    assert [entry_count(count) for count in (0, 1, 2)] == ["0 entries", "1 entry", "2 entries"]


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("-O0 -g -c", "-O0 -gsplit-dwarf -c", "-g -> -gsplit-dwarf"),
        ("-O0 -c", "-O0 -DNDEBUG -c", "+ -DNDEBUG"),
        ("-Wall -O0", "-O0", "without -Wall"),
        ("-Wall -O0 -g", "-O2 -g -fPIC", "-Wall -O0 -> -O2; + -fPIC"),
        ("a b", "a b", "nothing"),
    ],
)
def test_changed_words(before: str, after: str, words: str) -> None:
    assert describe_changed_words(before.split(), after.split()) == words
