"""The commands that a workflow step's script runs, and whether all of them are on a list.

The reading is strict: anything it does not understand (functions, `eval`, here-documents, a program whose
name is computed) is refused, so a script that passes runs only listed programs. It is no full bash parser.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_COMPUTED = "$"  # placeholder for an expansion in a word
_SPLIT = "$*"  # placeholder for one outside of quotes, which may become several words
_ASSIGNMENT = re.compile(r"(?P<name>[A-Za-z_]\w*)\+?=", re.ASCII)
_LEADING = ("if", "then", "elif", "else", "do", "!")  # a command follows
_ENDING = ("fi", "done")
_HARMLESS_TARGETS = ("/dev/null", "/dev/stderr", "/dev/stdout")
_OPERATORS = (";;", "&&", "||", "|&", ";", "|", "&", "(", ")", "\n")
_REDIRECTION = re.compile(r"(?P<fd>\d*)(?P<how>&>>?|>>|>\||>&|<<<|<<|<&|<>|<|>)")
_EXPANSION = re.compile(r"\$(\w+|[?#@*!$-])", re.ASCII)
# Expansions whose value bash does not evaluate again.
_PARAMETER = re.compile(r"\w+(:?[-+][\w ./-]*|(##?|%%?)[\w*./-]*)?", re.ASCII)
_JOINED = re.compile(r"[^ \t\n]\\\n[^ \t\n]")  # `$` and `(` on two lines are `$(` to bash
_DEEPEST = 20  # nested `$(...)`


class _RefusedError(Exception):
    """The script cannot be shown to run listed programs only."""


@dataclass
class _Words:
    """The words of one command; `written` are the targets of redirections."""

    words: list[str] = field(default_factory=list)
    written: list[str] = field(default_factory=list)


def refusal(script: str, rules: Mapping[str, Any]) -> str:
    """Return why a script may not run; empty if all of its commands are on the list.

    Args:
        script: a script for bash.
        rules: the rows `may-run` and `refused-variables` of configs/ci-replay.toml.
    """
    try:
        for command in _ScriptReader(script).commands():
            _check(command, rules)
    except _RefusedError as error:
        return str(error)
    return ""


def refused_variable(name: str, rules: Mapping[str, Any]) -> str:
    """Return why a step may not set a variable; empty if it may."""
    if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
        return f"{name[:40]!r} is not a variable name"
    if re.fullmatch("|".join(rules["refused-variables"]), name):
        return f"it sets {name}, which decides what programs run"
    return ""


def _check(command: _Words, rules: Mapping[str, Any]) -> None:
    words = list(command.words)
    for target in command.written:
        if target not in _HARMLESS_TARGETS:
            raise _RefusedError(f"it writes to a file: {target[:40]}")
    while words and (match := _ASSIGNMENT.match(words[0])):
        _check_variable(match["name"], rules)
        del words[0]
    if not words:
        return
    program, arguments = words[0], words[1:]
    if program == "export":
        for word in arguments:
            _check_variable(word.partition("=")[0].removesuffix("+"), rules)
        return
    _check_program(program, " ".join(arguments), rules)


def _check_program(program: str, text: str, rules: Mapping[str, Any]) -> None:
    rows: Sequence[Mapping[str, Any]] = [row for row in rules["may-run"] if program in row["programs"]]
    if not rows and _COMPUTED in program:
        raise _RefusedError("the name of a program is computed")
    if not rows:
        raise _RefusedError(f"{program[:40]} is not on the list of what may run here")
    if not any(re.fullmatch(row.get("arguments", ".*"), text, re.DOTALL) for row in rows):
        raise _RefusedError(f"{program} may not run here with these arguments: {text[:60]}")
    # Bash splits such an expansion into words: `pip install $X` may get any option.
    if _SPLIT in text and all("arguments" in row for row in rows):
        raise _RefusedError(f"an expansion without quotes may give {program} other arguments: {text[:60]}")


def _check_variable(name: str, rules: Mapping[str, Any]) -> None:
    if why := refused_variable(name, rules):
        raise _RefusedError(why)


class _ScriptReader:
    """Splits a script into commands, including those in `$(...)`."""

    def __init__(self, script: str, depth: int = 0) -> None:
        if depth > _DEEPEST:
            raise _RefusedError("its commands are nested too deeply")
        # Bash and this reader must agree on every character; what they may read differently is refused.
        if re.search(r"[^\n\t\x20-\x7e\x80-\U0010ffff]|\(\(", script):
            raise _RefusedError("it has control characters or arithmetic, which are not supported")
        if _JOINED.search(script):
            raise _RefusedError("a line is continued within a word, which is not supported")
        self._text = script
        self._at = 0
        self._depth = depth
        self._inner: list[_Words] = []

    def commands(self) -> Iterator[_Words]:
        """Yield each simple command of the script."""
        current = _Words()
        while self._at < len(self._text):
            char = self._text[self._at]
            if char in " \t":
                self._at += 1
            elif self._text.startswith("\\\n", self._at):
                self._at += 2
            elif char == "#":
                end = self._text.find("\n", self._at)
                self._at = len(self._text) if end < 0 else end
            elif redirection := self._redirection():
                self._redirect(redirection, current)
            elif operator := next(
                (token for token in _OPERATORS if self._text.startswith(token, self._at)), ""
            ):
                if operator == ";;" or (operator == "(" and current.words):  # `case`, a function
                    raise _RefusedError("it has a function or a `case`, which is not supported")
                self._at += len(operator)
                yield from self._ended(current)
                current = _Words()
            else:
                current.words.append(self._word())
                if len(current.words) == 1 and current.words[0] in _LEADING:
                    current.words.clear()
        yield from self._ended(current)

    def _ended(self, command: _Words) -> Iterator[_Words]:
        yield from self._inner
        self._inner.clear()
        words = command.words
        if words and words[0] in _ENDING:
            words = words[1:]
        if words and words[0] == "for":
            if words[2:3] not in ([], ["in"]):
                raise _RefusedError("it has a `for` without `in`, which is not supported")
            words = [f"{words[1] if len(words) > 1 else ''}="]  # `for` sets this variable
        if words or command.written:
            yield _Words(words, command.written)

    def _redirection(self) -> re.Match[str] | None:
        return _REDIRECTION.match(self._text, self._at)

    def _redirect(self, match: re.Match[str], command: _Words) -> None:
        how = match["how"]
        self._at = match.end()
        if self._text.startswith("(", self._at) or how in ("<<", "<>"):
            raise _RefusedError("it has a here-document or a process substitution, which is not supported")
        while self._text[self._at : self._at + 1] in (" ", "\t"):
            self._at += 1
        target = self._word()
        if how in (">&", "<&") and (target.isdigit() or target == "-"):
            return
        if ">" in how:
            command.written.append(target)
        # Bash itself opens a connection for these two names; no program shows it.
        elif how == "<" and (_COMPUTED in target or target.startswith(("/dev/tcp", "/dev/udp"))):
            raise _RefusedError(f"it reads what may be a connection: {target[:40]}")

    def _word(self) -> str:
        """Read the next word without its quotes; expansions become `$`."""
        parts: list[str] = []
        begin = self._at
        while self._at < len(self._text):
            char = self._text[self._at]
            if char in " \t\n;|&()<>":
                break
            if char == "'":
                parts.append(self._until("'"))
            elif char == '"':
                parts.append(self._quoted())
            elif char == "\\":
                parts.append(self._text[self._at + 1 : self._at + 2].strip("\n"))
                self._at += 2
            elif char in "$`":
                self._expansion()
                parts.append(_SPLIT)
            else:
                parts.append(char)
                self._at += 1
        if self._at == begin:
            raise _RefusedError("it cannot be read as a list of commands")
        word = "".join(parts)
        # Quoted here, but it runs if bash evaluates the word again: `eval`, `[[ -v ]]`, arithmetic.
        if "$(" in word or "`" in word:
            raise _RefusedError(f"it has a command in quotes: {word[:40]}")
        return word

    def _quoted(self) -> str:
        parts: list[str] = []
        self._at += 1
        while self._at < len(self._text):
            char = self._text[self._at]
            if char == '"':
                self._at += 1
                return "".join(parts)
            if char == "\\":
                parts.append(self._text[self._at + 1 : self._at + 2].strip("\n"))
                self._at += 2
            elif char in "$`":
                parts.append(self._expansion())
            else:
                parts.append(char)
                self._at += 1
        raise _RefusedError("a quotation mark is not closed")

    def _until(self, end: str) -> str:
        """Return the text after the current character and before `end`, and skip both."""
        begin = self._at + 1
        close = self._text.find(end, begin)
        if close < 0:
            raise _RefusedError(f"{end} is missing")
        self._at = close + 1
        return self._text[begin:close]

    def _expansion(self) -> str:
        """Read a variable, or the output of a command, whose own commands are recorded."""
        if self._text[self._at] == "`":
            inner = self._until("`")
            if "\\" in inner:
                raise _RefusedError("its commands are nested in quotes")
            self._read_inner(inner)
            return _COMPUTED
        after = self._text[self._at + 1 : self._at + 2]
        if after in ("'", '"', "["):
            raise _RefusedError("it has arithmetic or escapes, which are not supported")
        if after == "(":
            self._at += 1
            self._read_inner(self._balanced())
        elif after == "{":
            self._at += 1
            if not _PARAMETER.fullmatch(self._until("}")):
                raise _RefusedError("it has an expansion that is not supported")
        elif match := _EXPANSION.match(self._text, self._at):
            self._at = match.end()
        else:
            self._at += 1
        return _COMPUTED

    def _balanced(self) -> str:
        """Return the text between this parenthesis and the one that closes it; quoted ones do not count."""
        begin, depth, quote = self._at + 1, 0, ""
        while self._at < len(self._text):
            char = self._text[self._at]
            if quote != "'" and char == "\\":
                self._at += 1
            elif quote:
                # A `$(` in double quotes has quotes of its own: too complex for this reader, which
                # refuses what it cannot read.
                if quote == '"' and self._text.startswith("$(", self._at):
                    raise _RefusedError("its commands are nested in quotes")
                quote = "" if char == quote else quote
            elif char in "'\"":
                quote = char
            elif char == "#" and self._text[self._at - 1] in " \t\n;|&()<>":
                raise _RefusedError("it has a comment in `$(...)`, which is not supported")
            else:
                depth += {"(": 1, ")": -1}.get(char, 0)
            self._at += 1
            if not depth:
                return self._text[begin : self._at - 1]
        raise _RefusedError(") is missing")

    def _read_inner(self, script: str) -> None:
        self._inner += _ScriptReader(script, self._depth + 1).commands()
