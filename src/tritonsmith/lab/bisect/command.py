"""`bisect`: from a question to the result, the pass and the commits of LLVM behind it, and the page."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from tritonsmith.build import worktree_add
from tritonsmith.check import when_wrong
from tritonsmith.compiler import source_tree, tritons
from tritonsmith.compiler.run import check as check_request
from tritonsmith.compiler.tritons import Triton
from tritonsmith.core import untrusted
from tritonsmith.core.command_line import command
from tritonsmith.core.envs import settings, workspace
from tritonsmith.core.errors import InterruptedRunError, SmithError, UsageError
from tritonsmith.core.plan import digest, files
from tritonsmith.core.plan.steps.fetch import GitRemote
from tritonsmith.core.ui import console
from tritonsmith.facts import git, machine
from tritonsmith.lab import experiment
from tritonsmith.lab import terms as language
from tritonsmith.lab.bisect import history, llvm_range, program_tests, report
from tritonsmith.lab.bisect.candidates import BisectSubject, CommitBuilds, TritonTests
from tritonsmith.lab.bisect.kernels import (
    KernelCompiles,
    KernelTests,
    WrongResultTests,
    broken_limit,
    kernel_folder,
    same_failure,
)
from tritonsmith.lab.bisect.llvm_range import LlcBuilds, LlvmBisect
from tritonsmith.lab.bisect.program_tests import CheckoutTests, CommandTests, TestFile
from tritonsmith.lab.bisect.session import BisectQuestion, BisectSession
from tritonsmith.lab.bisect.stages import (
    BisectResult,
    CandidateCost,
    ClonedBuilds,
    NotReproducedError,
    StagedSearch,
    short,
    triton_of,
)
from tritonsmith.lab.compare.two_sides import ComparedKernel
from tritonsmith.lab.isolate import first_pass_with
from tritonsmith.lab.isolate.first_pass_with import PartingPass
from tritonsmith.lab.journal import Observation

ANSWER = "answer.json"  # in the folder of a bisect, what `--json` prints of one that has ended
TESTS = "tests"  # there, too
_RELEASES = 2  # tested at once by default; more would install some that a search does not need
_VENDORS = {"cuda": "nvidia", "hip": "amd"}


@dataclass
class TritonBisect:
    """A bisect that goes on from what its session has.

    Attributes:
        session: the question, and the tests so far.
        tests: of Tritons that are ready.
        good: the good end.
        bad: the bad one.
        builds: makes commits ready; None without a clone.
        vendor: `nvidia` or `amd` if only one is asked about.
        jobs: commits that share a build and are tested at once.
        releases: releases that are tested at once.
        tell: gets a line for each test.
    """

    session: BisectSession
    tests: TritonTests
    good: Triton
    bad: Triton
    builds: ClonedBuilds | None = None
    vendor: str = ""
    jobs: int = 1
    releases: int = 1
    tell: Callable[[str], None] = field(default=print)

    def run(self) -> BisectResult:
        """Search; the session is held, and its journal goes on, as the explanation is to come.

        Raises:
            NotReproducedError: an end does not have the verdict that it was given for.
            SmithError: a test has neither an answer nor a reason to skip; the session is kept.
        """
        journal = self.session.journal
        # A search asks for what an earlier run has tested before it chooses; see `first_bad`.
        self.search.known = [*journal.observations, *journal.skipped]
        subject = BisectSubject(self.tests.outcomes, self.builds, self.jobs)
        try:
            return experiment.run(self.search.run(), subject.test, journal, self._note)
        except NotReproducedError as error:
            journal.end(error.what)
            raise

    @cached_property
    def search(self) -> StagedSearch:
        """The search, which knows the Tritons that it has come upon."""
        # The search is kept, as it comes to know the nightlies and the outcomes that `run`, `costs` and the
        # explanation share.
        question = self.session.question
        return StagedSearch(
            self.good,
            self.bad,
            self.builds,
            self.vendor,
            self.jobs,
            self.releases,
            self.tell,
            releases_only=question.releases_only,
            index=question.nightlies,
        )

    def costs(self) -> Iterator[CandidateCost]:
        """Yield each candidate of the stage that is not over."""
        return replace(self.search, observations=self.session.outcomes).costs()

    def _note(self, triton: str, outcome: Observation) -> None:
        self.tell(f"{short(triton)}: {outcome.verdict}: {outcome.evidence} ({outcome.seconds:.0f} s)")


@dataclass(frozen=True)
class ExplainedBisect:
    """The result of a bisect, with its explanation.

    Attributes:
        session: with all outcomes.
        answer: the step, with notes.
        parted: the pass at which the compiles by both sides diverge; None for a command or a test.
        llvm: the commits of LLVM as JSON; None where its pin did not move.
        page: path of the page.
    """

    session: BisectSession
    answer: BisectResult
    parted: PartingPass | None
    llvm: dict[str, Any] | None
    page: Path

    def as_json(self) -> dict[str, Any]:
        """Return everything but the page."""
        passes = self.parted.sentence if self.parted else ""
        content = report.as_json(self.session, self.answer, passes)
        return {**content, "llvm": self.llvm, "page": str(self.page)}


def prepare(
    session: BisectSession,
    kernels: tuple[ComparedKernel, ...],
    scheduler: str = "",
    jobs: int | None = None,
    *,
    silent: bool,
) -> TritonBisect:
    """Return the bisect of a question, which another process may be running.

    Args:
        session: with the question.
        kernels: that it is about; none for a command or a test.
        scheduler: address of a Dask scheduler; empty for this machine.
        jobs: tests at once. None for one, and for as many compiles as cores and memory allow; of a kernel,
            two releases are tested at once then.
        silent: show no progress.
    """
    question = session.question
    # A wrong signature is reported before the first release is installed, which takes a while.
    for kernel in kernels:
        check_request(kernel.asked)
    clone = clone_of(question)
    good, bad = (_end(question, flag, clone) for flag in ("good", "bad"))
    test = _test_file(question)
    needed, programs = (test.needed, test.lit) if test else ((), False)
    build_settings = settings.load(question.env)
    # The clone of a URL has no contents of files, which the builds fetch from there.
    url = question.source if is_url(question.source) else ""
    builds = (
        CommitBuilds(clone, build_settings, workspace.default(), (), needed, programs, url) if clone else None
    )
    # Between two commits, an index of wheels narrows nothing down that the clone does not.
    by_nightly = any(tritons.is_nightly(text) for text in (question.good, question.bad))
    if question.nightlies and not by_nightly and (good.commit or bad.commit):
        raise UsageError("--nightlies needs releases as both ends", hints=["--good 3.6.0 --bad 3.7.0"])
    tests = _tests(
        # The ends as calls: a commit among them is built once a test needs it.
        session, kernels, test, [partial(triton_of, end, builds) for end in (good, bad)], scheduler, jobs,
        silent=silent,
    )  # fmt: skip
    backends = {target.backend for kernel in kernels for target in kernel.asked.targets}
    # With targets of both vendors, no commit is an unlikely one.
    vendor = _VENDORS[backends.pop()] if len(backends) == 1 else ""
    releases = _at_once(tests, question, scheduler, jobs)
    return TritonBisect(session, tests, good, bad, builds, vendor, jobs or 1, releases, console.note)


def _at_once(tests: TritonTests, question: BisectQuestion, scheduler: str, jobs: int | None) -> int:
    """Return the number of releases that are tested at once."""
    if isinstance(tests, WrongResultTests):  # which tests one after the other
        return 1
    # A command or a test of the user's may want the machine for itself, and so does a time.
    timed = any(map(language.is_timed, language.parse(question.when, "--when")))
    if jobs or timed or not isinstance(tests, KernelTests):
        return jobs or 1
    # Most of the time of a release is its installation, which keeps one core busy.
    return _RELEASES if scheduler else min(_RELEASES, machine.read().cores)


def run(bisect: TritonBisect, kernels: tuple[ComparedKernel, ...], *, silent: bool) -> ExplainedBisect:
    """Run a bisect to its end, look into the culprit, and write the page.

    Raises:
        InterruptedRunError: ^C; what was tested is kept.
        SmithError: as `TritonBisect.run`.
    """
    session = bisect.session
    workspace.default().claim()
    with session.held():
        if count := len(session.outcomes):
            console.note(f"{count} outcomes are known already: {session.folder.name}")
        try:
            result = _explained(bisect, bisect.run(), kernels, silent=silent)
        except (KeyboardInterrupt, InterruptedRunError) as error:
            where = error.where if isinstance(error, InterruptedRunError) else None
            hints = [f"{command('bisect --resume', session.folder.name)} goes on from there"]
            raise InterruptedRunError(
                "interrupted; what was tested is kept", where=where, hints=hints
            ) from None
        # For `issue.new`, which takes it with the kernel's compiles beside it.
        files.write_atomically(session.folder / ANSWER, f"{json.dumps(result.as_json(), indent=2)}\n")
        # Last: a journal that has ended is emptied by the same command, and LLVM's builds may take hours.
        session.journal.end(result.answer.line)
    return result


def _explained(
    bisect: TritonBisect, answer: BisectResult, kernels: tuple[ComparedKernel, ...], *, silent: bool
) -> ExplainedBisect:
    """Look into the culprit, and write the page."""
    session = bisect.session
    parted = _parted(bisect, answer, kernels, silent=silent)
    answer, llvm = _in_llvm(bisect, answer, parted)
    compiles = None
    if parted:
        sides = [bisect.search.triton(name) for name in (answer.step.good, answer.step.bad)]
        # The page shows one kernel: the one whose passes were compared.
        folders = [kernel_folder(session.folder / TESTS, side, kernels[0]) for side in sides]
        compiles = (folders[0], folders[1])
    path = session.folder / "report.html"
    report.write(report.page_of(session, answer, parted, compiles), path)
    return ExplainedBisect(session, answer, parted, llvm, path)


def _parted(
    bisect: TritonBisect, answer: BisectResult, kernels: Sequence[ComparedKernel], *, silent: bool
) -> PartingPass | None:
    """Find where compiles of a kernel before and after the culprit diverge; None for a command or test."""
    # With several suspects left, the two compiles differ by more than the culprit.
    if not kernels or not answer.step.decided:
        return None
    # The clone in which commits are built; there is none where all had their libraries already.
    checkout = bisect.builds.source if isinstance(bisect.builds, CommitBuilds) else None
    if checkout and not checkout.is_dir():
        checkout = None
    good, bad = (bisect.search.triton(name) for name in (answer.step.good, answer.step.bad))
    out = bisect.session.folder / "passes"
    return first_pass_with.parting(kernels[0].asked, good, bad, out, checkout, silent=silent)


def _in_llvm(
    bisect: TritonBisect, answer: BisectResult, parted: PartingPass | None
) -> tuple[BisectResult, dict[str, Any] | None]:
    """Return the answer extended by LLVM's commits, and its JSON; None where LLVM's pin did not move."""
    session, builds = bisect.session, bisect.builds
    if answer.culprit is None or answer.step.fix or not isinstance(builds, CommitBuilds):
        return answer, None
    clone = Path(session.question.llvm_source) if session.question.llvm_source else None
    by_pass = parted.name if parted and not parted.file else ""  # with a file, it is a pass of Triton
    pins = llvm_range.range_of(answer.commits, answer.culprit, bisect.vendor, clone, by_pass)
    if pins is None:
        return answer, None
    notes, search_json = [*pins.lines()], {}
    if clone:
        # Now, as the builds of LLVM that follow may take hours, and be stopped.
        console.note(report.headline(answer))
        sides = {
            "good": bisect.search.triton(answer.step.good),
            "bad": bisect.search.triton(answer.step.bad),
        }
        folder = session.folder / "llvm"
        tests = {
            llvm_range.LLC: llvm_range.llc_tests(bisect.tests, sides, folder, optimizes=False),
            llvm_range.OPT: llvm_range.llc_tests(bisect.tests, sides, folder / "opt", optimizes=True),
        }
        llc_builds = LlcBuilds(clone, builds.settings, builds.space, pins.targets)
        search = LlvmBisect(pins, llc_builds, tests, session, console.note)
        notes += search.run()
        search_json = search.as_json()
    return replace(answer, notes=(*answer.notes, *notes)), {**pins.as_json(), **search_json}


def _tests(
    session: BisectSession,
    kernels: tuple[ComparedKernel, ...],
    test: TestFile | None,
    ends: Sequence[Callable[[], Triton]],
    scheduler: str,
    jobs: int | None,
    *,
    silent: bool,
) -> TritonTests:
    # One of command, test and kernels is set: the command line allows no two of them.
    question, scratch = session.question, session.folder / TESTS
    good, bad = ends
    if question.command or test:
        program_tests.check()
    if question.command:
        folder = Path(question.folder)
        return CommandTests(question.command, folder, scratch, scheduler, jobs or 1)
    if test:
        return CheckoutTests(test, scratch, good, bad, scheduler, jobs or 1)
    if when_wrong.is_requested(question.when):
        return WrongResultTests(kernels, scratch, question.timeout, silent=silent)
    terms = language.parse(question.when, "--when")
    compiles = KernelCompiles(
        kernels,
        scratch,
        scheduler,
        jobs,
        question.timeout,
        silent=silent,
        again=question.confirm > 1,
        disassemble=any(map(language.needs_code, terms)),
        timed=any(map(language.is_timed, terms)),
    )
    return broken_limit(compiles, terms, good) if terms else same_failure(compiles, bad)


def content(question: BisectQuestion, kernels: Sequence[ComparedKernel]) -> str:
    """Return a digest of all files under test; files of the commits themselves cannot change."""
    test = _test_file(question)
    tests = [untrusted.read_bytes(Path(test.path)).hex()] if test and not test.of_commit else []
    # The imports count, too: a helper module that is edited changes what is tested.
    requests = [kernel.asked for kernel in kernels]
    return digest(tests, [source_tree.of(request.file, request.kernel).key for request in requests])


def check_content(question: BisectQuestion, kernels: Sequence[ComparedKernel]) -> None:
    """Check that the files under test are those that the bisect began with.

    Raises:
        UsageError: they are not.
    """
    if content(question, kernels) != question.content:
        raise UsageError(
            "the tested file has changed since this bisect began, so its outcomes do not count",
            where=question.kernel or question.test,
            hints=["begin again: the same command as before"],
        )


def _test_file(question: BisectQuestion) -> TestFile | None:
    if not question.test:
        return None
    clone = clone_of(question)
    return program_tests.parse(question.test, clone, _end(question, "bad", clone).commit)


def _end(question: BisectQuestion, flag: str, clone: Path | None) -> Triton:
    """Return the good or the bad end; with a clone, a nightly is the commit that it was built from."""
    text: str = getattr(question, flag)
    index = partial(history.read_nightlies, question.nightlies) if question.nightlies else None
    end = tritons.parse_end(text, f"--{flag}", clone, index)
    if not end.url:
        return end
    if clone is None or not end.commit:
        hints = ["--source CLONE has its commit", "name a release before or after it: 3.6.0"]
        raise UsageError(f"--{flag}: {text} is an end only where its commit is known", hints=hints)
    return tritons.parse_end(f"commit {end.commit}", f"--{flag}", clone)


def is_url(source: str) -> bool:
    """Report whether `--source` names a repository, not a folder."""
    return "://" in source or source.startswith("git@")


def clone_of(question: BisectQuestion) -> Path | None:
    """Return the user's clone, or this tool's clone of a URL, fetched or not; None if none is named."""
    if is_url(question.source):
        return worktree_add.own_clone(question.source, workspace.default()).repository
    return Path(question.source) if question.source else None


def fetch(question: BisectQuestion) -> None:
    """Update this tool's own clone; if that fails, use it as it is.

    Raises:
        UsageError: a URL has a password or a token.
    """
    for flag, url in (("--source", question.source), ("--nightlies", question.nightlies)):
        if GitRemote.of(url).env:
            # The question is a file, and the command to repeat it is pasted into issues.
            hints = ["a URL without a password or token"]
            raise UsageError(f"{flag} has a secret, which a bisect would write down", hints=hints)
    if not is_url(question.source):
        return
    space = workspace.default()
    clone = worktree_add.own_clone(question.source, space)
    try:
        worktree_add.fetch(clone, space, "bisect")
    except SmithError as error:
        # Without a network the commits of the last fetch are often enough; an empty clone is not.
        known = git.look(clone.repository, "for-each-ref", "--count=1")
        if known is None or not known.out:
            raise
        console.note(f"{clone.repository} is used as it is: {error.what}")
