"""`bisect`: which release or commit of Triton changed what a kernel compiles to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.kernel_options import CompileOptions, compared_kernels
from tritonsmith.cli.tasks.option_fields import flag, word
from tritonsmith.cli.tasks.option_task import command_line
from tritonsmith.cli.tasks.options import CONFIRM, ENV, JOBS, JSON, KERNEL, SCHEDULER, TIMEOUT, WHEN
from tritonsmith.cli.tasks.task import task
from tritonsmith.core import untrusted
from tritonsmith.core.command_line import command, continued
from tritonsmith.core.errors import InterruptedRunError, UndecidedError, UsageError
from tritonsmith.core.ui import console

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tritonsmith.compiler.tritons import Triton
    from tritonsmith.lab.bisect.command import BisectAnswer, TritonBisect
    from tritonsmith.lab.bisect.culprit import PartingPass
    from tritonsmith.lab.bisect.predicate.protocol import Predicate
    from tritonsmith.lab.bisect.session import BisectQuestion, BisectSession
    from tritonsmith.lab.bisect.tested_file import TestFile
    from tritonsmith.lab.compare.inputs import ComparedKernel

_NAME = word("bisect, by the beginning of its name; the last one if omitted", "")
_INDENT = 2  # of the command in the answer of bisect --status
_TESTS = "tests"  # in the folder of a bisect
_LLVM_SOURCE = flag("clone of LLVM, to search its commits if the culprit is a bump", None)
_EXPLAIN = flag("print what each candidate is expected to cost, and test nothing", default=False)


@task(tables=True)
def run(
    context: Any,
    what: CompileOptions,
    kernel: str = KERNEL,
    good: str = flag("Triton that is good: 3.4.0, pytorch:2.9, installed, or a commit", ""),
    bad: str = flag("Triton that is bad, given in the same way", ""),
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

    from tritonsmith.lab.bisect import session
    from tritonsmith.lab.bisect.session import BisectQuestion

    _, argv = command_line()
    given = [name for name, one in (("a kernel", kernel), ("--test", test), ("a command", argv)) if one]
    if len(given) != 1:
        hints = ["FILE:KERNEL with --when LIMIT", "--test FILE", "-- COMMAND"]
        text = f"{' and '.join(given)} contradict each other" if given else "nothing to test is given"
        raise UsageError(text, hints=hints)
    if when and not kernel:
        raise UsageError("--when is about a kernel", hints=["omit --when: the exit code decides"])
    question = BisectQuestion(
        good=good,
        bad=bad,
        kernel=_absolute(kernel),
        flags={name: list(one) if isinstance(one, tuple) else one for name, one in vars(what).items()},
        when=when,
        test=_absolute(test, "::"),
        command=tuple(argv),
        folder=str(Path.cwd()),
        source=source if not source or _is_url(source) else str(Path(source).expanduser().absolute()),
        env=env,
        confirm=confirm or 1,
        timeout=timeout,
        releases_only=releases_only,
        llvm_source=str(llvm_source or ""),
        nightlies=nightlies,
    )
    _fetch(question)
    question = replace(question, content=_content(question))
    _go_on(session.begin(question), scheduler, jobs, explain=explain, json=json)


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

    from tritonsmith.lab.bisect import session

    found = session.find(bisect)
    question = found.question
    if llvm_source:
        found = replace(found, question=replace(question, llvm_source=str(llvm_source)))
    _fetch(question)
    here = _content(question)
    if here != question.content:
        raise UsageError(
            "the tested file has changed since this bisect began, so its outcomes do not count",
            where=question.kernel or question.test,
            hints=["begin again: the same command as before"],
        )
    _go_on(found, scheduler, jobs, explain=explain, json=json)


@task(tables=True)
def status(context: Any, bisect: str = _NAME, json: bool = JSON) -> None:
    """Show what a bisect has found so far."""
    from dataclasses import asdict

    from tritonsmith.lab.bisect import report, session

    found = session.find(bisect)
    if json:
        tested = [one.row() for one in found.tested]
        about = {"session": found.folder.name, "question": asdict(found.question)}
        output.json({"schema": 1, **about, "tested": tested, "answer": found.answer or None})
        return
    console.out().print(f"{found.folder.name}:", markup=False)
    for line in continued(console.typed(report.repeat(found.question)), console.out().width - _INDENT):
        console.out().print(f"{'':<{_INDENT}}{line}", markup=False)
    console.out().print(report.tested(found) if found.tested else "nothing tested yet")
    console.out().print(found.answer or "not over: invoke bisect --resume", markup=False)


@task()
def log(context: Any, bisect: str = _NAME) -> None:
    """Print a bisect in the format of `git bisect replay`."""
    from tritonsmith.lab.bisect import report, session

    console.write("\n".join(report.git_log(session.find(bisect))))


@task()
def skip(
    context: Any,
    candidate: str = word("release, or commit with all digits"),
    bisect: str = _NAME,
) -> None:
    """Skip a Triton in a bisect: it is not tested, or its outcome is dropped."""
    from tritonsmith.lab.bisect import session
    from tritonsmith.lab.model import Observation, Verdict

    found = session.find(bisect)
    with found.held():
        found = session.read(found.folder)
        of_llvm = session.llvm_commit(found, candidate)
        name = of_llvm or session.known_name(found, candidate)
        for one in session.of_llvm(found) if of_llvm else (found,):
            one.having(name, Observation(Verdict.SKIP, why=session.BY_HAND))
    console.note(f"{name} is skipped in {found.folder.name}")


def _go_on(session: BisectSession, scheduler: str, jobs: int | None, *, explain: bool, json: bool) -> None:
    from tritonsmith.core.envs import workspace
    from tritonsmith.lab.bisect import report

    bisect = _bisect(session, scheduler, jobs, silent=json)
    if explain:
        _print_costs(bisect, json=json)
        return
    workspace.default().claim()
    with session.held():
        if session.tested:
            console.note(f"{len(session.tested)} outcomes are known already: {session.folder.name}")
        try:
            answer = bisect.run()
        except KeyboardInterrupt:
            hints = [f"{command('bisect --resume', session.folder.name)} goes on from there"]
            raise InterruptedRunError("interrupted; what was tested is kept", hints=hints) from None
        parted = _parted(bisect, answer, silent=json)
        answer, llvm = _in_llvm(bisect, answer, parted)
    page = _page(bisect, answer, parted)
    passes = parted.said if parted else ""
    if json:
        output.json({**report.as_json(bisect.session, answer, passes), "llvm": llvm, "page": str(page)})
    else:
        for line in report.lines(bisect.session, answer):
            console.out().print(line, markup=False)
        if passes:
            console.out().print(f"  {passes}", markup=False)
        console.out().print(f"  page: {page}", markup=False)
        console.write("\n" + report.upstream(bisect.session, answer, passes))
    if not answer.step.decided:
        hints = ["the reason is printed above, and by `invoke bisect --status`"]
        raise UndecidedError(report.verdict(answer), hints=hints)


def _bisect(session: BisectSession, scheduler: str, jobs: int | None, *, silent: bool) -> TritonBisect:
    """Return the bisect of a question, which another process may be running."""
    from tritonsmith.core.envs import settings, workspace
    from tritonsmith.lab.bisect import ends
    from tritonsmith.lab.bisect.build import CommitBuilds
    from tritonsmith.lab.bisect.command import TritonBisect, triton_of

    question = session.question
    clone = _clone(question)
    good, bad = ends.parse(question.good, "--good", clone), ends.parse(question.bad, "--bad", clone)
    kernels = compared_kernels(question.kernel, _options(question))
    test = _test(question)
    needed, programs = (test.needed, test.lit) if test else ((), False)
    given = settings.load(question.env)
    url = question.source if _is_url(question.source) else ""
    builds = CommitBuilds(clone, given, workspace.default(), (), needed, programs, url) if clone else None
    tritons = [lambda end=end: triton_of(end, builds) for end in (good, bad)]
    if question.nightlies and not (good.release and bad.release):
        raise UsageError("--nightlies lie between releases", hints=["--good 3.6.0 --bad 3.7.0"])
    predicate = _predicate(session, kernels, test, tritons, scheduler, jobs, silent=silent)
    backends = {target.backend for kernel in kernels for target in kernel.asked.targets}
    vendor = {"cuda": "nvidia", "hip": "amd"}[backends.pop()] if len(backends) == 1 else ""
    return TritonBisect(session, predicate, good, bad, builds, vendor, jobs or 1, console.note)


def _parted(bisect: TritonBisect, answer: BisectAnswer, *, silent: bool) -> PartingPass | None:
    """Find where compiles of a kernel before and after the culprit diverge; None for a command or test."""
    from tritonsmith.lab.bisect import culprit

    session, question = bisect.session, bisect.session.question
    if not question.kernel or not answer.step.decided:
        return None
    kernel = compared_kernels(question.kernel, _options(question))[0]
    checkout = bisect.builds.source if bisect.builds and bisect.builds.source.is_dir() else None
    good, bad = bisect.triton(answer.step.good), bisect.triton(answer.step.bad)
    return culprit.parting(kernel.asked, good, bad, session.folder / "passes", checkout, silent=silent)


def _in_llvm(
    bisect: TritonBisect, answer: BisectAnswer, parted: PartingPass | None
) -> tuple[BisectAnswer, dict[str, Any] | None]:
    """Return the answer extended by LLVM's commits, and its JSON; None where LLVM's pin did not move."""
    from dataclasses import replace

    from tritonsmith.lab.bisect import llvm_range, report
    from tritonsmith.lab.bisect.llvm_build import LlcBuilds
    from tritonsmith.lab.bisect.predicate import llc_compiles

    question, builds = bisect.session.question, bisect.builds
    if answer.culprit is None or answer.step.fix or builds is None:
        return answer, None
    clone = Path(question.llvm_source) if question.llvm_source else None
    by_pass = parted.name if parted and not parted.file else ""
    found = llvm_range.of(answer.commits, answer.culprit, bisect.vendor, clone, by_pass)
    if found is None:
        return answer, None
    said, more = [*found.lines()], {}
    if clone:
        console.note(report.verdict(answer))  # builds of LLVM may take hours, and be stopped
        sides = {"good": bisect.triton(answer.step.good), "bad": bisect.triton(answer.step.bad)}
        folder = bisect.session.folder / "llvm"
        tests = {
            llvm_range.LLC: llc_compiles.tests(bisect.predicate, sides, folder, optimizes=False),
            llvm_range.OPT: llc_compiles.tests(bisect.predicate, sides, folder / "opt", optimizes=True),
        }
        made = LlcBuilds(clone, builds.settings, builds.space, found.targets)
        search = llvm_range.LlvmBisect(found, made, tests, bisect.session, console.note)
        said += search.run()
        more = search.as_json()
    return replace(answer, notes=(*answer.notes, *said)), {**found.as_json(), **more}


def _page(bisect: TritonBisect, answer: BisectAnswer, parted: PartingPass | None) -> Path:
    """Write the page; for a kernel, with its code before and after the culprit."""
    from tritonsmith.lab.bisect import findings, page
    from tritonsmith.lab.bisect.predicate import kernel_compiles

    session, question = bisect.session, bisect.session.question
    compiles = None
    if parted:
        kernel = compared_kernels(question.kernel, _options(question))[0]
        sides = [bisect.triton(one) for one in (answer.step.good, answer.step.bad)]
        folders = [kernel_compiles.folder(session.folder / _TESTS, one, kernel) for one in sides]
        compiles = (folders[0], folders[1])
    path = session.folder / "report.html"
    page.write(findings.of(session, answer, parted, compiles), path)
    return path


def _predicate(
    session: BisectSession,
    kernels: tuple[ComparedKernel, ...],
    test: TestFile | None,
    ends: Sequence[Callable[[], Triton]],
    scheduler: str,
    jobs: int | None,
    *,
    silent: bool,
) -> Predicate:
    from tritonsmith.check.predicate import asked_for
    from tritonsmith.lab import terms as language
    from tritonsmith.lab.bisect.predicate import command
    from tritonsmith.lab.bisect.predicate.checkout_test import TestPredicate
    from tritonsmith.lab.bisect.predicate.kernel_compiles import (
        FailurePredicate,
        KernelCompiles,
        LimitPredicate,
    )
    from tritonsmith.lab.bisect.predicate.protocol import ConfirmedPredicate

    question, scratch = session.question, session.folder / _TESTS
    times = question.confirm
    if question.command or test:
        command.check()
    made: Predicate
    good, bad = ends
    if question.command:
        folder = Path(question.folder)
        made = command.CommandPredicate(question.command, folder, scratch, scheduler, jobs or 1)
    elif test:
        made = TestPredicate(test, scratch, good, bad, scheduler, jobs or 1)
    elif asked_for(question.when):
        from tritonsmith.lab.bisect.predicate.wrong_result import WrongResultPredicate

        made = WrongResultPredicate(kernels, scratch, question.timeout, silent=silent)
    else:
        compiles = KernelCompiles(
            kernels, scratch, scheduler, jobs, question.timeout, silent=silent, again=times > 1
        )
        terms = language.parse(question.when, "--when")
        made = LimitPredicate(compiles, terms, good) if terms else FailurePredicate(compiles, bad)
    return ConfirmedPredicate(made, times) if times > 1 else made


def _print_costs(bisect: TritonBisect, *, json: bool) -> None:
    from tritonsmith.lab.bisect import report

    rows = list(bisect.costs())
    if json:
        costs = [
            {
                "triton": row.triton,
                "subject": row.subject or None,
                "verdict": row.outcome.verdict if row.outcome else None,
                "seconds": row.cost.seconds,
                "reasons": list(row.cost.reasons),
            }
            for row in rows
        ]
        output.json({"schema": 1, "candidates": costs})
        return
    console.out().print(report.costs(rows))


def _options(question: BisectQuestion) -> CompileOptions:
    flags: dict[str, Any] = {
        name: tuple(one) if isinstance(one, list) else one for name, one in question.flags.items()
    }
    return CompileOptions(**flags)


def _absolute(text: str, separator: str = ":") -> str:
    """Make the file of FILE or FILE:NAME absolute; leave MODULE:NAME alone."""
    head, found, tail = text.partition(separator)
    path = Path(head).expanduser().absolute()
    return f"{path}{found}{tail}" if text and path.exists() else text


def _content(question: BisectQuestion) -> str:
    """Return a digest of all files under test; files of the commits themselves cannot change."""
    from tritonsmith.compiler import source_tree
    from tritonsmith.core.plan import digest

    kernels = compared_kernels(question.kernel, _options(question))
    test = _test(question)
    tests = [untrusted.read_bytes(Path(test.path)).hex()] if test and not test.of_commit else []
    return digest(tests, [source_tree.of(one.asked.file, one.asked.kernel).key for one in kernels])


def _test(question: BisectQuestion) -> TestFile | None:
    from tritonsmith.lab.bisect import ends, tested_file

    if not question.test:
        return None
    clone = _clone(question)
    return tested_file.parse(question.test, clone, ends.parse(question.bad, "--bad", clone).commit)


def _is_url(source: str) -> bool:
    return "://" in source or source.startswith("git@")


def _clone(question: BisectQuestion) -> Path | None:
    """Return the user's clone, or this tool's clone of a URL, fetched or not; None if none is named."""
    from tritonsmith.build.worktrees import add
    from tritonsmith.core.envs import workspace

    if _is_url(question.source):
        return add.own_clone(question.source, workspace.default()).repository
    return Path(question.source) if question.source else None


def _fetch(question: BisectQuestion) -> None:
    """Update this tool's own clone; if that fails, the clone as it is will do."""
    from tritonsmith.build.worktrees import add
    from tritonsmith.core.envs import workspace
    from tritonsmith.core.errors import SmithError
    from tritonsmith.core.plan.git_remote import GitRemote
    from tritonsmith.facts import git

    for flag_, url in (("--source", question.source), ("--nightlies", question.nightlies)):
        if GitRemote.of(url).env:
            hints = ["a URL without a password or token"]
            raise UsageError(f"{flag_} has a secret, which a bisect would write down", hints=hints)
    if not _is_url(question.source):
        return
    space = workspace.default()
    clone = add.own_clone(question.source, space)
    try:
        add.fetch(clone, space, "bisect")
    except SmithError as error:
        known = git.look(clone.repository, "for-each-ref", "--count=1")
        if known is None or not known.out:
            raise
        console.note(f"{clone.repository} is used as it is: {error.what}")
