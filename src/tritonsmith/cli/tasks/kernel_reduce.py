"""`reduce`: the source of a kernel made small while a symptom stays."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.experiments import ExperimentOptions
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
    from tritonsmith.compiler.request import CompileRequest
    from tritonsmith.lab.triage.kernel import KernelSubject


@task(tables=True, name="reduce")
def reduce_(
    context: Any,
    what: KernelOptions,
    tests: ExperimentOptions,
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
    from tritonsmith.compiler import notebook, request, watched_program
    from tritonsmith.core.envs import workspace
    from tritonsmith.core.errors import InterruptedRunError, UsageError
    from tritonsmith.core.ui import console
    from tritonsmith.lab.triage.observation import SYMPTOM
    from tritonsmith.lab.triage.reduce import reduce_kernel, report

    _, argv = command_line()
    space = workspace.default()
    if argv:
        if when or triton or what != KernelOptions():
            raise UsageError("--when, --triton and flags of a compile are for a kernel, not for a command")
        path, name = request.kernel_of(kernel)
        source = notebook.as_python(path)
        file = _out(out, source, name or source.stem)
        if tests.show_status(reduce_kernel.folder_of(file, space), SYMPTOM, json=json):
            return
        reduced = reduce_kernel.by_command(
            tuple(argv),
            watched_program.interpreter(env, python, space),
            source,
            name,
            file,
            report.progress(),
            tests.rules,
            jobs=jobs or reduce_kernel.JOBS,
            timeout=timeout or reduce_kernel.TIMEOUT,
            silent=json,
        )
    else:
        asked = what.request(kernel)
        file = _out(out, asked.file, asked.name or asked.kernel or asked.file.stem)
        if tests.show_status(reduce_kernel.folder_of(file, space), SYMPTOM, json=json):
            return
        subject = _subject(asked, file, when, triton, env, python, jobs, timeout)
        reduced = reduce_kernel.by_compile(subject, file, report.progress(), tests.rules, silent=json)
    answer = [reduced.expected, report.summary(reduced)]
    if json:
        output.json(report.as_json(reduced), indent=None)
    else:
        console.out().print(report.sizes(reduced))
        console.out().print(report.summary(reduced), markup=False)
        console.write(reduced.file)
    tests.write_page(reduced.journal, "reduce", answer, SYMPTOM)
    if reduced.interrupted:
        raise InterruptedRunError("interrupted; the best so far is kept", where=reduced.file)


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
