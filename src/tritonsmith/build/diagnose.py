"""Find the first error of a failed command and, where known, its cause and remedy."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from tritonsmith.core import configs
from tritonsmith.core.errors import StepError
from tritonsmith.core.plan.steps.base import CommandFailedError

MAX_LINES = 20  # lines of a first error on the screen
_COMPILED = (".c", ".cc", ".cpp", ".h", ".hpp", ".inc", ".td")
_TAIL = 200  # lines to match where the first error is not specific enough

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
# Lines that lead to the next error, and no longer belong to this one.
_LEADS = re.compile(r"^(?:In file included from |\s+from )|: (?:In|At) [^:]*.*:$")
# A line that ends an error's block: output of the next command, or the next error.
_ENDS = re.compile(
    r"^(\[\d+/\d+\]|FAILED: |ninja: |-- Configuring incomplete|"
    r"\d+ (warning|error)s? (and \d+ errors? )?generated)"
)
_PLACE = re.compile(r"^(?P<file>[^\s:][^:\n]*):\d+:(?:\d+:)? (?P<kind>(?:fatal )?error|note): (?P<text>.*)$")
# `llvm-19/include/mlir/IR/X.h`, `llvm-project/mlir/include/mlir/IR/X.h`, `/usr/include/llvm-19/llvm/MC/X.h`
_HEADER = re.compile(r"(?:^|/)include/(?:llvm-\d+/)?(?:mlir|llvm|lld)(?:-c)?/")
# Notes on how the compiler got there; they do not point to a declaration.
_WAY = re.compile(
    r"in (?:instantiation|implicit|definition|expansion|evaluation)|while |during |expanded from"
)
_FILE = re.compile(r"[\s'\"\u2018](?P<name>(?:mlir|llvm|lld)(?:-c)?/[\w./-]+\.(?:h|inc|td|def))\b")
_LIBRARY = re.compile(r"(?:find|found).*?\s-l(?P<name>(?:MLIR|LLVM)\w+)")
# In quotes (\u2018 in GCC's output): `mlir::LLVM::CallOp`, but nothing in Triton's own `mlir::triton`.
_NAME = re.compile(
    r"['\u2018](?:const |class |struct |enum |union )*(?:::)?"
    r"(?P<name>(?:mlir|llvm)(?:::(?!triton\b|gluon\b|proton\b)\w+)*)(?![\w:])"
)


@dataclass(frozen=True)
class FirstError:
    """The first error of a command's output.

    Attributes:
        lines: at most `MAX_LINES`, the error first.
        file: file of the error; may be empty.
        line: line in that file; 0 if unknown.
        block: all of its lines, including every note.
    """

    lines: tuple[str, ...]
    file: str = ""
    line: int = 0
    block: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class Diagnosis:
    """A known failure.

    Attributes:
        id: id of a row in `configs/diagnoses.toml`.
        cause: the cause, in a sentence.
        remedy: remedies to try.
        unsure: reason why the cause may be another; empty if it is certain.
    """

    id: str
    cause: str
    remedy: tuple[str, ...]
    unsure: str = ""

    @property
    def in_words(self) -> str:
        """The cause and its certainty."""
        return f"possibly {self.cause}; uncertain: {self.unsure}" if self.unsure else self.cause


def first_error(output: Sequence[str]) -> FirstError | None:
    """Find the first compiler, linker or CMake error of a failed command."""
    # The most telling kind of line wins, wherever it stands: with several jobs "FAILED:" and linker errors
    # come before the compiler error that caused them.
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
        # Everything up to the next error of the same kind: notes may be long, and one of them may be the
        # line that points into LLVM's headers.
        if _ENDS.match(line) or (line and pattern.search(line)):
            break
        lines.append(line)
    # "In file included from" at the end leads to the next error.
    while len(lines) > 1 and (not lines[-1].strip() or _LEADS.search(lines[-1])):
        lines.pop()
    return tuple(lines)


def failing(output: Sequence[str]) -> tuple[tuple[str, FirstError], ...]:
    """Return each failed output of `ninja -k 0`, which continues after failures, with its first error."""
    starts = [number for number, line in enumerate(output) if line.startswith("FAILED: ")]
    failures = []
    for start, end in zip(starts, [*starts[1:], len(output)], strict=True):
        # Ninja 1.13 writes the exit code in front of the output's name.
        target = re.sub(r"^FAILED: (\[code=\d+\] )?", "", output[start]).strip()
        stop = next((at for at in range(start + 1, end) if _ENDS.match(output[at])), end)
        error = first_error(output[start + 1 : stop]) or first_error(output[start:stop])
        failures += [(target, error)] if error else []
    return tuple(failures)


def diagnose(output: Sequence[str], *, near_pin: bool = False) -> Diagnosis | None:
    """Match the output against known failures. Set `near_pin` if the LLVM is known not to be the pin."""
    text = "\n".join(output)
    # The order of the rows matters: special cases before general ones.
    for row in configs.load("diagnoses")["diagnosis"]:
        if "pattern" in row and re.search(row["pattern"], text):
            return Diagnosis(row["id"], row["cause"], tuple(row["remedy"]))
        if row.get("structure") == "near-pin" and near_pin and (evidence := evidence_in(output)):
            return of_near_pin("" if evidence.sure else evidence.why)
    return None


def evidence_in(output: Sequence[str]) -> Evidence | None:
    """Return evidence in the first error's lines that the LLVM is not the pin."""
    error = first_error(output)
    return evidence(error.block) if error else None


