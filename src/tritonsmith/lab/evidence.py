"""The evidence of an issue: what answers of other commands know about one bug, and how it is merged.

Everything comes from what a command of this tool has written. What it does not say stays empty: nothing is
guessed here, and `lab/issue.py` leaves it out. `lab/issue_sources.py` reads folders and kernels.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, get_args

from tritonsmith.compiler.request import CompileRequest
from tritonsmith.core import configs, untrusted
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.core.untrusted import UnreadableError
from tritonsmith.lab import failure
from tritonsmith.lab.failure import Failure
from tritonsmith.lab.failure import Kind as FailureKind

Kind = Literal["", "crash", "wrong", "regression"]
HINTS = (
    "a folder of kernel.compile, passes.dump, passes.check, passes.isolate, triage, bisect or blame",
    "or FILE.json: what `--json` of passes.check, triage, bisect, blame, compare or farm printed",
    "or a file that `reduce` wrote: KERNEL.reduced.py, reduced.mlir",
)
_RELEASE = re.compile(r"\d[\d.]*", re.ASCII)
_SHORT = 12  # digits of a commit
_LOG = 1 << 20  # characters of a log that are kept
# As the front end's CompilationError begins: alone, or behind its name in a traceback.
_REJECTED_AT = re.compile(r"^(?:[\w.]+: )?at \d+:\d+:", re.MULTILINE)
_SOURCE_LINE = re.compile(r"^at (?P<place>\S.*:\d+)$", re.MULTILINE)
# A compiler that dies, or does not end, is at fault whatever the kernel is.
_DEATHS = ("assertion", "fatal error", "signal", "timeout")


@dataclass(frozen=True)
class IssueKernel:
    """The source of a kernel, and how it is compiled.

    Attributes:
        name: of the file.
        text: the whole file.
        request: the compile for one target; None if the file's own main program makes it.
        alone: its main program shows the symptom by itself, as the reduction has tested.
        imports: files of its own that it imports, which a script would need, too.
    """

    name: str
    text: str
    request: CompileRequest | None
    alone: bool = False
    imports: tuple[str, ...] = ()


@dataclass(frozen=True)
class IssueIr:
    """IR, and the passes that show the bug on it.

    Attributes:
        text: the IR, without the RUN line.
        pipeline: as `triton-opt` takes it.
    """

    text: str
    pipeline: str


@dataclass(frozen=True)
class BisectCulprit:
    """The step of a bisect: between which versions or commits the bug came, or was fixed.

    Attributes:
        good: the last good one; of a fix the first good one.
        bad: the first bad one; of a fix the last bad one.
        fix: the good one is the newer: the bug is fixed there.
        suspects: those of which one is to blame; the only one, if it is decided.
        commit: 40 hex digits; empty without a clone.
        subject: of the commit.
        date: when its author wrote it, ISO 8601.
        pull: number of its pull request; None if it names none.
        llvm: the commit of LLVM that the bisect found behind a moved pin; empty if it found none.
        notes: sentences of the bisect.
    """

    good: str
    bad: str
    fix: bool
    suspects: tuple[str, ...]
    commit: str = ""
    subject: str = ""
    date: str = ""
    pull: int | None = None
    llvm: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Blamed:
    """A component, and why it is blamed.

    Attributes:
        owner: `triton`, `llvm`, `ptxas` or `pytorch`.
        words: the component: `the pass tritongpu-coalesce`.
        evidence: what shows it, as a sentence.
        proven: something else than a message shows it: the component was exchanged, or ran alone.
    """

    owner: str
    words: str
    evidence: str
    proven: bool


@dataclass(frozen=True)
class BugEvidence:
    """Everything that is known of one bug; what is not known is empty.

    Attributes:
        kind: a compile that fails, a wrong result, or code that became worse.
        observed: what is wrong, in one line.
        details: more about it, line by line.
        failure: how the compile fails; None if it does not.
        failed_in: class or name of the pass in which it fails.
        rejected: what the front end says is wrong in the kernel, and where; empty if it takes the kernel.
        suspects: passes of which one changes the result, in their order.
        change: how it does: `changes the result`, or makes a race.
        log: what the compiler printed.
        function: name of the kernel.
        target: `cuda:90`.
        triton: version that shows it.
        llvm: LLVM's version and commit in that Triton.
        ptxas: version of the ptxas that it runs for this target; empty for AMD.
        python: version of the interpreter.
        system: where it ran.
        package: folder of that Triton, if its programs may be run; None if not.
        metric: term of a regression: `registers`.
        kernel: the smallest source.
        ir: the smallest IR, with its passes.
        llir: the IR that LLVM's code generator was given.
        llc: how Triton calls that, as arguments of llc.
        culprit: the result of a bisect.
        blamed: components, the best supported first.
        tested: other versions, the verdict about each, and the figures.
    """

    kind: Kind = ""
    observed: str = ""
    details: tuple[str, ...] = ()
    failure: Failure | None = None
    failed_in: str = ""
    rejected: str = ""
    suspects: tuple[str, ...] = ()
    change: str = ""
    log: str = ""
    function: str = ""
    target: str = ""
    triton: str = ""
    llvm: str = ""
    ptxas: str = ""
    python: str = ""
    system: str = ""
    package: Path | None = None
    metric: str = ""
    kernel: IssueKernel | None = None
    ir: IssueIr | None = None
    llir: str = ""
    llc: tuple[str, ...] = ()
    culprit: BisectCulprit | None = None
    blamed: tuple[Blamed, ...] = ()
    tested: tuple[tuple[str, str, str], ...] = ()


def merged(parts: Sequence[BugEvidence]) -> BugEvidence:
    """Merge evidence: of each fact the first that is known, of kernels and IR the smallest, of lists all.

    Raises:
        UsageError: they are about different bugs.
    """
    for name, what in (("kind", "kinds of bugs"), ("function", "kernels")):
        if len(different := {getattr(part, name) for part in parts} - {""}) > 1:
            why = ", ".join(sorted(different))
            raise UsageError(f"these are about different {what}", why=why, hints=["one issue for each"])
    whole = BugEvidence()
    # The order of the sources is the user's: what was named first describes the bug, the others add to it.
    for part in parts:
        for attribute in fields(BugEvidence):
            mine, other = getattr(whole, attribute.name), getattr(part, attribute.name)
            if attribute.name in ("blamed", "details", "tested"):
                other = (*mine, *(row for row in other if row not in mine))
            # Whoever gives a reduced kernel beside the whole one wants the smaller one to be shown.
            elif attribute.name in ("kernel", "ir") and mine and other:
                other = min(mine, other, key=lambda text: len(text.text))
            elif mine:
                continue
            whole = replace(whole, **{attribute.name: other})
    blamed = tuple(sorted(whole.blamed, key=lambda row: not row.proven))
    # It is one line of an answer, in which figures are searched for.
    return replace(whole, blamed=blamed, observed=failure.searched(whole.observed))


def bounded(log: str) -> str:
    """Return a log that can be searched and attached: long lines are cut, and the middle of a long text."""
    text = "\n".join(map(_bounded_line, log.strip().split("\n")))
    # The message is at either end: a module that the compiler has printed before or after it is what is long.
    half = _LOG // 2
    left_out = len(text) - 2 * half
    return text if left_out <= 0 else f"{text[:half]}\n... {left_out:,} characters ...\n{text[-half:]}"


def _bounded_line(line: str) -> str:
    most = failure.LINE - 40  # of which the note takes the rest: it must not be cut off by a search
    return line if len(line) <= failure.LINE else f"{line[:most]} ... {len(line) - most:,} more characters"


def rejection(error: str, how: Failure) -> str:
    """Return why Triton's front end rejects a kernel, with FILE:LINE; empty if the failure is another one.

    Args:
        error: the message of a compile, or what a script of Triton alone has printed.
        how: the failure in it.
    """
    text = failure.searched(error)
    if how.kind in _DEATHS or not (begins := _REJECTED_AT.search(text)):
        return ""
    lines = [line.strip() for line in text[begins.start() :].splitlines() if line.strip()]
    # Below the last caret is the reason: before it, each function has an excerpt that calls the next one.
    last = max((number for number, line in enumerate(lines) if line == "^"), default=len(lines))
    reason = next((line for line in lines[last + 1 :] if not line.startswith("at ")), str(how))
    place = _SOURCE_LINE.search(text)
    return f"{reason} ({place['place']})" if place else reason


def by_message(log: str, place: str) -> Iterator[Blamed]:
    """Yield the component that a compiler's message speaks of, and the pass in which it failed."""
    log = failure.searched(log)
    # The first one alone: what comes later in a log often only repeats that something has failed.
    for row in configs.load("issue-forms")["message"]:
        if match := re.search(row["pattern"], log, re.MULTILINE):
            yield Blamed(row["owner"], row["words"], f"the message is its own: {match[0]}", proven=False)
            return
    if place:
        yield Blamed("triton", f"the pass {place}", "MLIR reports that it fails there", proven=False)


