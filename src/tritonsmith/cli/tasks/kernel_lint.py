"""`kernel.lint`: what a kernel's own stages show to be slow."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.kernel_options import CompileOptions, PoolOptions, folder_of
from tritonsmith.cli.tasks.option_fields import flag
from tritonsmith.cli.tasks.options import DRY_RUN, FROM_CACHE, JSON, KERNEL, OUT
from tritonsmith.cli.tasks.task import task

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tritonsmith.inspect.lint.run import LintResult


@task(tables=True, reads_outputs=True, name="lint")
def lint_(
    context: Any,
    what: CompileOptions,
    by: PoolOptions,
    kernel: str = KERNEL,
    from_cache: str = FROM_CACHE,
    fail_on: str | None = flag("findings that fail: any, or their codes, with commas", None),
    out: Path | None = OUT,
    json: bool = JSON,
    dry_run: bool = DRY_RUN,
) -> None:
    """Find performance problems in a kernel, with the lines as evidence."""
    from tritonsmith.compiler import manifest, run
    from tritonsmith.core.ui import console
    from tritonsmith.inspect.lint import run as lint_run

    codes = lint_run.parse_fail_on(fail_on)
    if folder := folder_of(kernel):
        what.refuse()
        made = [manifest.read(folder)]
    else:
        wanted = what.requests(kernel, from_cache=from_cache, by=by)
        where = by.toolchain(*wanted, dry_run=dry_run)
        if dry_run:
            for prepared in run.prepare_all(wanted, where, out):
                output.compile_of(prepared)
            return
        compiled = run.execute_all(wanted, where, out, silent=json)
        for text in dict.fromkeys(text for one in compiled for text in one.notes):
            console.note(text)
        made = [one.manifest for one in compiled]
    _print(lint_run.lint(made), codes, json=json)


def _print(found: LintResult, codes: Sequence[str], *, json: bool) -> None:
    from tritonsmith.core.errors import FactError, SmithError
    from tritonsmith.core.ui import console
    from tritonsmith.inspect.lint import report

    for text in report.notes(found):
        console.note(text)
    if json:
        output.json(report.as_json(found))
    else:
        for block in report.blocks(found):
            console.out().print(block)
    if found.failed:
        raise SmithError(
            f"{len(found.failed)} of the points did not compile",
            why="\n".join(f"{point}: {why}" for point, why in found.failed.items()),
            hints=["the manifest in the output folder has the full messages"],
        )
    if bad := [one for one in found.findings if one.rule.code in codes]:
        why = "\n".join(report.line(one) for one in bad)
        raise SmithError(
            f"--fail-on: {len(bad)} findings", why=why, hints=["--json has all lines of evidence"]
        )
    if missed := [one for one in found.unchecked if one.code in codes]:
        why = "\n".join(f"{one.kernel} {one.point}: {one.code}: {one.why}" for one in missed)
        hints = ["a check of nothing does not pass: name the codes that can be checked"]
        raise FactError("--fail-on names rules that were not checked", why=why, hints=hints)
