"""What is changed, one thing at a time: the rows of `configs/triage.toml` that fit a symptom and a Triton."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tritonsmith.core import configs
from tritonsmith.core.versions import version_key
from tritonsmith.facts import eras, variables

_CONFIG = "triage"


@dataclass(frozen=True)
class TriageVariant:
    """One change, and what it means if the symptom is gone with it.

    Attributes:
        name: in tables, and of its folder.
        role: `cause` names what is to blame; `side` says on which side of a line that is; `witness` reports
            faults of its own, and is no cause if the symptom is gone. A `baseline` changes nothing.
        family: causes of one family are one cause; empty for a witness that contradicts none.
        gone: what it means if the symptom is gone.
        source: of the row.
        stays: what it means if the symptom stays; empty if that means nothing.
        next: what to do if it is gone.
        after: a variant that must have made the symptom go; empty for one that is always tried.
        backend: `cuda` or `hip` if it is for one.
        since: first release line that has it.
        until: last one.
        commands: whether it can be tried on a command.
        kernels: whether it can be tried on a kernel that is compiled only.
        symptoms: kinds for which it tells something; all but `slow` and `wrong` if empty.
        options: of the backend, name to value.
        variables: of the environment, name to value.
        skip: a pass that is left out.
        ptxas: an option of ptxas.
        assembler: `newer` or `older`: another ptxas; empty for its own.
        build: `assertions` or `address`: a Triton that was built with it; empty for the one under test.
        tool: of compute-sanitizer, under which a command runs.
        alone: what it means if the symptom is `gone` or `shows`, where without it nothing can be tested.
        needs: what has to be there to run it; empty where nothing has to. Only `a GPU` is ever found.
        launcher: a module that runs the script: `python -m LAUNCHER script.py`.
        says: how a witness says what it found, in what the program prints: a pattern with one group.
        allocator: it wants memory of Triton's allocator: torch's, unless the program sets another.
        last: tried only where no cause was found among those that are not.
        release: `newest` or `before`: another Triton; empty for the same one.
        line: `stage` and `text` of the operations that it is about.
    """

    name: str
    role: Literal["cause", "side", "witness", "baseline"]
    family: str
    gone: str
    source: str = ""
    stays: str = ""
    next: str = ""
    after: str = ""
    backend: str = ""
    since: str = "2.0"
    until: str = ""
    commands: bool = True
    kernels: bool = True
    symptoms: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    skip: str = ""
    ptxas: str = ""
    assembler: Literal["", "newer", "older"] = ""
    build: Literal["", "assertions", "address"] = ""
    tool: str = ""
    launcher: str = ""
    says: str = ""
    allocator: bool = False
    alone: Mapping[str, str] = field(default_factory=dict)
    needs: str = ""
    last: bool = False
    release: str = ""
    line: Mapping[str, str] = field(default_factory=dict)

    def fits(self, triton: str, backends: frozenset[str], *, command: bool, symptom: str) -> bool:
        """Report whether a variant can be tried, and would tell something.

        Args:
            triton: version.
            backends: `cuda`, `hip`, or both where nobody knows.
            command: whether a command is tested, not a kernel.
            symptom: kind of it.
        """
        known = [row for name in self.variables if (row := variables.find(name))]
        return (
            (self.commands if command else self.kernels)
            and (not self.backend or self.backend in backends)
            and (symptom in self.symptoms if self.symptoms else symptom not in ("slow", "wrong"))
            and variables.covers(triton, self.since, self.until)
            and all(row.exists(triton) for row in known)
            and (not self.release or bool(self.version(triton)))
        )

    def version(self, triton: str) -> str:
        """The other release that it is about; empty if there is none."""
        here = version_key(triton)
        every = [wheel for row in eras.releases() for wheel in row.wheels]
        newer = [one for one in every if version_key(one) > here]
        older = [one for one in every if version_key(one)[:2] < here[:2]]
        found = {"newest": newer, "before": older}.get(self.release, [])
        return found[-1] if found else ""


def variant_rows() -> Any:
    """Return the table of all variants as it is: what it says may change between two runs."""
    return configs.load(_CONFIG)


def every() -> Iterator[TriageVariant]:
    """All variants, in the order in which they are tried."""
    for row in configs.load(_CONFIG)["variant"]:
        yield configs.made(TriageVariant, row)


def ordered(failed_in: str) -> Iterator[TriageVariant]:
    """Yield all variants, the compile without the pass in which it fails before the others.

    Args:
        failed_in: as MLIR names its class, `TritonGPUCoalesce`; empty if it is unknown.
    """
    rows = list(every())
    if failed_in:
        known = next((row for row in rows if row.skip and _bare(row.skip) == _bare(failed_in)), None)
        rows = [row for row in rows if row is not known]
        family = known.family if known else f"the pass {failed_in}"
        yield configs.made(
            TriageVariant,
            {
                **configs.load(_CONFIG)["failing-pass"],
                "name": f"without {known.skip if known else failed_in}",
                "family": family,
                "skip": known.skip if known else failed_in,
            },
        )
    yield from rows


def _bare(name: str) -> str:
    """Reduce `tritongpu-coalesce` and `TritonGPUCoalesce` to the same letters."""
    return name.replace("-", "").lower()


def times(name: str) -> float:
    """A number of `[times]`."""
    return float(configs.load(_CONFIG)["times"][name])


def baselines() -> int:
    """Return how often a command is run before anything is changed."""
    return int(times("baseline"))
