"""Read the jobs of a checkout's workflow files, and decide which of their steps may run here.

Scripts are read strictly: what this reader does not understand (functions, `eval`, here-documents, a program
whose name is computed) is refused, so a script that passes runs only listed programs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from tritonsmith.core import configs, untrusted
from tritonsmith.core.errors import FactError, UsageError, did_you_mean

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
CONFIG = "ci-replay"
_FOLDER = ".github/workflows"
_BEGIN, _END = "${{", "}}"  # around expressions that GitHub fills in


@dataclass(frozen=True)
class WorkflowStep:
    """One step.

    Attributes:
        name: its own, or the first line of its script.
        script: script for the shell; empty for an action.
        uses: the action; empty for a script.
        variables: environment variables, including those of the workflow and the job.
        folder: working directory, relative to the checkout.
        why: the reason why it is left out; empty if it can run.
        note: the difference between here and CI.
    """

    name: str
    script: str
    uses: str
    variables: tuple[tuple[str, str], ...]
    folder: str
    why: str
    note: str = ""


@dataclass(frozen=True)
class WorkflowJob:
    """One job.

    Attributes:
        file: name of its workflow file.
        key: its id in that file.
        runner: its runner, as written.
        steps: its steps, in order.
        why: the reason why all of it is left out.
    """

    file: str
    key: str
    runner: str
    steps: tuple[WorkflowStep, ...]
    why: str = ""

    @property
    def name(self) -> str:
        """The name as `FILE:KEY`."""
        return f"{self.file}:{self.key}"

    @property
    def runnable(self) -> tuple[WorkflowStep, ...]:
        """The steps that can run here."""
        return tuple(step for step in self.steps if not step.why)


@dataclass(frozen=True)
class Workflows:
    """The workflow files of a checkout.

    Attributes:
        jobs: jobs of all files that can be read.
        unreadable: the other files, each with the reason.
    """

    jobs: tuple[WorkflowJob, ...]
    unreadable: tuple[tuple[Path, str], ...] = ()


def read(root: Path) -> Workflows:
    """Read all jobs of a checkout.

    Raises:
        FactError: there is no workflow file, or none that can be read.
    """
    files = sorted(path for path in (root / _FOLDER).glob("*.y*ml") if path.suffix in (".yml", ".yaml"))
    if not files:
        raise FactError("this checkout has no workflow files", where=root / _FOLDER)
    limits = configs.load(CONFIG)["limits"]
    jobs: list[WorkflowJob] = []
    unreadable: list[tuple[Path, str]] = []
    left = limits["folder"]
    for file in files:
        try:
            text = untrusted.read_text(file, min(left, limits["bytes"]))
            # The limit is for the whole folder: many files that are each small enough add up, too.
            left -= len(text)
            jobs += _jobs(file, text)
        except OSError as error:
            unreadable.append((file, error.strerror or str(error)))
        except RecursionError:
            # PyYAML composes recursively, and a few kilobytes of brackets exhaust the stack.
            unreadable.append((file, "nested too deeply"))
        except (yaml.YAMLError, untrusted.UnreadableError) as error:
            unreadable.append((file, str(error)))
    if len(unreadable) == len(files):
        raise FactError("cannot read this workflow file", where=unreadable[0][0], why=unreadable[0][1])
    return Workflows(tuple(jobs), tuple(unreadable))


def find(jobs: tuple[WorkflowJob, ...], text: str) -> WorkflowJob:
    """Find the job of `JOB` or `FILE:JOB`.

    Raises:
        UsageError: there is no such job, or there are several.
    """
    matches = [job for job in jobs if text in (job.key, job.name)]
    if not matches:
        raise UsageError(f"no job {text!r}", hints=did_you_mean(text, {job.key for job in jobs}))
    if len(matches) > 1:
        raise UsageError(f"{text} is a job of several files", hints=[job.name for job in matches])
    return matches[0]


def _jobs(file: Path, text: str) -> list[WorkflowJob]:
    limits = configs.load(CONFIG)["limits"]
    # Values are read from YAML's nodes as they are written: GitHub, too, takes `on` and `3` as texts here.
    # So an alias is never expanded, and a number of a million digits is not converted.
    content = _table(yaml.compose(text, Loader=yaml.SafeLoader))
    rows = _table(content.get("jobs"))
    jobs, left, characters = [], limits["steps"], limits["bytes"]
    for key, value in rows.items():
        job = _table(value)
        raw = _items(job.get("steps"))
        left -= len(raw)
        characters -= sum(
            len(_text(_table(step).get("run"), limits["script"])) for step in raw[: limits["steps"]]
        )
        # An alias of YAML may name the same list of steps a thousand times.
        if left < 0 or characters < 0:
            raise untrusted.UnreadableError(f"it has more than {limits['steps']:,} steps, or very long ones")
        runner = _runner(job.get("runs-on"))
        variables = {**_variables(content.get("env")), **_variables(job.get("env"))}
        folder = _text(_table(_table(job.get("defaults")).get("run")).get("working-directory"))
        steps = tuple(_step(_table(step), variables, folder) for step in raw)
        why = f"it runs on {runner}" if "macos" in runner or "windows" in runner else ""
        why = f"it calls {_text(job['uses'])}" if "uses" in job else why
        jobs.append(WorkflowJob(file.name, key, runner, steps, why))
    return jobs


def _step(step: Mapping[str, yaml.Node], inherited: Mapping[str, str], folder: str) -> WorkflowStep:
    limits = configs.load(CONFIG)["limits"]
    # One character more than may run, so that a script that was cut is known from one that fits.
    script, uses = _text(step.get("run"), limits["script"] + 1), _text(step.get("uses"))
    variables = {**inherited, **_variables(step.get("env"))}
    name = _text(step.get("name")) or uses or _first(script)
    condition = _text(step.get("if")).strip()
    # GitHub takes a condition with and without the braces of an expression.
    if condition.startswith(_BEGIN) and condition.endswith(_END):
        condition = condition[len(_BEGIN) : -len(_END)].strip()
    where = _text(step.get("working-directory")) or folder
    why, note = _why(script, uses, variables, _text(step.get("shell")), where), ""
    rules = configs.load(CONFIG)["conditions"]
    if not why and condition and condition not in rules["true"]:
        if any(passed in condition for passed in rules["passed-over"]):
            note = f"there only if {condition}"
        else:
            why = f"only if {condition}: not known here"
    return WorkflowStep(name, script[: limits["script"]], uses, tuple(variables.items()), where, why, note)


def _why(script: str, uses: str, variables: Mapping[str, str], shell: str, folder: str) -> str:
    return next(filter(None, _reasons(script, uses, variables, shell, folder)), "")


def _reasons(script: str, uses: str, variables: Mapping[str, str], shell: str, folder: str) -> Iterator[str]:
    """Yield the reasons why a step is left out; the first text that is not empty counts."""
    rules = configs.load(CONFIG)
    most = rules["limits"]["script"]
    yield f"a GitHub action: {uses}" if uses else ""
    yield "" if script else "it runs nothing"
    yield f"its script has more than {most:,} characters" if len(script) > most else ""
    yield f"it is for another shell: {shell}" if shell not in ("", "bash", "sh") else ""
    # Comments mention what a script does not do.
    code = re.sub(r"^[ \t]*#.*$", "", script, flags=re.MULTILINE)
    names = " ".join(f"{name}={text}" for name, text in variables.items())
    for row in rules["left-out"]:
        if re.search(row["pattern"], code) and not (
            "unless" in row and re.search(row["unless"], f"{code} {names}")
        ):
            yield str(row["why"])
    if expression := _expression(f"{code} {names}"):
        yield f"GitHub would fill in {expression}"
    yield from (refused_variable(name, rules) for name in variables)
    yield "" if _inside(folder) else f"it runs in a folder outside the checkout: {folder}"
    yield refusal(script, rules)


def _inside(folder: str) -> bool:
    path = PurePosixPath(folder)
    return not path.is_absolute() and ".." not in path.parts and untrusted.fits(Path(folder))


def _expression(text: str) -> str:
    """Return the first expression that GitHub would fill in; empty if there is none."""
    _, begin, rest = text.partition(_BEGIN)
    inside, end, _ = rest.partition(_END)
    return (inside.strip() or _BEGIN) if begin and end else ""


def _runner(node: yaml.Node | None) -> str:
    """Return the runner of a job: a label, several, or a group."""
    if isinstance(node, yaml.MappingNode):
        return ", ".join(filter(None, map(_runner, _table(node).values())))
    return ", ".join(filter(None, map(_text, _items(node)))) or _text(node)


def _variables(node: yaml.Node | None) -> dict[str, str]:
    return {name: _text(value) for name, value in _table(node).items()}


def _table(node: yaml.Node | None) -> dict[str, yaml.Node]:
    if not isinstance(node, yaml.MappingNode):
        return {}
    most = configs.load(CONFIG)["limits"]["keys"]
    if len(node.value) > most:
        raise untrusted.UnreadableError(
            f"line {node.start_mark.line + 1}: a table with more than {most} keys"
        )
    # Of two equal keys the last one counts, as GitHub's own parser refuses such a file anyway.
    return {_text(key): value for key, value in node.value if isinstance(key, yaml.ScalarNode)}


def _items(node: yaml.Node | None) -> list[yaml.Node]:
    return node.value if isinstance(node, yaml.SequenceNode) else []


def _text(node: yaml.Node | None, most: int = 0) -> str:
    """Return a text as it is written; empty for null and for anything but a scalar."""
    if not isinstance(node, yaml.ScalarNode) or node.tag == "tag:yaml.org,2002:null":
        return ""
    text = str(node.value)[: most or configs.load(CONFIG)["limits"]["text"]]
    text = text.lower() if node.tag == "tag:yaml.org,2002:bool" and not node.style else text
    # Escapes of YAML can give a NUL, which ends a script, and halves of surrogates, which no log takes.
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode("utf-8")


def _first(script: str) -> str:
    return script.strip().partition("\n")[0][: configs.load(CONFIG)["limits"]["text"]]


def as_json(files: Workflows) -> dict[str, Any]:
    """Return the jobs with their steps, and the files that cannot be read, as JSON."""
    return {
        "jobs": [_job_as_json(job) for job in files.jobs],
        "unreadable": [{"file": path.name, "why": why} for path, why in files.unreadable],
    }


def _job_as_json(job: WorkflowJob) -> dict[str, Any]:
    steps = [{"name": step.name, "why": job.why or step.why} for step in job.steps]
    return {"job": job.name, "runner": job.runner, "why": job.why, "steps": steps}


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


class _RefusedError(Exception):
    """The script cannot be shown to run listed programs only."""


@dataclass
class _Words:
    """The words of one command; `written` are the targets of redirections."""

    words: list[str] = field(default_factory=list)
    written: list[str] = field(default_factory=list)


def _check(command: _Words, rules: Mapping[str, Any]) -> None:
    words = list(command.words)
    for target in command.written:
        # A script that writes a file could write one that a listed program then runs.
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
                # Only here, at the start of a word: within one, `#` is a character like any other.
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
            # Within backquotes a backslash is removed before the commands are read, so they are others than
            # they look.
            if "\\" in inner:
                raise _RefusedError("its commands are nested in quotes")
            self._read_inner(inner)
            return _COMPUTED
        after = self._text[self._at + 1 : self._at + 2]
        # `$'...'` has escapes, `$"..."` a translation and `$[...]` arithmetic; each may run or hide a
        # command.
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
