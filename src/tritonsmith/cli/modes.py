"""The modes of a command: flags and words that select another task, which has other flags.

`doctor --compare A B` runs the task `doctor.compare`, the command's name before it became a mode. The old
names still work, and print a note with the new spelling.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tritonsmith.core import untrusted


class Mode(NamedTuple):
    """A mode of a command.

    Attributes:
        task: the task that carries out the mode, and the command's old name.
        usage: the command, what selects the mode, and its words: `passes.show DIR --find TEXT`.
        by: what selects the mode: a flag (`--compare`), a flag with a value (`--as ptx`), the first word
            (`add`), any first word (`NAME`), a folder or suffixes (`.mlir .ll`), or a program after `--`.
        becomes: the task's flag that replaces `by`; empty if its value becomes the task's first word, or if
            it has no value.
    """

    task: str
    usage: str
    by: str
    becomes: str = ""

    @property
    def command(self) -> str:
        """The command whose mode it is."""
        return self.usage.partition(" ")[0]

    @property
    def selected(self) -> str:
        """The command, and the words that select the mode: `doctor --compare`."""
        return f"{self.command} {self.by}" if re.match(r"(--)?[a-z]", self.by) else self.usage

    def rewritten(self, words: Sequence[str]) -> list[str] | None:
        """Return the arguments of the task; None if they do not select this mode.

        Args:
            words: the arguments of the command.
        """
        # Only the first word can select a mode: a later one may be the value of a flag.
        first = words[0] if words and not words[0].startswith("-") else ""
        if self.by == "--":
            # The program after `--` selects the mode, and is also what the mode runs.
            return list(words) if "--" in words else None
        if self.by.startswith("--"):
            return _replaced(words, self.by, self.becomes)
        # A folder selects the mode, too: of files of IR, a dump has many.
        if self.by.startswith("."):
            taken = first.endswith(tuple(self.by.split())) or (first and untrusted.is_dir(Path(first)))
            return list(words) if taken else None
        if self.by.isupper():
            return [*([self.becomes] if self.becomes else ()), *words] if first else None
        return list(words[1:]) if first == self.by else None


# The first mode of a command that fits its line wins.
MODES = (
    Mode("toolchain.ptxas", "up --ptxas [VERSION]", "--ptxas"),
    Mode("doctor.compare", "doctor --compare OLD NEW", "--compare"),
    Mode("system.packages", "doctor --packages", "--packages"),
    Mode("env.explain", "env [NAME]", "NAME", "--env"),
    Mode("env.explain", "env --env NAME", "--env", "--env"),
    Mode("env.allow", "env --allow FILE", "--allow"),
    Mode("cache.verify", "cache.fill --verify -- COMMAND", "--verify"),
    Mode("cache.show", "cache.list ENTRY", "ENTRY"),
    Mode("build.explain", "build-triton --explain", "--explain"),
    Mode("ci-replay", "test-triton --ci [JOB]", "--ci"),
    Mode("worktree.add", "worktree add REF", "add"),
    Mode("worktree.remove", "worktree remove NAME", "remove"),
    Mode("pipeline", "explain --pipeline", "--pipeline"),
    Mode("container", "editor --container", "--container"),
    Mode("store.gc", "store --gc", "--gc"),
    Mode("store.verify", "store --verify", "--verify"),
    Mode("store.forget", "store --forget NAME", "--forget"),
    Mode("store.export", "store --export NAME DEST", "--export"),
    Mode("store.import", "store --import SOURCE", "--import"),
    Mode("store.adopt", "store --adopt PATH", "--adopt"),
    # As it was before `store.import` became a mode itself.
    Mode("store.adopt", "store.import --in-place PATH", "--in-place"),
    Mode("kernel.resources", "kernel.compile --resources [FILE[:KERNEL]]", "--resources"),
    Mode("kernel.bounds", "kernel.lint --bounds [FILE[:KERNEL]]", "--bounds"),
    Mode("kernel.lint-changed", "kernel.lint --changed [-- FILE.py ...]", "--changed"),
    Mode("kernel.check-changed", "kernel.check --changed [-- FILE.py ...]", "--changed"),
    Mode("layout", "kernel.show --layout LAYOUT", "--layout"),
    Mode("kernel.inline-ptx", "kernel.export --as ptx FILE[:KERNEL]", "--as ptx"),
    Mode("kernel.export", "kernel.export --as c FILE[:KERNEL]", "--as c"),
    Mode("farm.site", "farm --site [KERNELS]", "--site"),
    Mode("farm.export", "farm --export DEST", "--export"),
    Mode("farm.import", "farm --import SOURCE", "--import"),
    Mode("corpus.make", "compare --corpus-make [RECIPE.toml]", "--corpus-make"),
    Mode("corpus.add", "compare --corpus-add FILE.toml", "--corpus-add"),
    Mode("corpus.list", "compare --corpus-list", "--corpus-list"),
    Mode("corpus.remove", "compare --corpus-remove KERNEL", "--corpus-remove"),
    Mode("kernel.study", "compare FILE.toml --triton TRITON,TRITON", "--triton", "--triton"),
    # Either flag selects the mode, which then reports that the other one is missing.
    Mode("rehearse", "compare [KERNELS] --from TRITON --to TRITON", "--from", "--from"),
    Mode("rehearse", "compare [KERNELS] --to TRITON --from TRITON", "--to", "--to"),
    Mode("bisect.resume", "bisect --resume [BISECT]", "--resume"),
    Mode("bisect.status", "bisect --status [BISECT]", "--status"),
    Mode("bisect.log", "bisect --log [BISECT]", "--log"),
    Mode("bisect.skip", "bisect --skip CANDIDATE [BISECT]", "--skip"),
    Mode("passes.reduce", "reduce FILE.mlir", ".mlir .ttir .ttgir .llir .ll"),
    Mode("passes.reduce", "reduce FILE.mlir --pass NAME", "--pass", "--pass"),
    Mode("passes.import", "passes.dump --from-log FILE", "--from-log"),
    Mode("ir-env", "passes.dump --print-env [PROFILE]", "--print-env"),
    Mode("passes.find", "passes.show DIR --find TEXT", "--find", "--text"),
    Mode("passes.report", "passes.show DIR --page", "--page"),
    Mode("passes.run", "passes.replay", "--"),
)
# Commands that were renamed without becoming a mode: scripts and old issues use these names.
RENAMED = {
    "bisect.run": "bisect",
    "cache.clear": "clear-cache",
    "doctor.run": "doctor",
    "env.install-triton": "env-triton",
    "env.list": "env",
    "ir-override": "kernel.override",
    "kernel.aot": "kernel.export",
    "kernel.compare": "compare",
    "kernel.reduce": "reduce",
    "passes.env": "ir-env",
    "passes.knockout": "knockout",
    "passes.override": "kernel.override",
    "store.list": "store",
    "worktree.list": "worktree",
}
_COMMANDS = frozenset(mode.command for mode in MODES)
# `kernel.export` carries out a mode of its own, and is a command, too: its name is not an old one.
_TASKS = frozenset(mode.task for mode in MODES if mode.command != mode.task)


def of_task(task: str) -> Mode | None:
    """Return the mode that a task carries out; None for a task that is a command itself."""
    return next((mode for mode in MODES if mode.task == task), None) if task in _TASKS else None


def of_command(command: str) -> Iterator[Mode]:
    """Yield the modes of a command, less the other ways to select them."""
    # Help shows each mode once, by the first way to select it.
    tasks = dict.fromkeys(mode.task for mode in MODES if mode.command == command != mode.task)
    yield from (mode for mode in map(of_task, tasks) if mode)


def resolved(words: Sequence[str]) -> list[str]:
    """Return a command line whose modes are named by their tasks, and old names by the new ones.

    Args:
        words: without the program's name; `--` and what follows included.
    """
    before, after = _divided(words)
    # Invoke takes several tasks in one line, and each of them may have a mode.
    starts = [place for place, word in enumerate(before) if word in _COMMANDS or word in RENAMED]
    if not starts:
        return [*before, *after]
    line = before[: starts[0]]
    for start, end in zip(starts, [*starts[1:], len(before)], strict=True):
        last = end == len(before)
        task, arguments = _resolved(before[start], [*before[start + 1 : end], *(after if last else ())])
        line += [task, *arguments]
    return line


def old_names(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the old names in a command line, each with the usage of what it is now."""
    for word in _divided(words)[0]:
        task = RENAMED.get(word, word)
        if word in RENAMED or word in _TASKS:
            mode = of_task(task)
            yield word, mode.usage if mode else task


def _divided(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split a command line at `--`, which begins the second part."""
    place = words.index("--") if "--" in words else len(words)
    return list(words[:place]), list(words[place:])


def _resolved(command: str, arguments: list[str]) -> tuple[str, list[str]]:
    command = RENAMED.get(command, command)
    for mode in MODES:
        if mode.command == command and (rewritten := mode.rewritten(arguments)) is not None:
            return mode.task, rewritten
    return command, arguments


def _replaced(words: Sequence[str], by: str, becomes: str) -> list[str] | None:
    """Replace a flag, and its value if `by` has one, by another flag; None if it is not there."""
    flag, _, value = by.partition(" ")
    # Behind `--` are the flags of another program.
    for place, word in enumerate(_divided(words)[0]):
        name, equals, text = word.partition("=")
        if name == flag:
            rest = [text, *words[place + 1 :]] if equals else list(words[place + 1 :])
            if value and rest[:1] != [value]:
                return None
            return [*words[:place], *([becomes] if becomes else ()), *rest[bool(value) :]]
    return None
