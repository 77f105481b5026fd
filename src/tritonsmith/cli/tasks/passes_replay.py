"""`passes.replay` and `passes.check`: run the passes of a dump alone, and run the IR between them."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from invoke.context import Context
from invoke.exceptions import Exit

from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.kernel_options import KernelOptions, SurgeryOptions, target_of, toolchain
from tritonsmith.cli.tasks.option_fields import CommaList, OutFile, again, command_line, flag, word
from tritonsmith.cli.tasks.options import (
    ANY_ENV,
    DRY_RUN,
    DUMPED_KERNEL,
    FOLDER,
    JSON,
    MAYBE_NUMBER,
    OUT,
    OUT_FILE,
    PYTHON,
    SOURCE,
    TOOL_SOURCE,
    TRITON,
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
from tritonsmith.core.errors import SmithError, UndecidedError, UsageError
from tritonsmith.core.plan import files
from tritonsmith.core.ui import console

if TYPE_CHECKING:
    from tritonsmith.check.answer import CheckResult
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


@task(tables=True, name="check")
def check(
    context: Context,
    what: KernelOptions,
    folder: str = word("folder of passes.dump, or a kernel to dump: FILE:KERNEL", ""),
    kernel: str = DUMPED_KERNEL,
    seeds: int | None = flag(
        "number of random inputs; the last one has edge cases", None, unset="3", least=1
    ),
    through_llvm: bool = flag("also run the IR in LLVM's dialect, thread by thread", default=False),
    against: str = flag("interpreter: compare the first IR with TRITON_INTERPRET=1", ""),
    timeout: int | None = flag(
        "time limit in seconds; what was checked by then is shown", None, unset="300", least=1
    ),
    list_: bool = flag("list the supported operations; with --source, those of a checkout", default=False),
    source: str = SOURCE,
    out: Path | None = again(OUT, "in the workspace"),
    triton: str = TRITON,
    env: str = again(ANY_ENV, "the dump's, or wheel"),
    python: Path | None = again(PYTHON, "the dump's"),
    json: bool = JSON,
) -> None:
    """Find the first pass that changes the result, by running the IR."""
    from tritonsmith.check import when_wrong

    # NumPy and xDSL are extras of the package. Everything below imports them, so their absence is reported
    # first.
    with when_wrong.as_undecided():
        when_wrong.require_packages()
    from tritonsmith.check.answer import failure, keep, undecided
    from tritonsmith.check.check import check_dump, check_kernel
    from tritonsmith.compiler import run

    if bool(folder) == list_ or (source and not list_):
        hints = ["invoke passes.check DIR, or FILE:KERNEL", "invoke passes.check --list --source CHECKOUT"]
        raise UsageError("give a dump or a kernel, or --list", hints=hints)
    if list_:
        # Flags that --list would silently ignore.
        others = kernel or seeds or through_llvm or against or out or triton or env or python or timeout
        _list(source, alone=not others and what == KernelOptions(), json=json)
        return
    is_dump = Path(folder).is_dir()
    compiled = bool(out) or what != KernelOptions()
    _require_fitting(folder, kernel, triton, compiled=compiled, against=against)
    common: dict[str, Any] = {
        "seeds": seeds, "through_llvm": through_llvm, "timeout": timeout, "silent": json,
    }  # fmt: skip
    try:
        # `git bisect` and scripts read the exit code: what could not be checked is neither good nor bad.
        with when_wrong.as_undecided():
            if is_dump:
                index, answer = check_dump(Path(folder), kernel, env=env, interpreter=python, **common)
            else:
                request = what.request(folder, target=target_of("ttgir"))
                run.check(request)
                where = toolchain(triton, env, python, jobs=1)
                index, answer = check_kernel(request, where, out, interpreted=bool(against), **common)
    except UndecidedError as error:
        if json:
            output.json(undecided(error))
        raise
    keep(answer, index)
    _print(answer, json=json)
    if error_to_raise := failure(answer, index.folder):
        raise error_to_raise


def _require_fitting(folder: str, kernel: str, triton: str, *, compiled: bool, against: str) -> None:
    """Check that the flags fit the subject: a dump or a kernel.

    Raises:
        UsageError: they do not.
    """
    # A single file of a dump is the likely slip, as other commands take one; the check needs the IR of all
    # passes.
    if Path(folder).suffix == ".mlir":
        what = "this is a single file; passes.check takes the folder of a dump, or a kernel"
        raise UsageError(what, where=folder, hints=[command("passes.check", Path(folder).parent.parent)])
    if against not in ("", "interpreter"):
        raise UsageError(f"--against cannot be {against!r}", hints=["--against interpreter"])
    is_dump = Path(folder).is_dir()
    if is_dump and compiled:
        raise UsageError("flags of a compile apply to a kernel, not to a dump")
    if is_dump and against:
        hints = ["FILE:KERNEL with its --signature and --target"]
        raise UsageError("--against interpreter needs the source of the kernel, not a dump", hints=hints)
    if kernel and not is_dump:
        raise UsageError("--kernel applies to a dump", hints=["FILE:KERNEL names the kernel"])
    if triton and is_dump:
        hints = ["the interpreter that prints its generic form: --env ENV, or --python PYTHON"]
        raise UsageError("--triton applies to a kernel, not to a dump", hints=hints)


def _list(source: str, *, alone: bool, json: bool) -> None:
    """Print which operations the check knows: all, or those of a checkout."""
    from dataclasses import asdict

    from tritonsmith.build.triton import commands
    from tritonsmith.check.answer import coverage_of_all, coverage_of_checkout, coverage_table
    from tritonsmith.core.envs import settings
    from tritonsmith.core.errors import FactError

    if not alone:
        raise UsageError("--list takes --source and --json alone")
    # `find_triton` would offer to clone a checkout that is not there.
    if source and not Path(source).is_dir():
        raise FactError("no such folder", where=source, hints=["--source CHECKOUT, a clone of Triton"])
    if source:
        root = commands.find_triton(settings.load("dev", {"triton.source": source}))[1].root
        rows = coverage_of_checkout(root)
    else:
        rows = coverage_of_all()
    if json:
        output.json({"schema": 1, "dialects": [asdict(row) for row in rows]})
        return
    console.out().print(coverage_table(rows))


def _print(answer: CheckResult, *, json: bool) -> None:
    from tritonsmith.check.answer import answer_lines, as_json, pass_table

    if json:
        output.json(as_json(answer))
        return
    console.out().print(pass_table(answer))
    output.lines(answer_lines(answer))
