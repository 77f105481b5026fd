"""Find the first error of a failed command and, where known, its cause and remedy."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from tritonsmith.build import near_pin
from tritonsmith.build.near_pin import Evidence
from tritonsmith.core import configs
from tritonsmith.core.errors import StepError
from tritonsmith.core.plan.steps.base import CommandFailedError

MAX_LINES = 20  # of a first error, on the screen
_COMPILED = (".c", ".cc", ".cpp", ".h", ".hpp", ".inc", ".td")
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
# What leads to the next error: it is not this one's any more.
_LEADS = re.compile(r"^(?:In file included from |\s+from )|: (?:In|At) [^:]*.*:$")
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
        block: all of its lines, however many its notes have.
    """

    lines: tuple[str, ...]
    file: str = ""
    line: int = 0
    block: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class Diagnosis:
    """A known failure.

    Attributes:
        id: row of `configs/diagnoses.toml`.
        cause: in a sentence.
        remedy: things to try.
        unsure: why it may be something else; empty if it is certain.
    """

    id: str
    cause: str
    remedy: tuple[str, ...]
    unsure: str = ""

    @property
    def in_words(self) -> str:
        """The cause, and how certain it is."""
        return f"possibly {self.cause}; uncertain: {self.unsure}" if self.unsure else self.cause


def first_error(output: Sequence[str]) -> FirstError | None:
    """Find the first compiler, linker or CMake error of a failed command."""
    for pattern in _STARTS:
        for index, line in enumerate(output):
            if match := pattern.search(line):
                groups = match.groupdict()
                block = _block(output, index)
                line_number = int(groups.get("line") or 0)
                return FirstError(block[:MAX_LINES], groups.get("file") or "", line_number, block)
    return None


def _block(output: Sequence[str], start: int) -> tuple[str, ...]:
    lines = [output[start]]
    pattern = next(pattern for pattern in _STARTS if pattern.search(output[start]))
    for line in output[start + 1 :]:
        if _ENDS.match(line) or (line and pattern.search(line)):
            break
        lines.append(line)
    while len(lines) > 1 and (not lines[-1].strip() or _LEADS.search(lines[-1])):
        lines.pop()
    return tuple(lines)


def failing(output: Sequence[str]) -> tuple[tuple[str, FirstError], ...]:
    """The output and the first error of each failed command of `ninja -k 0`, which goes on after failures."""
    starts = [number for number, line in enumerate(output) if line.startswith("FAILED: ")]
    found = []
    for start, end in zip(starts, [*starts[1:], len(output)], strict=True):
        made = re.sub(r"^FAILED: (\[code=\d+\] )?", "", output[start]).strip()
        stop = next((at for at in range(start + 1, end) if _ENDS.match(output[at])), end)
        error = first_error(output[start + 1 : stop]) or first_error(output[start:stop])
        found += [(made, error)] if error else []
    return tuple(found)


def diagnose(output: Sequence[str], *, near_pin: bool = False) -> Diagnosis | None:
    """Match the output against known failures; `near_pin`: the LLVM is known not to be the pin."""
    text = "\n".join(output)
    for row in configs.load("diagnoses")["diagnosis"]:
        if "pattern" in row and re.search(row["pattern"], text):
            return Diagnosis(row["id"], row["cause"], tuple(row["remedy"]))
        if row.get("structure") == "near-pin" and near_pin and (seen := evidence_in(output)):
            return of_near_pin("" if seen.sure else seen.why)
    return None


def evidence_in(output: Sequence[str]) -> Evidence | None:
    """Evidence in an error's lines that the LLVM is not the pin."""
    found = first_error(output)
    return near_pin.evidence(found.block) if found else None


def of_near_pin(unsure: str = "") -> Diagnosis:
    """The diagnosis "this LLVM is near the pin"."""
    rows = configs.load("diagnoses")["diagnosis"]
    row = next(row for row in rows if row.get("structure") == "near-pin")
    return Diagnosis(row["id"], row["cause"], tuple(row["remedy"]), unsure)


def explain(failure: CommandFailedError, *, llvm: str = "", pin: str = "", dirty: bool = False) -> StepError:
    """Build the error that the user sees.

    `llvm` and `pin` are in words; `llvm` is empty if it is the pin. Local changes (`dirty`) may be the reason
    as well.
    """
    found = first_error(failure.output)
    known = diagnose(_telling(failure.output, found), near_pin=bool(llvm))
    if known is None and not (found and found.file):  # pip and a crashed clang tell the cause above
        known = diagnose(failure.output[-_TAIL:], near_pin=bool(llvm))
    if llvm and found and found.file.endswith(_COMPILED):
        known = weighed(known, dirty=dirty)
    lines: list[str] = []
    if known:
        lines.append(f"{known.in_words} [{known.id}]")
        if known.id == of_near_pin().id:
            lines += both(llvm, pin)
    lines += found.lines if found else failure.output[-MAX_LINES:]
    where = f"{found.file}:{found.line}" if found and found.file else failure.log
    hints = [*(known.remedy if known else ()), f"full log: {failure.log}"]
    return StepError(
        f"{failure.step.phase} failed (exit code {failure.code})",
        where=where,
        why="\n".join(lines),
        hints=hints,
    )


def weighed(known: Diagnosis | None, *, dirty: bool) -> Diagnosis | None:
    """The diagnosis of a compile error against an LLVM that is not the pin, with other possible causes."""
    if known is None:
        clean = "the sources are unmodified, and nothing in the error points to LLVM"
        return None if dirty else of_near_pin(clean)
    if known.id == of_near_pin().id and dirty and not known.unsure:
        return of_near_pin("the checkout has local changes")
    return known


def both(llvm: str, pin: str) -> tuple[str, str]:
    """The two LLVMs, in words."""
    return f"  this LLVM: {llvm}", f"  the pin:   {pin}"


def _telling(output: Sequence[str], found: FirstError | None) -> Sequence[str]:
    """What to match: the first error's block, so that a later consequence does not win; else the tail."""
    return found.block if found and not found.lines[0].startswith("FAILED") else output[-_TAIL:]
