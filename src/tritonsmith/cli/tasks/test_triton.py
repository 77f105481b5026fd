"""`test-triton`: Triton's own tests that need no GPU, and the jobs of its CI."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from invoke.context import Context

from tritonsmith.atlas.index import Index
from tritonsmith.atlas.source_files import SourceFiles
from tritonsmith.build.cmake import bounded_jobs
from tritonsmith.build.suites import command, replay, results, selection, workflow
from tritonsmith.build.triton import commands
from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.option_fields import CommaList, OutFile, flag, word
from tritonsmith.cli.tasks.options import DRY_RUN, ENV, JOBS, JSON, PACKAGES, YES
from tritonsmith.cli.tasks.output import task
from tritonsmith.core.envs import receipts
from tritonsmith.core.errors import FactError, SmithError, UsageError
from tritonsmith.core.plan import files as plan_files
from tritonsmith.core.text import counted
from tritonsmith.core.ui import console
from tritonsmith.facts import checkout, git, machine

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tritonsmith.build.suites.command import TestedBuild
    from tritonsmith.build.suites.replay import ReplayedStep
    from tritonsmith.build.suites.results import SuiteName, SuiteTest
    from tritonsmith.build.suites.selection import SuiteSelection
    from tritonsmith.build.suites.workflow import WorkflowJob


_USUAL: tuple[SuiteName, ...] = ("lit", "cpp", "gpu-less")  # as upstream's `make test-nogpu`


@task(tables=True, name="test-triton")
def test_triton(
    context: Context,
    paths: CommaList = word("files or folders, separated by commas: test/TritonGPU, FILE::NAME", ()),
    lit: bool = flag("lit tests", default=False),
    cpp: bool = flag("C++ unit tests", default=False),
    gpu_less: bool = flag("Python tests that need no GPU", default=False),
    interpreter: bool = flag(
        "Python tests under Triton's interpreter, with a torch for the CPU", default=False
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
    pairs: tuple[tuple[SuiteName, bool], ...] = (
        ("lit", lit), ("cpp", cpp), ("gpu-less", gpu_less), ("interpreter", interpreter),
    )  # fmt: skip
    asked = frozenset(name for name, given in pairs if given)
    tested = command.find(env)
    if base and not changed:
        raise UsageError("--base requires --changed")
    selection = _selection(tested, asked, paths, base if changed else None)
    sources = results.googletest(googletest) or results.unit_tests_configured(tested.env.build)
    if selection.cpp and sources is None:
        selection = _without_cpp(selection, "cpp" in asked or bool(paths), googletest)
    for what, why in selection.left_out:
        console.note(f"left out: {what}: {why}")
    folders = () if dry_run and not packages else command.packages(tested, selection, packages)
    count = (
        jobs
        or bounded_jobs(machine.read(), tested.settings.toolchain, tested.settings.llvm.debug_info).compile
    )
    calls = list(command.calls(tested, selection, folders, count))
    build = None if no_build or not calls else command.prepare_build(tested, selection, sources)
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
    _print(tests, selection, tested, junit, json=json)


def _selection(
    tested: TestedBuild, asked: frozenset[SuiteName], paths: Sequence[str], base: str | None
) -> SuiteSelection:
    """Return the tests: of a change (`base` is not None), by name, or whole suites."""
    if base is not None:
        if paths:
            raise UsageError("--changed and paths contradict each other", hints=["omit one of them"])
        return _changed(tested, asked or _USUAL, base)
    if not paths:
        return tested.tree.whole(asked or _USUAL)
    selection, rest = tested.tree.named(paths, asked)
    if rest:
        raise UsageError(
            f"no test: {', '.join(rest)}",
            where=tested.root,
            hints=["a file or folder of test/, unittest/ or python/test/", "--changed: by your changes"],
        )
    return selection


def _changed(tested: TestedBuild, asked: Iterable[SuiteName], base: str) -> SuiteSelection:
    changes = git.branch_changes(tested.root, base)
    names, gone = (
        [path.relative_to(tested.root).as_posix() for path in paths]
        for paths in (changes.files, changes.deleted)
    )
    found = selection.of_files(Index(SourceFiles(tested.root)), tested.tree, names, gone)
    console.note(f"{len(names) + len(gone)} files differ from the branch point of {changes.base}")
    for file, what in found.reasons:
        if not what.startswith("nothing"):  # these are left out
            console.note(f"{file}: {what}")
    return found.selection(tested.tree, asked)


def _without_cpp(selection: SuiteSelection, wanted: bool, given: Path | None) -> SuiteSelection:
    why = f"{given} has no GoogleTest" if given else "no sources of GoogleTest on this machine"
    hints = ["Debian: apt install googletest", "--googletest FOLDER: with its CMakeLists.txt"]
    if wanted:
        raise FactError("the unit tests cannot be built", why=why, hints=hints)
    return replace(selection, cpp=(), left_out=(*selection.left_out, ("cpp", f"{why}; {hints[0]}")))


def _print(
    tests: Sequence[SuiteTest],
    selection: SuiteSelection,
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
        output.json(command.as_json(tests, selection))
    else:
        for part in command.screen(tests):
            console.out().print(part, markup=False)
    if bad := command.failed(tests):
        raise SmithError(f"{len(bad)} of {len(tests)} tests failed", where=tested.folder)
    command.check(selection, tests, tested.folder)


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
    around = checkout.enclosing(Path.cwd()) if dry_run or not job else None
    root = around or command.find(env).root
    files = workflow.read(root)
    output.warnings(f"cannot read {path}: {why}" for path, why in files.unreadable)
    if not job:
        if json:
            unreadable = [{"file": path.name, "why": why} for path, why in files.unreadable]
            jobs = [_row_of_job(one) for one in files.jobs]
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
            _show_jobs(found, steps, root)
        return
    replay.check(found)
    if not json:
        _show_jobs(found, steps, root)
    steps = _run_job(found, env, packages, yes=yes)
    steps = replay.compared(steps, log) if log else steps
    if json:
        output.json(replay.as_json(found, steps))
    else:
        console.out().print(replay.table(found, steps))
    if bad := [one for one in steps if one.word == "failed"]:
        why = "\n".join(f"{one.step.name}: {one.why}" for one in bad)
        raise SmithError(f"{len(bad)} of the steps that ran failed", why=why)


def _show_jobs(job: WorkflowJob, steps: Sequence[ReplayedStep], root: Path) -> None:
    console.out().print(replay.table(job, steps))
    console.write(f"# in a clone of {root}")
    console.write("\n".join(replay.script(steps)))


def _run_job(job: WorkflowJob, env: str, packages: Path | None, *, yes: bool) -> tuple[ReplayedStep, ...]:
    tested = command.find(env)
    scratch = tested.folder / "ci"
    root = scratch / "checkout"
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


def _row_of_job(job: WorkflowJob) -> dict[str, Any]:
    steps = [{"name": step.name, "why": job.why or step.why} for step in job.steps]
    return {"job": job.name, "runner": job.runner, "why": job.why, "steps": steps}
