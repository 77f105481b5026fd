"""`test-triton`: Triton's own tests that need no GPU, of a build."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.option_fields import CommaList, OutFile, flag, word
from tritonsmith.cli.tasks.options import DRY_RUN, ENV, JOBS, JSON, PACKAGES
from tritonsmith.cli.tasks.task import task
from tritonsmith.core.errors import SmithError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tritonsmith.build.suites.command import TestedBuild
    from tritonsmith.build.suites.results import SuiteName, SuiteTest
    from tritonsmith.build.suites.selection import SuiteSelection


_USUAL: tuple[SuiteName, ...] = ("lit", "cpp", "gpu-less")  # as upstream's `make test-nogpu`


@task(tables=True, name="test-triton")
def test_triton(
    context: Any,
    paths: CommaList = word("files or folders, with commas: test/TritonGPU, FILE::NAME", ()),
    lit: bool = flag("tests of lit", default=False),
    cpp: bool = flag("unit tests in C++", default=False),
    gpu_less: bool = flag("tests of Python that need no GPU", default=False),
    interpreter: bool = flag(
        "tests of Python under the interpreter, with a torch for the CPU", default=False
    ),
    changed: bool = flag("tests that files changed since --base can affect", default=False),
    base: str = flag("with --changed: branch or commit; empty for upstream's main", ""),
    env: str = ENV,
    googletest: Path | None = flag("sources of GoogleTest (Debian: apt install googletest)", None),
    packages: Path | None = PACKAGES,
    junit: OutFile | None = flag("write the results in JUnit's format: FILE.xml", None),
    no_build: bool = flag("test what is built, though sources may be newer", default=False),
    jobs: int | None = JOBS,
    json: bool = JSON,
    dry_run: bool = DRY_RUN,
) -> None:
    """Run the part of Triton's test suite that needs no GPU."""
    from tritonsmith.build.cmake import bounded_jobs
    from tritonsmith.build.suites import command, results
    from tritonsmith.core.envs import session
    from tritonsmith.core.ui import console
    from tritonsmith.facts import machine

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
    with session.opened(command.TASK, tested.env.name) as running:
        if build:
            from tritonsmith.build.triton import commands

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
    from tritonsmith.atlas.index import Index
    from tritonsmith.atlas.source_files import SourceFiles
    from tritonsmith.build.suites import affected
    from tritonsmith.core.ui import console
    from tritonsmith.facts import git

    changes = git.branch_changes(tested.root, base)
    names, gone = (
        [path.relative_to(tested.root).as_posix() for path in paths]
        for paths in (changes.files, changes.deleted)
    )
    found = affected.of_files(Index(SourceFiles(tested.root)), tested.tree, names, gone)
    console.note(f"{len(names) + len(gone)} files differ from where {changes.base} was left")
    for file, what in found.reasons:
        if not what.startswith("nothing"):  # these are left out
            console.note(f"{file}: {what}")
    return found.selection(tested.tree, asked)


def _without_cpp(selection: SuiteSelection, wanted: bool, given: Path | None) -> SuiteSelection:
    from dataclasses import replace

    from tritonsmith.core.errors import FactError

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
    from tritonsmith.build.suites import command, report
    from tritonsmith.build.suites import report as junit_file
    from tritonsmith.core.plan import files
    from tritonsmith.core.ui import console

    if junit:
        path = junit.path("tests.xml")
        files.write_atomically(path, junit_file.junit_xml(tests))
        console.note(f"the results are in {path}")
    if json:
        output.json(report.as_json(tests, selection))
    else:
        for part in report.screen(tests):
            console.out().print(part, markup=False)
    if bad := report.failed(tests):
        raise SmithError(f"{len(bad)} of {len(tests)} tests failed", where=tested.folder)
    command.check(selection, tests, tested.folder)
