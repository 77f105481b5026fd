"""`passes.replay`: run the passes of a dump again, or a program under other pipelines."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from invoke.context import Context
from invoke.exceptions import Exit

from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.kernel_options import SurgeryOptions
from tritonsmith.cli.tasks.option_fields import CommaList, OutFile, again, command_line, flag
from tritonsmith.cli.tasks.options import (
    ANY_ENV,
    DRY_RUN,
    DUMPED_KERNEL,
    FOLDER,
    JSON,
    MAYBE_NUMBER,
    OUT_FILE,
    PYTHON,
    TOOL_SOURCE,
    ReplayerOptions,
)
from tritonsmith.cli.tasks.task import task
from tritonsmith.compiler import user_program
from tritonsmith.compiler.dump import index
from tritonsmith.compiler.replay import pass_chain, replayer
from tritonsmith.compiler.replay import run as replay_run
from tritonsmith.compiler.request import options_of
from tritonsmith.core.command_line import command
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import SmithError, UsageError
from tritonsmith.core.plan import files
from tritonsmith.core.ui import console

if TYPE_CHECKING:
    from tritonsmith.compiler.replay.run import PreparedReplay, ReplayResult


@task(tables=True, name="replay")
def replay(
    context: Context,
    by: ReplayerOptions,
    folder: Path = FOLDER,
    number: str = MAYBE_NUMBER,
    kernel: str = DUMPED_KERNEL,
    from_: int | None = flag("first pass of a range, each run on the output of the one before", None),
    until: int | None = flag("last pass of the range", None),
    all_: bool = flag("run each pass alone, and print a table", default=False),
    source: Path | None = TOOL_SOURCE,
    debug: bool = flag("print the pass's debug output: its file's DEBUG_TYPE", default=False),
    mlir: CommaList = flag("print MLIR's debug output: dialect-conversion,greedy-rewriter", ()),
    debug_only: CommaList = flag("print these types of debug output: isel,triton-licm", ()),
    debug_all: bool = flag("print all debug output, of Triton, MLIR and LLVM", default=False),
    gdb: bool = flag("start gdb with a breakpoint at the pass", default=False),
    lldb: bool = flag("start lldb with a breakpoint at the pass", default=False),
    break_: str = flag("stop in this rewrite pattern, not at the pass; with --gdb or --lldb", ""),
    out: OutFile | None = OUT_FILE,
    json: bool = JSON,
    dry_run: bool = DRY_RUN,
) -> None:
    """Run a pass of a dump alone, and compare its output with the next dump."""
    if break_ and not gdb and not lldb:
        raise UsageError("--break needs a debugger", hints=["add --gdb or --lldb"])
    dump = index.read(folder)
    dumped = index.choose_kernel(dump, kernel)
    space = workspace.default()
    chosen = replayer.choose(
        dump, space, env=by.env, python=by.python, triton_opt=by.triton_opt, source=source
    )
    passes = replay_run.look(dump, dumped, chosen, space, options_of(by.option))
    links = pass_chain.chosen(passes.links, number, from_, until, everything=all_, dumps=dump.of(dumped.name))
    groups = [(link,) for link in links] if all_ else [links]
    prints = debug or mlir or debug_only or debug_all
    # Debug output, a debugger and a file are each for one run of passes; `--all` makes many.
    if len(groups) > 1 and (prints or gdb or lldb or out):
        what = "--all takes neither debug output nor a debugger nor --out"
        raise UsageError(what, hints=["name one pass, or a range"])
    # Checked before the run: LLVM prints nothing for a type that it lacks, which looks like an answer.
    more = replayer.debug_output(links, chosen, mlir, of_passes=debug, only=debug_only, everything=debug_all)
    prepared = replay_run.prepare(passes, groups, chosen, space, more)
    output.notes((*passes.notes, *more.notes))
    if gdb or lldb:
        _start_debugger(prepared, "gdb" if gdb else "lldb", break_, dry_run=dry_run)
        return
    if dry_run:
        output.plan(prepared.plan)
        return
    outcomes = replay_run.execute(prepared, space)
    if json:
        output.json(replay_run.as_json(outcomes, prepared))
    elif all_:
        console.out().print(replay_run.outcome_table(outcomes, prepared))
        console.out().print(replay_run.summary(outcomes), markup=False)
    if not all_:
        _print_outcome(outcomes[0], prepared, out, quiet=json)


def _print_outcome(
    outcome: ReplayResult, prepared: PreparedReplay, out: OutFile | None, *, quiet: bool
) -> None:
    """Print the result of a single job; raise if the job failed or its output differs."""
    job = outcome.job
    output.notes(job.notes)
    if outcome.verdict not in replay_run.RAN:
        hints = [f"its input: {job.input}", *([f"the log: {job.log}"] if job.log.is_file() else [])]
        raise SmithError(f"{job.title} cannot be replayed: {outcome.verdict}", why=outcome.why, hints=hints)
    if prepared.debug:
        console.out().print(job.log.read_text(encoding="utf-8", errors="replace"), markup=False, end="")
    file = replay_run.keep(job.out, out.path(job.out.name)) if out else job.out
    console.record_file(file)
    if outcome.verdict == "differs":
        hints = [f"diff {file} {job.after}", *replay_run.suspects(prepared)]
        raise SmithError(replay_run.sentence(outcome), where=file, hints=hints)
    if not quiet:
        console.out().print(replay_run.sentence(outcome), markup=False)
        console.out().print(f"{file}", markup=False)


def _start_debugger(prepared: PreparedReplay, name: str, pattern: str, *, dry_run: bool) -> None:
    """Replace this process by a debugger, or print its command."""
    # One, as `--all` was refused with a debugger.
    (job,) = prepared.jobs
    # A libtriton could be debugged through Python, but a released one is stripped, so a breakpoint would
    # never be hit.
    if prepared.tool.opt is None:
        hints = ["--triton-opt PATH", "--env NAME of an environment that `invoke build-triton --debug` built"]
        what = f"--{name} needs a build's triton-opt: a released wheel has no debug information"
        raise UsageError(what, hints=hints)
    opt = prepared.tool.opt
    place = (
        replayer.pattern_breakpoint(pattern, opt)
        if pattern
        else replayer.source_of(job.links[0], prepared.tool).place
    )
    argv = replayer.debugger_command(name, prepared.tool, job.argv, place)
    if dry_run:
        console.write(shlex.join(argv))
        return
    program = replayer.debugger_path(name)
    # `triton-opt` writes its output there, and the plan that would make the folder does not run.
    files.make_folder(prepared.work)
    console.note(shlex.join(argv))
    sys.stdout.flush()
    sys.stderr.flush()
    # The debugger has to own the terminal, and ^C: a parent of ours would be in between.
    os.execv(program, argv)  # noqa: S606 - there is no shell to be injected into


@task(name="run")
def run(
    context: Context,
    what: SurgeryOptions,
    env: str = again(ANY_ENV, "the Python on PATH"),
    python: Path | None = PYTHON,
    dry_run: bool = DRY_RUN,
) -> None:
    """Run a program whose kernels compile with a changed pass pipeline."""
    surgery = what.surgery()
    if surgery is None:
        example = command("passes.replay", set_llvm="disable-lsr")
        hints = [f"{example}{user_program.EXAMPLE}"]
        raise UsageError("no change to the compile is given", hints=hints)
    _, argv = command_line()
    space = workspace.default()
    prepared = user_program.prepare(argv, surgery, user_program.interpreter(env, python, space), space)
    if dry_run:
        output.plan(prepared.plan)
        return
    finished = user_program.execute(prepared, space)
    for row in finished.compiles:
        if row.passes:
            console.note(
                f"{row.kernel}: {row.unmet or ', '.join(user_program.describe_changes(row, surgery))}"
            )
    # The program's own code comes first: it may have failed before any kernel was compiled.
    if finished.code:
        raise Exit(code=finished.code)
    user_program.check(finished)