def of_near_pin(unsure: str = "") -> Diagnosis:
    """Return the diagnosis "this LLVM is near the pin"."""
    rows = configs.load("diagnoses")["diagnosis"]
    row = next(row for row in rows if row.get("structure") == "near-pin")
    return Diagnosis(row["id"], row["cause"], tuple(row["remedy"]), unsure)


def explain(failure: CommandFailedError, *, llvm: str = "", pin: str = "", dirty: bool = False) -> StepError:
    """Build the error that the user sees.

    `llvm` and `pin` are descriptions; `llvm` is empty if it is the pin. `dirty`: local changes are another
    possible cause.
    """
    first = first_error(failure.output)
    known = diagnose(_telling(failure.output, first), near_pin=bool(llvm))
    # pip and a crashed clang print the cause earlier than the line that looks like the error.
    if known is None and not (first and first.file):
        known = diagnose(failure.output[-_TAIL:], near_pin=bool(llvm))
    if llvm and first and first.file.endswith(_COMPILED):
        known = weighed(known, dirty=dirty)
    lines: list[str] = []
    if known:
        lines.append(f"{known.in_words} [{known.id}]")
        if known.id == of_near_pin().id:
            lines += llvm_and_pin(llvm, pin)
    lines += first.lines if first else failure.output[-MAX_LINES:]
    where = f"{first.file}:{first.line}" if first and first.file else failure.log
    hints = [*(known.remedy if known else ()), f"full log: {failure.log}"]
    return StepError(
        f"{failure.step.phase} failed (exit code {failure.code})",
        where=where,
        why="\n".join(lines),
        hints=hints,
    )


def weighed(known: Diagnosis | None, *, dirty: bool) -> Diagnosis | None:
    """Adjust the diagnosis of a compile error against an LLVM that is not the pin."""
    if known is None:
        # A pin's sources compile with the pin. If nobody changed them, the LLVM is what is left.
        clean = "the sources are unmodified, and nothing in the error points to LLVM"
        return None if dirty else of_near_pin(clean)
    if known.id == of_near_pin().id and dirty and not known.unsure:
        return of_near_pin("the checkout has local changes")
    return known


def llvm_and_pin(llvm: str, pin: str) -> tuple[str, str]:
    """Return a line for each of the two LLVMs."""
    return f"  this LLVM: {llvm}", f"  the pin:   {pin}"


def _telling(output: Sequence[str], first: FirstError | None) -> Sequence[str]:
    """Return the lines to match: the first error's block, or the tail."""
    # A consequence of the first error, further down, must not match first.
    return first.block if first and not first.lines[0].startswith("FAILED") else output[-_TAIL:]


@dataclass(frozen=True)
class Evidence:
    """The reason why an error is attributed to the LLVM.

    Attributes:
        why: the reason, in words.
        sure: it points to LLVM itself; a mere name may be one that Triton declares in LLVM's namespaces.
    """

    why: str
    sure: bool = True


def evidence(error: Sequence[str]) -> Evidence | None:
    """Return evidence that an error, including all its notes, is caused by the LLVM; None for none."""
    # By the locations and not by the text: a changed API shows as an error, or a note of one, at a
    # declaration in LLVM's headers, or as an error about a header, a library or a name of LLVM's. A warning
    # of a newer compiler, which has a remedy of its own and nothing to do with the LLVM.
    if not error or "[-Werror" in error[0]:
        return None
    for pattern in (_FILE, _LIBRARY):
        if (missing := pattern.search(error[0])) and _is_missing(error[0]):
            return Evidence(f"this LLVM has no {missing['name']}")
    for line in error:
        place = _PLACE.match(line)
        if (
            place
            and _HEADER.search(place["file"])
            and not (place["kind"] == "note" and _WAY.match(place["text"]))
        ):
            return Evidence(f"it points to {place['file']}")
    first = _PLACE.match(error[0])
    if first and first["file"].endswith(".inc"):
        return Evidence("it is in a file that this LLVM's mlir-tblgen generated", sure=False)
    if first and (named := _NAME.search(first["text"])):
        return Evidence(f"it names {named['name']} but points to no LLVM declaration", sure=False)
    return None


def _is_missing(line: str) -> bool:
    """Report whether an error line of a compiler or linker names a missing file or library."""
    return bool(re.search(r"not found|[Nn]o such file|(?:unable to|cannot|not) find", line))
