"""`passes.isolate`: the pass that failed, alone; or the first pass after which a text is there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tritonsmith.tasks.task import given, task

if TYPE_CHECKING:
    from pathlib import Path

    from tritonsmith.envs.workspace import Workspace
    from tritonsmith.kernels.compile.manifest import Manifest
    from tritonsmith.passes.dump.index import DumpIndex


@task(
    tables=True,
    name="isolate",
    positional=["folder"],
    iterable=["option"],
    help={
        "folder": "a folder that passes.dump or passes.import wrote",
        "kernel": "which one, where the dump has several",
        "out": "new folder for what an issue needs (default: DIR-isolated)",
        "reduce_": "make the input small as well: reduced.mlir",
        "timeout": "seconds for that (default: 600)",
        "pattern": "instead: the first pass after which this text is there, machine code included",
        "regex": "--pattern is a regular expression",
        "when": "instead: a limit on the compiled kernel: spills>0, registers>128",
        "env": "environment that replays: its triton-opt, or its Triton",
        "python": "or an interpreter that has the Triton of the dump (default: the one that the dump names)",
        "triton_opt": "or a build's triton-opt",
        "option": "of the compile: num_stages=4, where the dump does not tell options of passes (repeat it)",
        "source": "checkout that triton-opt was built from",
        "json": "print the answer as JSON",
        "dry_run": "print what would be written, once it is known, and write nothing",
    },
)
def isolate(
    context: Any,
    folder: str,
    kernel: str = "",
    out: str = "",
    reduce_: bool = False,
    timeout: str = "",
    pattern: str = "",
    regex: bool = False,
    when: str = "",
    env: str = "",
    python: str = "",
    triton_opt: str = "",
    option: Iterable[str] | None = None,
    source: str = "",
    json: bool = False,
    dry_run: bool = False,
) -> None:
    """Run a dump's failing pass alone, and write a folder for an issue."""
    from json import dumps
    from pathlib import Path

    from tritonsmith.envs import workspace
    from tritonsmith.errors import UsageError
    from tritonsmith.kernels.compile.request import options_of
    from tritonsmith.passes.dump import index, select
    from tritonsmith.passes.isolate import failing_pass, report
    from tritonsmith.passes.isolate import issue_folder as files
    from tritonsmith.passes.reduce import command, mlir_reduce
    from tritonsmith.passes.reduce import report as reduce_report
    from tritonsmith.passes.replay import replayer
    from tritonsmith.tasks import output
    from tritonsmith.tasks.passes_reduce import seconds
    from tritonsmith.ui import console

    made = index.read(Path(folder).expanduser())
    one = select.kernel(made, kernel)
    space = workspace.default()
    if given(pattern) or given(when):
        if pattern and when:
            raise UsageError("--pattern and --when: one of them")
        if out or reduce_:
            raise UsageError("--pattern and --when write no folder", hints=["leave --out and --reduce out"])
        _held(made, one.name, pattern, when, space, python=python, env=env, regex=regex, json=json)
        return
    chosen = replayer.choose(made, space, env=env, python=python, triton_opt=triton_opt, source=source)
    found = failing_pass.isolate(made, one, chosen, space, options_of(option or ()))
    to = Path(out).expanduser().absolute() if given(out) else _beside(made.folder)
    facts = files.about(found, chosen)
    files.plan(found, None, facts, to)  # whether the folder will do, before anything takes time
    reduced = None
    if reduce_:
        options = command.ReduceOptions(seconds(timeout), reducer=mlir_reduce.find(found.way.opt))
        reduced = command.reduce(found.text, found.way, space, options, reduce_report.progress())
    plan = files.plan(found, reduced, facts, to)
    if dry_run:
        output.plan(plan)
        return
    command.write(plan, space, "passes.isolate")
    if json:
        console.write(dumps(report.as_json(found, reduced, to)))
        return
    for text in found.notes:
        console.note(text)
    console.out().print(report.summary(found), markup=False)
    if reduced:
        console.out().print(reduce_report.sizes(reduced))
        console.out().print(reduce_report.summary(reduced), markup=False)
    console.write(to)


def _beside(folder: Path) -> Path:
    whole = folder.absolute()
    return whole.with_name(f"{whole.name}-isolated")


def _held(
    made: DumpIndex,
    kernel: str,
    pattern: str,
    when: str,
    space: Workspace,
    *,
    python: str,
    env: str,
    regex: bool,
    json: bool,
) -> None:
    """The first pass after which something holds."""
    from json import dumps

    from tritonsmith.errors import SmithError
    from tritonsmith.passes.isolate import first_pass_with
    from tritonsmith.ui import console

    if when:
        manifest = _compiled(made, space, python, env)
        terms = first_pass_with.limit(when, manifest)
        step = first_pass_with.binary_step(manifest)
        if json:
            rows = [{"term": term, "value": value, "holds": holds} for term, value, holds in terms]
            console.write(dumps({"schema": 1, "step": step, "terms": rows}))
            return
        for term, value, holds in terms:
            text = (
                f"{term}: it holds, the value is {value}: {step}"
                if holds
                else f"{term}: it does not hold: {value}"
            )
            console.out().print(text, markup=False)
        return
    sought = first_pass_with.compiled_pattern(pattern, regex=regex)
    held = first_pass_with.texts(made, kernel, sought, ())
    if held is None:
        held = first_pass_with.texts(
            made, kernel, sought, first_pass_with.stages_of(_compiled(made, space, python, env))
        )
    if json:
        console.write(dumps(first_pass_with.as_json(held, pattern)))
    elif held is None:
        raise SmithError(first_pass_with.sentence(held, pattern), where=made.folder)
    else:
        console.out().print(first_pass_with.sentence(held, pattern), markup=False)


def _compiled(made: DumpIndex, space: Workspace, python: str, env: str) -> Manifest:
    """The kernel of a dump, compiled to the end: by the flags that the dump was made with.

    Raises:
        FactError: it is no dump of a single kernel's compile.
    """
    import shlex

    from tritonsmith.errors import FactError
    from tritonsmith.kernels.compile import run
    from tritonsmith.plan.steps import digest
    from tritonsmith.tasks import options as tasks_options

    words = shlex.split(made.command)
    flags: dict[str, list[str]] = {}
    for name, value in zip(words[1::2], words[2::2], strict=False):
        flags.setdefault(name, []).append(value)
    known = {"--signature", "--target", "--option", "--sweep", "--stage"}
    if not words or len(words) % 2 == 0 or set(flags) - known or len(made.kernels) != 1:
        raise FactError(
            "no dump shows it, and what comes after the passes can only be made for one kernel",
            where=made.folder,
            why=f"the dump is of: {made.command}",
            hints=["invoke passes.dump FILE:KERNEL --signature ... --target ... makes such a dump"],
        )
    asked = tasks_options.parse_request(
        words[0],
        "".join(flags.get("--signature", [])),
        flags.get("--target"),
        flags.get("--option"),
        flags.get("--sweep"),
    )
    where = run.toolchain(env or "wheel", "" if env else python or made.python, jobs=1)
    to = space.root / "passes" / "isolate" / digest(made.command, str(where.python))
    return run.compile_all(asked, where, to, silent=True)
