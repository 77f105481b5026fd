"""Command lines of all tasks, read and written again by Invoke's own parser."""

from __future__ import annotations

import sys
from dataclasses import MISSING
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from invoke.exceptions import ParseError

from tritonsmith.cli.tasks import namespace
from tritonsmith.cli.tasks.option_fields import Option, OptionTask, OutFile, flag, from_argv, to_argv, word
from tritonsmith.cli.tasks.task import task


def _values(option: Option, texts: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    """Every value that an option can have."""
    named = texts.filter(bool)
    listed = st.lists(named.map(lambda text: text.translate(_NO_LIST).strip()).filter(bool)).map(tuple)
    paths = st.lists(named.map(lambda text: text.replace("/", "")), min_size=1).map(
        lambda parts: Path("/", *parts)
    )
    found: st.SearchStrategy[Any] = {
        "str": texts,
        "str | None": texts,
        "bool": st.booleans(),
        "bool | None": st.booleans(),
        "int | None": st.integers(option.least, 999_999_999),
        "float | None": st.integers(1, 10**9).map(lambda number: number / 1000),
        "Path": paths,
        "Path | None": paths,
        "OutFile | None": named.map(OutFile),
        "CommaList": listed,
        "CommaLists": listed,
        "tuple[str, ...]": st.lists(texts).map(tuple),
    }[option.kind]
    return found | st.none() if option.kind.endswith("None") else found


@cache
def _options_of(name: str) -> tuple[tuple[Option, st.SearchStrategy[Any]], ...]:
    """The options of a task with their values: hypothesis checks a strategy that it knows no second time."""
    made = namespace.every[name]
    taken = {flag for one in made.arguments([]) for flag in (f"--{one.names[0]}", *one.names)}
    # Invoke takes a value that is called like a flag of the task for that flag, however it is written
    texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])).filter(
        lambda text: text not in taken
    ) | st.sampled_from(["-", "--", "-h", "--help", "-x", "a b", "=", "-x=1", "doctor", ""])
    return tuple((option, _values(option, texts)) for option in made.options)


_NO_LIST = dict.fromkeys(map(ord, ",;"), "_")


# A few for each of some 80 tasks: their options are of the same dozen kinds, so each kind gets hundreds.
@settings(max_examples=7, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
@pytest.mark.parametrize("name", sorted(namespace.every))
def test_what_is_written_is_read(name: str, data: st.DataObject) -> None:
    made: OptionTask = namespace.every[name]
    groups: dict[str, tuple[type, dict[str, Any]]] = {}
    values: dict[str, Any] = {}
    for option, strategy in _options_of(name):
        value = data.draw(strategy, label=option.name)
        if option.group_class:
            groups.setdefault(option.group, (option.group_class, {}))[1][option.name] = value
        else:
            values[option.name] = value
    values |= {name: group(**fields) for name, (group, fields) in groups.items()}
    assert from_argv(made, to_argv(made, values)) == values


@pytest.mark.parametrize("name", sorted(namespace.every))
def test_what_has_its_default_is_not_written(name: str) -> None:
    made: OptionTask = namespace[name]
    words = [option for option in made.options if option.default is MISSING]
    argv = to_argv(made, {option.name: Path("/x") if option.kind == "Path" else "x" for option in words})
    written = {argv[number] for number in range(len(words), len(argv), 2)}
    assert written <= {option.flag for option in made.options if option.default}


@task()
def sample(
    context: object,
    folder: str = word("a"),
    number: str = word("b", ""),
    to: str = word("c", ""),
    kernel: str = flag("d", ""),
    max_lines: int | None = flag("e", None),
    json: bool = flag("f", default=False),
) -> None:
    """Nothing."""


sample.typed = "sample"


@pytest.mark.parametrize(
    ("words", "positional"),
    [
        ([], ["folder"]),
        (["DIR"], ["folder"]),
        (["DIR", "12"], ["folder", "number"]),
        (["DIR", "12", "14"], ["folder", "number", "to"]),
        (["--kernel", "mm", "DIR"], ["folder"]),
        (["DIR", "--max-lines", "9", "12", "--json"], ["folder", "number"]),
        (["DIR", "--kernel=mm", "12"], ["folder", "number"]),
        (["DIR", "--json", "12"], ["folder", "number"]),
        (["--folder", "DIR", "12"], ["folder", "number"]),
        (["DIR", "--number=12", "14"], ["folder", "to"]),
        (["-"], ["folder"]),
        (["--help"], []),
        (["DIR", "-h"], ["folder"]),
        (["DIR", "12", "--help"], ["folder", "number"]),
    ],
)
def test_words_that_may_be_left_out(words: list[str], positional: list[str]) -> None:
    assert [one.name for one in sample.arguments(words) if one.positional] == positional


@pytest.mark.parametrize(
    ("argv", "positional"),
    [
        (["sample", "DIR", "12"], ["folder", "number"]),
        (["--echo", "sample", "DIR", "12", "--", "python", "script.py"], ["folder", "number"]),
        (["sample", "DIR", "--", "--help"], ["folder"]),
        (["doctor", "--only", "tools"], ["folder"]),
    ],
)
def test_the_words_of_this_process(
    argv: list[str], positional: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["tritonsmith", *argv])
    assert [one.name for one in sample.get_arguments() if one.positional] == positional


def test_a_command_line_that_the_task_does_not_take() -> None:
    with pytest.raises(ParseError):
        from_argv(sample, ["DIR", "--no-such-flag"])
    with pytest.raises(ParseError):
        from_argv(sample, [])
    with pytest.raises(ParseError):
        from_argv(sample, ["DIR", "1", "2", "--json", "sample"])


def test_a_word_that_looks_like_a_flag_is_named() -> None:
    assert to_argv(sample, {"folder": "-x", "number": "12"}) == ["--folder=-x", "--number", "12"]
    assert to_argv(sample, {"folder": "DIR", "to": "14"}) == ["DIR", "--to", "14"]