# The answers of other commands, as far as they are read here: `untrusted.typed` passes over all other keys,
# so a later version of a command may say more.
@dataclass(frozen=True)
class _Difference:
    """The first element that a check found to differ; see `check.answer.Difference`."""

    offset: int
    before: int | float | str | None
    after: int | float | str | None
    count: int
    written: int


@dataclass(frozen=True)
class CheckedName:
    """The pass that a check blames, and the number of the text that it left."""

    number: int
    name: str


@dataclass(frozen=True)
class CheckCulprit:
    """The culprit of a check; see `check.answer.BisectCulprit`."""

    checked: CheckedName
    change: str
    difference: _Difference | None
    seed: int
    program: tuple[int, ...]
    store: str
    operation: str
    suspects: tuple[str, ...]


@dataclass(frozen=True)
class CheckReport:
    """The answer of `passes.check`; see `check.answer.as_json`."""

    verdict: str
    outcome: str
    kernel: str
    target: str
    culprit: CheckCulprit | None


def checked_pass(content: dict[str, Any]) -> CheckReport:
    """Return the parsed answer of `passes.check`.

    Raises:
        FactError: it is malformed.
    """
    answer: CheckReport = typed(CheckReport, content)
    return answer


def of_check(content: dict[str, Any]) -> Iterator[BugEvidence]:
    """Yield what the answer of `passes.check` says, if a pass changes the result."""
    known = checked_pass(content)
    culprit = known.culprit
    if known.outcome != "changed" or culprit is None:
        return
    # Numbers of both runs: without a GPU this is all that anybody can see of a wrong result.
    details = []
    if at := culprit.difference:
        place = f"{culprit.store or 'memory'}[{at.offset}]"
        details.append(f"{place}: {at.before} before the pass, {at.after} after it")
        details.append(f"{at.count} of {at.written} elements that were compared differ")
    arguments = content["culprit"].get("arguments")
    if isinstance(arguments, dict) and arguments:
        details.append("arguments: " + ", ".join(f"{name}={value}" for name, value in arguments.items()))
    details += [f"program {culprit.program}"]
    details += [f"first new value: {culprit.operation}"] if culprit.operation else []
    # With several suspects, a text between them could not be run: any of them may be the one.
    words = " or ".join(f"the pass {name}" for name in culprit.suspects)
    names, one_of = ", ".join(culprit.suspects), "one of " if len(culprit.suspects) > 1 else ""
    change = known.verdict.removeprefix(f"{known.kernel}: {one_of}{names} ")
    reason = "the IR before it and after it, run on the same inputs on a CPU, leaves other values in memory"
    yield BugEvidence(
        kind="wrong",
        observed=known.verdict,
        details=tuple(details),
        suspects=culprit.suspects,
        # A verdict in other words, of another version, is not taken apart.
        change=change if change != known.verdict else "changes the result",
        function=known.kernel,
        target=known.target,
        blamed=(Blamed("triton", words, reason, proven=len(culprit.suspects) == 1),),
    )


