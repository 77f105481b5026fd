"""`compare --triton A,B`: compare the resources of kernels over targets and versions of Triton."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.kernel_options import BackendOptions, listed_kernels
from tritonsmith.cli.tasks.option_fields import CommaLists, flag
from tritonsmith.cli.tasks.options import (
    CSV,
    DRY_RUN,
    JOBS,
    JSON,
    KERNELS_FILE,
    OUT,
    PLOT,
    SCHEDULER,
    TIMEOUT,
)
from tritonsmith.cli.tasks.task import task

if TYPE_CHECKING:
    from tritonsmith.compiler.spec import CompilerSpec
    from tritonsmith.lab.study.plan import StudyCell


@task(tables=True)
def study(
    context: Any,
    backend: BackendOptions,
    kernels: Path = KERNELS_FILE,
    triton: CommaLists = flag("versions, environments, interpreters: 3.2.0,3.6.0,debug (repeatable)", ()),
    target: CommaLists = flag("target of kernels that list none: h100, mi300x, all ... (repeatable)", ()),
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
    from dataclasses import replace

    from tritonsmith.compiler import targets
    from tritonsmith.compiler.folder_name import folder_name
    from tritonsmith.compiler.kernels import kernels_file
    from tritonsmith.core.envs import workspace
    from tritonsmith.core.errors import UsageError
    from tritonsmith.core.ui import console
    from tritonsmith.inspect.resources import plot as resources_plot
    from tritonsmith.lab.study import git_sources, plan
    from tritonsmith.lab.study import site as study_site

    if json and csv:
        raise UsageError("--json and --csv contradict each other", hints=["omit one of them"])
    if plot:
        resources_plot.check(plot)
        if not plot.parent.is_dir():  # or an hour of compiling ends without it
            raise UsageError("--plot: the folder does not exist", where=plot.parent)
    if site:
        study_site.check(site)
    options = backend.of_backend()
    path, name = kernels_file.named(str(kernels)) or (kernels, "")
    folder = out or workspace.default().root / "studies" / folder_name(path.stem)
    entries = listed_kernels(path, name)
    output.notes(kernels_file.own_targets(entries, target))
    prepared = plan.prepare(
        [replace(one, options={**one.options, **options}) for one in entries],
        _sides(triton),
        targets.parse_all(target) or targets.default(),
        folder,
        path.parent,
        git_sources.History(source) if source else None,
    )
    if dry_run:
        output.plan(prepared.plan())
        return
    cells = plan.execute(prepared, scheduler, count=jobs, timeout=timeout, silent=json or csv)
    if site:
        console.note(f"the site is {study_site.write(cells, site)}")
    _print(cells, folder, plot, json=json, csv=csv)


def _sides(words: Iterable[str]) -> list[CompilerSpec]:
    """Return the Tritons of a study, which takes no other kind of side."""
    from tritonsmith.compiler import spec
    from tritonsmith.core.errors import UsageError

    found = [spec.parse(word) for word in spec.joined(words)]
    if not found:
        raise UsageError("no Triton is given", hints=["--triton 3.2.0,3.6.0"])
    for side in found:
        if not (side.env or side.version or side.python):
            hints = ["a version, an environment or an interpreter: --triton 3.2.0,debug"]
            raise UsageError(f"--triton cannot be {side.label!r}", hints=hints)
    return found


def _print(cells: Sequence[StudyCell], folder: Path, picture: Path | None, *, json: bool, csv: bool) -> None:
    from tritonsmith.core.errors import SmithError
    from tritonsmith.core.ui import console
    from tritonsmith.lab.study import plot as study_plot
    from tritonsmith.lab.study import report

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
        number = sum(bool(cell.row.error) for cell in cells)
        what = f"{number} of {len(cells)} points did not compile"
        hints = ["the manifest in a kernel's folder has the full message"]
        raise SmithError(what, where=folder, why="\n".join(failed), hints=hints)
