"""`test-triton --ci`: steps of a job of upstream's CI that need no GPU."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.option_fields import flag, word
from tritonsmith.cli.tasks.options import DRY_RUN, ENV, JSON, PACKAGES, YES
from tritonsmith.cli.tasks.task import task
from tritonsmith.core.errors import SmithError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tritonsmith.build.suites.replay import ReplayedStep
    from tritonsmith.build.suites.workflow import WorkflowJob


@task(tables=True, name="ci-replay")
def ci_replay(
    context: Any,
    job: str = word("job of .github/workflows, or FILE:JOB; all are listed if omitted", ""),
    env: str = ENV,
    list_: bool = flag("list the jobs, as without a job", default=False),
    log: Path | None = flag("downloaded log of the job, to compare with", None),
    packages: Path | None = PACKAGES,
    json: bool = JSON,
    yes: bool = YES,
    dry_run: bool = DRY_RUN,
) -> None:
    """Run the steps of a CI job that need no GPU, in a clone of the checkout."""
    from tritonsmith.build.suites import command, replay, workflow
    from tritonsmith.core.ui import console
    from tritonsmith.facts import checkout

    job = "" if list_ else job
    around = checkout.enclosing(Path.cwd()) if dry_run or not job else None
    root = around or command.find(env).root
    files = workflow.read(root)
    output.warnings(f"cannot read {path}: {why}" for path, why in files.unreadable)
    if not job:
        if json:
            unreadable = [{"file": path.name, "why": why} for path, why in files.unreadable]
            jobs = [_row(one) for one in files.jobs]
            output.json({"schema": 1, "root": str(root), "jobs": jobs, "unreadable": unreadable})
        else:
            console.note(f"reading {root}")
            console.out().print(replay.list_(files.jobs))
        return
    found = workflow.find(files.jobs, job)
    steps = replay.planned(found)
    if dry_run:
        steps = replay.compared(steps, log) if log else steps
        if json:
            output.json(replay.as_json(found, steps))
        else:
            _show(found, steps, root)
        return
    replay.check(found)
    if not json:
        _show(found, steps, root)
    steps = _run(found, env, packages, yes=yes)
    steps = replay.compared(steps, log) if log else steps
    if json:
        output.json(replay.as_json(found, steps))
    else:
        console.out().print(replay.table(found, steps))
    if bad := [one for one in steps if one.word == "failed"]:
        why = "\n".join(f"{one.step.name}: {one.why}" for one in bad)
        raise SmithError(f"{len(bad)} of the steps that ran failed", why=why)


def _show(job: WorkflowJob, steps: Sequence[ReplayedStep], root: Path) -> None:
    from tritonsmith.build.suites import replay
    from tritonsmith.core.ui import console

    console.out().print(replay.table(job, steps))
    console.write(f"# in a clone of {root}")
    console.write("\n".join(replay.script(steps)))


def _run(job: WorkflowJob, env: str, packages: Path | None, *, yes: bool) -> tuple[ReplayedStep, ...]:
    from tritonsmith.build.suites import command, replay
    from tritonsmith.core.envs import session
    from tritonsmith.core.ui import console, units

    tested = command.find(env)
    scratch = tested.folder / "ci"
    root = scratch / "checkout"
    how = "under bubblewrap: no network, the system read-only"
    confined = bool(replay.sandbox(tested.env))
    if not confined:
        how = "without a sandbox: they may do anything that you may"
        console.warn(
            "bubblewrap (bwrap) is missing or may not make namespaces, so nothing confines the steps"
        )
    steps = units.counted(len(job.runnable), "step")
    if not output.agreed(f"Run {steps} in a clone of {tested.root}, {how}?", yes=yes):
        raise SmithError("nothing was run", hints=["--dry-run shows the steps"])
    folders = (command.packages_of(packages, tested, ("pytest",)),) if packages else ()
    with session.opened("ci-replay", tested.env.name) as running:
        running.run(replay.clone(tested.root, tested.env, root, replay.pip_build(tested)))
        change = replay.variables(tested, folders, scratch, root)
        return replay.run(tested, job, root, change, console.note, confined=confined)


def _row(job: WorkflowJob) -> dict[str, Any]:
    steps = [{"name": step.name, "why": job.why or step.why} for step in job.steps]
    return {"job": job.name, "runner": job.runner, "why": job.why, "steps": steps}
