"""`compare`: compare kernels of two compilers, options or targets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tritonsmith.cli.tasks.experiments import ExperimentOptions
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
    tests: ExperimentOptions,
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
    from tritonsmith.core.errors import UsageError
    from tritonsmith.lab.batch.run import BatchOptions
    from tritonsmith.lab.compare import thresholds, two_sides

    limits = thresholds.parse(fail_on)
    names = parse_stages(stage)
    first, second = tritons.parse(side_a), tritons.parse(side_b)
    if first.folder and second.folder and tests != ExperimentOptions():
        hints = ["omit --confirm, --skip, --status and --page"]
        raise UsageError("both sides are already compiled, so nothing is tested", hints=hints)
    sides = two_sides.prepare(first, second, compared_kernels(kernel, what), out)
    if tests.show_status(sides.out, thresholds.WORDS, json=json, key=two_sides.key(sides, limits)):
        return
    if dry_run:
        output.plan(two_sides.plan(sides, env))
        return
    options = BatchOptions(scheduler, jobs, timeout, env, silent=json)
    with two_sides.held(sides):
        comparison, journal = two_sides.execute(sides, limits, options, tests.rules)
        try:
            _print(comparison, limits, out, diff=diff, stages=names, json=json)
        finally:  # also where the result is an error
            tests.write_page(journal, "compare", [journal.answer], thresholds.WORDS)


def _print(
    comparison: Comparison,
    limits: tuple[Threshold, ...],
    out: Path | None,
    *,
    diff: bool,
    stages: tuple[str, ...],
    json: bool,
) -> None:
    from json import dumps

    from tritonsmith.core.envs import workspace
    from tritonsmith.core.errors import FactError, SmithError, UndecidedError
    from tritonsmith.core.ui import console
    from tritonsmith.lab.compare import report, thresholds

    judgement = thresholds.check(comparison, limits)
    violations, unchecked = judgement.violations, None
    try:
        thresholds.require(judgement, comparison)
    except FactError as error:  # raised below, after the tables
        violations, unchecked = (), error
    content = dumps(report.as_json(comparison, limits, violations), indent=2)
    for text in comparison.notes:
        console.note(text)
    if json:
        console.write(content)
    else:
        _print_tables(comparison, stages, diff=diff)
    if out:
        space = workspace.default()
        space.claim()
        space.run(report.files(comparison, f"{content}\n", out), "kernel.compare", quiet=True)
        console.note(f"the outputs, the diffs and {report.FILE} are in {out}")
    if unchecked:
        raise unchecked
    sure = [
        row
        for row in violations
        if row.reading.unknown or (row.folders[1], row.target) not in comparison.flaky
    ]
    if comparison.flaky and not sure and (limits or violations):
        hints = ["the notes above name them", "--confirm 5 compiles each five times"]
        raise UndecidedError("not sure: compiles of B come out otherwise when they are repeated", hints=hints)
    if violations:
        raise SmithError(
            report.verdict(limits, violations),
            why="\n".join(report.lines(violations)),
            hints=["--diff shows the differences of the stages", "--json has all values and messages"],
        )
    if limits and not json:
        console.out().print(report.verdict(limits, violations), markup=False)


def _print_tables(comparison: Comparison, stages: tuple[str, ...], *, diff: bool) -> None:
    from tritonsmith.core.ui import console
    from tritonsmith.core.ui import diff as ui_diff
    from tritonsmith.lab.compare import report

    out = console.out()
    for line in report.head(comparison):
        out.print(line, markup=False)
    for block in report.blocks(comparison):
        out.print(block)
    if not (diff or stages):
        return
    texts = [lines for _, _, lines in report.differences(comparison, stages)]
    for lines in texts:
        if out.is_terminal:
            out.print(ui_diff.coloured(lines), end="")
        else:
            console.write("\n".join(lines))
    if not texts:
        console.note(f"no differences in {', '.join(stages) or 'the stages'}")
