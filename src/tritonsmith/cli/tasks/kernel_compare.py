"""`compare`: compare kernels of two compilers, options or targets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tritonsmith.cli.tasks.kernel_options import CompileOptions, compared_kernels, parse_stages
from tritonsmith.cli.tasks.option_fields import CommaLists, flag, word
from tritonsmith.cli.tasks.options import DRY_RUN, FAIL_ON, JOBS, JSON, OUT, SCHEDULER, TIMEOUT, WHEEL_ENV
from tritonsmith.cli.tasks.task import task

if TYPE_CHECKING:
    from tritonsmith.lab.compare.diff import Comparison
    from tritonsmith.lab.compare.thresholds import Threshold


@task(tables=True, name="compare")
def compare_(
    context: Any,
    what: CompileOptions,
    side_a: str = word("version, environment, interpreter, target, NAME=VALUE, or folder"),
    side_b: str = word("the other side, given in the same way"),
    kernel: str = word("FILE, FILE:KERNEL, or a kernels file; none where A and B are folders", ""),
    fail_on: str | None = FAIL_ON,
    diff: bool = flag("print the differences of the stages", default=False),
    stage: CommaLists = flag("print the differences of this stage: ttgir, ptx ... (repeatable)", ()),
    out: Path | None = OUT,
    env: str = WHEEL_ENV,
    scheduler: str = SCHEDULER,
    jobs: int | None = JOBS,
    timeout: int | None = TIMEOUT,
    json: bool = JSON,
    dry_run: bool = DRY_RUN,
) -> None:
    """Compile kernels with two Tritons or option sets, and compare."""
    from tritonsmith.cli.tasks import output
    from tritonsmith.compiler import tritons
    from tritonsmith.lab.compare import diff as compare_diff
    from tritonsmith.lab.compare import inputs, thresholds

    limits = thresholds.parse(fail_on)
    names = parse_stages(stage)
    first, second = tritons.parse(side_a), tritons.parse(side_b)
    wanted = inputs.prepare(first, second, compared_kernels(kernel, what), out)
    if dry_run:
        output.plan(inputs.plan(wanted, env))
        return
    with inputs.held(wanted):
        made = inputs.compile_missing(wanted, scheduler, jobs=jobs, timeout=timeout, env=env, silent=json)
        found = compare_diff.compare(*made, names=(first.label, second.label))
        _print(found, limits, out, diff=diff, stages=names, json=json)


def _print(
    found: Comparison,
    limits: tuple[Threshold, ...],
    out: Path | None,
    *,
    diff: bool,
    stages: tuple[str, ...],
    json: bool,
) -> None:
    from json import dumps

    from tritonsmith.core.envs import workspace
    from tritonsmith.core.errors import FactError, SmithError
    from tritonsmith.core.ui import console
    from tritonsmith.lab.compare import report, thresholds

    judgement = thresholds.check(found, limits)
    violations, unchecked = judgement.violations, None
    try:
        thresholds.require(judgement, found)
    except FactError as error:  # raised below, after the tables
        violations, unchecked = (), error
    content = dumps(report.as_json(found, limits, violations), indent=2)
    for text in found.notes:
        console.note(text)
    if json:
        console.write(content)
    else:
        _print_tables(found, stages, diff=diff)
    if out:
        space = workspace.default()
        space.claim()
        space.run(report.files(found, f"{content}\n", out), "kernel.compare", quiet=True)
        console.note(f"the outputs, the diffs and {report.FILE} are in {out}")
    if unchecked:
        raise unchecked
    if violations:
        raise SmithError(
            report.verdict(limits, violations),
            why="\n".join(report.lines(violations)),
            hints=["--diff shows the differences of the stages", "--json has all values and messages"],
        )
    if limits and not json:
        console.out().print(report.verdict(limits, violations), markup=False)


def _print_tables(found: Comparison, stages: tuple[str, ...], *, diff: bool) -> None:
    from tritonsmith.core.ui import console
    from tritonsmith.core.ui import diff as ui_diff
    from tritonsmith.lab.compare import report

    out = console.out()
    for line in report.head(found):
        out.print(line, markup=False)
    for block in report.blocks(found):
        out.print(block)
    if not (diff or stages):
        return
    texts = [lines for _, _, lines in report.differences(found, stages)]
    for lines in texts:
        if out.is_terminal:
            out.print(ui_diff.coloured(lines), end="")
        else:
            console.write("\n".join(lines))
    if not texts:
        console.note(f"no differences in {', '.join(stages) or 'the stages'}")