@dataclass(frozen=True)
class _TriageTest:
    """One row of a triage."""

    symptom: str
    figures: str
    variant: str = "nothing changed"


@dataclass(frozen=True)
class _Triage:
    """The answer of a triage; see `triage.verdict.as_json`."""

    kernel: str
    command: tuple[str, ...]
    triton: str
    when: tuple[str, ...]
    answer: str
    verdict: str
    reasons: tuple[str, ...]
    baseline: _TriageTest
    tried: tuple[_TriageTest, ...]


def of_triage(content: object) -> Iterator[BugEvidence]:
    """Yield what the answer of a triage says, if it has seen the symptom."""
    known: _Triage = typed(_Triage, content)
    if known.answer == "nothing" or known.baseline.symptom != "shows":
        return
    rows = [(test.variant, test.symptom, test.figures) for test in (known.baseline, *known.tried)]
    # A change that helps is where to look first, and no proof: so it blames nobody here.
    details = (f"triage: {known.verdict}", *known.reasons)
    yield BugEvidence(
        kind=_kind(known.when),
        observed=known.baseline.figures,
        details=details,
        triton=known.triton,
        metric=_metric(known.when),
        tested=tuple(row for row in rows if row[1] != "not tested"),
    )


def _kind(when: Sequence[str]) -> Kind:
    """Return the kind of bug that `--when` is about; without it, a failure."""
    return "wrong" if "wrong" in when else "regression" if when else "crash"


