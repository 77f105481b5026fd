"""`reduce FILE.py`: shrink the source of a kernel while a symptom stays, and write a file that shows it."""

from __future__ import annotations

import ast
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from tritonsmith.compiler import manifest, run, signature, source
from tritonsmith.compiler.interpreter import Interpreter, worker_variables
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.core import configs, untrusted
from tritonsmith.core.envs import workspace
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, InterruptedRunError, SmithError, UndecidedError, UsageError
from tritonsmith.core.plan import Plan, Remove, digest, files
from tritonsmith.core.plan.programs import CapturedProgram
from tritonsmith.core.process import CommandOutput
from tritonsmith.core.text import duration
from tritonsmith.core.ui import console, tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.facts import variables
from tritonsmith.lab import experiment, failure, journal, terms
from tritonsmith.lab.experiment import Rules
from tritonsmith.lab.journal import Journal, Observation, Verdict
from tritonsmith.lab.reduce import shrink
from tritonsmith.lab.reduce.shrink import DeltaCandidate, PendingTest
from tritonsmith.lab.triage import kernel as kernels
from tritonsmith.lab.triage.kernel import KernelSubject, WrongKernelSubject
from tritonsmith.lab.triage.reduce import testers
from tritonsmith.lab.triage.reduce.kernel_search import KernelCandidate, KernelSearch, SourceCounts, counts
from tritonsmith.lab.triage.reduce.testers import (
    CheckTester,
    CommandTester,
    CompileTester,
    ScriptTester,
    Symptom,
    Tester,
    TesterPool,
    candidate_request,
    with_file,
)
from tritonsmith.lab.triage.verdict import SYMPTOM

TIMEOUT = 600
JOBS = 2  # of a command
# A candidate may loop for ever: it gets so many times as long as the whole source took, and some seconds.
_SLOWER = 10
_SECONDS = 5.0

OnBetter = Callable[[SourceCounts, int], None]


@dataclass(frozen=True)
class KernelReduced:
    """The result of a reduction.

    Attributes:
        file: the file that was written.
        expected: the symptom in words.
        before: counts of the source.
        after: counts of the kernel in the file, without the comment above it and its main program.
        tried: number of candidates that were tested.
        seconds: wall time of the reduction.
        alone: whether `python FILE` compiles it, and shows a failure.
        compiles: whether it only compiles it, as the symptom is not one of the compile.
        interrupted: whether ^C ended it, so that it may become smaller still.
        journal: of all candidates.
    """

    file: Path
    expected: str
    before: SourceCounts
    after: SourceCounts
    tried: int
    seconds: float
    alone: bool = False
    compiles: bool = False
    interrupted: bool = False
    journal: Journal = field(default_factory=Journal, compare=False)


@dataclass(frozen=True)
class _Start:
    """The state that the search begins with.

    Attributes:
        candidate: the whole source.
        kernel: name of the function that is compiled; empty where a command decides.
        counted: the function whose arguments are counted.
        symptom: the symptom of the source.
        request: the compile; None where a command decides.
        pool: the testers.
        again: tests a file in a new process.
        observation: the observation of the whole source.
        key: everything that a test depends on, except the candidate.
        alone: runs `python FILE` on a file with this name and text; returns None where it does not end.
    """

    candidate: KernelCandidate
    kernel: str
    counted: str
    symptom: Symptom
    request: CompileRequest | None
    pool: TesterPool
    again: Callable[[Path, KernelCandidate], Observation]
    observation: Observation
    key: object
    alone: Callable[[CapturedProgram, str, str], CommandOutput | None] = lambda *_: None


def folder_of(file: Path, space: Workspace) -> Path:
    """Return the folder of the journal of a reduction into a file."""
    # The written file names the folder, which is locked: so no two reductions write the same file.
    return space.root / "reduce" / f"{digest(str(file))}-journal"


