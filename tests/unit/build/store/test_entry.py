from __future__ import annotations

import json

import pytest

from tests.unit.build.store import made
from tritonsmith.build.store.entry import Closure, Compiler, is_name, parse


def test_a_manifest_is_read_as_it_was_written() -> None:
    written = made.manifest(closures=(Closure(made.TRITON, "closure"),), scope="closure", bytes=12)
    assert parse(written.render()) == written


def test_what_a_later_version_adds_is_passed_over() -> None:
    seen = json.loads(made.manifest().render())
    seen["news"] = 1
    seen["abi"]["news"] = 1
    assert parse(json.dumps(seen)) == made.manifest()


@pytest.mark.parametrize(
    "change",
    [{"schema": 2}, {"name": "../up"}, {"kind": "stolen"}, {"tree": 3}, {"compiler": 3}, {"closures": [3]}],
)
def test_anything_else_is_none(change: dict[str, object]) -> None:
    seen = json.loads(made.manifest().render())
    with pytest.raises(ValueError, match="manifest"):
        parse(json.dumps({**seen, **change}))


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"schema": 1}'])
def test_neither_is_a_text_that_is_no_table(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - json's own words
        parse(text)


def test_a_name_says_what_it_is_and_differs_where_the_key_does() -> None:
    plain = made.key()
    assert plain.name.startswith("0123456789ab-Release-asserts-")
    changes = (
        {"diff": "d"},
        {"options": ()},
        {"compiler": Compiler("", "GNU", "12")},
        {"libstdcxx": "3.4.30"},
        {"linker": "lld 19"},
    )
    assert len({made.key(**change).name for change in changes} | {plain.name}) == len(changes) + 1


def test_neither_the_order_of_options_nor_the_place_of_the_compiler_matters() -> None:
    options = (("A", "1"), ("B", "2"))
    one = made.key(options=options, compiler=Compiler("/usr/bin/clang++", "Clang", "19"))
    other = made.key(options=options[::-1], compiler=Compiler("/opt/clang++", "Clang", "19"))
    assert one.name == other.name


def test_sources_without_a_commit_give_a_name_too() -> None:
    name = made.key(source="llvm project (19) äö/", assertions=False).name
    assert name.startswith("llvm-project-19-Release-")
    assert is_name(name)


@pytest.mark.parametrize("name", ["", ".", "..", ".hidden", "a/b", "-rf", "a b", "a\nb", "*"])
def test_what_is_no_name(name: str) -> None:
    assert not is_name(name)
