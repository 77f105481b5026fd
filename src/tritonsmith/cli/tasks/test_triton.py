"""`test-triton`: Triton's own tests that need no GPU, and the jobs of its CI."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from invoke.context import Context

from tritonsmith.build.cmake import bounded_jobs
from tritonsmith.build.suites import command, replay, results, selection, workflow
from tritonsmith.build.triton import commands
from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.option_fields import CommaList, OutFile, flag, word
from tritonsmith.cli.tasks.options import DRY_RUN, ENV, JOBS, JSON, PACKAGES, YES
from tritonsmith.cli.tasks.task import task
from tritonsmith.core.envs import receipts
from tritonsmith.core.errors import SmithError, UsageError
from tritonsmith.core.plan import files as plan_files
from tritonsmith.core.text import counted
from tritonsmith.core.ui import console
from tritonsmith.facts import checkout, machine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tritonsmith.build.suites.command import TestedBuild
    from tritonsmith.build.suites.replay import ReplayedStep
    from tritonsmith.build.suites.results import SuiteName, SuiteTest
    from tritonsmith.build.suites.selection import SuiteSelection
    from tritonsmith.build.suites.workflow import WorkflowJob


@task(tables=True, name="test-triton")
def test_triton(
    context: Context,
    paths: CommaList = word("comma-separated files or folders: test/TritonGPU, FILE::NAME", ()),
    lit: bool = flag("run the lit tests", default=False),
    cpp: bool = flag("run the C++ unit tests", default=False),
    gpu_less: bool = flag("run the Python tests that need no GPU", default=False),
    interpreter: bool = flag(
        "run Python tests under Triton's interpreter, with a torch for the CPU", default=False
    ),
    changed: bool = flag("only tests that changes since --base can affect", default=False),
    base: str = flag("with --changed: branch or commit; empty for upstream's main", ""),
    env: str = ENV,
    googletest: Path | None = flag("sources of GoogleTest (Debian: apt install googletest)", None),
    packages: Path | None = PACKAGES,
    junit: OutFile | None = flag("write the results in JUnit's format: FILE.xml", None),
    no_build: bool = flag("test the existing build, even if sources are newer", default=False),
    jobs: int | None = JOBS,
    json: bool = JSON,
    dry_run: bool = DRY_RUN,
) -> None:
    """Run the part of Triton's test suite that needs no GPU."""
    flags: dict[SuiteName, bool] = {"lit": lit, "cpp": cpp, "gpu-less": gpu_less, "interpreter": interpreter}
    suites = frozenset(name for name, is_given in flags.items() if is_given)
    tested = command.find(env)
    if base and not changed:
        raise UsageError("--base requires --changed")
    selected = _select(tested, suites, paths, base if changed else None)
    # A build that was configured with them needs no sources again.
    sources = results.googletest(googletest) or results.unit_tests_configured(tested.env.build)
    if selected.cpp and sources is None:
        required = "cpp" in suites or bool(paths)
        selected = selection.without_cpp(selected, googletest, required=required)
    output.notes(f"left out: {what}: {why}" for what, why in selected.left_out)
    # To find the packages may install them, which a dry run must not.
    folders = () if dry_run and not packages else command.packages(tested, selected, packages)
    count = (
        jobs
        or bounded_jobs(machine.read(), tested.settings.toolchain, tested.settings.llvm.debug_info).compile
    )
    calls = list(command.calls(tested, selected, folders, count))
    # Results of an outdated build would be those of older sources.
    build = None if no_build or not calls else command.prepare_build(tested, selected, sources)
    if dry_run:
        if build:
            output.plan(build.plan)
        console.write("\n".join(call.shell() for call in calls))
        return
    with receipts.open_session(command.TASK, tested.env.name) as running:
        if build:
            output.warnings(build.warnings)
            commands.execute(build, running)
        tests = command.execute(tested, calls, running, console.note)
    _print(tests, selected, tested, junit, json=json)


def _select(
    tested: TestedBuild, suites: frozenset[SuiteName], paths: Sequence[str], base: str | None
) -> SuiteSelection:
    """Return the tests: of a change, whose `base` is not None, by name, or whole suites."""
    if base is None:
        return selection.of_paths(tested.tree, paths, suites)
    if paths:
        raise UsageError("--changed and paths contradict each other", hints=["omit one of them"])
    affected, count, branch = selection.of_branch(tested.tree, base)
    console.note(f"{count} files differ from the branch point of {branch}")
    output.notes(f"{file}: {effect}" for file, effect in affected.effects)
    return affected.selection(tested.tree, suites or selection.USUAL_SUITES)