def subject_of(
    request: CompileRequest, when: Sequence[str], file: Path, get_interpreter: Callable[[], Interpreter]
) -> KernelSubject:
    """Return the kernel to reduce, with its symptom.

    Args:
        request: the compile of the kernel.
        when: the terms of `--when`; none for a compile that fails.
        file: the file to write.
        get_interpreter: chooses the Triton that compiles, and may install it.

    Raises:
        SmithError: the request or a term makes no sense, or there is no such Triton.
    """
    # What is wrong with the command line is reported before a missing Triton.
    symptom = kernels.parse_when(when)
    run.check(request)
    where = get_interpreter()
    # A scratch folder, which the reduction empties: named after the file to write, as two may run at once.
    folder = workspace.default().root / "reduce" / digest(str(file))[:16]
    return kernels.subject_of(request, symptom, where, folder, silent=symptom is None)


def by_compile(
    subject: KernelSubject,
    file: Path,
    on_better: OnBetter,
    rules: Rules = Rules(),  # noqa: B008 - frozen
    *,
    silent: bool = False,
) -> KernelReduced:
    """Reduce a kernel whose compile shows a symptom.

    Args:
        subject: the symptom; its folder is in the workspace, and its interpreter says how many candidates are
            tested at once, and for how long each.
        file: the file to write.
        on_better: called with each smaller size, and the number of tries.
        rules: how often a candidate is tested, and which are not.
        silent: say nothing of a run that was stopped.

    Raises:
        SmithError: the symptom is not there, or not any more in a new process.
    """
    began = time.monotonic()
    subject.request = replace(subject.request, disassemble=any(map(terms.needs_code, subject.terms)))
    key = (subject.key, subject.triton)
    with _emptied(subject.out), closing(_pool(subject)) as pool:
        pool.begin()
        observation = _shown(subject.baseline(), subject.request.file)
        start = _of_compile(subject, pool, observation, key)
        return _reduce(start, file, began, on_better, rules, silent=silent)


def by_command(
    argv: tuple[str, ...],
    python: Path | None,
    source_file: Path,
    kernel: str,
    file: Path,
    on_better: OnBetter,
    rules: Rules = Rules(),  # noqa: B008 - frozen
    *,
    jobs: int = JOBS,
    timeout: int = TIMEOUT,
    silent: bool = False,
) -> KernelReduced:
    """Reduce a file that a command finds interesting.

    Args:
        argv: the command.
        python: the interpreter whose folder is first on PATH; None for the PATH as it is.
        source_file: the file to reduce, which is not changed.
        kernel: the function that stays, whose arguments are counted; empty if any function may go.
        file: the file to write.
        on_better: as in `by_compile`.
        rules: as in `by_compile`.
        jobs: number of candidates that are tested at once.
        timeout: seconds of one test.
        silent: say nothing of a run that was stopped.

    Raises:
        SmithError: the command does not find the file interesting.
    """
    began = time.monotonic()
    text = source.read(source_file)
    path = os.environ.get("PATH", "")
    path = os.pathsep.join((str(python.parent), path)) if python else path
    # Apart from the file that is written, which changes with each better candidate.
    read = journal.command(argv, Path.cwd(), path, (file,))
    whole = KernelCandidate(text)
    packages = testers.packages_of(with_file(argv, source_file), text)
    with files.scratch("reduce-") as folder, ExitStack() as stack:
        first = CommandTester(argv, python, folder / "first", source_file.name, timeout)
        cold = [replace(first, folder=folder / str(number)) for number in range(jobs)]
        warm = [ScriptTester(tester, packages) for tester in cold] if packages else []
        pool = stack.enter_context(closing(TesterPool(warm or cold)))
        pool.begin()
        observation = _shown(_tested(first, whole), source_file)
        pool.limit(min(timeout, _SECONDS + _SLOWER * (time.monotonic() - began)))
        # A script may look at the process that it runs in, or need it as a new one.
        row = warm[0].fork(whole) if warm else None
        if warm and not (row and row.value == 0):
            pool.close()
            pool = stack.enter_context(closing(TesterPool([replace(tester) for tester in cold])))
        lines = counts(text, kernel).lines
        # The file goes by its name alone, as the comment with the command goes where the file goes.
        command = with_file(argv, file.name)
        symptom = Symptom(
            "", observation.figures, lines, source_file.name, argv=command, variables=_variables()
        )
        start = _Start(
            whole,
            "",
            kernel,
            symptom,
            None,
            pool,
            lambda _, candidate: _tested(replace(first, folder=folder / "last"), candidate),
            observation,
            (text, kernel, timeout, read),
        )
        return _reduce(start, file, began, on_better, rules, silent=silent)