def _metric(when: Sequence[str]) -> str:
    return ", ".join(when) if _kind(when) == "regression" else ""


@dataclass(frozen=True)
class _Step:
    """A step of a bisect; see `bisect.stages.BisectStep`."""

    good: str
    bad: str
    suspects: tuple[str, ...]
    fix: bool


@dataclass(frozen=True)
class _BisectCommit:
    """The culprit of a bisect, or a commit of LLVM."""

    commit: str
    subject: str
    date: str = ""
    pull: int | None = None


@dataclass(frozen=True)
class _LlvmSearch:
    """The search among LLVM's commits, if a bisect had one."""

    suspects: tuple[_BisectCommit, ...] = ()
    decided: bool = False


@dataclass(frozen=True)
class _Tested:
    """A Triton that a bisect has tested."""

    triton: str
    verdict: str
    figures: str
    why: str


@dataclass(frozen=True)
class _Bisect:
    """The answer of a bisect; see `ExplainedBisect.as_json`."""

    release: _Step | None
    nightly: _Step | None
    commit: _Step | None
    culprit: _BisectCommit | None
    passes: str | None
    notes: tuple[str, ...]
    tested: tuple[_Tested, ...]
    when: tuple[str, ...]
    llvm: _LlvmSearch | None = None


def of_bisect(content: object) -> Iterator[BugEvidence]:
    """Yield what the answer of a bisect says."""
    known: _Bisect = typed(_Bisect, content)
    # The narrowest step: a search among commits goes on where that among releases has ended.
    step = known.commit or known.nightly or known.release
    if step is None:
        return
    rows = [(row.triton, row.verdict, row.figures or row.why) for row in known.tested]
    figures = {name: text for name, _, text in rows}
    by_llvm = known.llvm.suspects[0] if known.llvm and known.llvm.decided and known.llvm.suspects else None
    decided = len(step.suspects) == 1
    yield BugEvidence(
        kind=_kind(known.when),
        metric=_metric(known.when),
        observed=figures.get(step.bad, ""),
        triton=step.bad if "." in step.bad else "",
        tested=tuple(rows),
        culprit=BisectCulprit(
            step.good,
            step.bad,
            step.fix,
            step.suspects,
            known.culprit.commit if known.culprit and decided else "",
            known.culprit.subject if known.culprit else "",
            known.culprit.date if known.culprit else "",
            known.culprit.pull if known.culprit else None,
            by_llvm.commit if by_llvm else "",
            tuple(filter(None, (*known.notes, known.passes))),
        ),
        blamed=(
            Blamed(
                "llvm",
                f"LLVM's commit {by_llvm.commit[:_SHORT]} {by_llvm.subject}",
                "its parent is good: bisect built both",
                proven=True,
            ),
        )
        if by_llvm
        else (),
    )


@dataclass(frozen=True)
class _Verdict:
    """The verdict of a blame about one metric."""

    metric: str
    decided: bool
    words: str
    culprits: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class _BlamedPoint:
    """The verdicts of a blame about one target."""

    target: str
    verdicts: tuple[_Verdict, ...]


