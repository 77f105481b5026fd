"""`passes.check`: run the IR after each pass, and name the first pass that changes the result."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from invoke.context import Context

from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.kernel_options import KernelOptions, target_of, toolchain
from tritonsmith.cli.tasks.option_fields import again, flag, word
from tritonsmith.cli.tasks.options import ANY_ENV, DUMPED_KERNEL, JSON, OUT, PYTHON, SOURCE, TRITON
from tritonsmith.cli.tasks.task import task
from tritonsmith.core.command_line import command
from tritonsmith.core.errors import UndecidedError, UsageError
from tritonsmith.core.ui import console

if TYPE_CHECKING:
    from tritonsmith.check.answer import CheckResult


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
    from tritonsmith.check.answer import failure, undecided
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
