"""`reduce`: the source of a kernel made small while a symptom stays."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.kernel_options import KernelOptions, toolchain
from tritonsmith.cli.tasks.option_fields import OutFile, again
from tritonsmith.cli.tasks.option_task import command_line
from tritonsmith.cli.tasks.options import (
    ANY_ENV,
    COMPILED_KERNEL,
    JOBS,
    JSON,
    OUT_FILE,
    PYTHON,
    TIMEOUT,
    TRITON,
    WHEN,
)
from tritonsmith.cli.tasks.task import task

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tritonsmith.compiler.request import CompileRequest
    from tritonsmith.lab.triage.kernel import KernelSubject
    from tritonsmith.lab.triage.reduce.command import KernelReduced


@task(tables=True, name="reduce")
def reduce_(
    context: Any,
    what: KernelOptions,
    kernel: str = COMPILED_KERNEL,
    when: tuple[str, ...] = WHEN,
    triton: str = TRITON,
    env: str = again(ANY_ENV, "wheel, or PATH's Python"),
    python: Path | None = PYTHON,
    jobs: int | None = JOBS,
    timeout: int | None = TIMEOUT,
    out: OutFile | None = again(OUT_FILE, "KERNEL.reduced.py"),
    json: bool = JSON,
) -> None:
    """Reduce a kernel's Python source while a symptom persists."""
    from tritonsmith.core.errors import InterruptedRunError, UsageError
    from tritonsmith.core.ui import console
    from tritonsmith.lab.triage.reduce import command, report

    _, argv = command_line()
    if argv:
        if when or triton or what != KernelOptions():
            raise UsageError("--when, --triton and flags of a compile are for a kernel, not for a command")
        found = _by_command(argv, kernel, env, python, jobs, timeout, out, silent=json)
    else:
        asked = what.request(kernel)
        file = _out(out, asked.file, asked.name or asked.kernel or asked.file.stem)
        subject = _subject(asked, file, when, triton, env, python, jobs, timeout)
        found = command.by_compile(subject, file, report.progress(), silent=json)
    if json:
        output.json(report.as_json(found), indent=None)
    else:
        console.out().print(report.sizes(found))
        console.out().print(report.summary(found), markup=False)
        console.write(found.file)
    if found.interrupted:
        raise InterruptedRunError("interrupted; the best so far is kept", where=found.file)


def _by_command(
    argv: Sequence[str],
    kernel: str,
    env: str,
    python: Path | None,
    jobs: int | None,
    timeout: int | None,
    out: OutFile | None,
    *,
    silent: bool,
) -> KernelReduced:
    from tritonsmith.compiler import notebook, request, watched_program
    from tritonsmith.core.envs import workspace
    from tritonsmith.lab.triage.reduce import command, report

    file, name = request.kernel_of(kernel)
    file = notebook.as_python(file)
    interpreter = watched_program.interpreter(env, python, workspace.default())
    return command.by_command(
        tuple(argv),
        interpreter,
        file,
        name,
        _out(out, file, name or file.stem),
        report.progress(),
        jobs=jobs or command.JOBS,
        timeout=timeout or command.TIMEOUT,
        silent=silent,
    )


def _subject(
    asked: CompileRequest,
    file: Path,
    when: tuple[str, ...],
    triton: str,
    env: str,
    python: Path | None,
    jobs: int | None,
    timeout: int | None,
) -> KernelSubject:
    from dataclasses import replace

    from tritonsmith.check import predicate
    from tritonsmith.compiler import run
    from tritonsmith.core.envs import workspace
    from tritonsmith.core.plan import digest
    from tritonsmith.lab import terms as language
    from tritonsmith.lab.triage.kernel import KernelSubject

    wrong = predicate.asked_for(when)
    run.check(asked)
    where = toolchain(triton, env, python, jobs=jobs, timeout=timeout)
    folder = workspace.default().root / "reduce" / digest(str(file))[:16]
    if wrong:
        from tritonsmith.lab.triage.wrong_kernel import WrongKernelSubject

        return WrongKernelSubject(predicate.single(asked), replace(where, jobs=1), (), folder, silent=True)
    return KernelSubject(asked, where, language.parse(when, "--when"), folder)


def _out(out: OutFile | None, file: Path, name: str) -> Path:
    """Return the file to write.

    Raises:
        UsageError: it is the source.
    """
    from tritonsmith.compiler.output_folder import folder_name
    from tritonsmith.core.errors import UsageError

    default = f"{folder_name(name)}.reduced.py"
    path = out.path(default) if out else Path.cwd() / default
    if path == file or (path.exists() and path.samefile(file)):
        raise UsageError("--out is the file to reduce, which is never changed", where=path)
    return path
