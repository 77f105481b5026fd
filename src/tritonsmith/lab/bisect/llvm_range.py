"""The culprit moves the LLVM pin: the commits of LLVM between both pins, and the first bad one among them.

LLVM's code generator is searched alone: llc on the llir that a side of the step was compiled to. Where that
does not show it, LLVM's O3 is searched with it: opt and llc on the llir before O3. Either is sound only where
the old pin is good and the new pin is bad on the same llir.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from tritonsmith.core import configs
from tritonsmith.core.command_line import command
from tritonsmith.core.errors import FactError, PreflightError, StepError
from tritonsmith.facts import llvm_history
from tritonsmith.facts.llvm_history import LlvmHistory
from tritonsmith.facts.triton_history import TritonCommit
from tritonsmith.lab.bisect import session as sessions
from tritonsmith.lab.bisect.commits import CommitSearch, reason
from tritonsmith.lab.bisect.llvm_build import LlcBuilds
from tritonsmith.lab.bisect.predicate.llc_compiles import LlcTest
from tritonsmith.lab.bisect.predicate.protocol import one_by_one
from tritonsmith.lab.bisect.session import BisectSession
from tritonsmith.lab.model import Observation, Verdict

LLC, OPT = "llc", "opt and llc"  # what is tested of LLVM
_AND = " and "
_SHORT = 12  # digits of a commit


@dataclass(frozen=True)
class LlvmRange:
    """The commits between the pins before and after a bump.

    Attributes:
        old: the pin before it.
        new: the pin that it names.
        targets: the code generators: `NVPTX`.
        history: of a clone; None where nobody gave one that has both pins.
        by_pass: the pass in which the compiles part, and its files; none if it is not one of LLVM or MLIR.
        note: why there is no history, and what to give.
    """

    old: str
    new: str
    targets: tuple[str, ...]
    history: LlvmHistory | None = None
    by_pass: tuple[str, tuple[str, ...]] = ("", ())
    note: str = ""

    @property
    def url(self) -> str:
        """The comparison of both on GitHub."""
        return f"{_page()}/compare/{self.old}...{self.new}"

    def lines(self) -> Iterator[str]:
        """Yield the findings, each as a sentence."""
        yield f"LLVM between the pins: {self.url}"
        if self.history is None:
            yield self.note
            return
        near, name, files = self.history.near, *self.by_pass
        count = len(self.history.commits) - 1
        targets = " and ".join(self.targets)
        yield f"LLVM: {count} commits, {len(near)} of them in the code generator for {targets}"
        shown = near
        if files:
            shown = self.history.touching(files)
            yield f"LLVM: {len(shown)} of them in the pass {name}, {_folder(files)}"
        yield from _named(shown or near)

    def as_json(self) -> dict[str, Any]:
        """Everything."""
        history = self.history
        return {
            "old": self.old,
            "new": self.new,
            "compare": self.url,
            "targets": list(self.targets),
            "commits": len(history.commits) - 1 if history else None,
            "near": [_as_json(one) for one in history.near] if history else None,
            "pass": self.by_pass[0] or None,
            "touching_pass": [_as_json(one) for one in history.touching(self.by_pass[1])]
            if history
            else None,
            "note": self.note or None,
        }


def of(
    commits: Sequence[TritonCommit], culprit: TritonCommit, vendor: str, clone: Path | None, by_pass: str = ""
) -> LlvmRange | None:
    """The range of a culprit; None if that does not move a pin from one commit of LLVM to another.

    Args:
        commits: the range of Triton in which the culprit was found.
        culprit: it.
        vendor: `nvidia` or `amd`; empty for both.
        clone: of LLVM; None if none was given.
        by_pass: the pass in which the compiles part; empty if that is none of LLVM's or MLIR's.
    """
    before = next((one for one, after in pairwise(commits) if after == culprit), None)
    if not culprit.bump or before is None or not before.pin or not culprit.pin:
        return None
    targets = configs.load("bisect")["llvm"]["targets"]
    wanted = (targets[vendor],) if vendor else tuple(targets.values())
    found = LlvmRange(before.pin, culprit.pin, wanted)
    if clone is None:
        more = command("bisect --resume", llvm_source="CLONE")
        return replace(found, note=f"{more} with a clone of LLVM narrows them down and tests them")
    try:
        history = llvm_history.read(clone, found.old, found.new, found.targets)
    except FactError as error:
        why = ": ".join(filter(None, (error.what, error.why)))
        return replace(found, note="; ".join((f"LLVM's commits are not listed: {why}", *error.hints)))
    files = llvm_history.files_of(clone, found.new, by_pass) if by_pass else ()
    return replace(found, history=history, by_pass=(by_pass, files))


@dataclass
class LlvmBisect:
    """A search for the first commit of LLVM whose programs show it.

    Attributes:
        range: the commits.
        builds: of llc, and of opt where it is needed.
        tests: by what is tested, `llc` or `opt and llc`, and by side of the step whose llir is taken. The
            first by which the ends differ is searched.
        session: of the search over Triton; each test has one of its own below it.
        tell: gets a line for each outcome.
    """

    range: LlvmRange
    builds: LlcBuilds
    tests: Mapping[str, Mapping[str, LlcTest]]
    session: BisectSession
    tell: Callable[[str], None] = field(default=print)
    by: str = ""
    side: str = ""
    found: tuple[TritonCommit, ...] = ()

    def run(self) -> Iterator[str]:
        """Search; what comes out, each a sentence."""
        history = self.range.history
        if history is None:
            return
        if not any(self.tests.values()):
            yield "LLVM: they are not tested: a command or a test provides no llir for llc"
            return
        every = history.candidates
        if len(every) == 1:
            yield "LLVM: no commit between the pins changes the sources of llc, so the llir must differ"
            return
        if llvm_history.is_partial(self.builds.clone):
            yield "LLVM: llc cannot be built from a partial clone: use a full clone of LLVM to continue"
            return
        for by in self.tests:
            self.by = by
            kept = {side: self._kept(side) for side in self.tests[by]}
            for commit in (every[0], every[-1]):
                if todo := [side for side in kept if commit.commit not in kept[side].outcomes]:
                    kept |= self._end(commit, {side: kept[side] for side in todo})
            seen = {side: [one.outcomes[every[at].commit] for at in (0, -1)] for side, one in kept.items()}
            shows = [Verdict.GOOD, Verdict.BAD]
            self.side = next(
                (side for side, ends in seen.items() if [end.verdict for end in ends] == shows), ""
            )
            if self.side:
                yield from self._searched(every, kept[self.side])
                return
            tested = all(end.verdict != Verdict.SKIP for ends in seen.values() for end in ends)
            yield from _not_alone(by, seen, tested=tested)
            if by == LLC and not tested:  # what llc does not read, opt does not either
                return
        before = "LLVM's O3, and at Triton's own pass in it" if tested else "the llir"
        yield f"so look at what comes before {before}: invoke blame says which component it is"

    def as_json(self) -> dict[str, Any]:
        """The outcomes and the answer."""
        kept = [
            (by, side, one)
            for by in self.tests
            for side in self.tests[by]
            for one in self._kept(side, by).tested
        ]
        return {
            "by": self.by if self.side else None,
            "llir_of": self.side or None,
            "suspects": [_as_json(one) for one in self.found],
            "decided": len(self.found) == 1,
            "tested": [
                {
                    "commit": one.triton,
                    "by": by,
                    "llir_of": side,
                    "verdict": one.outcome.verdict,
                    "figures": one.outcome.figures,
                    "why": one.outcome.why,
                    "seconds": one.outcome.seconds,
                }
                for by, side, one in kept
            ],
        }

    def _searched(self, every: tuple[TritonCommit, ...], kept: BisectSession) -> Iterator[str]:
        def record(commit: TritonCommit, outcome: Observation) -> None:
            nonlocal kept
            kept = self._told(commit, kept, outcome)

        search = CommitSearch(
            every,
            self._builds(),
            one_by_one(self.tests[self.by][self.side]),
            known=kept.outcomes,
            record=record,
        )
        state = search.run()
        self.found = tuple(every[index] for index in state.culprits)
        good, bad = every[state.good], every[state.bad]
        figures = [kept.outcomes[one.commit].figures for one in (good, bad) if one.commit in kept.outcomes]
        told = f"{len(kept.tested)} of {len(every)} tested, by {self.by} on the llir of the {self.side} side"
        said = (
            "first bad commit"
            if len(self.found) == 1
            else f"one of {len(self.found)} commits, since others were skipped"
        )
        yield f"LLVM: {said}: {bad.commit[:_SHORT]} {bad.subject}, {bad.date[:10]}: {_link(bad)}"
        yield f"LLVM: {' -> '.join(figures)}; {told}"
        for one in self.found[:-1]:
            why = kept.outcomes[one.commit].why if one.commit in kept.outcomes else "not tested"
            yield f"LLVM: another suspect: {one.commit[:_SHORT]} {one.subject}: skipped: {why}"
        if state.contradictions:
            again = every[state.contradictions[0]].commit[:_SHORT]
            yield f"LLVM: good again at {again}: it changed more than once"

    def _builds(self) -> LlcBuilds:
        return replace(self.builds, programs=tuple(self.by.split(_AND)))

    def _kept(self, side: str, by: str = "") -> BisectSession:
        more = "opt-" if _AND in (by or self.by) else ""
        name = f"{more}{side}-{self.range.old[:_SHORT]}-{self.range.new[:_SHORT]}"
        folder = self.session.folder / "llvm" / name
        if (folder / sessions.FILE).is_file():
            return sessions.read(folder)
        return BisectSession(folder, replace(self.session.question, good=self.range.old, bad=self.range.new))

    def _end(self, commit: TritonCommit, kept: Mapping[str, BisectSession]) -> dict[str, BisectSession]:
        """An end, by the llir of both sides."""
        began = time.monotonic()
        try:
            llc = self._builds().make(commit)
        except (FactError, PreflightError, StepError) as error:
            failed = Observation(Verdict.SKIP, why=reason(error), seconds=time.monotonic() - began)
            return {side: self._told(commit, one, failed) for side, one in kept.items()}
        built = time.monotonic() - began
        outcomes = {side: self.tests[self.by][side](llc) for side in kept}
        return {
            side: self._told(commit, one, replace(outcomes[side], seconds=outcomes[side].seconds + built))
            for side, one in kept.items()
        }

    def _told(self, commit: TritonCommit, kept: BisectSession, outcome: Observation) -> BisectSession:
        seen = ", ".join(filter(None, (outcome.figures, outcome.why)))
        self.tell(f"LLVM {commit.commit[:_SHORT]}: {outcome.verdict}: {seen} ({outcome.seconds:.0f} s)")
        return kept.having(commit.commit, outcome)


def _not_alone(by: str, seen: Mapping[str, Sequence[Observation]], *, tested: bool) -> Iterator[str]:
    """Describe both ends where neither llir shows the symptom; an end that was not tested proves nothing."""
    what = "LLVM's O3 and code generator do not" if _AND in by else "LLVM's code generator alone does not"
    said = f"{what} show it" if tested else f"LLVM's commits are not searched with {by}"
    yield f"{said}: the {by} of both pins on the same llir, old and new:"
    for side, ends in seen.items():
        old, new = (f"{end.verdict}: {end.figures or end.why}" for end in ends)
        yield f"LLVM: llir of the {side} side: {old}; {new}"


def _named(commits: Sequence[TritonCommit]) -> Iterator[str]:
    most = configs.load("bisect")["llvm"]["listed"]
    for one in commits[:most]:
        yield f"LLVM: {one.commit[:_SHORT]} {one.subject}, {one.date[:10]}"
    if len(commits) > most:
        yield f"LLVM: and {len(commits) - most} more: --json names them"


def _as_json(commit: TritonCommit) -> dict[str, Any]:
    return {"commit": commit.commit, "subject": commit.subject, "date": commit.date, "pull": commit.pull}


def _link(commit: TritonCommit) -> str:
    return f"{_page()}/pull/{commit.pull}" if commit.pull else f"{_page()}/commit/{commit.commit}"


def _folder(files: Sequence[str]) -> str:
    return files[0] if len(files) == 1 else f"{len(files)} files such as {files[0]}"


def _page() -> str:
    return str(configs.load("bisect")["llvm"]["page"])
