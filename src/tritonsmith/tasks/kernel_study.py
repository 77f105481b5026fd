"""`kernel.study`: kernels, targets and versions of Triton, in one table and one picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tritonsmith.tasks.options import ASKING
from tritonsmith.tasks.task import given, split, task

if TYPE_CHECKING:
    from pathlib import Path

    from tritonsmith.kernels.batch.spec import CompilerSpec
    from tritonsmith.kernels.study.plan import StudyCell


@task(
    tables=True,
    positional=["kernels"],
    iterable=["triton", "target", "option"],
    help={
        "kernels": "TOML file that lists kernels: docs/study.md",
        "triton": "versions, environments or interpreters: 3.2.0,3.6.0,debug (repeat it)",
        "target": "of kernels that name none: cuda:90, h100, mi300x, native or all (repeat it)",
        **{name: ASKING[name] for name in ("option", "num_warps", "num_stages")},
        "source": "the files are in this clone, at the commit of each version; CLONE@REF: at one commit",
        "out": "folder for what is compiled, and what is there already is kept (default: in the workspace)",
        "scheduler": "Dask scheduler whose workers compile: tcp://HOST:8786",
        "jobs": "compiles at once (default: as many as cores and memory allow)",
        "timeout": "seconds until a compile is given up (default: 600)",
        "json": "print JSON",
        "csv": "print CSV",
        "plot": "write a picture: FILE.png or FILE.svg",
        "dry_run": "print the plan as a shell script, and do nothing",
    },
)
def study(
    context: Any,
    kernels: str,
    triton: Iterable[str] | None = None,
    target: Iterable[str] | None = None,
    option: Iterable[str] | None = None,
    num_warps: str = "",
    num_stages: str = "",
    source: str = "",
    out: str = "",
    scheduler: str = "",
    jobs: str = "",
    timeout: str = "",
    json: bool = False,
    csv: bool = False,
    plot: str = "",
    dry_run: bool = False,
) -> None:
    """Compile kernels by many versions of Triton, and show their resources."""
    from dataclasses import replace
    from pathlib import Path

    from tritonsmith.envs import workspace
    from tritonsmith.errors import UsageError
    from tritonsmith.kernels.batch import kernel_list
    from tritonsmith.kernels.compile import targets
    from tritonsmith.kernels.resources import plot as resources_plot
    from tritonsmith.kernels.study import git_sources, plan
    from tritonsmith.tasks import options as tasks_options
    from tritonsmith.tasks import output
    from tritonsmith.tasks.task import count

    if json and csv:
        raise UsageError("--json and --csv contradict each other", hints=["leave one of them out"])
    picture = Path(plot).expanduser().absolute() if given(plot) else None
    if picture:
        resources_plot.check(picture)
        if not picture.parent.is_dir():  # or an hour of compiling ends without it
            raise UsageError("--plot: there is no such folder", where=picture.parent)
    number, seconds = count(jobs, "jobs"), count(timeout, "timeout")
    options = tasks_options.options(option, num_warps, num_stages)
    file = Path(kernels).expanduser().absolute()
    folder = (
        Path(out).expanduser().absolute() if given(out) else workspace.default().root / "studies" / file.stem
    )
    prepared = plan.prepare(
        [replace(one, options={**one.options, **options}) for one in kernel_list.read(file)],
        _sides(triton or ()),
        targets.parse_all(_words(target or ())) or targets.default(),
        folder,
        file.parent,
        git_sources.History(source) if given(source) else None,
    )
    if dry_run:
        output.plan(prepared.plan())
        return
    cells = plan.execute(prepared, scheduler, count=number, timeout=seconds, silent=json or csv)
    _print(cells, folder, picture, json=json, csv=csv)


def _words(texts: Iterable[str]) -> list[str]:
    return [word for text in texts for word in split(text) or ()]


def _sides(texts: Iterable[str]) -> list[CompilerSpec]:
    """The Tritons; nothing else can stand in a study's side."""
    from tritonsmith.errors import UsageError
    from tritonsmith.kernels.batch import spec

    found = [spec.parse(word) for word in _words(texts)]
    if not found:
        raise UsageError("no Triton is named", hints=["--triton 3.2.0,3.6.0"])
    for side in found:
        if not (side.env or side.version or side.python):
            hints = ["a version, an environment or an interpreter: --triton 3.2.0,debug"]
            raise UsageError(f"--triton cannot be {side.label!r}", hints=hints)
    return found


def _print(cells: Sequence[StudyCell], folder: Path, picture: Path | None, *, json: bool, csv: bool) -> None:
    from json import dumps

    from tritonsmith.errors import SmithError
    from tritonsmith.kernels.study import plot as study_plot
    from tritonsmith.kernels.study import report
    from tritonsmith.ui import console

    if json:
        console.write(dumps(report.as_json(cells), indent=2))
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
        hints = ["the manifest in a kernel's folder has the whole message"]
        raise SmithError(what, where=folder, why="\n".join(failed), hints=hints)
