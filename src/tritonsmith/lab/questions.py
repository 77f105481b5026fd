"""The questions that an experiment asks about a test, each answered by an observation.

`limit`: `--when "spills>0"`, `"registers>+10%"`, `"ptx contains ld.global.b8"`. `same_failure`: no `--when`.
`wrong`: `--when wrong`, whether a pass changes what a kernel computes. `succeeds`: a command's exit code.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tritonsmith.compiler import run, tritons
from tritonsmith.compiler.interpreter import Interpreter
from tritonsmith.compiler.manifest import Manifest, Point
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.core.errors import InterruptedRunError, SmithError
from tritonsmith.core.plan import files
from tritonsmith.lab import failure, terms
from tritonsmith.lab.batch import kept_files
from tritonsmith.lab.batch.kept import CompileJob
from tritonsmith.lab.batch.run import BatchOptions
from tritonsmith.lab.compare import matching
from tritonsmith.lab.compare.matching import Compared, Pair, Paired
from tritonsmith.lab.failure import Failure
from tritonsmith.lab.journal import Observation, Verdict
from tritonsmith.lab.terms import Term, TermReading

if TYPE_CHECKING:
    from tritonsmith.check.limited import WarmChecks

_DIED = re.compile(r"the compiler died: (\w+)")

PointKey = tuple[str, str]  # folder and point


def limit(limits: Sequence[Term], base: Sequence[Manifest], compiles: Sequence[Manifest]) -> Observation:
    """Report compiles as BAD where any of them breaks any term.

    Args:
        limits: the terms that make them bad.
        base: the compiles with which signed terms compare; `compiles` again where there are none.
        compiles: the compiles.
    """
    seconds = _seconds(compiles)
    paired = matching.pair(base, compiles)
    # This comes before any term: a kernel that does not compile has no metrics, which says nothing about its
    # spills.
    if why := next(_missing(paired), ""):
        return Observation(Verdict.SKIP, why=why, seconds=seconds)
    # A kernel for two vendors has metrics of which each compile has only some: those it lacks do not count.
    applied = [[reading for reading in row if reading.applies] for row in readings(limits, paired)]
    shown = [next((reading for reading in row if reading.broken), row[0]) for row in applied if row]
    figures = ", ".join(dict.fromkeys(reading.figures for reading in shown if reading.figures))
    # One broken term is enough, so this comes before the values that are unknown.
    if any(reading.broken for row in applied for reading in row):
        return Observation(Verdict.BAD, figures, seconds=seconds)
    unknown = [
        f"{term.metric}: {terms.UNKNOWN}"
        for term, row in zip(limits, applied, strict=True)
        if any(reading.unknown for reading in row)
    ]
    unknown += [
        f"no compile has the metric of {term.text!r}"
        for term, row in zip(limits, applied, strict=True)
        if not row
    ]
    verdict = Verdict.SKIP if unknown else Verdict.GOOD
    return Observation(verdict, figures, unknown[0] if unknown else "", seconds)


def readings(limits: Sequence[Term], paired: Paired) -> list[list[TermReading]]:
    """Apply terms to pairs that compile on both sides: for each term, a reading of each pair."""
    # A folder is in many pairs, and to look up its metrics means to digest its whole manifest.
    folders = {
        member.manifest.folder: member.manifest for pair in paired.pairs for member in (pair.a, pair.b)
    }
    measured = {folder: kept_files.metrics_of(manifest).points for folder, manifest in folders.items()}
    compared = [
        Compared(
            pair,
            measured[pair.a.manifest.folder].get(pair.a.point.id, {}),
            measured[pair.b.manifest.folder].get(pair.b.point.id, {}),
        )
        for pair in paired.pairs
    ]
    return [[terms.look(term, pair) for pair in compared] for term in limits]


def same_failure(searched: Sequence[Manifest], compiles: Sequence[Manifest]) -> Observation:
    """Report compiles as BAD where one that fails in `searched` fails in the same way; otherwise as a skip.

    Args:
        searched: the compiles with the failures that are searched for.
        compiles: the compiles of the same kernels.
    """
    wanted_failures, own = dict(failures(searched)), dict(failures(compiles))
    seconds = _seconds(compiles)
    same = [str(own[key]) for key, failed in wanted_failures.items() if own.get(key) == failed]
    if same:
        return Observation(Verdict.BAD, same[0], seconds=seconds)
    # As for `git bisect`, another failure hides whether the first one is still there.
    other = [str(failed) for key, failed in own.items() if key in wanted_failures]
    if other:
        return Observation(Verdict.SKIP, other[0], "it fails in another way", seconds)
    known = {(manifest.folder.name, point.id) for manifest in compiles for point in manifest.points}
    if absent := [key for key in wanted_failures if key not in known]:
        why = f"{absent[0][0]} has no compile {absent[0][1]} here"
        return Observation(Verdict.SKIP, why=why, seconds=seconds)
    return Observation(Verdict.GOOD, "compiles", seconds=seconds)


def failures(compiles: Sequence[Manifest]) -> Iterator[tuple[PointKey, Failure]]:
    """Yield the points that failed, by folder and id, and how."""
    for manifest in compiles:
        for point in manifest.points:
            if point.status != "ok":
                yield (manifest.folder.name, point.id), failure_of(point)


def failure_of(point: Point) -> Failure:
    """Return the failure of a compile, without what differs from kernel to kernel."""
    died = _DIED.search(point.error)
    log = f"{point.log}\n{point.error}"
    failed = failure.of(log, crashed=died[1] if died else "", timeout=point.status == "timeout")
    # A log without any message: then the point's own summary tells one failure from another.
    return failed if failed.text or failed.kind != "failure" else Failure("failure", point.gist)


def _missing(paired: Paired) -> Iterator[str]:
    """Yield the reasons why there is nothing to measure."""
    for pair in paired.pairs:
        # B is what is tested: where both fail, its message is the one that counts.
        for member in (pair.b, pair.a):
            if member.point.status != "ok":
                point, by = member.point, member.manifest.triton
                yield f"{pair.kernel} {point.target} by {by} does not compile: {point.status}: {point.gist}"
    yield from (f"{left.kernel} {left.member.point.id}: {left.why}" for left in paired.unpaired)


def _seconds(compiles: Sequence[Manifest]) -> float:
    return sum(point.seconds for manifest in compiles for point in manifest.points)


# Exit codes as `git bisect run` reads them (git-bisect(1)): 125 is a commit that cannot be tested.
SKIP = 125
ABORT = 128  # and above: a shell's code for a signal, or for what it cannot run


def succeeds(code: int, figures: str, seconds: float, why: str = "") -> Observation:
    """Report a command that fails as BAD, and one that ends with 125 as a skip.

    Args:
        code: its exit code; negative where a signal ended it.
        figures: its output, as it is shown.
        seconds: wall time.
        why: the reason of a skip, if it is not the exit code alone.
    """
    if code == SKIP:
        return Observation(Verdict.SKIP, figures, why or f"exit code {SKIP}", seconds)
    return Observation(Verdict.BAD if code else Verdict.GOOD, figures, seconds=seconds)


def wrong(
    asked: CompileRequest,
    where: Interpreter,
    folder: Path,
    *,
    silent: bool = False,
    stop: Callable[[], bool] = lambda: False,
    warm: WarmChecks | None = None,
    until: str = "",
) -> tuple[Observation, str]:
    """Report a kernel as BAD where a pass changes its result, and return that pass, which is the cause.

    A kernel that cannot be checked to the end is a skip.

    Args:
        asked: the compile, for one target.
        where: the interpreter that compiles.
        folder: of the dump.
        silent: show no progress.
        stop: returns whether to give up; polled.
        warm: the processes that compile and check, and then the folder is empty; None for new ones.
        until: the pass after whose last run the check ends; empty for all.
    """
    from tritonsmith.check.answer import answer_lines, keep, verdict  # noqa: PLC0415 - of an extra that may be missing
    from tritonsmith.check.check import check_kernel  # noqa: PLC0415

    began = time.monotonic()
    try:
        index, answer = check_kernel(asked, where, folder, silent=silent, stop=stop, warm=warm, until=until)
    # It is a `SmithError`, too; taken for a skip, ^C would only lead to the next test.
    except InterruptedRunError:
        raise
    except SmithError as error:
        return Observation(Verdict.SKIP, why=error.line, seconds=time.monotonic() - began), ""
    sentence, seconds = verdict(answer), time.monotonic() - began
    # A reduction checks thousands of candidates, and keeps no folder of theirs.
    if warm is None:
        keep(answer, index)
    if answer.culprit:
        notes = tuple(line.strip() for line in answer_lines(answer) if line.strip() != sentence)
        observation = Observation(Verdict.BAD, sentence, seconds=seconds, notes=notes, cause=sentence)
        return observation, answer.culprit.checked.name
    # What was not compared may hold the pass that is searched for.
    if answer.open:
        return Observation(Verdict.SKIP, why=sentence, seconds=seconds), ""
    return Observation(Verdict.GOOD, sentence, seconds=seconds), ""


class ResultRegressions:
    """Tells whether a kernel by one Triton computes something else than its source says, and by another not.

    Args:
        options: of the compiles: the limits, and the environment of a Triton that names none.
    """

    def __init__(self, options: BatchOptions) -> None:
        self._options = options
        self._places: dict[str, Interpreter] = {}

    def of(self, before: CompileJob, after: CompileJob, pair: Pair) -> Observation:
        """Check one point of a kernel; a skip if nobody knows.

        Args:
            before: the compile by the first Triton.
            after: by the second.
            pair: the point by both.

        Raises:
            SmithError: a Triton is not there.
        """
        second = self._by(after, pair.b.point)
        # Most kernels are right, and then it does not matter what they were.
        if second.verdict is not Verdict.BAD:
            return second
        first = self._by(before, pair.a.point)
        if first.verdict is Verdict.BAD:
            return replace(second, verdict=Verdict.GOOD, figures=f"by both Tritons: {second.figures}")
        if first.verdict is Verdict.SKIP:  # it may have been wrong before
            why = f"{second.figures}, and whether it does by the first Triton is unknown: {first.why}"
            return Observation(Verdict.SKIP, why=why)
        return second

    def _by(self, job: CompileJob, point: Point) -> Observation:
        label = job.triton.label
        if label not in self._places:
            timeout, env = self._options.timeout, self._options.env
            self._places[label] = tritons.place_of(job.triton, 1, timeout, env)
        whole = tritons.applied(job.request, job.triton)
        chosen = tuple(row for row in whole.targets if str(row) == point.target)
        parent = self._places[label].space.root / "kernels" / "checks"
        files.make_folder(parent)
        with files.scratch("check", parent) as folder:
            # A kernel with several configs has as many points, and the check takes one.
            request = run.one_point(replace(whole, targets=chosen), point.id)
            observation, culprit = wrong(request, self._places[label], folder / "dump", silent=True)
        # Without the kernel's name: one pass that changes many kernels is one finding.
        words = f"{culprit} changes the result"
        return replace(observation, figures=words, cause=words) if culprit else observation