def _tested(tester: CommandTester, candidate: KernelCandidate) -> Observation:
    # Not in this thread: ^C while a process is started would leave it running, and nobody knows its number.
    with ThreadPoolExecutor(1) as thread, closing(tester):
        return thread.submit(tester.test, candidate, PendingTest()).result()


def _pool(subject: KernelSubject) -> TesterPool:
    def tester(number: int) -> Tester:
        if isinstance(subject, WrongKernelSubject):
            return CheckTester(subject, subject.where, subject.out / str(number), subject.request.file.name)
        return CompileTester(subject, subject.where, subject.out / str(number), subject.request.file.name)

    return TesterPool(list(map(tester, range(subject.where.jobs))), timed=subject.kind == "slow")


def _of_compile(subject: KernelSubject, pool: TesterPool, observation: Observation, key: object) -> _Start:
    request_of_kernel, where = subject.request, subject.where
    text = source.read(request_of_kernel.file)
    name = source.choose(text, request_of_kernel.kernel, request_of_kernel.file)
    head = source.find(text, name, request_of_kernel.file)
    if head is None:
        what = f"the signature line of {name} cannot be read in this file"
        hints = ["a function of the module with plain parameters can be reduced", "or use: -- command {}"]
        raise UsageError(what, where=request_of_kernel.file, hints=hints)
    entries = signature.assigned(request_of_kernel.signature, head)
    # They become constants of the signature, since the decorator that computes them may be removed on the
    # way.
    computed = {
        parameter: signature.spell_value(subject.constants[parameter])
        for parameter in head.heuristics
        if parameter in subject.constants
    }
    candidate = KernelCandidate(
        text,
        tuple((computed | entries).items()),
        tuple((option, signature.spell_value(value)) for option, value in request_of_kernel.options.items()),
    )
    request_of_kernel = replace(request_of_kernel, kernel=name, name="", listed=None, configs=())
    subject.request = request_of_kernel
    before = counts(text, name).lines
    expected = (
        " or ".join(term.text for term in subject.terms) or observation.figures
    )  # figures change on the way
    about = (subject.triton, expected, before, request_of_kernel.file.name, subject.terms)
    unset = configs.load("kernels")["variables"]["unset"]
    checked = subject if isinstance(subject, WrongKernelSubject) else None
    symptom = Symptom(*about, variables=_variables(without=unset), wrong=checked is not None)
    quick = math.ceil(_SECONDS + _SLOWER * observation.seconds)
    # Of a compile that does not end, the time limit is the symptom.
    limit = where.timeout if subject.kind == "hang" else min(where.timeout, quick)
    pool.limit(limit)

    def again(file: Path, reduced: KernelCandidate) -> Observation:
        reduced_request, last = candidate_request(request_of_kernel, reduced, file), subject.out / "last"
        return checked.check(reduced_request, last) if checked else _compiled(subject, reduced_request, last)

    return _Start(
        candidate,
        name,
        name,
        symptom,
        request_of_kernel,
        pool,
        again,
        observation,
        key,
        partial(_run_alone, where, subject.out / "alone", limit),
    )


def _compiled(subject: KernelSubject, request_of_kernel: CompileRequest, folder: Path) -> Observation:
    return subject.look(run.compile_all(request_of_kernel, subject.where, folder, silent=True))


def _run_alone(
    where: Interpreter, folder: Path, limit: float, program: CapturedProgram, name: str, text: str
) -> CommandOutput | None:
    file = folder / name
    files.make_folder(folder)
    files.write(file, text)
    # The cache has to be empty: what is found in one is not compiled, and shows nothing.
    change = {**dict(worker_variables(where)), "TRITON_CACHE_DIR": str(folder / "cache")}
    return program.run((str(where.python), str(file)), cwd=folder, change=change, timeout=limit)


