"""`passes.check`: run the IR after each pass, and name the first pass that changes the result."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from invoke.context import Context

from tritonsmith.cli.tasks.kernel_options import KernelOptions, toolchain
from tritonsmith.cli.tasks.option_fields import again, flag, word
from tritonsmith.cli.tasks.options import ANY_ENV, DUMPED_KERNEL, JSON, OUT, PYTHON, SOURCE, TRITON
from tritonsmith.cli.tasks.output import task

if TYPE_CHECKING:
    from tritonsmith.check.answer import CheckResult
    from tritonsmith.compiler.dump.index import DumpIndex


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
        "seconds for the check; what was checked by then is shown", None, unset="300", least=1
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
    from tritonsmith.cli.tasks import output
    from tritonsmith.core.command_line import command
    from tritonsmith.core.errors import UndecidedError, UsageError
    from tritonsmith.core.ui import console

    with when_wrong.as_undecided():
        when_wrong.require_packages()
    from tritonsmith.check.answer import (
        as_json,
        lines,
        table,
        undecided,
    )

    if bool(folder) == list_ or (source and not list_):
        hints = ["invoke passes.check DIR, or FILE:KERNEL", "invoke passes.check --list --source CHECKOUT"]
        raise UsageError("give a dump or a kernel, or --list", hints=hints)
    if list_:
        others = kernel or seeds or through_llvm or against or out or triton or env or python or timeout
        _list(source, alone=not others and what == KernelOptions(), json=json)
        return
    if Path(folder).suffix == ".mlir":
        said = "this is a single file; passes.check takes the folder of a dump, or a kernel"
        raise UsageError(said, where=folder, hints=[command("passes.check", Path(folder).parent.parent)])
    is_dump = Path(folder).is_dir()
    _require_fitting(is_dump, kernel, compiled=bool(out) or what != KernelOptions(), against=against)
    try:
        with when_wrong.as_undecided():
            if is_dump:
                if triton:
                    hints = ["the interpreter that prints its generic form: --env ENV, or --python PYTHON"]
                    raise UsageError("--triton applies to a kernel, not to a dump", hints=hints)
                made, answer = _of_dump(
                    Path(folder), kernel, seeds, env, python, timeout, silent=json, through_llvm=through_llvm
                )
            else:
                made, answer = _of_kernel(
                    folder,
                    what,
                    out,
                    seeds,
                    triton,
                    env,
                    python,
                    timeout,
                    silent=json,
                    through_llvm=through_llvm,
                    interpreted=bool(against),
                )
    except UndecidedError as error:
        if json:
            output.json(undecided(error))
        raise
    if json:
        output.json(as_json(answer))
    else:
        console.out().print(table(answer))
        for line in lines(answer):
            console.out().print(line, markup=False)
    _judge(made, answer)


def _require_fitting(is_dump: bool, kernel: str, *, compiled: bool, against: str) -> None:
    """Check that the flags fit the subject: a dump or a kernel.

    Raises:
        UsageError: they are not.
    """
    from tritonsmith.core.errors import UsageError

    if against not in ("", "interpreter"):
        raise UsageError(f"--against cannot be {against!r}", hints=["--against interpreter"])
    if is_dump and compiled:
        raise UsageError("flags of a compile apply to a kernel, not to a dump")
    if is_dump and against:
        hints = ["FILE:KERNEL with its --signature and --target"]
        raise UsageError("--against interpreter needs the source of the kernel, not a dump", hints=hints)
    if kernel and not is_dump:
        raise UsageError("--kernel applies to a dump", hints=["FILE:KERNEL names the kernel"])


def _list(source: str, *, alone: bool, json: bool) -> None:
    """Print which operations are known, of all or of those in a checkout."""
    from dataclasses import asdict

    from tritonsmith.build.triton import commands
    from tritonsmith.check.answer import (
        coverage,
        coverage_of_all,
        coverage_of_checkout,
    )
    from tritonsmith.cli.tasks import output
    from tritonsmith.core.envs import settings
    from tritonsmith.core.errors import FactError, UsageError
    from tritonsmith.core.ui import console

    if not alone:
        raise UsageError("--list takes --source and --json alone")
    if source and not Path(source).is_dir():
        raise FactError("no such folder", where=source, hints=["--source CHECKOUT, a clone of Triton"])
    if source:
        root = commands.find_triton(settings.load("dev", {"triton.source": source}))[1].root
        rows = coverage_of_checkout(root)
    else:
        rows = coverage_of_all()
    if json:
        output.json({"schema": 1, "dialects": [asdict(one) for one in rows]})
        return
    console.out().print(coverage(rows))


def _judge(made: DumpIndex, answer: CheckResult) -> None:
    """Exit with the code of the answer.

    Raises:
        SmithError: something changes the result.
        UndecidedError: something that was asked for could not be checked.
    """
    from tritonsmith.check.answer import (
        interpreter_verdict,
        open_end,
        verdict,
    )
    from tritonsmith.core.command_line import command
    from tritonsmith.core.errors import SmithError, UndecidedError

    page = "docs/passes-check.md says what is compared"
    if answer.culprit:
        hints = [command("passes.diff", made.folder, answer.culprit.checked.name), page]
        raise SmithError(verdict(answer), hints=hints)
    beside = answer.interpreted
    if beside and beside.status == "differs":
        raise SmithError(interpreter_verdict(answer.kernel), hints=[page])
    if answer.open:
        raise open_end(answer)
    if beside and beside.status == "unknown":
        what = "the first IR was not compared with TRITON_INTERPRET=1"
        raise UndecidedError(what, why=beside.why, hints=beside.hints)


def _of_dump(
    folder: Path,
    kernel: str,
    seeds: int | None,
    env: str,
    python: Path | None,
    timeout: int | None,
    *,
    silent: bool,
    through_llvm: bool,
) -> tuple[DumpIndex, CheckResult]:
    from tritonsmith.check import check as passes_check
    from tritonsmith.compiler.dump import index
    from tritonsmith.compiler.replay import replayer
    from tritonsmith.core.envs import workspace
    from tritonsmith.core.errors import FactError

    made, space = index.read(folder), workspace.default()
    one = index.choose_kernel(made, kernel)
    chosen = replayer.choose(made, space, env=env, python=python, triton_opt=None)
    if chosen.python is None:
        raise FactError("only an interpreter with Triton prints the generic form", hints=["--python PATH"])
    answer = passes_check.check(
        made, one, chosen.python, space, seeds, silent=silent, through_llvm=through_llvm, timeout=timeout
    )
    return made, answer


def _of_kernel(
    kernel: str,
    what: KernelOptions,
    out: Path | None,
    seeds: int | None,
    triton: str,
    env: str,
    python: Path | None,
    timeout: int | None,
    *,
    silent: bool,
    through_llvm: bool,
    interpreted: bool,
) -> tuple[DumpIndex, CheckResult]:
    from tritonsmith.check.check import check_kernel
    from tritonsmith.cli.tasks.kernel_options import target_of
    from tritonsmith.compiler import run

    asked = what.request(kernel, target=target_of("ttgir"))
    run.check(asked)
    where = toolchain(triton, env, python, jobs=1)
    return check_kernel(
        asked,
        where,
        out,
        seeds,
        silent=silent,
        through_llvm=through_llvm,
        interpreted=interpreted,
        timeout=timeout,
    )
