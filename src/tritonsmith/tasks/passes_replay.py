"""`passes.replay`: one pass of a dump, alone on its input."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from invoke.parser.argument import Argument

from tritonsmith.tasks.task import HelpfulTask, count, split, task

if TYPE_CHECKING:
    from tritonsmith.passes.replay.run import PreparedReplay, ReplayOutcome


class PassLast(HelpfulTask):
    """A task that takes DIR and a pass, and no pass where a flag names a range.

    Invoke's positional arguments are never optional.
    """

    def get_arguments(self, ignore_unknown_help: bool | None = None) -> list[Argument]:
        """The arguments: `folder`, and `number` if one is asked for."""
        arguments = super().get_arguments(ignore_unknown_help=ignore_unknown_help)
        if not any(word.partition("=")[0] in ("--all", "--from", "--until", "--help") for word in sys.argv):
            for argument in arguments:
                if argument.name == "number":
                    argument.positional, argument.default = True, None
        return arguments


@task(
    tables=True,
    name="replay",
    klass=PassLast,
    positional=["folder"],
    iterable=["option"],
    help={
        "folder": "a folder that passes.dump or passes.import wrote",
        "number": "of the pass, as passes.list has it; or its name, if it ran once",
        "kernel": "which one, where the dump has several",
        "from_": "the first of several passes, each on what the one before it made",
        "until": "the last of them",
        "all_": "each pass alone: a table",
        "env": "environment that replays: its triton-opt, or its Triton",
        "python": "or an interpreter that has the Triton of the dump (default: the one that the dump names)",
        "triton_opt": "or a build's triton-opt",
        "option": "of the compile: num_stages=4, where the dump does not tell options of passes (repeat it)",
        "source": "checkout that it was built from, for --debug and the debuggers",
        "debug": "debug output of the pass: its file's DEBUG_TYPE",
        "mlir": "debug output of MLIR's own: dialect-conversion,greedy-rewriter,pattern-application",
        "gdb": "start gdb with a breakpoint at the pass",
        "lldb": "start lldb with a breakpoint at the pass",
        "out": "file for the IR that comes out",
        "json": "print the answer as JSON",
        "dry_run": "print the commands, and do nothing",
    },
)
def replay(
    context: Any,
    folder: str,
    number: str = "",
    kernel: str = "",
    from_: str = "",
    until: str = "",
    all_: bool = False,
    env: str = "",
    python: str = "",
    triton_opt: str = "",
    option: Iterable[str] | None = None,
    source: str = "",
    debug: bool = False,
    mlir: str = "",
    gdb: bool = False,
    lldb: bool = False,
    out: str = "",
    json: bool = False,
    dry_run: bool = False,
) -> None:
    """Run a pass of a dump alone, and compare its output with the next dump."""
    from json import dumps
    from pathlib import Path

    from tritonsmith.envs import workspace
    from tritonsmith.errors import UsageError
    from tritonsmith.kernels.compile.request import options_of
    from tritonsmith.passes.dump import index, select
    from tritonsmith.passes.replay import debugger, pass_chain, replayer, report, run
    from tritonsmith.tasks import output
    from tritonsmith.ui import console

    dump = index.read(Path(folder).expanduser())
    one = select.kernel(dump, kernel)
    space = workspace.default()
    chosen = replayer.choose(dump, space, env=env, python=python, triton_opt=triton_opt, source=source)
    seen = run.look(dump, one, chosen, space, options_of(option or ()))
    first, last = count(from_, "from"), count(until, "until")
    mine = dump.of(one.name)
    wanted = pass_chain.chosen(seen.links, number, first, last, everything=all_, dumps=mine)
    groups = [(link,) for link in wanted] if all_ else [wanted]
    if len(groups) > 1 and (debug or mlir or gdb or lldb or out):
        raise UsageError(
            "--all takes neither --debug, --mlir, --gdb, --lldb nor --out",
            hints=["name one pass, or a range"],
        )
    more = debugger.of(wanted, chosen, split(mlir) or (), wanted=debug)
    prepared = run.prepare(seen, groups, chosen, space, more)
    for text in (*seen.notes, *more.notes):
        console.note(text)
    if gdb or lldb:
        _debug(prepared, "gdb" if gdb else "lldb", dry_run=dry_run)
        return
    if dry_run:
        output.plan(prepared.plan)
        return
    outcomes = run.execute(prepared, space)
    if json:
        console.write(dumps(report.as_json(outcomes, prepared), indent=2))
    elif all_:
        console.out().print(report.table(outcomes, prepared))
        console.out().print(report.summary(outcomes), markup=False)
    if not all_:
        _answer(outcomes[0], prepared, out, quiet=json)


def _answer(outcome: ReplayOutcome, prepared: PreparedReplay, out: str, *, quiet: bool) -> None:
    """What became of a single job; an error if it could not be run, or made something else."""
    from pathlib import Path

    from tritonsmith.errors import SmithError
    from tritonsmith.passes.replay import report, run, verdict
    from tritonsmith.ui import console

    job = outcome.job
    for text in job.notes:
        console.note(text)
    if outcome.verdict not in verdict.RAN:
        hints = [f"its input: {job.input}", *([f"the log: {job.log}"] if job.log.is_file() else [])]
        raise SmithError(f"{job.title} cannot be replayed: {outcome.verdict}", why=outcome.why, hints=hints)
    if prepared.debug.types:
        console.out().print(job.log.read_text(encoding="utf-8", errors="replace"), markup=False, end="")
    made = run.keep(job.out, Path(out).expanduser().absolute()) if out else job.out
    if outcome.verdict == "differs":
        hints = [f"diff {made} {job.after}", *report.suspects(prepared)]
        raise SmithError(report.sentence(outcome), where=made, hints=hints)
    if not quiet:
        console.out().print(report.sentence(outcome), markup=False)
        console.out().print(f"{made}", markup=False)


def _debug(prepared: PreparedReplay, name: str, *, dry_run: bool) -> None:
    """Become a debugger, or print its command."""
    import os
    import shlex

    from tritonsmith.errors import UsageError
    from tritonsmith.passes.replay import debugger, replayer
    from tritonsmith.ui import console

    (job,) = prepared.jobs
    if prepared.tool.opt is None:
        raise UsageError(
            f"--{name} needs a build's triton-opt: a released wheel has no debug information",
            hints=[
                "--triton-opt PATH",
                "--env NAME of an environment that `invoke build-triton --debug` built",
            ],
        )
    found = debugger.source(job.links[0], prepared.tool)
    argv = debugger.command(name, prepared.tool, job.argv, found.place)
    if dry_run:
        console.write(shlex.join(argv))
        return
    program = replayer.debugger(name)
    prepared.work.mkdir(parents=True, exist_ok=True)
    console.note(shlex.join(argv))
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(program, argv)  # noqa: S606 - it takes the terminal, and ^C