def _is_alone(answer: CommandOutput | None, observation: Observation) -> bool:
    """Report whether `python FILE` failed in the same way; or compiled, where the symptom is no failure."""
    # A limit that is broken is no failure: then it is enough that the file compiles.
    if answer is None or not observation.failure:
        return bool(answer and answer.code == 0)
    return failure.is_shown(observation.failure, f"{answer.out}\n{answer.err}", answer.code)


def _reduce(
    start: _Start, file: Path, began: float, on_better: OnBetter, rules: Rules, *, silent: bool
) -> KernelReduced:
    space, task, folder = workspace.default(), "kernel.reduce", folder_of(file, workspace.default())
    space.claim()
    with experiment.kept(folder, start.key, space, task, start.observation, rules, silent=silent) as notes:
        reduced = _reduced(start, file, began, on_better, notes)
        if not reduced.interrupted:  # the same command goes on otherwise
            notes.end(f"{reduced.after.lines} lines are left")
    return reduced


def _reduced(start: _Start, file: Path, began: float, on_better: OnBetter, notes: Journal) -> KernelReduced:
    whole, interrupted = start.candidate, False
    before, pool = counts(whole.text, start.counted), start.pool
    try:
        plain = replace(whole, text=ast.unparse(untrusted.python_tree(whole.text)) + "\n")
    except (SyntaxError, ValueError, RecursionError) as error:
        raise FactError("cannot parse this file as Python", where=file, why=str(error)) from error

    def better(candidate: KernelCandidate, tried: int) -> None:
        _write(start, candidate, file)  # so that ^C, or a kill, leaves the best one
        on_better(counts(candidate.text, start.counted), tried)

    search = KernelSearch(plain, start.kernel, jobs=pool.jobs, on_better=better)
    # The testers end before the threads that ask them: so ^C does not wait for a candidate.
    with shrink.asking(pool.test, pool.jobs) as test, closing(pool):
        # Candidates are written by `ast`, without comments; so has the start of the search to be.
        # A search that goes on knows what comes first.
        whole_file = DeltaCandidate(plain, afterwards=search.coming if notes.count <= 1 else lambda: iter(()))
        ((_, first),) = test([whole_file])
        _require_symptom(first, file)
        try:
            experiment.run(search.search(), test, notes, lambda *_: None, first=True)
        except (KeyboardInterrupt, InterruptedRunError):
            interrupted = True
    best = search.best
    _write(start, best, file)
    last = start.request and candidate_request(start.request, best, file)
    main = testers.main_program(best.text, start.symptom, last)
    with ThreadPoolExecutor(1) as beside, closing(CapturedProgram()) as program:
        text = testers.render(best.text, start.symptom, last, main)
        ran = beside.submit(start.alone, program, file.name, text) if main else None
        if ran and not pool.is_parallel:
            wait([ran])
        # An interpreter that has compiled thousands of candidates may fail for a reason of its own.
        observation = start.again(file, best)
        answer = ran.result() if ran else None
    if observation.verdict is not Verdict.BAD:
        raise SmithError(
            "the reduced kernel does not show it in a new process",
            where=file,
            why=": ".join(filter(None, (SYMPTOM[observation.verdict], observation.figures, observation.why))),
            hints=["a flaky symptom cannot be reduced", "--jobs 1 may help, if it is about time"],
        )
    # The figures of this very text: those at the start were of the whole source.
    start = replace(start, symptom=replace(start.symptom, expected=observation.figures))
    # A main program that does not show the symptom would mislead whoever reads the file in an issue.
    alone = _is_alone(answer, observation)
    _write(start, best, file, main if alone else "")
    after = counts(best.text, start.counted)
    seconds = time.monotonic() - began
    compiles = alone and start.symptom.wrong
    return KernelReduced(
        file, observation.figures, before, after, search.tried, seconds, alone, compiles, interrupted, notes
    )


