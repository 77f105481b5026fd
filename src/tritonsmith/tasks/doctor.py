"""`doctor`: diagnose the environment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from invoke.exceptions import Exit

from tritonsmith.tasks import output
from tritonsmith.tasks.option_fields import CommaList, again, flag
from tritonsmith.tasks.options import ANY_ENV, DRY_RUN, JSON, PYTHON, YES
from tritonsmith.tasks.task import task
from tritonsmith.ui import console


@task(tables=True)
def doctor(
    context: Any,
    env: str = again(ANY_ENV, "the last used, or dev"),
    python: Path | None = PYTHON,
    only: CommaList = flag("checks or groups to run: tools,builds.llvm", ()),
    deep: bool = flag("run programs, too: imports in a child process, ptxas, a compile", default=False),
    fix: bool = flag("fix what can be fixed safely, after showing the plan and asking", default=False),
    yes: bool = YES,
    dry_run: bool = DRY_RUN,
    report: bool = flag("print Markdown for an issue, without your names and paths", default=False),
    list: bool = flag("list the checks", default=False),  # noqa: A002 - the flag's name
    json: bool = JSON,
) -> None:
    """Diagnose the environment; exit 1 if a check fails."""
    from tritonsmith.doctor import finding, registry, run
    from tritonsmith.doctor import report as screen
    from tritonsmith.errors import ConfigError, UsageError

    if fix and (json or report):
        raise UsageError("--fix shows a plan; --json and --report show findings: use one at a time")
    chosen = registry.chosen(only, deep=deep)
    if list:
        console.out().print(screen.listing(registry.ALL if not only else chosen))
        return
    try:
        subject = run.subject(env, str(python or ""))
    except ConfigError as error:
        if not json:
            raise
        console.out().print_json(data=finding.as_json((finding.of_error(error, "env.file"),)))
        raise Exit(code=error.exit_code) from None
    found = registry.examine(subject, chosen)
    if json:
        console.out().print_json(data=finding.as_json(found))
    elif report:
        from tritonsmith.doctor import issue_report

        console.write(issue_report.render(subject, found, deep=deep))
    elif not fix or not dry_run:
        console.note(f"environment {subject.settings.name}, Python {subject.interpreter or 'none'}")
        console.out().print(screen.screen(found, whole=bool(only)))
        console.out().print(f"\n{screen.counts(found)}", markup=False)
    mended = fix and _mend(subject, run.mending(found), dry_run=dry_run, yes=yes)
    left = tuple(one for one in found if not (mended and one.fix))
    if not (fix and dry_run) and finding.worst(left) in ("error", "crashed"):
        raise Exit(code=1)


def _mend(subject: Any, plan: Any, *, dry_run: bool, yes: bool) -> bool:
    """Show the plan, ask, and apply the fixes; returns whether they were applied."""
    from tritonsmith.envs import session

    if not plan.steps:
        console.note("nothing can be fixed automatically; each finding says what to do")
        return False
    output.plan(plan)
    if dry_run or not output.agreed("Apply these fixes?", yes=yes):
        return False
    with session.opened("doctor", subject.settings.name) as running:
        running.run(plan)
    console.out().print(console.typed("done; check again: invoke doctor"), markup=False)
    return True
