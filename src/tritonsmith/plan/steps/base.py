"""The base class of steps, and the plan: everything that will happen, down to the last argument.

A step prints itself as shell, and does the same when the runner calls it: `shell` and `act`, side by side.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Iterable
from dataclasses import KW_ONLY, asdict, dataclass, fields, is_dataclass, replace
from pathlib import Path

from tritonsmith.plan.step_tools import StepTools


@dataclass(frozen=True)
class Stamp:
    """A file that marks a step as done: it exists, and its whole content equals `key`.

    Attributes:
        path: the file.
        key: of the step's inputs.
        made: the result of the step, if the stamp lies beside the result, which may have been deleted since.
        again: do the step even if this was done.
    """

    path: Path
    key: str
    made: Path | None = None
    again: bool = False

    def holds(self) -> bool:
        """Whether the step was completed with exactly these inputs, and its result still exists."""
        try:
            gone = self.made is not None and not self.made.exists()
            return not self.again and not gone and self.path.read_text(encoding="utf-8") == self.key
        except (OSError, UnicodeDecodeError):
            return False


@dataclass(frozen=True)
class Step:
    """The base class of steps.

    Attributes:
        phase: the progress bar and the line of the time table that it belongs to.
        stamp: when it holds, the step is skipped; written when the step succeeds.
    """

    _: KW_ONLY
    phase: str
    stamp: Stamp | None = None

    def shell(self) -> list[str]:
        """The step as lines of POSIX shell that can be pasted."""
        raise NotImplementedError  # pragma: no cover - abstract

    def act(self, tools: StepTools) -> None:
        """Execute the step.

        Args:
            tools: how the step starts programs and reports its progress.
        """
        raise NotImplementedError(type(self).__name__)

    @property
    def title(self) -> str:
        """A short title for the progress bar and the log."""
        return self.phase

    @property
    def goes_on(self) -> bool:
        """Whether the step resumes where it was interrupted."""
        return False


@dataclass(frozen=True)
class Plan:
    """What a task will do, in order. `--dry-run` prints the plan; the runner executes the same object."""

    title: str
    steps: tuple[Step, ...] = ()
    notes: tuple[str, ...] = ()

    def __add__(self, other: Plan) -> Plan:
        return Plan(self.title, self.steps + other.steps, self.notes + other.notes)

    @property
    def phases(self) -> tuple[str, ...]:
        """Phase names in the order of their first step."""
        return tuple(dict.fromkeys(step.phase for step in self.steps))

    def shell(self) -> str:
        """The whole plan as a POSIX shell script."""
        lines = [
            "#!/bin/sh",
            _comment(self.title),
            *(_comment(f"note: {note}") for note in self.notes),
            "set -eu",
        ]
        phase, stamp = None, None
        for step in self.steps:
            if step.phase != phase:
                phase = step.phase
                lines += ["", _comment(phase)]
            if step.stamp != stamp:
                stamp = step.stamp
                once = stamp if stamp and not stamp.again else None
                lines.append(f"# skipped if {once.path} is up to date:" if once else "# always:")
            lines += step.shell()
        return "\n".join(lines) + "\n"


def digest(*parts: object) -> str:
    """A short, stable key for inputs: 16 hex digits of the SHA-256 of their JSON."""
    encoded = json.dumps(parts, sort_keys=True, default=_plain)
    return hashlib.sha256(encoded.encode()).hexdigest()[:16]


def _plain(value: object) -> object:
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else str(value)


def step_key(step: Step) -> str:
    """A key that changes whenever anything in the step but the stamp changes."""
    values = {field.name: getattr(step, field.name) for field in fields(step) if field.name != "stamp"}
    return digest(type(step).__name__, values)


def stamped(steps: Iterable[Step], path: Path, made: Path | None = None) -> tuple[Step, ...]:
    """Give a sequence one stamp: all steps are skipped once the last one has succeeded.

    Args:
        steps: steps that make one thing together.
        path: the stamp's file, beside that thing.
        made: that thing; without it the stamp does not hold.
    """
    sequence = tuple(steps)
    stamp = Stamp(path, digest(*(step_key(step) for step in sequence)), made)
    return tuple(replace(step, stamp=stamp) for step in sequence)


def quote(path: Path | str) -> str:
    """Quote a word for the shell."""
    return shlex.quote(str(path))


def make_parent(path: Path) -> str:
    """The line of shell that creates the folder of a file."""
    return f"mkdir -p {quote(path.parent)}"


def _comment(text: str) -> str:
    return "\n".join(f"# {line}" for line in text.split("\n"))
