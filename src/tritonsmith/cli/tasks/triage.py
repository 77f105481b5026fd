"""`triage` and `knockout`: change one thing of a kernel at a time, and see what it does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.experiments import ExperimentOptions
from tritonsmith.cli.tasks.kernel_options import KernelOptions, PoolOptions, toolchain
from tritonsmith.cli.tasks.option_fields import again, command_line, flag
from tritonsmith.cli.tasks.options import (
    ANY_ENV,
    CHECK,
    COMPILED_KERNEL,
    DRY_RUN,
    JOBS,
    JSON,
    KERNEL,
    OUT,
    PYTHON,
    TIMEOUT,
    TRITON,
    WHEEL_ENV,
    WHEN,
)
from tritonsmith.cli.tasks.task import task
from tritonsmith.core.errors import UndecidedError, UsageError
from tritonsmith.core.ui import console

if TYPE_CHECKING:
    from tritonsmith.compiler.interpreter import Interpreter
    from tritonsmith.compiler.request import CompileRequest
    from tritonsmith.lab.journal import Journal, Observation
    from tritonsmith.lab.knockout import Knockout
    from tritonsmith.lab.triage.kernel import KernelSubject
    from tritonsmith.lab.triage.program import CommandSubject


@task(tables=True)
def triage(
    context: Any,
    what: KernelOptions,
    tests: ExperimentOptions,
    kernel: str = KERNEL,
    when: tuple[str, ...] = WHEN,
    check: str = CHECK,
    triton: str = TRITON,
    env: str = again(ANY_ENV, "wheel, or PATH's Python"),
    python: Path | None = PYTHON,
    jobs: int | None = JOBS,
    timeout: int | None = TIMEOUT,
    out: Path | None = OUT,
    json: bool = JSON,
) -> None:
    """Find the cause of a wrong kernel by changing one thing at a time."""
    from tritonsmith.compiler import manifest, user_program
    from tritonsmith.core.envs import workspace
    from tritonsmith.core.plan import Plan, Write
    from tritonsmith.lab import experiment
    from tritonsmith.lab.triage import program, verdict
    from tritonsmith.lab.triage.verdict import SYMPTOM, as_json, in_short, lines, table

    _, argv = command_line()
    _check(kernel, argv, check=bool(check), of_kernel=bool(when or triton or what != KernelOptions()))
    space = workspace.default()
    space.claim()
    subject: KernelSubject | CommandSubject
    if kernel:
        get_interpreter = partial(toolchain, triton, env, python, jobs=jobs or 1, timeout=timeout)
        subject = _kernel_subject(what.request(kernel), when, get_interpreter, out, silent=json)
    else:
        # Chosen after --check is parsed: a misspelt check is reported before a missing environment.
        interpreter = partial(user_program.interpreter, env, python, space)
        subject = program.subject_of(argv, check, interpreter, timeout, out, space, "triage/command")
    if tests.show_status(subject.out, SYMPTOM, json=json):
        return
    printed: set[str] = set()

    def tell(name: str, observation: Observation) -> None:
        text = in_short(observation)
        if not json:
            # Most changes leave the same message, of many lines: it is printed once.
            more = "" if text in printed else text
            console.note(": ".join(filter(None, (name, SYMPTOM[observation.verdict], more))))
        printed.add(text)

    with (
        manifest.hold_output(subject.out, space, "triage"),
        experiment.begun(
            subject.out, subject.key, space, "triage", subject.baseline, tests.rules, silent=json
        ) as journal,
    ):
        finding = verdict.run(subject, journal, tell)
        about = {"kernel": kernel, "command": list(argv), "triton": subject.triton, "when": list(when)}
        about["check"] = check
        answer = as_json(finding, about)
        # In the folder of the compiles, so that the whole folder can go into an issue.
        evidence = Write(subject.out / "triage.json", dumps(answer, indent=2) + "\n", phase="triage")
        space.run(Plan("triage", (evidence,)), "triage", quiet=True)
        journal.end(finding.text)
    if json:
        output.json({**answer, "folder": str(subject.out)})
    else:
        console.out().print(table(finding))
        output.lines(lines(finding))
        console.out().print(f"  evidence: {subject.out}", markup=False)
    page = [f"verdict: {finding.text}", *finding.reasons, *finding.next]
    tests.write_page(journal, "triage", page, SYMPTOM)
    # After the table and the page: what was tried is the result of an undecided search.
    if not finding.decided:
        raise UndecidedError(finding.text, hints=["the table above says what was tried", str(subject.out)])


def _kernel_subject(
    request: CompileRequest,
    when: Sequence[str],
    get_interpreter: Callable[[], Interpreter],
    out: Path | None,
    *,
    silent: bool,
) -> KernelSubject:
    from tritonsmith.compiler import run
    from tritonsmith.lab.triage import kernel as kernels

    # What is wrong with the command line is reported before a missing Triton.
    run.check(request)
    symptom = kernels.parse_when(when)
    where = get_interpreter()
    folder = kernels.folder_of(request, when, where, out)
    return kernels.subject_of(request, symptom, where, folder, silent=silent)


def _check(kernel: str, argv: Sequence[str], *, check: bool, of_kernel: bool) -> None:
    """Check that the flags are for what is tested, a kernel or a command.

    Raises:
        UsageError: they contradict each other.
    """
    if bool(kernel) == bool(argv):
        text = "a kernel and a command contradict each other" if kernel else "there is nothing to test"
        raise UsageError(text, hints=["FILE:KERNEL, with --when LIMIT", "-- python script.py"])
    if check and not argv:
        raise UsageError("--check is about a command's values", hints=["-- python script.py"])
    if argv and of_kernel:
        raise UsageError("--when, --triton and flags of a compile are for a kernel, not for a command")


@task(tables=True)
def knockout(
    context: Any,
    what: KernelOptions,
    by: PoolOptions,
    tests: ExperimentOptions,
    kernel: str = again(COMPILED_KERNEL, default=""),
    check: str = CHECK,
    llvm: bool = flag("stop after each of LLVM's passes in turn; skip none of Triton's", default=False),
    out: Path | None = OUT,
    json: bool = JSON,
    dry_run: bool = DRY_RUN,
) -> None:
    """Skip each pass in turn and report its effect."""
    from tritonsmith.lab import knockout as passes_knockout

    _, argv = command_line()
    if bool(kernel) == bool(argv):
        text = "a kernel and a program contradict each other" if kernel else "no kernel is given"
        raise UsageError(text, hints=["FILE:KERNEL", "-- python script.py, on a machine with its GPU"])
    if argv:
        if llvm or dry_run or what != KernelOptions():
            raise UsageError("flags of a compile are about a kernel, not about a program")
        _of_program(argv, check, by, tests, out, json=json)
        return
    if check:
        raise UsageError("--check is about a program's values", hints=["-- python script.py"])
    requests = what.requests(kernel, by=by)
    where = by.toolchain(*requests, dry_run=dry_run)
    folders = [passes_knockout.folder_of(request, where, out) for request in requests]
    journals = {folder.name: passes_knockout.journal_of(folder, llvm=llvm) for folder in folders}
    if tests.show_status(journals, passes_knockout.WORDS, json=json):
        return
    if dry_run:
        for request in requests:
            # The first compile counts the passes, so that the others are not known yet.
            output.compile_of(passes_knockout.first(request, where, out, llvm=llvm))
        each = "for each number of LLVM's passes" if llvm else "without each pass"
        console.note(f"plus one compile {each} that this one counts")
        return
    knockouts, notes = _each(requests, where, out, tests, llvm=llvm, json=json)
    _print(knockouts, several=len(requests) > 1, json=json)
    tests.write_page(notes, "knockout", [notes.answer], passes_knockout.WORDS)
    if not (json or llvm):
        console.note("only a run on its GPU shows whether code without a pass is right: -- python script.py")


def _each(
    requests: Sequence[CompileRequest],
    where: Interpreter,
    out: Path | None,
    tests: ExperimentOptions,
    *,
    llvm: bool,
    json: bool,
) -> tuple[list[Knockout], Journal]:
    """Knock out the passes of each kernel, and merge the journals into one for `--page`."""
    from tritonsmith.lab.journal import merged
    from tritonsmith.lab.knockout import execute, folder_of

    knockouts: list[Knockout] = []
    journals = {}
    for request in requests:
        results, journal = execute(request, where, out, tests.rules, llvm=llvm, silent=json)
        knockouts += results
        journals[folder_of(request, where, out).name] = journal
    return knockouts, merged(journals)


def _print(knockouts: list[Knockout], *, several: bool, json: bool) -> None:
    from tritonsmith.lab.knockout import as_json, summary, tables_of

    if json:
        output.json(as_json(knockouts))
        return
    output.blocks(tables_of(knockouts))
    # Each kernel has other runs of LLVM's passes, so that theirs have no common rows.
    if several and not knockouts[0].llvm:
        console.out().print(summary(knockouts))


def _of_program(
    argv: Sequence[str],
    check: str,
    by: PoolOptions,
    tests: ExperimentOptions,
    out: Path | None,
    *,
    json: bool,
) -> None:
    """Run a program without each pass of its kernels in turn."""
    from tritonsmith.compiler import manifest, user_program
    from tritonsmith.core.envs import workspace
    from tritonsmith.lab import experiment
    from tritonsmith.lab.experiment import BASELINE
    from tritonsmith.lab.triage import program

    space = workspace.default()
    space.claim()
    # The default environment has no torch, and so launches nothing: without `--env` it is the Python on PATH.
    env = "" if by.env == WHEEL_ENV.default else by.env
    interpreter = partial(user_program.interpreter, env, by.python, space)
    place = "passes/knockout/program"
    subject = program.subject_of(argv, check, interpreter, by.timeout, out, space, place)
    if tests.show_status(subject.out, json=json):
        return

    def tell(name: str, observation: Observation) -> None:
        if not json:
            title = "all passes" if name == BASELINE else name
            console.note(f"{title}: {observation.figures or observation.why}")

    key, task_name = subject.key, "passes.knockout"
    with (
        manifest.hold_output(subject.out, space, task_name),
        experiment.begun(
            subject.out, key, space, task_name, subject.baseline, tests.rules, silent=json
        ) as journal,
    ):
        result = program.knock_out(subject, journal, tell)
        journal.end("")
    if json:
        output.json(program.knockout_as_json(result, check=bool(check)))
    else:
        console.out().print(program.knockout_table(result, check=bool(check)))
    tests.write_page(journal, "knockout", [f"each of {len(result.passes)} passes left out in turn"])
