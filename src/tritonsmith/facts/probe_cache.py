"""Cached answers of programs, valid while their files are unchanged.

`clang++ --version` takes 20 ms, CMake's script of the tool's own `.venv` 70: a build that has nothing to do
would spend most of its time on them. An answer belongs to the path that was asked, and to the file behind its
links: its inode, size and time stamp.

Shell scripts and compiler caches are asked each time: `clang++` may be a name of `ccache`, or a script that
picks one by an environment variable.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from tritonsmith.core import untrusted
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import SmithError
from tritonsmith.core.process import capture

FILE = "programs.json"  # in the workspace
_SCHEMA = 1
_MOST = 200  # answers; more are leftovers of programs that are gone
_STAND_FOR_OTHERS = ("ccache", "distcc", "icecc", "recc", "sccache")  # by links with a compiler's name


@dataclass
class Memory:
    """Cached answers.

    Attributes:
        file: the file that they are kept in.
        answers: question (the command line) to the identity of the program's file, and its answer.
        learned: whether an answer is not in the file yet.
    """

    file: Path
    answers: dict[str, tuple[str, str]] = field(default_factory=dict)
    learned: bool = False


def ask(program: Path, *arguments: str, timeout: float = 10.0) -> str | None:
    """Return the output of a deterministic program; None if it fails or exceeds the timeout in seconds."""
    if not _answers_for_itself(program):
        return capture((str(program), *arguments), timeout=timeout)
    question = json.dumps([str(program), *arguments])
    return remembered(question, program, lambda: capture((str(program), *arguments), timeout=timeout))


def remembered(question: str, file: Path, answer_of: Callable[[], str | None]) -> str | None:
    """Return an answer that depends on one file only; None is not remembered.

    Args:
        question: the key of the answer.
        file: its inode, size and time stamp are compared.
        answer_of: computes the answer.
    """
    identity = _identity(file)
    memory = _memory() if identity else None
    # The path is a part of the question, and the file behind its links of the identity: an
    # update-alternatives link that leads elsewhere is asked again.
    if memory and question in memory.answers and memory.answers[question][0] == identity:
        return memory.answers[question][1]
    answer = answer_of()
    if memory and identity and answer is not None:
        # The newest come last, so that the oldest are dropped.
        memory.answers.pop(question, None)
        memory.answers[question] = (identity, answer)
        memory.learned = True
    return answer


def unsaved() -> tuple[Path, str] | None:
    """Return the file of the answers, and its new text; None if no answer was learned."""
    memory = _memory()
    if memory is None or not memory.learned:
        return None
    newest = dict(list(memory.answers.items())[-_MOST:])
    return memory.file, json.dumps({"schema": _SCHEMA, "answers": newest}, indent=1) + "\n"


def _memory() -> Memory | None:
    """Return the cached answers; None where there is no workspace to keep them in."""
    try:
        return _read(workspace.default().root / FILE)
    except SmithError:
        return None


@cache
def _read(file: Path) -> Memory:
    try:
        content = untrusted.read_json(file)
        if content["schema"] != _SCHEMA:
            return Memory(file)
        return Memory(
            file, {key: (str(identity), str(text)) for key, (identity, text) in content["answers"].items()}
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return Memory(file)


def _answers_for_itself(program: Path) -> bool:
    """Return whether this very file answers, not another found by its name or the environment."""
    real = program.resolve()
    # `/usr/lib/ccache/clang++` is a link to ccache, which runs another clang++ on PATH.
    if real.name in _STAND_FOR_OTHERS and program.name != real.name:
        return False
    # Scripts of the tool's own packages are rewritten with these.
    if program.parent == Path(sys.executable).parent:
        return True
    try:
        with untrusted.opened(real) as file:
            # What a script answers may depend on the environment (pyenv, update-alternatives).
            return file.read(2) != b"#!"
    except OSError:
        return False


def _identity(file: Path) -> str | None:
    """Return a key that changes whenever the file does; None if there is no file."""
    try:
        real = file.resolve()
        state = real.stat()
    except OSError:
        return None
    return f"{real} {state.st_ino} {state.st_size} {state.st_mtime_ns}"
