"""`corpus.*`: the kernels that must keep compiling."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.option_fields import word
from tritonsmith.cli.tasks.options import CORPUS, DRY_RUN, JSON, KERNELS_FILE
from tritonsmith.cli.tasks.task import task

if TYPE_CHECKING:
    from collections.abc import Callable

    from tritonsmith.lab.corpus import Corpus, CorpusUpdate


@task()
def add(
    context: Any,
    kernels: Path = KERNELS_FILE,
    corpus: Path | None = CORPUS,
    json: bool = JSON,
    dry_run: bool = DRY_RUN,
) -> None:
    """Add the kernels of a list to the corpus, with copies of their sources."""
    from tritonsmith.core.errors import SmithError
    from tritonsmith.lab import corpus as use_case

    def update(here: Corpus) -> CorpusUpdate:
        return use_case.add(here, kernels)

    changed = _change("corpus.add", corpus, update, json=json, dry_run=dry_run)
    if refused := [change for change in changed.changes if change.state == "not added"]:
        why = "\n".join(f"{change.name}: {change.why}" for change in refused)
        what = f"{len(refused)} of {len(changed.changes)} kernels were not added"
        raise SmithError(what, where=kernels, why=why)


@task()
def remove(
    context: Any,
    kernel: str = word("name of a kernel in the corpus, or a glob: 'matmul*'"),
    corpus: Path | None = CORPUS,
    json: bool = JSON,
    dry_run: bool = DRY_RUN,
) -> None:
    """Remove kernels from the corpus, and sources that no other one needs."""
    from tritonsmith.lab import corpus as use_case

    def update(here: Corpus) -> CorpusUpdate:
        return use_case.remove(here, [kernel])

    _change("corpus.remove", corpus, update, json=json, dry_run=dry_run)


@task(tables=True, name="list")
def listing(context: Any, corpus: Path | None = CORPUS, json: bool = JSON) -> None:
    """List the kernels of the corpus."""
    from tritonsmith.core.ui import console
    from tritonsmith.lab import corpus as use_case

    here = use_case.named(corpus)
    kernels = here.kernels()
    if json:
        output.json(use_case.as_json(here, kernels))
    elif kernels:
        console.out().print(use_case.table(kernels))
        console.out().print(str(here.file), markup=False)
    else:
        raise use_case.empty(here)


def _change(
    task_name: str,
    folder: Path | None,
    update: Callable[[Corpus], CorpusUpdate],
    *,
    json: bool,
    dry_run: bool,
) -> CorpusUpdate:
    from tritonsmith.core.envs import workspace
    from tritonsmith.core.ui import console
    from tritonsmith.lab import corpus as use_case

    here = use_case.named(folder)
    if dry_run:
        planned = update(here)
        output.plan(planned.plan)
        return planned
    with here.held(task_name):
        changed = update(here)
        workspace.default().run(changed.plan, task_name, quiet=True)
    output.notes(changed.notes)
    if json:
        output.json(use_case.changes_as_json(here, changed.changes))
        return changed
    for line in use_case.summary(changed.changes):
        console.out().print(line, markup=False)
    console.out().print(str(here.folder), markup=False)
    return changed
