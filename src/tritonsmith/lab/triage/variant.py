"""The variants of a triage: the rows of `configs/triage.toml` that fit a symptom and a Triton."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tritonsmith.core import configs
from tritonsmith.core.text import version_key
from tritonsmith.facts import checkout, variables

_CONFIG = "triage"


@dataclass(frozen=True)
class TriageChange:
    """One thing that is changed.

    Attributes:
        name: in tables and journals, and of its folder.
        backend: `cuda` or `hip` if it is for one.
        options: of the backend, name to value.
        variables: of the environment, name to value.
        skip: a pass that is left out.
        ptxas: an option of ptxas.
        assembler: `newer` or `older`: another ptxas; empty for its own.
        build: `assertions` or `address`: a Triton that was built with it; empty for the one under test.
        release: `newest` or `before`: another Triton; empty for the same one.
        tool: of compute-sanitizer, under which a command runs.
        launcher: a module that runs the script: `python -m LAUNCHER script.py`.
        allocator: whether it needs memory of Triton's allocator: torch's, unless the program sets another.
        says: pattern of the message of a witness in the program's output, with one group.
        needs: what it needs to run; empty for nothing. Only `a GPU` is ever found.
    """

    name: str
    backend: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    skip: str = ""
    ptxas: str = ""
    assembler: Literal["", "newer", "older"] = ""
    build: Literal["", "assertions", "address"] = ""
    release: str = ""
    tool: str = ""
    launcher: str = ""
    allocator: bool = False
    says: str = ""
    needs: str = ""

    def version(self, triton: str) -> str:
        """Return the other release that it is about; empty if there is none."""
        # `before` is the release line before this one: patch releases of one line share most of their code.
        here = version_key(triton)
        every = [wheel for row in checkout.triton_releases() for wheel in row.wheels]
        newer = [wheel for wheel in every if version_key(wheel) > here]
        older = [wheel for wheel in every if version_key(wheel)[:2] < here[:2]]
        releases = {"newest": newer, "before": older}.get(self.release, [])
        return releases[-1] if releases else ""


@dataclass(frozen=True)
class Meaning:
    """The meaning of a change: the conclusion if the symptom is gone with it, and when it is tried.

    Attributes:
        role: `cause` names the culprit; `side` says on which side of a line the culprit is; `witness` reports
            faults of its own, and is no cause if the symptom is gone. A `baseline` changes nothing.
        family: causes of one family are one cause; empty for a witness that contradicts none.
        gone: the conclusion if the symptom is gone.
        stays: the conclusion if the symptom stays; empty if there is none.
        alone: the conclusion by symptom, `gone` or `shows`, where without this change nothing can be tested.
        next: the next step if the symptom is gone.
        line: `stage` and `text` of the operations that it is about.
        source: where this is known from.
        after: a variant that must have made the symptom go; empty for one that is always tried.
        last: tried only where no cause was found among those that are not.
        since: the first release line that has it.
        until: the last one; empty if the newest has it.
        commands: whether it can be tried on a command.
        kernels: whether it can be tried on a kernel that is compiled only.
        symptoms: kinds of symptoms that it can explain; all but `slow` and `wrong` if empty.
    """

    role: Literal["cause", "side", "witness", "baseline"]
    family: str = ""
    gone: str = ""
    stays: str = ""
    alone: Mapping[str, str] = field(default_factory=dict)
    next: str = ""
    line: Mapping[str, str] = field(default_factory=dict)
    source: str = ""
    after: str = ""
    last: bool = False
    since: str = "2.0"
    until: str = ""
    commands: bool = True
    kernels: bool = True
    symptoms: tuple[str, ...] = ()


@dataclass(frozen=True)
class TriageVariant:
    """A row of the table: a change and its meaning.

    Attributes:
        change: the thing that is changed.
        meaning: the conclusions from it.
    """

    change: TriageChange
    meaning: Meaning

    @property
    def name(self) -> str:
        """The name of the change."""
        return self.change.name

    def fits(self, triton: str, backends: frozenset[str], *, command: bool, symptom: str) -> bool:
        """Report whether a variant can be tried, and could explain the symptom.

        Args:
            triton: the version.
            backends: `cuda`, `hip`, or both if that is unknown.
            command: whether a command is tested, not a kernel.
            symptom: the kind of symptom.
        """
        # A variable that this release does not read would change nothing, and look like a cleared suspect.
        change, meaning = self.change, self.meaning
        known = [row for name in change.variables if (row := variables.find(name))]
        return (
            (meaning.commands if command else meaning.kernels)
            and (not change.backend or change.backend in backends)
            # Most rows are about a failure or a limit; why a compile is slow or wrong is what only some can
            # explain.
            and (symptom in meaning.symptoms if meaning.symptoms else symptom not in ("slow", "wrong"))
            and variables.covers(triton, meaning.since, meaning.until)
            and all(row.exists(triton) for row in known)
            and (not change.release or bool(change.version(triton)))
        )


def variant_rows() -> Any:
    """Return the whole table, for a journal's key: its conclusions may change between two runs."""
    return configs.load(_CONFIG)


def every() -> Iterator[TriageVariant]:
    """Yield all variants, in the order in which they are tried."""
    for row in configs.load(_CONFIG)["variant"]:
        yield _of_row(row)


def ordered(failed_in: str) -> Iterator[TriageVariant]:
    """Yield all variants, first the compile without the pass in which it fails.

    Args:
        failed_in: as MLIR names its class, `TritonGPUCoalesce`; empty if it is unknown.
    """
    rows = list(every())
    # MLIR already named the pass, so this is the likeliest cause, and a table cannot list every pass.
    if failed_in:
        skips = {row.name: _bare(row.change.skip) for row in rows if row.change.skip}
        known = next((row for row in rows if skips.get(row.name) == _bare(failed_in)), None)
        rows = [row for row in rows if row is not known]
        # A row of the table has a better name for the family, which its other variants share.
        family = known.meaning.family if known else f"the pass {failed_in}"
        skip = known.change.skip if known else failed_in
        # It gets the family of its row; otherwise the two would count as two causes, and the triage be
        # undecided.
        row = {"name": f"without {skip}", "family": family, "skip": skip}
        yield _of_row({**configs.load(_CONFIG)["failing-pass"], **row})
    yield from rows


def _of_row(row: Mapping[str, Any]) -> TriageVariant:
    # A row has the fields of both, and each class takes its own.
    return TriageVariant(configs.as_dataclass(TriageChange, row), configs.as_dataclass(Meaning, row))


def _bare(name: str) -> str:
    """Reduce `tritongpu-coalesce` and `TritonGPUCoalesce` to the same letters."""
    return name.replace("-", "").lower()


def times(name: str) -> float:
    """Return a number of the table `[times]`."""
    return float(configs.load(_CONFIG)["times"][name])


def baselines() -> int:
    """Return how often a command is run before anything is changed."""
    return int(times("baseline"))
