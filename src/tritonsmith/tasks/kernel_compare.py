"""`kernel.compare`: the same kernels by two compilers, or with two options, or for two targets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tritonsmith.tasks.options import ASKING, REPEATED
from tritonsmith.tasks.task import Words, count, given, split, task

if TYPE_CHECKING:
    from pathlib import Path

    from tritonsmith.kernels.compare.diff import Comparison
    from tritonsmith.kernels.compare.inputs import ComparedKernel
    from tritonsmith.kernels.compare.thresholds import Limit

_ASKED = ("signature", "target", "option", "sweep", "num_warps", "num_stages", "jobs", "timeout")


@task(
    tables=True,
    name="compare",
    klass=Words,
    positional=["side_a", "side_b", "kernel"],
    iterable=[*REPEATED, "stage"],
    help={
        **{name: ASKING[name] for name in _ASKED},
        "side_a": "3.4.0, an environment, an interpreter, a target, NAME=VALUE; or an output folder",
        "side_b": "the same; both are compared",
        "kernel": "FILE, FILE:KERNEL, or a TOML file of kernels; none where A and B are output folders",
        "env": "environment whose Triton compiles for a side that names none",
        "fail_on": "what is a failure: 'registers>+5%,spills>0'",
        "diff": "print what differs in the stages",
        "stage": "print what differs in this stage: ttgir, ptx, sass ... (repeat it)",
        "out": "folder for both sides' outputs, the diffs and compare.json",
        "scheduler": "a Dask scheduler whose workers compile: tcp://host:8786",
        "json": "print JSON",
        "dry_run": "print the plan as a shell script, and do nothing",
    },
)
def compare_(
    context: Any,
    side_a: str,
    side_b: str,
    kernel: str = "",
    signature: str = "",
    target: Iterable[str] | None = None,
    option: Iterable[str] | None = None,
    sweep: Iterable[str] | None = None,
    num_warps: str = "",
    num_stages: str = "",
    fail_on: str | None = None,  # an empty one is a mistake: a variable of CI that is not set
    diff: bool = False,
    stage: Iterable[str] | None = None,
    out: str = "",
    env: str = "wheel",
    scheduler: str = "",
    jobs: str = "",
    timeout: str = "",
    json: bool = False,
    dry_run: bool = False,
) -> None:
    """Compile kernels by two Tritons or in two ways, and show what differs."""
    from pathlib import Path

    from tritonsmith.kernels.batch import spec
    from tritonsmith.kernels.compare import diff as compare_diff
    from tritonsmith.kernels.compare import inputs, thresholds
    from tritonsmith.tasks import options, output

    terms = () if fail_on is None else thresholds.parse(fail_on)
    names = options.stages(word for text in stage or () for word in split(text) or ())
    first, second = spec.parse(side_a), spec.parse(side_b)
    number, seconds = count(jobs, "jobs"), count(timeout, "timeout")
    kernels = _kernels(kernel, signature, target, option, sweep, num_warps=num_warps, num_stages=num_stages)
    place = Path(out).expanduser().absolute() if given(out) else None
    wanted = inputs.prepare(first, second, kernels, place)
    if dry_run:
        output.plan(inputs.plan(wanted, env))
        return
    with inputs.held(wanted):
        made = inputs.compile_missing(wanted, scheduler, jobs=number, timeout=seconds, env=env, silent=json)
        found = compare_diff.compare(*made, names=(first.label, second.label))
        _print(found, terms, place, diff=diff, stages=names, json=json)


def _kernels(
    kernel: str,
    signature: str,
    target: Iterable[str] | None,
    option: Iterable[str] | None,
    sweep: Iterable[str] | None,
    *,
    num_warps: str,
    num_stages: str,
) -> tuple[ComparedKernel, ...]:
    from tritonsmith.errors import UsageError
    from tritonsmith.kernels.batch import kernel_list
    from tritonsmith.kernels.compare import inputs
    from tritonsmith.tasks import options

    if not kernel:
        if signature or num_warps or num_stages or any([*(target or ()), *(option or ()), *(sweep or ())]):
            raise UsageError(
                "no kernel is named, so nothing is compiled", hints=["invoke kernel.compare A B FILE"]
            )
        return ()
    asked = options.parse_request(
        kernel, signature, target, option, sweep, num_warps=num_warps, num_stages=num_stages
    )
    if asked.file.suffix != kernel_list.SUFFIX:
        return inputs.one(asked)
    if signature or asked.autotune:
        word = "--signature" if signature else "--sweep autotune"
        raise UsageError(
            f"{word} is of one kernel, and a TOML file lists many", hints=["leave one of them out"]
        )
    return inputs.listed(asked.file, asked.targets, asked.options, asked.sweeps)


def _print(
    found: Comparison,
    terms: tuple[Limit, ...],
    out: Path | None,
    *,
    diff: bool,
    stages: tuple[str, ...],
    json: bool,
) -> None:
    from json import dumps

    from tritonsmith.errors import FactError, SmithError
    from tritonsmith.kernels.compare import report, thresholds
    from tritonsmith.ui import console

    violations: tuple[thresholds.Violation, ...] = ()
    unchecked = None
    try:
        violations = thresholds.check(terms, found)
    except FactError as error:  # told after what there is
        unchecked = error
    content = dumps(report.as_json(found, terms, violations), indent=2)
    for text in found.notes:
        console.note(text)
    if json:
        console.write(content)
    else:
        _print_tables(found, stages, diff=diff)
    if out:
        _write(found, f"{content}\n", out)
    if unchecked:
        raise unchecked
    if violations:
        raise SmithError(
            report.verdict(terms, violations),
            why="\n".join(report.violations(violations)),
            hints=["--diff shows what differs in the stages", "--json has all values and messages"],
        )
    if terms and not json:
        console.out().print(report.verdict(terms, violations), markup=False)


def _print_tables(found: Comparison, stages: tuple[str, ...], *, diff: bool) -> None:
    from tritonsmith.kernels.compare import report
    from tritonsmith.ui import console

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
            out.print(report.coloured(lines), end="")
        else:
            console.write("\n".join(lines))
    if not texts:
        console.note(f"nothing differs in {', '.join(stages) or 'the stages'}")


def _write(found: Comparison, content: str, out: Path) -> None:
    from tritonsmith.envs import workspace
    from tritonsmith.kernels.compare import report
    from tritonsmith.ui import console

    space = workspace.default()
    space.claim()
    space.run(report.files(found, content, out), "kernel.compare", quiet=True)
    console.note(f"the outputs, the diffs and {report.FILE} are in {out}")
