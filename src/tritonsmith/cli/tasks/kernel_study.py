"""`compare --triton A,B`: compare the resources of kernels over targets and versions of Triton."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.experiments import ExperimentOptions
from tritonsmith.cli.tasks.kernel_options import KernelOptions, listed_kernels
from tritonsmith.cli.tasks.option_fields import CommaLists, flag
from tritonsmith.cli.tasks.options import (
    COMPILED_KERNEL,
    CSV,
    DRY_RUN,
    JOBS,
    JSON,
    OUT,
    PLOT,
    SCHEDULER,
    TIMEOUT,
)
from tritonsmith.cli.tasks.task import task

if TYPE_CHECKING:
    from tritonsmith.compiler.kernels.kernel_list import ListedKernel
    from tritonsmith.compiler.tritons import Triton
    from tritonsmith.lab.study.study import StudyCell


@task(tables=True)
def study(
    context: Any,
    what: KernelOptions,
    tests: ExperimentOptions,
    kernels: str = COMPILED_KERNEL,
    triton: CommaLists = flag("versions, environments, interpreters: 3.2.0,3.6.0,debug (repeatable)", ()),
    source: str = flag("clone to read kernels from, at each version's commit; or CLONE@REF", ""),
    out: Path | None = OUT,
    scheduler: str = SCHEDULER,
    jobs: int | None = JOBS,
    timeout: int | None = TIMEOUT,
    json: bool = JSON,
    csv: bool = CSV,
    plot: Path | None = PLOT,
    site: Path | None = flag("folder for a static page of all results", None),
    dry_run: bool = DRY_RUN,
) -> None:
    """Compile kernels with many Triton versions and compare resources."""
    from tritonsmith.compiler import targets
    from tritonsmith.compiler.output_folder import folder_name
    from tritonsmith.core.envs import workspace
    from tritonsmith.core.errors import UsageError
    from tritonsmith.core.ui import console
    from tritonsmith.inspect.resources import plot as resources_plot
    from tritonsmith.lab.batch.run import BatchOptions
    from tritonsmith.lab.study import page as study_page
    from tritonsmith.lab.study import study as use_case

    if json and csv:
        raise UsageError("--json and --csv contradict each other", hints=["omit one of them"])
    if plot:
        resources_plot.check(plot)
        if not plot.parent.is_dir():  # or an hour of compiling ends without it
            raise UsageError("--plot: the folder does not exist", where=plot.parent)
    if site:
        study_page.check(site)
    tritons = _sides(triton)
    entries, path = _entries(kernels, what)
    folder = out or workspace.default().root / "studies" / folder_name(path.stem)
    prepared = use_case.prepare(
        entries,
        tritons,
        targets.parse_all(what.target) or targets.default(),
        folder,
        path.parent,
        use_case.History(source) if source else None,
    )
    if tests.show_status(folder, use_case.WORDS, json=json, key=prepared.key):
        return
    if dry_run:
        output.plan(prepared.plan())
        return
    options = BatchOptions(scheduler, jobs, timeout, resume=True, silent=json or csv)
    cells, journal, doubts = use_case.execute(prepared, options, tests.rules)
    for doubt in doubts:
        console.warn(doubt)
    if site:
        console.note(f"the site is {study_page.write(cells, site)}")
    try:
        _print(cells, folder, plot, json=json, csv=csv)
    finally:  # also where compiles failed, which is an error
        tests.write_page(journal, "study", [journal.answer], use_case.WORDS)


def _entries(kernel: str, what: KernelOptions) -> tuple[list[ListedKernel], Path]:
    """Return the kernels of a study, one or those of a kernels file, and the file."""
    from dataclasses import replace

    from tritonsmith.compiler.kernels import kernels_file
    from tritonsmith.compiler.kernels.kernel_list import ListedKernel
    from tritonsmith.core.errors import UsageError
    from tritonsmith.lab.compare import inputs

    if listed := kernels_file.named(kernel):
        path, name = listed
        entries = list(listed_kernels(path, name))
        output.notes(kernels_file.own_targets(entries, what.target))
        if what.signature and len(entries) > 1:
            hints = ["omit it", f"choose one: {path}:{entries[0].name}"]
            raise UsageError(
                "--signature applies to one kernel, but a TOML file lists many", where=path, hints=hints
            )
    else:
        (compared,) = inputs.one(what.request(kernel))
        path, name = compared.asked.file, compared.asked.kernel
        entries = [ListedKernel(str(path), str(path), name, name)]
    options, signature = what.of_backend(), what.signature
    return [
        replace(entry, options={**entry.options, **options}, signature=signature or entry.signature)
        for entry in entries
    ], path


def _sides(words: Iterable[str]) -> list[Triton]:
    """Return the Tritons of a study, which takes no other kind of side."""
    from tritonsmith.compiler import tritons
    from tritonsmith.core.errors import UsageError

    sides = [tritons.parse(word) for word in tritons.joined(words)]
    if not sides:
        raise UsageError("no Triton is given", hints=["--triton 3.2.0,3.6.0"])
    for side in sides:
        if not (side.env or side.version or side.python):
            hints = ["a version, an environment or an interpreter: --triton 3.2.0,debug"]
            raise UsageError(f"--triton cannot be {side.label!r}", hints=hints)
    return sides


def _print(cells: Sequence[StudyCell], folder: Path, picture: Path | None, *, json: bool, csv: bool) -> None:
    from tritonsmith.core.errors import SmithError
    from tritonsmith.core.ui import console
    from tritonsmith.lab.study import plot as study_plot
    from tritonsmith.lab.study import report
    from tritonsmith.lab.study.study import outcome

    if json:
        output.json(report.as_json(cells))
    elif csv:
        console.write(report.as_csv(cells), end="")
    else:
        for table in report.tables_of(cells):
            console.out().print(table)
        for text in report.warnings(cells):
            console.warn(text)
        console.out().print(f"{folder}", markup=False)
    failed = list(report.failures(cells))
    if picture:
        try:
            study_plot.write(cells, picture)
            console.note(f"the plot is in {picture}")
        except SmithError as error:
            if not failed:
                raise
            console.warn(error.what)  # the reason comes below
    if failed:
        hints = ["the manifest in a kernel's folder has the full message"]
        raise SmithError(outcome(cells), where=folder, why="\n".join(failed), hints=hints)
