"""Declared options of tasks, and the parser and formatter of command lines with them.

A task declares its parameters by `flag` and `word`, or takes a frozen dataclass with such fields. The
annotation says how a text is read:

| annotation | on the command line |
|---|---|
| `str`, `str | None` | `--x TEXT` |
| `bool` | `--x` |
| `bool | None` | `--x` or `--no-x` |
| `int | None`, `float | None` | `--x 4`; not below `least`, and above zero for a `float` |
| `Path`, `Path | None` | `--x PATH`; absolute, `~` expanded |
| `OutFile | None` | `--x FILE`, or a folder for it |
| `CommaList` | `--x a,b` |
| `tuple[str, ...]` | `--x a --x b` |
| `CommaLists` | `--x a,b --x c` |
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from invoke.exceptions import ParseError
from invoke.parser import Parser
from invoke.parser.argument import Argument
from invoke.parser.context import ParserContext
from invoke.tasks import Task

from tritonsmith.cli import modes
from tritonsmith.core.command_line import flag_of, flag_words
from tritonsmith.core.errors import UsageError

# Both are tuples to a type checker. `Option.kind` is the text of the annotation, which tells them apart.
CommaList = tuple[str, ...]
CommaLists = tuple[str, ...]

# Nine digits are more than any option needs, and `int` refuses texts of more than 4300.
_DIGITS = re.compile(r"[0-9]{1,9}")
_DECIMAL = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")


def flag(about: str, default: Any, **more: Any) -> Any:
    """Declare a flag: a parameter or a field.

    Args:
        about: the help, one line.
        default: a value of the annotated type; None or empty for "not given".
        more: `unset`, `least`, `example` and `value` of an `Option`.
    """
    return dataclasses.field(default=default, metadata={"about": about, **more})


def again(declared: Any, unset: str = "", *, default: Any = None, **more: Any) -> Any:
    """Repeat a shared declaration with another default for one task.

    Args:
        declared: what `flag` or `word` returned.
        unset: see `Option`.
        default: the same as there if None.
        more: what else differs: `word=True`.
    """
    return dataclasses.field(
        default=declared.default if default is None else default,
        metadata={**declared.metadata, "unset": unset, **more},
    )


def word(about: str, default: Any = MISSING, **more: Any) -> Any:
    """Declare a word, which may also be given as a flag; optional if it has a default."""
    return dataclasses.field(default=default, metadata={"about": about, "word": True, **more})


@dataclass(frozen=True)
class OutFile:
    """A file to write, or the folder for it, as it was given."""

    text: str

    def path(self, name: str) -> Path:
        """Return the file: `name` in the folder if the path is one or ends with a slash."""
        path = Path(self.text).expanduser().absolute()
        # A slash at the end names a folder that need not exist yet, as for rsync.
        return path / name if self.text.endswith("/") or path.is_dir() else path


@dataclass(frozen=True)
class Option:
    """One flag or word of a task.

    Attributes:
        name: name of the parameter or field.
        kind: text of its annotation.
        default: the default; MISSING if a value is required.
        about: the help text, without the default.
        unset: a description of the default.
        word: the flag's name may be omitted.
        least: the smallest number that makes sense.
        example: an example of a number.
        value: a placeholder for the value in help: `GPU`; derived from the kind and the name if empty.
        group: the parameter that holds the field; empty for a parameter itself.
        group_class: the dataclass of that parameter.
    """

    name: str
    kind: str
    default: Any
    about: str
    unset: str = ""
    word: bool = False
    least: int = 0
    example: str = ""
    value: str = ""
    group: str = ""
    group_class: type | None = None

    @property
    def flag(self) -> str:
        """The flag: `--num-warps`."""
        return flag_of(self.name)

    @property
    def placeholder(self) -> str:
        """The word that stands for the value in help; empty for a switch."""
        if self.kind.startswith("bool"):
            return ""
        by_kind = {"int | None": "N", "float | None": "SECONDS", "Path": "PATH", "Path | None": "PATH"}
        by_kind["OutFile | None"] = "FILE"
        return self.value or by_kind.get(self.kind) or self.flag.strip("-").upper()

    @property
    def usage(self) -> str:
        """The option as a usage line and a list of options show it: `--jobs N`, `--[no-]proton`, `THING`."""
        if self.word:
            return self.placeholder
        if self.kind == "bool | None":
            return f"--[no-]{self.flag.removeprefix('--')}"
        return f"{self.flag} {self.placeholder}".rstrip()

    @property
    def help(self) -> str:
        """The text of `--help`."""
        text = self.unset or self.initial
        return f"{self.about} (default: {text})" if text and isinstance(text, str) else self.about

    @property
    def initial(self) -> Any:
        """Invoke's default."""
        if self.default is MISSING or self.kind == "str | None":
            return None
        if self.kind in ("bool", "bool | None"):
            return False
        if self.repeated:
            return []
        return self.text(self.default) if self.default else ""

    @property
    def repeated(self) -> bool:
        """Report whether the flag may be repeated."""
        return self.kind in ("tuple[str, ...]", "CommaLists")

    def read(self, parsed: Any) -> Any:
        """Parse Invoke's value.

        Raises:
            UsageError: the value is not a number, or is too small.
        """
        return _READERS[self.kind](self, parsed)

    def words(self, value: Any) -> list[str]:
        """Format a value as arguments; none for an empty default."""
        if self.kind == "bool | None":
            name = self.name if value else f"no_{self.name}"
            return [] if value is None else flag_words(name, value=True)
        if self.kind == "bool":
            return flag_words(self.name, bool(value))
        # An empty value counts if it differs from the default: `--env ''` is not the same as no --env.
        if not value and value == self.default:
            return []
        return flag_words(self.name, value if self.repeated else self.text(value))

    def text(self, value: Any) -> str:
        """Format a single value."""
        if self.kind == "CommaList":
            return ",".join(value)
        return "" if value is None else value.text if isinstance(value, OutFile) else str(value)


