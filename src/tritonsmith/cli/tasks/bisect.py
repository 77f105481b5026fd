"""`bisect` and `blame`: the release or commit that changed a kernel, and the component that did."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.experiments import ExperimentOptions
from tritonsmith.cli.tasks.kernel_options import CompileOptions, KernelOptions, compared_kernels
from tritonsmith.cli.tasks.option_fields import CommaLists, command_line, flag, word
from tritonsmith.cli.tasks.options import (
    CONFIRM,
    DRY_RUN,
    ENV,
    JOBS,
    JSON,
    KERNEL,
    SCHEDULER,
    TIMEOUT,
    TODAY,
    TOMORROW,
    WHEN,
)
from tritonsmith.cli.tasks.task import task
from tritonsmith.core.command_line import continued
from tritonsmith.core.errors import UndecidedError, UsageError
from tritonsmith.core.ui import console

if TYPE_CHECKING:
    from tritonsmith.lab.bisect.command import TritonBisect
    from tritonsmith.lab.bisect.session import BisectQuestion, BisectSession
    from tritonsmith.lab.compare.two_sides import ComparedKernel


_NAME = word("bisect to use: the start of its name; the latest if omitted", "")
_INDENT = 2  # of the command in the answer of bisect --status
_LLVM_SOURCE = flag("clone of LLVM, to search its commits if the culprit moves the pin", None)
_EXPLAIN = flag("print what each candidate is expected to cost, and test nothing", default=False)


@task(tables=True)
def run(
    context: Any,
    what: CompileOptions,
    kernel: str = KERNEL,
    good: str = flag("good Triton: 3.4.0, pytorch:2.9, installed, or a commit", ""),
    bad: str = flag("bad Triton, in the same form", ""),
    when: tuple[str, ...] = WHEN,
    test: str = flag("pytest or lit test that fails where Triton is bad: FILE or FILE::NAME", ""),
    source: str = flag("clone of Triton, or its URL, to search commits after releases", ""),
    llvm_source: Path | None = _LLVM_SOURCE,
    nightlies: str = flag("URL of an index of nightly wheels, to search after releases", ""),
    releases_only: bool = flag("stop at the first bad release; search no commits", default=False),
    confirm: int | None = CONFIRM,
    explain: bool = _EXPLAIN,
    env: str = ENV,
    scheduler: str = SCHEDULER,
    jobs: int | None = JOBS,
    timeout: int | None = TIMEOUT,
    json: bool = JSON,
) -> None:
    """Find the Triton release or commit that broke a kernel or command."""
    from dataclasses import replace

    from tritonsmith.lab.bisect import command, session
    from tritonsmith.lab.bisect.session import BisectQuestion

    _, argv = command_line()
    _require_one_subject(kernel, test, argv)
    # Symptoms are read off compiled code; a command or a test has only its exit code.
    if when and not kernel:
        raise UsageError("--when is about a kernel", hints=["omit --when: the exit code decides"])
    question = BisectQuestion(
        good=good,
        bad=bad,
        kernel=_absolute(kernel),
        # Lists, as JSON gives them back: a resumed question must have the same digest.
        flags={
            name: list(value) if isinstance(value, tuple) else value for name, value in vars(what).items()
        },
        when=when,
        test=_absolute(test, "::"),
        command=tuple(argv),
        folder=str(Path.cwd()),
        source=source if not source or command.is_url(source) else str(Path(source).expanduser().absolute()),
        env=env,
        confirm=confirm or 1,
        timeout=timeout,
        releases_only=releases_only,
        llvm_source=str(llvm_source or ""),
        nightlies=nightlies,
    )
    command.fetch(question)
    kernels = _kernels(question)
    question = replace(question, content=command.content(question, kernels))
    # The same question goes on with its unfinished bisect: a command that is repeated loses no builds.
    _continue(session.begin(question), kernels, scheduler, jobs, explain=explain, json=json)


@task(tables=True)
def resume(
    context: Any,
    bisect: str = _NAME,
    llvm_source: Path | None = _LLVM_SOURCE,
    explain: bool = _EXPLAIN,
    scheduler: str = SCHEDULER,
    jobs: int | None = JOBS,
    json: bool = JSON,
) -> None:
    """Resume a stopped bisect, or continue it into LLVM."""
    from dataclasses import replace

    from tritonsmith.lab.bisect import command, session

    begun = session.find(bisect)
    question = begun.question
    if llvm_source:
        # A clone of LLVM may be named only now: the outcomes so far do not depend on it.
        begun = replace(begun, question=replace(question, llvm_source=str(llvm_source)))
    command.fetch(question)
    kernels = _kernels(question)
    # Outcomes of a kernel that was edited since then would be mixed with those of the new one.
    command.check_content(question, kernels)
    _continue(begun, kernels, scheduler, jobs, explain=explain, json=json)


@task(tables=True)
def status(context: Any, bisect: str = _NAME, json: bool = JSON) -> None:
    """Show what a bisect has found so far."""
    from dataclasses import asdict

    from tritonsmith.lab.bisect import report, session

    begun = session.find(bisect)
    if json:
        tested = report.tested_json(begun)
        about = {"session": begun.folder.name, "question": asdict(begun.question)}
        state = {"answer": begun.answer or None, "skipped_since": begun.journal.late}
        output.json({"schema": 1, **about, "tested": tested, **state})
        return
    console.out().print(f"{begun.folder.name}:", markup=False)
    for line in continued(console.typed(report.repeat(begun.question)), console.out().width - _INDENT):
        console.out().print(f"{'':<{_INDENT}}{line}", markup=False)
    console.out().print(report.tested(begun) if begun.outcomes else "nothing tested yet")
    console.out().print(begun.answer or console.typed("not finished: invoke bisect --resume"), markup=False)
    if late := begun.journal.late:
        words = (
            f"before {', '.join(late)} {'was' if len(late) == 1 else 'were'} skipped: invoke bisect --resume"
        )
        console.out().print(console.typed(words), markup=False)


@task()
def log(context: Any, bisect: str = _NAME) -> None:
    """Print a bisect in the format of `git bisect replay`."""
    from tritonsmith.lab.bisect import report, session

    console.write("\n".join(report.git_log(session.find(bisect))))


@task()
def skip(
    context: Any,
    candidate: str = word("release, or full hash of a commit"),
    bisect: str = _NAME,
) -> None:
    """Skip a Triton in a bisect: it is not tested, or its outcome is dropped."""
    from tritonsmith.lab.bisect import session

    begun = session.find(bisect)
    # Under the lock: a bisect that runs now would not see the skip, and would write its own state over it.
    with begun.held():
        name = session.skip(begun, candidate)
    console.note(f"{name} is skipped in {begun.folder.name}")


def _require_one_subject(kernel: str, test: str, argv: Sequence[str]) -> None:
    subjects = (("a kernel", kernel), ("--test", test), ("a command", argv))
    names = [name for name, value in subjects if value]
    if len(names) != 1:
        hints = ["FILE:KERNEL with --when LIMIT", "--test FILE", "-- COMMAND"]
        text = f"{' and '.join(names)} contradict each other" if names else "there is nothing to test"
        raise UsageError(text, hints=hints)


def _continue(
    session: BisectSession,
    kernels: tuple[ComparedKernel, ...],
    scheduler: str,
    jobs: int | None,
    *,
    explain: bool,
    json: bool,
) -> None:
    from tritonsmith.lab.bisect import command, report

    bisect = command.prepare(session, kernels, scheduler, jobs, silent=json)
    if explain:
        _print_costs(bisect, json=json)
        return
    result = command.run(bisect, kernels, silent=json)
    answer, passes = result.answer, result.parted.sentence if result.parted else ""
    if json:
        output.json(result.as_json())
    else:
        output.lines(report.lines(session, answer))
        if passes:
            console.out().print(f"  {passes}", markup=False)
        console.out().print(f"  page: {result.page}", markup=False)
        # Verbatim, without the width of the terminal: this is text for an issue of Triton's.
        console.write("\n" + report.upstream(session, answer, passes))
    if not answer.step.decided:
        hints = ["the reason is printed above, and by `invoke bisect --status`"]
        raise UndecidedError(report.headline(answer), hints=hints)


def _print_costs(bisect: TritonBisect, *, json: bool) -> None:
    from tritonsmith.lab.bisect import report

    rows = list(bisect.costs())
    if json:
        output.json(report.costs_json(rows))
    else:
        console.out().print(report.costs(rows))


def _kernels(question: BisectQuestion) -> tuple[ComparedKernel, ...]:
    # JSON has no tuples, and `CompileOptions` compares equal to its defaults only with them.
    flags: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in question.flags.items()
    }
    return compared_kernels(question.kernel, CompileOptions(**flags))


def _absolute(text: str, separator: str = ":") -> str:
    """Make the file of FILE or FILE:NAME absolute; leave MODULE:NAME alone."""
    # A bisect may be resumed from another folder.
    head, colon, tail = text.partition(separator)
    path = Path(head).expanduser().absolute()
    return f"{path}{colon}{tail}" if text and path.exists() else text


@task(tables=True)
def blame(
    context: Any,
    what: KernelOptions,
    tests: ExperimentOptions,
    kernel: str = word("FILE[:KERNEL], or one kernel of a list: kernels.toml:NAME"),
    from_: str = TODAY,
    to: str = TOMORROW,
    metric: CommaLists = flag("explain this only: registers, spills or code (repeatable)", ()),
    ptxas_versions: CommaLists = flag("ptxas to try: 12.4,12.9,13.0 (repeatable)", ()),
    llc: CommaLists = flag("llc of another LLVM to try as well (repeatable)", ()),
    jobs: int | None = JOBS,
    timeout: int | None = TIMEOUT,
    json: bool = JSON,
    dry_run: bool = DRY_RUN,
) -> None:
    """Show which component changed a kernel: a Triton pass, LLVM or ptxas."""
    from tritonsmith.core.errors import FactError, did_you_mean
    from tritonsmith.lab import metrics
    from tritonsmith.lab.blame import blame as use_case
    from tritonsmith.lab.blame.blame import NOTHING, as_json, blocks, failures, sentence
    from tritonsmith.lab.blame.mixtures import WORDS
    from tritonsmith.lab.compare import rehearsal

    # Before anything compiles, as for every flag that may be misspelt.
    for name in metric:
        if name not in metrics.summary():
            raise UsageError(f"--metric cannot be {name!r}", hints=did_you_mean(name, metrics.summary()))
    sides = rehearsal.parse_side(from_, "--from"), rehearsal.parse_side(to, "--to")
    request = use_case.prepare(
        what.request(kernel),
        *sides,
        metrics=metric,
        ptxas_versions=ptxas_versions,
        more_llcs=[Path(program).expanduser().absolute() for program in llc],
    )
    if tests.show_status(request.journal, WORDS, json=json):
        return
    if dry_run:
        output.plan(use_case.plan(request), rest="the mixtures of both, which depend on these compiles")
        return
    answers, journal = use_case.execute(request, tests.rules, count=jobs, timeout=timeout, silent=json)
    sentences = [
        (f"{answer.point}: {sentence(answer, finding)}", finding.decided)
        for answer in answers
        for finding in answer.findings
    ]
    if json:
        output.json(as_json(request, answers))
    for answer in answers:
        output.blocks(() if json else blocks(request, answer))
        output.notes(dict.fromkeys((*answer.notes, *failures(answer))))
    tests.write_page(journal, "blame", [text for text, _ in sentences] or [NOTHING], WORDS)
    if unsure := [text for text, decided in sentences if not decided]:
        hints = ["--json has every figure and message", f"all texts are in {request.out}"]
        raise FactError(
            "not decided: no component explains the change alone", why="\n".join(unsure), hints=hints
        )
