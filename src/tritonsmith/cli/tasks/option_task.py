"""A task whose parameters declare its options, and the parser and formatter of its command lines."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING
from functools import cached_property
from typing import Any

from invoke.exceptions import ParseError
from invoke.parser import Parser
from invoke.parser.argument import Argument
from invoke.parser.context import ParserContext
from invoke.tasks import Task

from tritonsmith.cli import modes
from tritonsmith.cli.tasks import option_fields
from tritonsmith.cli.tasks.option_fields import Option
from tritonsmith.core.command_line import flag_of

WIDE = Option("wide", "bool", default=False, about="print tables in full width, even if lines break")
_HELP = frozenset(("--help", "-h"))


class OptionTask(Task[Any]):
    """A task for Invoke's parser, with declared options.

    Words with a default are optional, unlike Invoke's positional arguments: as many of them are
    positional as the command line has words. Where help is asked for, only the words before it are
    positional, since Invoke would take `--help` for the value of a word that is missing.

    Attributes:
        tables: it prints some, and so it takes `--wide`.
        typed: its name in a command line; empty for a task of no namespace.
    """

    tables = False
    typed = ""

    @cached_property
    def options(self) -> tuple[Option, ...]:
        """The flags and words."""
        return option_fields.options_of(inspect.unwrap(self.body))

    def get_arguments(self, ignore_unknown_help: bool | None = None) -> list[Argument]:  # noqa: ARG002 - Invoke's
        """Return the arguments for the command line of this process."""
        words, _ = command_line()
        place = words.index(self.typed) if self.typed in words else len(words)
        return self.arguments(words[place + 1 :])

    def arguments(self, words: Sequence[str]) -> list[Argument]:
        """Return the arguments for a command line: the words after the task's name and before `--`."""
        options = (*self.options, *([WIDE] if self.tables else ()))
        place = next((index for index, word in enumerate(words) if word in _HELP), None)
        given = self._given_words(words[:place])
        found = []
        for one in options:
            required = one.default is MISSING and place is None
            positional = one.word and (required or one.name in given)
            found.append(_argument(one, one.name, one.help, positional=positional))
            if one.kind == "bool | None":
                found.append(_argument(one, f"no_{one.name}", f"the opposite of {one.flag}"))
        return found

    def _given_words(self, words: Sequence[str]) -> set[str]:
        """Return the names of the options that are given as words."""
        if not words:
            return set()
        valued = {one.flag for one in self.options if not one.kind.startswith("bool")}
        rest, count, named = iter(words), 0, set()
        for one in rest:
            if one == "-" or not one.startswith("-"):
                count += 1
            else:
                named.add(one.partition("=")[0])
                if one in valued:
                    next(rest, None)
        free = [one.name for one in self.options if one.word and one.flag not in named]
        return set(free[:count])


def _argument(option: Option, name: str, about: str, *, positional: bool = False) -> Argument:
    initial, dashed = option.initial, flag_of(name)[2:]
    return Argument(
        names=(dashed,),
        attr_name=name if name != dashed else None,
        kind=type(initial) if isinstance(initial, (bool, list)) else str,
        default=None if positional else initial,
        help=about,
        positional=positional,
    )


def command_line() -> tuple[list[str], list[str]]:
    """Return the words before and after `--`, of which Invoke joins the latter, and loses their quotes.

    A command with a mode is named by the task of that mode.
    """
    words = modes.resolved(sys.argv[1:])
    at = words.index("--") if "--" in words else len(words)
    return words[:at], words[at + 1 :]


def to_argv(task: OptionTask, values: Mapping[str, Any]) -> list[str]:
    """Return the words and flags that pass these arguments to a task's body, without the task's name.

    `values` are by the names of the body's parameters; missing ones have their defaults.
    """
    found: list[str] = []
    in_order = True  # a word counts by its place, so none may be missing before it
    for option, value in _flat(task.options, values):
        text = option.text(value) if option.word else ""
        in_order = in_order and bool(text) and (text == "-" or not text.startswith("-"))
        found += [text] if in_order else option.words(value)
    return found


def _flat(options: Iterable[Option], values: Mapping[str, Any]) -> Iterator[tuple[Option, Any]]:
    """Yield each option with its value, words first."""
    for option in sorted(options, key=lambda one: not one.word):
        if option.group in values:
            yield option, getattr(values[option.group], option.name)
        else:
            yield option, values.get(option.name, option.default)


def from_argv(task: OptionTask, words: Sequence[str]) -> dict[str, Any]:
    """Return the arguments of a task's body as Invoke would parse the words after its name.

    Raises:
        ParseError: the task does not take them.
        UsageError: a value is invalid.
    """
    context = ParserContext(task.name, args=task.arguments(words))
    parsed, *others = Parser([context]).parse_argv([task.name, *words])
    if others:
        raise ParseError(f"{task.name} is given twice")
    return option_fields.bind(task.options, parsed.as_kwargs)
