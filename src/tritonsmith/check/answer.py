"""The answer of a check: its passes, the culprit, and the runs of the interpreter."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tritonsmith.check.compare import Difference
from tritonsmith.check.memory import Contents

KNOWN = ("same text", "equal", "close", "reference")


class ResultChange(StrEnum):
    """The ways in which a pass changes a kernel."""

    RESULT = "result"
    COPIES = "copies land late"
    READS = "dots and stores read late"
    OUTSIDE = "reads outside"
    BEYOND = "accesses shared memory outside of its allocation"
    ENDLESS = "does not end"
    ASSUMED = "assumes what does not hold"


@dataclass(frozen=True)
class CheckedPass:
    """A text that a pass left, and the outcome of running it.

    Attributes:
        number: the number of the dump that was run.
        name: the pass that left it, as a command line names it; empty for the input of the first pass.
        status: `reference`, `same text`, `equal`, `close`, `differs`, `unknown`, or `lowered` once there
            is no Triton IR any more.
        why: the reason for `unknown`, such as an operation that the check does not know.
        apart: the largest relative difference within the tolerance.
        waits: why its waits and barriers could not be checked; empty if they were, or if there are none.
        others: passes that ran in between and left no text of the whole module.
    """

    number: int
    name: str
    status: str
    why: str = ""
    apart: float = 0.0
    waits: str = ""
    others: tuple[str, ...] = ()

    @property
    def sure(self) -> bool:
        """Return whether nothing is left open: the text was compared, and so were its waits."""
        return self.status in KNOWN and not self.waits


@dataclass(frozen=True)
class Culprit:
    """The first pass that changes the result.

    Attributes:
        checked: the pass.
        change: the kind of change.
        difference: the first element that differs, or that is read outside; None if there is none.
        seed: the seed of the inputs.
        program: ids of the program that wrote the element.
        contents: the contents of memory in that run.
        arguments: the kernel's arguments by name, without pointers.
        store: name of the argument whose memory holds the element.
        operation: the first operation after the pass whose value is new; empty if there is none.
        line: FILE:LINE of that operation.
        suspects: candidate passes; more than one if a text between them could not be run.
        place: the place in shared memory that is accessed outside its allocation; else empty.
    """

    checked: CheckedPass
    change: ResultChange
    difference: Difference | None
    seed: int
    program: tuple[int, int, int]
    contents: Contents
    arguments: dict[str, Any]
    store: str
    operation: str
    line: str
    suspects: tuple[str, ...]
    place: str = ""


@dataclass(frozen=True)
class InterpretedRuns:
    """The results of TRITON_INTERPRET=1, compared with those of the first text.

    Attributes:
        status: `equal`, `close`, `differs` or `unknown`.
        why: the reason for `unknown`, from the interpreter or from the comparison.
        apart: the largest relative difference within the tolerance.
        seed: the seed of the inputs under which they differ.
        program: ids of the program that differs.
        contents: the contents of memory in that run.
        difference: the first element; None if the interpreter only reads memory that the first text does not.
        store: name of the argument whose memory holds the element.
        hints: suggestions where the status is `unknown`.
    """

    status: str
    why: str = ""
    apart: float = 0.0
    seed: int = 0
    program: tuple[int, int, int] = (0, 0, 0)
    contents: Contents = Contents.PLAIN
    difference: Difference | None = None
    store: str = ""
    hints: tuple[str, ...] = ()


@dataclass(frozen=True)
class CheckAnswer:
    """The answer of a check of one kernel.

    Attributes:
        kernel: its name.
        target: `cuda:90`; empty if the dump does not say.
        passes: the texts that were run, in order.
        culprit: None if no pass changed the result.
        elements: number of elements that the runs of the reference wrote.
        runs: number of inputs (seed, program, contents) under which the kernel was run.
        left_out: number of inputs under which it does not end, or makes an assumption that does not hold.
        racing: number of elements that one operation wrote more than once, with different values.
        gaps: parts of the first text that these inputs do not exercise.
        interpreted: the runs of the interpreter; None if they were not requested.
    """

    kernel: str
    target: str
    passes: tuple[CheckedPass, ...]
    culprit: Culprit | None
    elements: int
    runs: int
    left_out: int
    racing: int
    gaps: tuple[str, ...]
    interpreted: InterpretedRuns | None = None

    @property
    def checked(self) -> int:
        """The number of passes that were compared."""
        return sum(row.status in KNOWN for row in self.passes)

    @property
    def open(self) -> tuple[CheckedPass, ...]:
        """The texts at either end that were not compared: before the first certain one, or after the last."""
        sure = [number for number, row in enumerate(self.passes) if row.sure]
        ends = (*self.passes[: sure[0]], *self.passes[sure[-1] + 1 :]) if sure else self.passes
        return tuple(row for row in ends if row.status == "unknown" or row.waits)

    @property
    def reasons(self) -> list[str]:
        """The reasons why those texts are open, sorted and without duplicates."""
        return sorted({row.why or row.waits for row in self.open})
