"""From a failed command to its first error, and, where it is known, to cause and remedy."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tritonsmith import configs
from tritonsmith.errors import StepError
from tritonsmith.plan.runner import CommandFailedError

MAX_LINES = 20  # of a first error, on the screen
_TAIL = 200  # lines that are matched where the first error does not tell enough

# A line on which an error begins, most telling first.
_STARTS = (
    re.compile(r"^(?P<file>[^\s:][^:\n]*):(?P<line>\d+):(?:\d+:)? (?:fatal )?error: "),
    re.compile(r"^CMake Error(?: at (?P<file>[^:]+):(?P<line>\d+))?"),
    re.compile(r"undefined (?:reference|symbol)"),
    re.compile(r"^(?:\S*(?:ld|ld\.lld|mold|collect2)(?:-\d+)?): (?:fatal )?error: "),
    re.compile(r"^\S*(?:clang|gcc|g\+\+|clang\+\+)(?:-\d+)?: (?:fatal )?error: "),
    re.compile(r"^(?:fatal|error|ERROR): "),
    re.compile(r"^\S*Error: "),
    re.compile(r"^FAILED: "),
)
# A line that ends an error's block: the next command's, or the next error's.
_ENDS = re.compile(
    r"^(\[\d+/\d+\]|FAILED: |ninja: |-- Configuring incomplete|"
    r"\d+ (warning|error)s? (and \d+ errors? )?generated)"
)


@dataclass(frozen=True)
class FirstError:
    """The first error of a command's output.

    Attributes:
        lines: at most `MAX_LINES`, the error first.
        file: that it is in; may be empty.
        line: in that file; 0 if unknown.
    """

    lines: tuple[str, ...]
    file: str = ""
    line: int = 0


@dataclass(frozen=True)
class Diagnosis:
    """A known failure.

    Attributes:
        id: row of `configs/diagnoses.toml`.
        cause: in a sentence.
        remedy: things to try.
    """

    id: str
    cause: str
    remedy: tuple[str, ...]


def first_error(output: Sequence[str]) -> FirstError | None:
    """Find the first compiler, linker or CMake error.

    Args:
        output: lines of the failed command.
    """
    for pattern in _STARTS:
        for index, line in enumerate(output):
            if match := pattern.search(line):
                groups = match.groupdict()
                block = _block(output, index)
                return FirstError(block, groups.get("file") or "", int(groups.get("line") or 0))
    return None


def _block(output: Sequence[str], start: int) -> tuple[str, ...]:
    lines = [output[start]]
    pattern = next(pattern for pattern in _STARTS if pattern.search(output[start]))
    for line in output[start + 1 : start + MAX_LINES]:
        if _ENDS.match(line) or (line and pattern.search(line)):
            break
        lines.append(line)
    while lines and not lines[-1].strip():
        lines.pop()
    return tuple(lines)


def diagnose(output: Sequence[str], *, near_pin: bool = False) -> Diagnosis | None:
    """Match the output against known failures.

    Args:
        output: lines of the failed command.
        near_pin: the LLVM is known not to be the pin.
    """
    text = "\n".join(output)
    for row in configs.load("diagnoses")["diagnosis"]:
        if row.get("needs") == "near-pin" and not near_pin:
            continue
        if re.search(row["pattern"], text):
            return Diagnosis(row["id"], row["cause"], tuple(row["remedy"]))
    return None


def explain(failure: CommandFailedError, *, llvm: str = "", pin: str = "") -> StepError:
    """The error that a person reads.

    Args:
        failure: from the runner.
        llvm: the LLVM at hand, in words, if it is not the pin; empty otherwise.
        pin: the pin, in words.
    """
    found = first_error(failure.output)
    known = diagnose(_telling(failure.output, found), near_pin=bool(llvm))
    if known is None and not (found and found.file):  # pip and a crashed clang tell the cause above
        known = diagnose(failure.output[-_TAIL:], near_pin=bool(llvm))
    lines: list[str] = []
    if known:
        lines.append(f"{known.cause} [{known.id}]")
        if known.id == "llvm-near-pin":
            lines += [f"  this LLVM: {llvm}", f"  the pin:   {pin}"]
    lines += found.lines if found else failure.output[-MAX_LINES:]
    where = f"{found.file}:{found.line}" if found and found.file else failure.log
    hints = [*(known.remedy if known else ()), f"the whole log: {failure.log}"]
    return StepError(
        f"{failure.step.phase} failed (exit code {failure.code})",
        where=where,
        why="\n".join(lines),
        hints=hints,
    )


def _telling(output: Sequence[str], found: FirstError | None) -> Sequence[str]:
    """What to match: the first error's block, so that a later consequence does not win; else the tail."""
    return found.lines if found and not found.lines[0].startswith("FAILED") else output[-_TAIL:]
