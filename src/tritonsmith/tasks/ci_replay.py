"""`ci-replay`: steps of a job of upstream's CI that need no GPU."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tritonsmith.errors import SmithError
from tritonsmith.tasks import output
from tritonsmith.tasks.option_fields import flag, word
from tritonsmith.tasks.options import DRY_RUN, ENV, JSON, PACKAGES
from tritonsmith.tasks.task import task

if TYPE_CHECKING:
    from tritonsmith.suites.workflow import WorkflowJob


@task(tables=True, name="ci-replay")
def ci_replay(
    context: Any,
    job: str = word("job of .github/workflows, or FILE:JOB; all are listed if omitted", ""),
    env: str = ENV,
    list_: bool = flag("list the jobs, as without a job", default=False),
    log: Path | None = flag("downloaded log of the job, to compare with", None),
    packages: Path | None = PACKAGES,
    json: bool = JSON,
    dry_run: bool = DRY_RUN,
) -> None:
    """Run the steps of a CI job of the checkout that need no GPU."""
    from tritonsmith.envs import session
    from tritonsmith.facts import checkout
    from tritonsmith.suites import command, replay, workflow
    from tritonsmith.ui import console

    job = "" if list_ else job
    around = checkout.enclosing(Path.cwd()) if dry_run or not job else None
    root = around or command.find(env).root
    jobs = workflow.read(root)
    if not job:
        if json:
            output.json({"schema": 1, "root": str(root), "jobs": [_row(one) for one in jobs]})
        else:
            console.note(f"of {root}")
            console.out().print(replay.list_(jobs))
        return
    found = workflow.find(jobs, job)
    steps = replay.planned(found)
    if not dry_run:
        replay.check(found)
        tested = command.find(env)
        folders = (command.packages_of(packages, tested, ("pytest",)),) if packages else ()
        with session.opened("ci-replay", tested.env.name):
            change = replay.variables(tested, folders, tested.folder / "ci")
            steps = replay.run(tested, found, change, console.note)
    if log:
        steps = replay.compared(steps, log)
    if json:
        output.json(replay.as_json(found, steps))
    elif dry_run:
        console.out().print(replay.table(found, steps))
        console.write("\n".join(replay.script(steps, root)))
    else:
        console.out().print(replay.table(found, steps))
    if bad := [one for one in steps if one.word == "failed"]:
        why = "\n".join(f"{one.step.name}: {one.why}" for one in bad)
        raise SmithError(f"{len(bad)} of the steps that ran failed", why=why)


def _row(job: WorkflowJob) -> dict[str, Any]:
    steps = [{"name": step.name, "why": job.why or step.why} for step in job.steps]
    return {"job": job.name, "runner": job.runner, "why": job.why, "steps": steps}