@dataclass(frozen=True)
class _Blame:
    """The answer of a blame; see `blame.as_json`."""

    points: tuple[_BlamedPoint, ...]


def of_blame(content: dict[str, Any]) -> Iterator[BugEvidence]:
    """Yield what the answer of a blame says about each metric, what is decided first."""
    known: _Blame = typed(_Blame, content)
    before, after = str(content.get("from")), str(content.get("to"))
    # What is decided first, as the first metric becomes the title.
    owners = configs.load("issue-forms")["components"]
    for point in known.points:
        for verdict in sorted(point.verdicts, key=lambda row: not row.decided):
            figures, _, rest = verdict.words.partition(": ")
            names = {name for group in verdict.culprits for name in group}
            who = {owners.get(name, "triton") for name in names} if verdict.decided else set()
            yield BugEvidence(
                kind="regression",
                observed=f"{figures} from {before} to {after}",
                details=() if verdict.decided else (f"blame: {verdict.words}",),
                target=":".join(point.target.split(":")[:2]),
                triton=after if _RELEASE.fullmatch(after) else "",
                metric=verdict.metric,
                # Several components together, of several owners, are nobody's alone.
                blamed=(
                    Blamed(
                        who.pop(), rest, "exchanged alone, it makes the change and undoes it", proven=True
                    ),
                )
                if len(who) == 1
                else (),
            )


@dataclass(frozen=True)
class _Side:
    """One side of a comparison."""

    folder: str = ""


@dataclass(frozen=True)
class _Compared:
    """A kernel that a farm has compiled by both sides."""

    kernel: str
    point: str
    to: _Side


@dataclass(frozen=True)
class _Finding:
    """A finding of a farm or a comparison."""

    kernel: str
    point: str
    why: str
    finding: str = ""
    target: str = ""
    metric: str = ""


def of_findings(content: dict[str, Any]) -> Iterator[tuple[BugEvidence, Path | None, str]]:
    """Yield what a comparison or a farm says of its first finding, which is the worst.

    With it come the folder of that compile, None if it is not told, and the id of its point.
    """
    rows: tuple[_Finding, ...] = typed(
        tuple[_Finding, ...], content.get("findings", content.get("violations"))
    )
    # One issue is about one bug; the list is sorted, and the command line takes a single row of it.
    for row in rows[:1]:
        before, after = (
            str(content.get(name, content.get(side))) for name, side in (("from", "a"), ("to", "b"))
        )
        # The names of the kinds of findings: `does not compile any more`, `crashes the compiler`.
        crash = "compile" in row.finding
        evidence = BugEvidence(
            kind="crash" if crash else "regression",
            observed=row.why if crash else f"{row.why} from {before} to {after}",
            details=(row.finding,) if row.finding else (),
            target=":".join(row.target.split(":")[:2]),
            triton=after if _RELEASE.fullmatch(after) else "",
            metric=row.metric,
            tested=((before, "good", ""), (after, "bad", row.why)),
        )
        sides: tuple[_Compared, ...] = typed(tuple[_Compared, ...], content.get("kernels", []))
        folders = [
            Path(side.to.folder) for side in sides if (side.kernel, side.point) == (row.kernel, row.point)
        ]
        yield evidence, next(iter(folders), None), row.point


def failure_kind(text: str) -> Any:
    """Return a kind of failure; one that this version does not know is a plain failure."""
    return text if text in get_args(FailureKind) else "failure"


def read_json(path: Path) -> Any:
    """Parse an answer.

    Raises:
        FactError: it cannot be read.
    """
    try:
        return untrusted.read_json(path, untrusted.OURS)
    except (OSError, UnreadableError) as error:
        raise FactError("cannot read this answer", where=path, why=str(error)) from error


def typed(kind: Any, content: object, where: Path | None = None) -> Any:
    """Return parsed JSON as a type.

    Raises:
        FactError: it has another form; the error names the key.
    """
    try:
        return untrusted.typed(kind, content)
    except UnreadableError as error:
        hints = ["run the command again: it may be an answer of another version"]
        raise FactError("this answer is malformed", where=where, why=str(error), hints=hints) from error