def _require_symptom(first: Observation, file: Path) -> None:
    """Raise an error if the file without its comments does not show the symptom."""
    # A test that gives no answer must not read as if the symptom were gone.
    if first.verdict is Verdict.SKIP:
        raise UndecidedError(
            "no answer about the file without its comments", where=file, why=first.figures or None
        )
    if first.verdict is not Verdict.BAD:
        raise SmithError(
            "the symptom is gone when the file stands alone, without its comments",
            hints=["copy the functions that it imports from neighbouring files into it"],
        )


def _write(start: _Start, candidate: KernelCandidate, file: Path, main: str = "") -> None:
    compile_request = start.request and candidate_request(start.request, candidate, file)
    files.write_atomically(file, testers.render(candidate.text, start.symptom, compile_request, main))


def _variables(*, without: Sequence[str] = ()) -> tuple[tuple[str, str], ...]:
    """Return Triton's variables that are set, except those that name a folder."""
    # A folder of this machine is private, and no other machine has it.
    ours = (
        variable for variable in sorted(os.environ.items()) if variable[0].startswith(variables.prefixes())
    )
    return tuple(
        variable
        for variable in ours
        if variables.find(variable[0]) and variable[0] not in without and os.sep not in variable[1]
    )


def _shown(observation: Observation, file: Path) -> Observation:
    if observation.verdict is Verdict.BAD:
        return observation
    if observation.verdict is Verdict.SKIP:
        raise UndecidedError(
            "it could not be decided whether the symptom is there", where=file, why=observation.why
        )
    raise SmithError(
        "the symptom is not there",
        where=file,
        why="\n".join(filter(None, (SYMPTOM[observation.verdict], observation.figures, observation.why))),
        hints=[
            'without --when, a compile that fails; --when "spills>0" for a limit',
            "for a command, exit code 0 means that the symptom is there",
        ],
    )


@contextmanager
def _emptied(folder: Path) -> Iterator[None]:
    """Empty a folder of the workspace before and after this run, which has it alone."""
    space = workspace.default()
    space.claim()
    # Before, too, as a run that was killed has left its candidates there.
    gone = Plan("reduce", (Remove((folder,), space.root, phase="reduce"),))
    with manifest.hold_output(folder, space, "kernel.reduce"):
        space.run(gone, "kernel.reduce", quiet=True)
        files.make_folder(folder)
        try:
            yield
        finally:
            space.run(gone, "kernel.reduce", quiet=True)


def progress() -> Callable[[SourceCounts, int], None]:
    """Return a callback that shows each smaller size on a terminal."""
    err = console.err()

    def show(size: SourceCounts, tried: int) -> None:
        if err.is_terminal:
            text = f"{size.lines} lines, {size.statements} statements, {size.arguments} arguments"
            err.print(f"{text}, {tried} tries  ", style="dim", end="\r")

    return show


def sizes(reduced: KernelReduced) -> Grid:
    """Return a table of the counts before and after."""
    rows = [
        [name, str(getattr(reduced.before, name)), str(getattr(reduced.after, name))]
        for name in ("lines", "statements", "arguments")
    ]
    return tables.plain(reduced.expected, ["", "before", "after"], rows, right=["before", "after"])


def summary(reduced: KernelReduced) -> str:
    """Return a sentence with the number of tries, the time, and whether the search ended early."""
    text = f"{reduced.tried} tries in {duration(reduced.seconds)}"
    if reduced.interrupted:
        text += "; interrupted: this is the best result so far"
    text += "; shows the same in a new process"
    if not reduced.alone:
        return text
    about = "; `python {}` compiles it" if reduced.compiles else ", and by `python {}`"
    return text + about.format(reduced.file.name)


def as_json(reduced: KernelReduced) -> dict[str, Any]:
    """Return the result as JSON data."""
    return {
        "schema": 1,
        "path": str(reduced.file),
        "expected": reduced.expected,
        "before": vars(reduced.before),
        "after": vars(reduced.after),
        "tries": reduced.tried,
        "seconds": reduced.seconds,
        "alone": reduced.alone,
        "done": not reduced.interrupted,
    }
