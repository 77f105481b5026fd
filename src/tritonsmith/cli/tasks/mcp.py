"""`mcp`: commands as tools of an agent. A tool is declared by a table, and by the options of its command."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from typing import TypeAlias

from invoke.context import Context

from tritonsmith.cli import commands, modes
from tritonsmith.cli.tasks import namespace
from tritonsmith.cli.tasks.option_fields import CommaLists, Option, flag
from tritonsmith.cli.tasks.task import task
from tritonsmith.core import configs, untrusted
from tritonsmith.core.errors import (
    EXIT_INTERRUPTED,
    EXIT_UNDECIDED,
    FactError,
    UsageError,
    did_you_mean,
)
from tritonsmith.core.ui import console

Json: TypeAlias = "dict[str, Json] | list[Json] | str | float | bool | None"

INSTALL = "install"  # a name for --allow: the other tools may install the Triton that they need
_EFFECTS = ("install", "delete")  # need --allow
_LEAST = 200  # characters that a text or a list keeps at least when it is cut
_QUOTED = 300  # characters of a wrong value in a message


@task(name="mcp")
def serve(
    context: Context,
    allow: CommaLists = flag("tools that install or delete: up,clear-cache; install (repeatable)", ()),
    skill: bool = flag(
        "print a text that tells an agent how to use the tools, and serve none", default=False
    ),
) -> None:
    """Serve commands as tools to an agent, by the Model Context Protocol."""
    if skill:
        console.write(instructions(), end="")
        return
    # A wrong name is reported first, as is a missing package before the long import of one that is there.
    offered = tools(allow)
    if find_spec("mcp") is None:
        hints = ["pip install 'tritonsmith[mcp]'"]
        raise FactError("this command needs the Model Context Protocol's SDK, the package mcp", hints=hints)
    from tritonsmith.cli.tasks import mcp_server

    mcp_server.serve(offered, may_install=INSTALL in allow)


def instructions() -> str:
    """Return the text for an agent on what the tools are for."""
    return str(configs.load("mcp")["skill"]).lstrip()


@dataclass(frozen=True)
class Limits:
    """The limits of `configs/mcp.toml`, which describes them."""

    characters: int
    patience: int
    calls: int
    argument: int
    progress: int
    resource: int
    texts: int


def limits() -> Limits:
    """Return the limits."""
    return configs.as_dataclass(Limits, configs.load("mcp")["limits"])


@dataclass(frozen=True)
class AgentTool:
    """A command as a tool.

    Attributes:
        command: name of its task.
        effect: `read`, `write`, `install` or `delete`.
        options: options that a caller may set, by their flags without the dashes.
        flags: switches that are always set.
        outputs: keys of the answer that name a folder or a page that the command has written.
        job: whether a call returns at once, with the number of a job.
        characters: of a result; 0 for the limit of all tools.
    """

    command: str
    effect: str
    options: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    job: bool = False
    characters: int = 0

    @property
    def name(self) -> str:
        """The name: `kernel_compile`."""
        # Some clients accept neither dots nor more than 64 characters.
        return self.command.replace(".", "_").replace("-", "_")

    @property
    def allowance(self) -> str:
        """The name for `--allow`; empty for a tool that is always offered."""
        return self.command if self.effect in _EFFECTS else ""

    @property
    def purpose(self) -> str:
        """The description for an agent."""
        command = commands.EVERY[self.command]
        mode = modes.of_task(self.command)
        more = " Returns a job at once." if self.job else ""
        return f"{command.purpose}{more} (tritonsmith {mode.usage if mode else self.command})"

    @cached_property
    def parameters(self) -> dict[str, Option]:
        """The parameters, by name: `num_warps`, and `from` for `from_`."""
        every = {option.flag[2:]: option for option in namespace.every[self.command].options}
        return {name.replace("-", "_"): every[name] for name in self.options}

    @cached_property
    def schema(self) -> dict[str, Json]:
        """The JSON Schema of the arguments."""
        required = [name for name, option in self.parameters.items() if option.default is dataclasses.MISSING]
        return _object({name: _schema(option) for name, option in self.parameters.items()}, required)

    def words(self, arguments: Mapping[str, Json]) -> list[str]:
        """Return the command line for arguments that fit the schema.

        Raises:
            UsageError: a text cannot be an argument of a command.
        """
        words = [self.command, *(f"--{name}" for name in self.flags)]
        for name, value in arguments.items():
            words += _words(self.parameters[name], value)
        # `--dry-run` prints a script, and several commands refuse both.
        if "json" in self._flags and not arguments.get("dry_run"):
            words.append("--json")
        # JSON has texts that no system call takes, and a `ForkServer` would hand them on.
        for word in words:
            if "\0" in word or any("\ud800" <= letter <= "\udfff" for letter in word):
                hints = ["it has a NUL character, or half of a surrogate pair"]
                raise UsageError(f"not a text: {_quoted(word)}", hints=hints)
        if (length := sum(map(len, words))) > limits().argument:
            what = f"the arguments have {length:,} characters, more than {limits().argument:,}"
            raise UsageError(what, hints=["put long texts into a file, and name the file"])
        return words

    @cached_property
    def _flags(self) -> frozenset[str]:
        return frozenset(option.flag[2:] for option in namespace.every[self.command].options)


def _schema(option: Option) -> dict[str, Json]:
    """Return the JSON Schema of an option."""
    kinds: dict[str, dict[str, Json]] = {
        "bool": {"type": "boolean"},
        "bool | None": {"type": "boolean"},
        "int | None": {"type": "integer", "minimum": option.least},
        "float | None": {"type": "number", "exclusiveMinimum": 0},
    }
    # An empty text is not the same as no text, to some commands, and never what a caller means.
    text: dict[str, Json] = {"type": "string", "minLength": 1}
    listed = option.repeated or option.kind == "CommaList"
    kind = kinds.get(option.kind, {"type": "array", "items": text} if listed else text)
    return {**kind, "description": option.help.replace(" (repeatable)", "")}


def _words(option: Option, value: Json) -> Iterator[str]:
    """Yield the words of one option. Each begins with the flag: no value can become a flag or a command."""
    if isinstance(value, bool):
        if value:
            yield option.flag
        elif option.kind == "bool | None":
            yield f"--no-{option.flag[2:]}"
    elif isinstance(value, list):
        texts = [str(item) for item in value]
        yield from (
            f"{option.flag}={text}" for text in (texts if option.repeated else [",".join(texts)]) if text
        )
    else:
        yield f"{option.flag}={value}"


def tools(allow: Collection[str] = ()) -> tuple[AgentTool, ...]:
    """Return the tools that are always offered, and those that `--allow` names.

    Raises:
        UsageError: it names no such tool.
    """
    every = declared()
    names = {tool.allowance for tool in every if tool.allowance} | {INSTALL}
    # A misspelt name would allow nothing, and look as if it did.
    for name in allow:
        if name not in names:
            raise UsageError(f"--allow cannot name {name!r}", hints=did_you_mean(name, names))
    return tuple(tool for tool in every if not tool.allowance or tool.allowance in allow)


def declared() -> tuple[AgentTool, ...]:
    """Return all tools of the table."""
    table = configs.load("mcp")
    return tuple(
        configs.as_dataclass(
            AgentTool,
            {**row, "options": list(_options(row, table["group"]))},
        )
        for row in table["tool"]
    )


def _options(row: Mapping[str, Sequence[str]], groups: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for group in row.get("groups", ()):
        yield from groups[group]
    yield from row.get("options", ())


def invalid(name: str, parameters: Sequence[str], errors: Iterable[tuple[str, str]]) -> UsageError:
    """Return the error for arguments that do not fit the schema.

    Args:
        name: of the tool.
        parameters: that it has.
        errors: where in the arguments, and what is wrong there.
    """
    lines = [f"{where}: {_quoted(what)}" if where else _quoted(what) for where, what in errors]
    return UsageError(
        f"{name} does not take these arguments",
        why="\n".join(lines),
        hints=[f"its parameters: {', '.join(parameters) or 'none'}"],
    )


def _quoted(text: str) -> str:
    return text if len(text) <= _QUOTED else f"{text[:_QUOTED]}... ({len(text):,} characters)"


def result_schema() -> dict[str, Json]:
    """Return the JSON Schema of the result of a command."""
    properties = configs.load("mcp")["result"]
    return _object(properties, ["verdict", "command"])


def _object(properties: Mapping[str, Json], required: Sequence[str]) -> dict[str, Json]:
    """Return the JSON Schema of an object that has these keys and no others."""
    # An argument that an agent misspells would otherwise be dropped in silence.
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }


@dataclass(frozen=True)
class OwnTool:
    """A tool of the server's, which is no command.

    Attributes:
        name: its name.
        purpose: the description for an agent.
        read_only: whether it changes nothing.
        schema: the JSON Schema of its arguments.
    """

    name: str
    purpose: str
    read_only: bool
    schema: dict[str, Json]


def own_tools() -> dict[str, OwnTool]:
    """Return the tools that are no commands, by name."""
    rows = configs.load("mcp")["own"]
    return {
        name: OwnTool(name, row["purpose"], row["read-only"], _object(row["properties"], row["required"]))
        for name, row in rows.items()
    }


def outcome(tool: AgentTool, code: int, printed: str, errors: Sequence[str]) -> dict[str, Json]:
    """Return the result of a run.

    Args:
        tool: the tool.
        code: exit code of its command; negative for a signal.
        printed: standard output.
        errors: lines of standard error.
    """
    # Of the modes of a command, which have their own names here, each run would note how it is typed now.
    old_name = f"note: {tool.command} is now: "
    lines = [line for line in errors if line.strip() and not line.startswith(old_name)]
    begin = next((at for at, line in enumerate(lines) if line.startswith("error: ")), len(lines))
    notes: list[Json] = [line.removeprefix("note: ") for line in lines[:begin]]
    answer = _answer(printed)
    result: dict[str, Json] = {"verdict": _verdict(code, has_answer=bool(printed.strip())), "exit_code": code}
    if answer is not None:
        result["answer"] = answer
    elif printed.strip():
        result["text"] = printed
    if message := "\n".join(lines[begin:]).removeprefix("error: "):
        result["message"] = message
    elif code < 0:
        result["message"] = f"the command was ended by signal {-code}"
    if notes:
        result["notes"] = notes
    return result


def _answer(printed: str) -> dict[str, Json] | list[Json] | None:
    """Return the JSON that a command printed; None if it printed something else."""
    # A command without `--json` prints text, and a crash may cut JSON off: both are passed on as they are.
    try:
        answer = untrusted.json_of(printed)
    except untrusted.UnreadableError:
        return None
    return answer if isinstance(answer, dict | list) else None


def _verdict(code: int, *, has_answer: bool) -> str:
    """Return what an exit code means; see "Errors and exit codes" in docs/architecture.md."""
    # 1 is also that of `kernel.lint --fail-on` and of `doctor`, whose answers are on standard output.
    known = {0: "ok", EXIT_UNDECIDED: "undecided", EXIT_INTERRUPTED: "stopped"}
    return known.get(code, "findings" if code == 1 and has_answer else "failed")


@dataclass
class ResultCutter:
    """Cuts a result down to a size.

    Attributes:
        keep: stores a whole text, and returns the URI by which it can be read.
        cuts: what was cut, as the result lists it.
    """

    keep: Callable[[str], str]
    cuts: list[Json] = field(default_factory=list)

    def fit(self, value: Json, room: int, at: str = "") -> Json:
        """Return a value whose JSON has about `room` characters at most; `at` is a JSON pointer to it."""
        if _size(value) <= room:
            return value
        if isinstance(value, str):
            return self._text(value, max(room, _LEAST), at)
        if isinstance(value, list):
            items, left_out = self._first([(str(place), item) for place, item in enumerate(value)], room, at)
            self._note(at, left_out, "items", value)
            return list(items.values())
        if isinstance(value, dict):
            # Small values first: what they do not use is shared among the large ones.
            small_first = dict(sorted(value.items(), key=lambda item: _size(item[1])))
            if len(value) * _LEAST > room:
                kept, left_out = self._first(list(value.items()), room, at)
                self._note(at, left_out, "keys", value)
                return kept
            left, fitted = room, {}
            for done, (name, item) in enumerate(small_first.items()):
                fitted[name] = self.fit(item, left // (len(value) - done), f"{at}/{_escaped(name)}")
                left -= _size(fitted[name]) + len(name)
            return {name: fitted[name] for name in value}
        return value

    def _first(self, items: Sequence[tuple[str, Json]], room: int, at: str) -> tuple[dict[str, Json], int]:
        """Return the first items that fit, at least one, and the number of the others."""
        kept: dict[str, Json] = {}
        left = max(room, _LEAST)
        for name, item in items:
            if kept and _size(item) + len(name) > left:
                break
            kept[name] = self.fit(item, left, f"{at}/{_escaped(name)}")
            left -= _size(kept[name]) + len(name)
        return kept, len(items) - len(kept)

    def _text(self, text: str, room: int, at: str) -> str:
        """Return the beginning and the end of a text: whole lines, unless they are too long."""
        # Quotes and line ends have two characters in JSON.
        room = room * len(text) // _size(text)
        head = text.rfind("\n", 0, room * 2 // 3) + 1 or room * 2 // 3
        tail = text.find("\n", len(text) - room // 3) + 1 or len(text) - room // 3
        lines = text.count("\n", head, tail)
        left_out = (
            f"{lines:,} of {text.count(chr(10)) + 1:,} lines" if lines else f"{tail - head:,} characters"
        )
        uri = self.keep(text)
        self.cuts.append({"at": at, "left_out": left_out, "uri": uri})
        return f"{text[:head]}[... {left_out} left out: {uri} ...]\n{text[tail:]}"

    def _note(self, at: str, left_out: int, what: str, value: Json) -> None:
        if left_out:
            uri = self.keep(json.dumps(value, indent=1, ensure_ascii=False))
            self.cuts.append({"at": at, "left_out": f"{left_out:,} {what}", "uri": uri})


def dumps(value: Json) -> str:
    """Return JSON in one line, as an agent reads it."""
    return json.dumps(value, ensure_ascii=False)


def _size(value: Json) -> int:
    return len(dumps(value))


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")  # RFC 6901


def pages(text: str, size: int) -> list[str]:
    """Split a text into pages of at most `size` characters, at ends of lines where possible."""
    parts, start = [], 0
    while start < len(text):
        end = start + size
        # A line that is longer than a page is divided where the page ends.
        if end < len(text):
            end = text.rfind("\n", start, end) + 1 or end
        parts.append(text[start:end])
        start = end
    # An empty file has a page, too: the first one.
    return parts or [""]