def options_of(body: Callable[..., object]) -> tuple[Option, ...]:
    """Return the options that a task's body declares: parameters and fields of dataclasses, in order."""
    # Annotations are texts in the modules of tasks (PEP 563), so a group is looked up by its name.
    _context, *parameters = inspect.signature(body).parameters.values()
    namespace = inspect.unwrap(body).__globals__
    options: list[Option] = []
    for parameter in parameters:
        group = namespace.get(parameter.annotation)
        # A dataclass with a default is not a group: `OutFile` is the type of a single option.
        is_group = isinstance(group, type) and dataclasses.is_dataclass(group)
        if is_group and parameter.default is parameter.empty:
            options += [
                Option(
                    field.name,
                    str(field.type),
                    field.default,
                    group=parameter.name,
                    group_class=group,
                    **field.metadata,
                )
                for field in dataclasses.fields(group)
            ]
        else:
            field = parameter.default
            options.append(Option(parameter.name, parameter.annotation, field.default, **field.metadata))
    return tuple(options)


def bind(options: Iterable[Option], parsed: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the values that Invoke has parsed into the arguments of a task's body.

    Raises:
        UsageError: a value is not a number, or both flags of a pair are given.
    """
    values: dict[str, Any] = {}
    groups: dict[str, tuple[type, dict[str, Any]]] = {}
    for option in options:
        raw: Any = parsed.get(option.name, option.initial)
        if option.kind == "bool | None":
            raw = raw, parsed.get(f"no_{option.name}", False)
        value = option.read(raw)
        if option.group_class:
            groups.setdefault(option.group, (option.group_class, {}))[1][option.name] = value
        else:
            values[option.name] = value
    return values | {name: group(**fields) for name, (group, fields) in groups.items()}


def split(text: str) -> tuple[str, ...]:
    """Split `a, b;c` into a tuple."""
    return tuple(part.strip() for part in text.replace(";", ",").split(",") if part.strip())


def _number(option: Option, text: str) -> Any:
    if not text:
        return None
    whole = option.kind == "int | None"
    value = (_DIGITS if whole else _DECIMAL).fullmatch(text) and (int if whole else float)(text)
    # A float is a number of seconds, of which none at all makes no sense.
    if value is None or value < option.least or not (whole or value):
        example = option.example or f"{option.flag} 4"
        what = "a whole number" if whole else "a number"
        raise UsageError(f"{option.flag} cannot be {text!r}", hints=[f"{what}: {example}"])
    return value


def _pair(option: Option, switches: tuple[bool, bool]) -> bool | None:
    yes, no = switches
    if yes and no:
        other = flag_of(f"no_{option.name}")
        raise UsageError(f"{option.flag} and {other} contradict each other", hints=["omit one of them"])
    return True if yes else False if no else None


def _each(option: Option, texts: Iterable[str] | None) -> Iterator[str]:
    for text in texts or ():
        # Perhaps a variable of CI that is not set; taken for "not given", it would mean everything.
        if not (words := split(text)):
            raise UsageError(f"{option.flag} is empty", hints=["omit it, or name something"])
        yield from words


def _path(_: Option, text: str) -> Path | None:
    # Not resolved: a link is the name that the user knows, and `current` may be moved on purpose.
    return Path(text).expanduser().absolute() if text else None


_READERS: dict[str, Callable[[Option, Any], Any]] = {
    "str": lambda _, text: text,
    "str | None": lambda _, text: text,
    "bool": lambda _, switch: bool(switch),
    "bool | None": _pair,
    "int | None": _number,
    "float | None": _number,
    "Path": _path,
    "Path | None": _path,
    "OutFile | None": lambda _, text: OutFile(text) if text else None,
    "CommaList": lambda _, text: split(text),
    "CommaLists": lambda option, texts: tuple(_each(option, texts)),
    "tuple[str, ...]": lambda _, texts: tuple(texts or ()),
}


WIDE = Option("wide", "bool", default=False, about="print tables in full width, even if lines break")
_HELP = frozenset(("--help", "-h"))


class OptionTask(Task[Any]):
    """A task for Invoke's parser, with declared options.

    Attributes:
        tables: the task prints tables, and so it takes `--wide`.
        typed: the task's name in a command line; empty for a task outside of the namespace.
    """

    tables = False
    typed = ""

    @cached_property
    def options(self) -> tuple[Option, ...]:
        """The flags and words."""
        return options_of(inspect.unwrap(self.body))

    def get_arguments(self, ignore_unknown_help: bool | None = None) -> list[Argument]:  # noqa: ARG002 - Invoke's
        """Return the arguments for the command line of this process."""
        # Invoke asks for arguments without the line that it parses, and the number of words decides what is
        # positional.
        words, _ = command_line()
        place = words.index(self.typed) if self.typed in words else len(words)
        return self.arguments(words[place + 1 :])

    def arguments(self, words: Sequence[str]) -> list[Argument]:
        """Return the arguments for a command line: the words after the task's name and before `--`."""
        options = (*self.options, *([WIDE] if self.tables else ()))
        place = next((index for index, word in enumerate(words) if word in _HELP), None)
        # Invoke requires every positional argument. So that words with a default are optional, only as many
        # are positional as the command line has words; and with `--help` only those before it, as Invoke
        # would take `--help` for the value of a missing word.
        typed = self._typed_words(words[:place])
        arguments = []
        for option in options:
            # Help for a task must not fail because its words are missing.
            required = option.default is MISSING and place is None
            positional = option.word and (required or option.name in typed)
            arguments.append(_argument(option, option.name, option.help, positional=positional))
            if option.kind == "bool | None":
                arguments.append(_argument(option, f"no_{option.name}", f"the opposite of {option.flag}"))
        return arguments

    def _typed_words(self, words: Sequence[str]) -> set[str]:
        """Return the names of the options that are given as words."""
        if not words:
            return set()
        valued = {option.flag for option in self.options if not option.kind.startswith("bool")}
        rest, count, named = iter(words), 0, set()
        for word in rest:
            if word == "-" or not word.startswith("-"):
                count += 1
            else:
                named.add(word.partition("=")[0])
                # `--x VALUE` is two words and `--x=VALUE` one: the value must not count as a word of the
                # task.
                if word in valued:
                    next(rest, None)
        free = [option.name for option in self.options if option.word and option.flag not in named]
        return set(free[:count])


def _argument(option: Option, name: str, about: str, *, positional: bool = False) -> Argument:
    initial, dashed = option.initial, flag_of(name)[2:]
    argument = Argument(
        names=(dashed,),
        attr_name=name if name != dashed else None,
        # A number is text to Invoke, so that `read` can refuse a wrong one with an example.
        kind=type(initial) if isinstance(initial, (bool, list)) else str,
        default=None if positional else initial,
        help=about,
        positional=positional,
    )
    if argument.kind is list:
        # Invoke begins with an empty list here, and so would take `--skip` without a value for a value.
        argument.raw_value = None
    return argument


def command_line() -> tuple[list[str], list[str]]:
    """Return the words before and after `--`; a command with a mode is named by the task of that mode."""
    # Invoke joins the words after `--` into one text, so the boundaries of quoted words are lost there.
    words = modes.resolved(sys.argv[1:])
    at = words.index("--") if "--" in words else len(words)
    return words[:at], words[at + 1 :]


def to_argv(task: OptionTask, values: Mapping[str, Any]) -> list[str]:
    """Return the words and flags that pass these arguments to a task's body, without the task's name.

    Args:
        task: the task.
        values: arguments by the names of the body's parameters; missing ones have their defaults.
    """
    argv: list[str] = []
    in_order = True  # a word counts by its place, so none may be missing before it
    for option, value in _flat(task.options, values):
        text = option.text(value) if option.word else ""
        # A word that begins with a dash would be read as a flag; `-` alone is standard input.
        in_order = in_order and bool(text) and (text == "-" or not text.startswith("-"))
        argv += [text] if in_order else option.words(value)
    return argv


def _flat(options: Iterable[Option], values: Mapping[str, Any]) -> Iterator[tuple[Option, Any]]:
    """Yield each option with its value, words first."""
    for option in sorted(options, key=lambda option: not option.word):
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
    return bind(task.options, parsed.as_kwargs)
