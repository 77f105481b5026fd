"""`doctor`: is it the environment?"""

from __future__ import annotations

from typing import Any

from invoke.exceptions import Exit

from tritonsmith.tasks.task import split, task


@task(
    tables=True,
    help={
        "env": "environment to look at (default: the one used last, else dev)",
        "python": "path of an interpreter to look at instead of the environment's",
        "only": "checks or groups, comma-separated: tools,builds.llvm",
        "deep": "also run things: imports in a child process, ptxas, a compile",
        "fix": "mend what can be mended safely; shows the plan and asks",
        "yes": "do not ask",
        "dry_run": "with --fix: print the plan as a shell script",
        "report": "print one Markdown block for an issue, without paths and names of yours",
        "list": "list the checks",
        "json": "print the findings as JSON",
    },
)
def doctor(
    context: Any,
    env: str = "",
    python: str = "",
    only: str = "",
    deep: bool = False,
    fix: bool = False,
    yes: bool = False,
    dry_run: bool = False,
    report: bool = False,
    list: bool = False,  # noqa: A002 - the flag's name
    json: bool = False,
) -> None:
    """Diagnose the environment; exit 1 if a check fails."""
    from tritonsmith.doctor import finding, registry, run
    from tritonsmith.doctor import report as screen
    from tritonsmith.errors import ConfigError, UsageError
    from tritonsmith.ui import console

    if fix and (json or report):
        raise UsageError("--fix shows a plan; --json and --report show findings: ask for one at a time")
    names = split(only) or ()
    chosen = registry.chosen(names, deep=deep)
    if list:
        console.out().print(screen.listing(registry.ALL if not names else chosen))
        return
    try:
        subject = run.subject(env, python)
    except ConfigError as error:
        if not json:
            raise
        console.out().print_json(data=finding.as_json((finding.of_error("env.file", error),)))
        raise Exit(code=error.exit_code) from None
    found = registry.examine(subject, chosen)
    if json:
        console.out().print_json(data=finding.as_json(found))
    elif report:
        from tritonsmith.doctor import issue_report

        console.write(issue_report.render(subject, found, deep=deep))
    elif not fix or not dry_run:
        console.note(f"environment {subject.settings.name}, Python {subject.interpreter or 'none yet'}")
        console.out().print(screen.screen(found, whole=bool(names)))
        console.out().print(f"\n{screen.counts(found)}", markup=False)
    mended = fix and _mend(subject, run.mending(found), dry_run=dry_run, yes=yes)
    left = tuple(one for one in found if not (mended and one.fix))
    if not (fix and dry_run) and finding.worst(left) in ("error", "crashed"):
        raise Exit(code=1)


def _mend(subject: Any, plan: Any, *, dry_run: bool, yes: bool) -> bool:
    """Whether it was done."""
    from tritonsmith.envs import session
    from tritonsmith.tasks import output
    from tritonsmith.ui import console

    if not plan.steps:
        console.note("nothing here can be mended by itself; each finding says what to do")
        return False
    output.plan(plan)
    if dry_run or not output.agreed("do this?", yes=yes):
        return False
    with session.opened("doctor", subject.settings.name) as running:
        running.run(plan)
    console.out().print(console.typed("done; look again: invoke doctor"), markup=False)
    return True