def _print(
    tests: Sequence[SuiteTest],
    selected: SuiteSelection,
    tested: TestedBuild,
    junit: OutFile | None,
    *,
    json: bool,
) -> None:
    if junit:
        path = junit.path("tests.xml")
        plan_files.write_atomically(path, command.junit_xml(tests))
        console.note(f"the results are in {path}")
    if json:
        output.json(command.as_json(tests, selected))
    else:
        for part in command.screen(tests):
            console.out().print(part, markup=False)
    if bad := command.failed(tests):
        raise SmithError(f"{len(bad)} of {len(tests)} tests failed", where=tested.folder)
    # Nothing failed, but that says nothing if none of the tests ran.
    command.check(selected, tests, tested.folder)


@task(tables=True, name="ci-replay")
def ci_replay(
    context: Context,
    job: str = word("job of .github/workflows, or FILE:JOB; all are listed if omitted", ""),
    env: str = ENV,
    list_: bool = flag("list the jobs (the default without JOB)", default=False),
    log: Path | None = flag("downloaded log of the job, to compare with", None),
    packages: Path | None = PACKAGES,
    json: bool = JSON,
    yes: bool = YES,
    dry_run: bool = DRY_RUN,
) -> None:
    """Run the steps of a CI job that need no GPU, in a clone of the checkout."""
    job = "" if list_ else job
    # To look at the jobs, a checkout will do. To run their steps takes a build.
    around = checkout.enclosing(Path.cwd()) if dry_run or not job else None
    root = around or command.find(env).root
    files = workflow.read(root)
    output.warnings(f"cannot read {path}: {why}" for path, why in files.unreadable)
    if not job:
        if json:
            output.json({"schema": 1, "root": str(root), **workflow.as_json(files)})
        else:
            console.note(f"reading {root}")
            console.out().print(replay.list_(files.jobs))
        return
    chosen = workflow.find(files.jobs, job)
    steps = replay.planned(chosen)
    if dry_run:
        steps = replay.compared(steps, log) if log else steps
        if json:
            output.json(replay.as_json(chosen, steps))
        else:
            _print_script(chosen, steps, root)
        return
    replay.check(chosen)
    if not json:
        _print_script(chosen, steps, root)
    steps = _run_job(chosen, env, packages, yes=yes)
    steps = replay.compared(steps, log) if log else steps
    if json:
        output.json(replay.as_json(chosen, steps))
    else:
        console.out().print(replay.table(chosen, steps))
    if failed := [row for row in steps if row.word == "failed"]:
        why = "\n".join(f"{row.step.name}: {row.why}" for row in failed)
        raise SmithError(f"{len(failed)} of the steps that ran failed", why=why)


def _print_script(job: WorkflowJob, steps: Sequence[ReplayedStep], root: Path) -> None:
    console.out().print(replay.table(job, steps))
    # Not in the checkout: it is the user's, and steps of CI install and build in place.
    console.write(f"# in a clone of {root}")
    console.write("\n".join(replay.script(steps)))


def _run_job(job: WorkflowJob, env: str, packages: Path | None, *, yes: bool) -> tuple[ReplayedStep, ...]:
    tested = command.find(env)
    scratch = tested.folder / "ci"
    root = scratch / "checkout"
    # The steps are shell scripts of a checkout that may be anybody's, so the question says what holds them.
    how = "under bubblewrap: no network, the system read-only"
    confined = bool(replay.sandbox(tested.env))
    if not confined:
        how = "without a sandbox, with all your permissions"
        console.warn(
            "bubblewrap (bwrap) is missing or may not make namespaces, so nothing confines the steps"
        )
    steps = counted(len(job.runnable), "step")
    if not output.agreed(f"Run {steps} in a clone of {tested.root}, {how}?", yes=yes):
        raise SmithError("nothing was run", hints=["--dry-run shows the steps"])
    folders = (command.packages_of(packages, tested, ("pytest",)),) if packages else ()
    with receipts.open_session("ci-replay", tested.env.name) as running:
        running.run(replay.clone(tested.root, tested.env, root, replay.pip_build(tested)))
        change = replay.variables(tested, folders, scratch, root)
        return replay.run(tested, job, root, change, console.note, confined=confined)
