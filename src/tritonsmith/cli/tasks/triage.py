"""`triage`: find the single change that fixes a failing, wrong or large kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.experiments import ExperimentOptions
from tritonsmith.cli.tasks.kernel_options import KernelOptions, toolchain
from tritonsmith.cli.tasks.option_fields import again, command_line
from tritonsmith.cli.tasks.options import (
    ANY_ENV,
    CHECK,
    JOBS,
    JSON,
    KERNEL,
    OUT,
    PYTHON,
    TIMEOUT,
    TRITON,
    WHEN,
)
from tritonsmith.cli.tasks.task import task
from tritonsmith.core.errors import UndecidedError, UsageError
from tritonsmith.core.ui import console

if TYPE_CHECKING:
    from tritonsmith.compiler.interpreter import Interpreter
    from tritonsmith.compiler.request import CompileRequest
    from tritonsmith.lab.model import Observation
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
        output.json(answer)
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
