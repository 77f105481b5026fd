"""`triage`: which change makes a failing, wrong or fat kernel right, and what that means."""

from __future__ import annotations

from collections.abc import Sequence
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
    from tritonsmith.compiler import manifest
    from tritonsmith.core.envs import workspace
    from tritonsmith.core.plan import Plan, Write
    from tritonsmith.lab import experiment
    from tritonsmith.lab.triage import verdict
    from tritonsmith.lab.triage.verdict import SYMPTOM, as_json, in_short, lines, table

    _, argv = command_line()
    _check(kernel, argv, check=bool(check), of_kernel=bool(when or triton or what != KernelOptions()))
    space = workspace.default()
    space.claim()
    subject: KernelSubject | CommandSubject
    if kernel:
        subject = _kernel(kernel, what, when, triton, env, python, jobs, timeout, out, silent=json)
    else:
        subject = command_subject(argv, check, env, python, timeout, out, "triage/command")
    if tests.show_status(subject.out, SYMPTOM, json=json):
        return
    told: set[str] = set()

    def tell(name: str, seen: Observation) -> None:
        text = in_short(seen)
        if not json:
            console.note(": ".join(filter(None, (name, SYMPTOM[seen.verdict], "" if text in told else text))))
        told.add(text)  # each message once

    with (
        manifest.hold_output(subject.out, space, "triage"),
        experiment.begun(
            subject.out, subject.key, space, "triage", subject.baseline, tests.rules, silent=json
        ) as journal,
    ):
        found = verdict.run(subject, journal, tell)
        about = {"kernel": kernel, "command": list(argv), "triton": subject.triton, "when": list(when)}
        about["check"] = check
        answer = as_json(found, about)
        evidence = Write(subject.out / "triage.json", dumps(answer, indent=2) + "\n", phase="triage")
        space.run(Plan("triage", (evidence,)), "triage", quiet=True)
        journal.end(found.text)
    if json:
        output.json(answer)
    else:
        console.out().print(table(found))
        for line in lines(found):
            console.out().print(line, markup=False)
        console.out().print(f"  evidence: {subject.out}", markup=False)
    tests.write_page(journal, "triage", [f"verdict: {found.text}", *found.reasons, *found.next], SYMPTOM)
    if not found.decided:
        raise UndecidedError(found.text, hints=["the table above says what was tried", str(subject.out)])


def _check(kernel: str, argv: Sequence[str], *, check: bool, of_kernel: bool) -> None:
    """Check that the flags are for what is tested, a kernel or a command.

    Raises:
        UsageError: they contradict each other.
    """
    if bool(kernel) == bool(argv):
        text = "a kernel and a command contradict each other" if kernel else "nothing to test is given"
        raise UsageError(text, hints=["FILE:KERNEL, with --when LIMIT", "-- python script.py"])
    if check and not argv:
        raise UsageError("--check is about a command's values", hints=["-- python script.py"])
    if argv and of_kernel:
        raise UsageError("--when, --triton and flags of a compile are for a kernel, not for a command")


def command_subject(
    argv: Sequence[str],
    check: str,
    env: str,
    python: Path | None,
    timeout: int | None,
    out: Path | None,
    place: str,
) -> CommandSubject:
    """Return the command under test, with its check; without `--out` its folder is beside `place`."""
    from tritonsmith.compiler import user_program
    from tritonsmith.core.envs import workspace
    from tritonsmith.core.plan import digest
    from tritonsmith.lab.triage.program import CommandSubject, parse_check, script_of

    checked = parse_check(check) if check else None
    if checked:
        script_of(argv)
    space = workspace.default()
    interpreter = user_program.interpreter(env, python, space)
    # Another command, in a folder of its own, does not end what was stopped of this one.
    question = digest(argv, check, str(interpreter), timeout, str(Path.cwd()))[:8]
    folder = (out or space.root / f"{place}-{question}").absolute()
    return CommandSubject(tuple(argv), interpreter, Path.cwd(), folder, timeout or 0, checked)


def _kernel(
    kernel: str,
    what: KernelOptions,
    when: tuple[str, ...],
    triton: str,
    env: str,
    python: Path | None,
    jobs: int | None,
    timeout: int | None,
    out: Path | None,
    *,
    silent: bool,
) -> KernelSubject:
    from tritonsmith.check import when_wrong
    from tritonsmith.compiler import run
    from tritonsmith.compiler.manifest import folder_name
    from tritonsmith.core.envs import workspace
    from tritonsmith.core.plan import digest
    from tritonsmith.lab import terms as language
    from tritonsmith.lab.triage.kernel import KernelSubject

    asked = what.request(kernel)
    run.check(asked)
    wrong = when_wrong.is_requested(when)
    terms = () if wrong else language.parse(when, "--when")
    where = toolchain(triton, env, python, jobs=jobs or 1, timeout=timeout)
    name = folder_name(f"{asked.file.stem}.{asked.name or asked.kernel or 'kernel'}")
    question = digest(asked, when, where.python, where.timeout)[:8]
    folder = (out or workspace.default().root / "triage" / f"{name}-{question}").absolute()
    if wrong:
        from tritonsmith.lab.triage.kernel import WrongKernelSubject

        return WrongKernelSubject(when_wrong.require_single(asked), where, (), folder, silent=silent)
    return KernelSubject(asked, where, terms, folder, silent=silent)
