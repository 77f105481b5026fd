"""What a check found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tritonsmith.check.compare import Difference
from tritonsmith.check.memory import Contents

KNOWN = ("same text", "equal", "close", "reference")


class Change(StrEnum):
    """What a pass does to a kernel."""

    RESULT = "result"
    COPIES = "copies land late"
    READS = "dots and stores read late"
    OUTSIDE = "reads outside"
    BEYOND = "accesses shared memory outside of its allocation"
    ENDLESS = "does not end"
    ASSUMED = "assumes what does not hold"


@dataclass(frozen=True)
class CheckedPass:
    """What a pass left, run.

    Attributes:
        number: of the dump that the pass was given.
        name: of the pass, as a command line has it; empty for what the first pass is given.
        status: `reference`, `same text`, `equal`, `close`, `differs`, `unknown`, or `lowered` from where on
            there is no Triton IR any more.
        why: the operation that is not known.
        apart: the largest relative difference of those that are close.
        waits: why its waits and barriers could not be checked; empty if they were, or if there are none.
        others: passes that ran after that one, of which no text of the whole module is there.
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
        """Whether nothing of it is open."""
        return self.status in KNOWN and not self.waits


@dataclass(frozen=True)
class Culprit:
    """The first pass that changes the result.

    Attributes:
        checked: the pass.
        change: what it does.
        difference: the first element that differs, or that is read outside; None where there is none.
        seed: of the inputs.
        program: that wrote it.
        contents: of memory.
        arguments: of the kernel, by name, those that are no pointers.
        store: name of the argument that it lies behind.
        operation: first operation after the pass whose value is new; empty if there is none.
        line: FILE:LINE of that.
        suspects: passes of which one it is: more than one where the text between them could not be run.
        place: of shared memory, which is accessed and is not in its allocation; else empty.
    """

    checked: CheckedPass
    change: Change
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
    """What TRITON_INTERPRET=1 computes, beside the first text.

    Attributes:
        status: `equal`, `close`, `differs` or `unknown`.
        why: what the interpreter, or the comparison, does not know.
        apart: the largest relative difference of those that are close.
        seed: of the inputs under which it differs.
        program: that differs.
        contents: of memory.
        difference: the first element; None where the interpreter only reads what the first text does not.
        store: name of the argument that it lies behind.
        hints: what to try where it is unknown.
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
    """The result.

    Attributes:
        kernel: name.
        target: `cuda:90`; empty if the dump does not say.
        passes: in order.
        culprit: None if no pass changed the result.
        elements: that the runs of the reference wrote.
        runs: inputs under which the kernel was run: seed and program.
        left_out: inputs under which it does not end, or assumes what does not hold.
        racing: elements that one operation wrote more than once, with different values.
        gaps: what of the first text these inputs do not try.
        interpreted: what the interpreter computes; None if nobody asked.
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
        """How many passes were compared."""
        return sum(one.status in KNOWN for one in self.passes)

    @property
    def open(self) -> tuple[CheckedPass, ...]:
        """Texts before the reference, which were compared with nothing, and at the end, that were not run."""
        sure = [number for number, one in enumerate(self.passes) if one.sure]
        ends = (*self.passes[: sure[0]], *self.passes[sure[-1] + 1 :]) if sure else self.passes
        return tuple(one for one in ends if one.status == "unknown" or one.waits)

    @property
    def reasons(self) -> list[str]:
        """Why those are open."""
        return sorted({one.why or one.waits for one in self.open})
