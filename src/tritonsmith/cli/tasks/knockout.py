"""`knockout`: compile a kernel without each of its passes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.experiments import ExperimentOptions
from tritonsmith.cli.tasks.kernel_options import KernelOptions, PoolOptions
from tritonsmith.cli.tasks.option_fields import again, command_line, flag
from tritonsmith.cli.tasks.options import CHECK, COMPILED_KERNEL, DRY_RUN, JSON, OUT, WHEEL_ENV
from tritonsmith.cli.tasks.task import task
from tritonsmith.core.errors import UsageError
from tritonsmith.core.ui import console

if TYPE_CHECKING:
    from tritonsmith.compiler.interpreter import Interpreter
    from tritonsmith.compiler.request import CompileRequest
    from tritonsmith.lab.journal import Journal
    from tritonsmith.lab.knockout import Knockout


@task(tables=True)
def knockout(
    context: Any,
    what: KernelOptions,
    by: PoolOptions,
    tests: ExperimentOptions,
    kernel: str = again(COMPILED_KERNEL, default=""),
    check: str = CHECK,
    llvm: bool = flag("stop after each of LLVM's passes in turn; skip none of Triton's", default=False),
    out: Path | None = OUT,
    json: bool = JSON,
    dry_run: bool = DRY_RUN,
) -> None:
    """Skip each pass in turn and report its effect."""
    from tritonsmith.lab import knockout as passes_knockout

    _, argv = command_line()
    if bool(kernel) == bool(argv):
        text = "a kernel and a program contradict each other" if kernel else "no kernel is given"
        raise UsageError(text, hints=["FILE:KERNEL", "-- python script.py, on a machine with its GPU"])
    if argv:
        if llvm or dry_run or what != KernelOptions():
            raise UsageError("flags of a compile are about a kernel, not about a program")
        _of_program(argv, check, by, tests, out, json=json)
        return
    if check:
        raise UsageError("--check is about a program's values", hints=["-- python script.py"])
    requests = what.requests(kernel, by=by)
    where = by.toolchain(*requests, dry_run=dry_run)
    folders = [passes_knockout.folder_of(request, where, out) for request in requests]
    journals = {folder.name: passes_knockout.journal_of(folder, llvm=llvm) for folder in folders}
    if tests.show_status(journals, passes_knockout.WORDS, json=json):
        return
    if dry_run:
        for request in requests:
            # The first compile counts the passes, so that the others are not known yet.
            output.compile_of(passes_knockout.first(request, where, out, llvm=llvm))
        each = "for each number of LLVM's passes" if llvm else "without each pass"
        console.note(f"plus one compile {each} that this one counts")
        return
    knockouts, notes = _each(requests, where, out, tests, llvm=llvm, json=json)
    _print(knockouts, several=len(requests) > 1, json=json)
    tests.write_page(notes, "knockout", [notes.answer], passes_knockout.WORDS)
    if not (json or llvm):
        console.note("only a run on its GPU shows whether code without a pass is right: -- python script.py")


def _each(
    requests: Sequence[CompileRequest],
    where: Interpreter,
    out: Path | None,
    tests: ExperimentOptions,
    *,
    llvm: bool,
    json: bool,
) -> tuple[list[Knockout], Journal]:
    """Knock out the passes of each kernel, and merge the journals into one for `--page`."""
    from tritonsmith.lab.journal import merged
    from tritonsmith.lab.knockout import execute, folder_of

    knockouts: list[Knockout] = []
    journals = {}
    for request in requests:
        results, journal = execute(request, where, out, tests.rules, llvm=llvm, silent=json)
        knockouts += results
        journals[folder_of(request, where, out).name] = journal
    return knockouts, merged(journals)


def _print(knockouts: list[Knockout], *, several: bool, json: bool) -> None:
    from tritonsmith.lab.knockout import as_json, summary, tables_of

    if json:
        output.json(as_json(knockouts))
        return
    output.blocks(tables_of(knockouts))
    # Each kernel has other runs of LLVM's passes, so that theirs have no common rows.
    if several and not knockouts[0].llvm:
        console.out().print(summary(knockouts))


def _of_program(
    argv: Sequence[str],
    check: str,
    by: PoolOptions,
    tests: ExperimentOptions,
    out: Path | None,
    *,
    json: bool,
) -> None:
    """Run a program without each pass of its kernels in turn."""
    from tritonsmith.compiler import manifest, user_program
    from tritonsmith.core.envs import workspace
    from tritonsmith.lab import experiment
    from tritonsmith.lab.experiment import BASELINE
    from tritonsmith.lab.model import Observation
    from tritonsmith.lab.triage import program

    space = workspace.default()
    space.claim()
    # The default environment has no torch, and so launches nothing: without `--env` it is the Python on PATH.
    env = "" if by.env == WHEEL_ENV.default else by.env
    interpreter = partial(user_program.interpreter, env, by.python, space)
    place = "passes/knockout/program"
    subject = program.subject_of(argv, check, interpreter, by.timeout, out, space, place)
    if tests.show_status(subject.out, json=json):
        return

    def tell(name: str, observation: Observation) -> None:
        if not json:
            title = "all passes" if name == BASELINE else name
            console.note(f"{title}: {observation.figures or observation.why}")

    key, task_name = subject.key, "passes.knockout"
    with (
        manifest.hold_output(subject.out, space, task_name),
        experiment.begun(
            subject.out, key, space, task_name, subject.baseline, tests.rules, silent=json
        ) as journal,
    ):
        result = program.knock_out(subject, journal, tell)
        journal.end("")
    if json:
        output.json(program.knockout_as_json(result, check=bool(check)))
    else:
        console.out().print(program.knockout_table(result, check=bool(check)))
    tests.write_page(journal, "knockout", [f"each of {len(result.passes)} passes left out in turn"])
