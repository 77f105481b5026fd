"""`doctor`: diagnose the environment, what changed since it worked, and the system's packages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from invoke.context import Context
from invoke.exceptions import Exit

from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.option_fields import CommaList, again, flag, word
from tritonsmith.cli.tasks.options import ANY_ENV, DRY_RUN, JSON, PYTHON, YES
from tritonsmith.cli.tasks.task import task
from tritonsmith.core import configs
from tritonsmith.core.envs import receipts
from tritonsmith.core.errors import ConfigError, UsageError, did_you_mean
from tritonsmith.core.ui import console
from tritonsmith.doctor import check, saved_report, snapshot
from tritonsmith.doctor import report as screen
from tritonsmith.doctor import run as doctor_run
from tritonsmith.doctor.report import for_issue
from tritonsmith.doctor.run import ALL, UNREADABLE, chosen_checks, explanation

if TYPE_CHECKING:
    from tritonsmith.core.plan import Plan
    from tritonsmith.doctor.check import DoctorContext
    from tritonsmith.doctor.run import Examination


@task(tables=True)
def compare(
    context: Context,
    report: Path = word("report that `invoke doctor --json` printed"),
    other: Path = word("another such report, of another machine or date"),
    json: bool = JSON,
) -> None:
    """Compare two reports of `invoke doctor --json`: of machines or dates."""
    first, second = saved_report.read(report), saved_report.read(other)
    changes = snapshot.changes_between(first.setup, second.setup)
    checks = saved_report.verdicts(first, second)
    if json:
        console.out().print_json(
            data={
                "report": first.title,
                "other": second.title,
                "changes": snapshot.changes_as_json(changes),
                "checks": checks,
            }
        )
        return
    if changes:
        console.out().print(snapshot.changes_table(changes, first.title, second.title))
    else:
        console.out().print("nothing the doctor tracks differs", markup=False)
    if checks:
        console.out().print(saved_report.table(checks, first.title, second.title))
    output.notes((*first.remarks, *second.remarks, *snapshot.not_compared(first.setup, second.setup)))


@task(tables=True)
def run(
    context: Context,
    env: str = again(ANY_ENV, "the last used, or dev"),
    python: Path | None = PYTHON,
    only: CommaList = flag("checks or groups to run: tools,builds.llvm", (), value="CHECKS"),
    deep: bool = flag("also run programs: imports in a child process, ptxas, a compile", default=False),
    fix: bool = flag("fix what can be fixed safely, after showing the plan and asking", default=False),
    yes: bool = YES,
    dry_run: bool = DRY_RUN,
    since: str = flag("show what differs from then: last-good, a date, or a --json report", ""),
    report: bool = flag("print Markdown for an issue, without your names and paths", default=False),
    explain: str = flag("print the documentation of a check or group: tools.cmake", "", value="CHECK"),
    list: bool = flag("list the checks", default=False),  # noqa: A002 - the flag's name
    json: bool = JSON,
) -> None:
    """Diagnose the environment; exit 1 if a check fails."""
    if (fix and (json or report or since)) or (report and since):
        raise UsageError(
            "--fix, --report and --since cannot be combined, and --fix prints no JSON: use one at a time"
        )
    # First, as --explain and --list say the same on every machine and need no environment.
    if explain:
        console.write(explanation(explain))
        return
    chosen = chosen_checks(only, deep=deep)
    if list:
        console.out().print(screen.listing(ALL if not only else chosen))
        return
    try:
        subject = doctor_run.subject(env, str(python or ""))
    except ConfigError as error:
        # A script that reads JSON gets a finding about the env file, and not nothing.
        if not json:
            raise
        console.out().print_json(data=check.findings_as_json((check.of_error(error, UNREADABLE),)))
        raise Exit(code=error.exit_code) from None
    # A part of the checks is not a state to compare with later, nor is one that is about to be fixed.
    examination = doctor_run.examined(subject, chosen, deep=deep, since=since, whole=not (only or fix))
    findings = examination.findings
    if json:
        console.out().print_json(data=examination.as_json())
    elif report:
        console.write(for_issue(subject, findings, deep=deep))
    elif not fix or not dry_run:
        console.note(f"environment {subject.settings.name}, Python {subject.interpreter or 'none'}")
        _print(examination, whole=bool(only))
    is_fixed = fix and _fix(subject, doctor_run.fix_plan(findings), dry_run=dry_run, yes=yes)
    # The checks are not run again, so what was fixed just now counts as fixed.
    left = tuple(finding for finding in findings if not (is_fixed and finding.fix))
    # With `--fix --dry-run` the plan is the answer, and not the state of the machine.
    if not (fix and dry_run) and check.worst(left) in ("error", "crashed"):
        raise Exit(code=1)


def _print(examination: Examination, *, whole: bool) -> None:
    """Print the findings; for `--since`, the differences and what is wrong now."""
    since, findings = examination.since, examination.findings
    if not since:
        console.out().print(screen.screen(findings, whole=whole))
        console.out().print(f"\n{screen.counts(findings)}", markup=False)
        return
    if since.changes:
        console.out().print(snapshot.changes_table(since.changes, since.then, "now"))
    else:
        console.out().print(f"nothing the doctor tracks has changed since then ({since.then})", markup=False)
    output.notes(since.remarks)
    console.out().print(screen.summary(findings), markup=False)


def _fix(subject: DoctorContext, plan: Plan, *, dry_run: bool, yes: bool) -> bool:
    """Show the plan, ask, and apply the fixes; return whether they were applied."""
    if not plan.steps:
        console.note("nothing can be fixed automatically; each finding says what to do")
        return False
    output.plan(plan)
    if dry_run or not output.agreed("Apply these fixes?", yes=yes):
        return False
    with receipts.open_session("doctor", subject.settings.name) as running:
        running.run(plan)
    console.out().print(console.typed("done; check again: invoke doctor"), markup=False)
    return True


@task()
def packages(
    context: Context,
    need: str = flag("build, llvm, debug, editor or integration-tests", "build"),
    manager: str = flag("package manager: apt, dnf or brew", "apt"),
    llvm: str = flag("version of LLVM", "19"),
    json: bool = JSON,
) -> None:
    """Print the system packages that a build needs."""
    table = configs.load("system-packages")
    needs = {name: row for name, row in table.items() if isinstance(row, dict)}
    if need not in needs:
        raise UsageError(f"unknown purpose: {need!r}", hints=did_you_mean(need, needs))
    if manager not in needs[need]:
        raise UsageError(f"{need!r} is not listed for {manager!r}", hints=did_you_mean(manager, needs[need]))
    # Debian and Ubuntu have the version of LLVM in the names of its packages: clang-NN.
    names = [name.replace("NN", llvm) for name in needs[need][manager]]
    if json:
        console.out().print_json(data={"schema": 1, "need": need, "manager": manager, "packages": names})
        return
    console.out().print(" ".join(names), markup=False)
