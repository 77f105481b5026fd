"""`reduce`: reduce a kernel's source while a symptom persists, or IR while a pass fails the same way."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.experiments import ExperimentOptions
from tritonsmith.cli.tasks.kernel_options import KernelOptions, toolchain
from tritonsmith.cli.tasks.option_fields import OutFile, again, command_line, flag, word
from tritonsmith.cli.tasks.options import (
    ANY_ENV,
    COMPILED_KERNEL,
    DUMPED_KERNEL,
    JOBS,
    JSON,
    OUT_FILE,
    PYTHON,
    REDUCE_TIMEOUT,
    TIMEOUT,
    TRITON,
    WHEN,
    ReplayerOptions,
)
from tritonsmith.cli.tasks.task import task
from tritonsmith.core.errors import InterruptedRunError, UsageError
from tritonsmith.core.ui import console

if TYPE_CHECKING:
    from tritonsmith.lab.reduce.reduce_ir import Reduced


@task(tables=True, name="reduce")
def reduce_(
    context: Any,
    by: ReplayerOptions,
    tests: ExperimentOptions,
    file: Path = word(".mlir file, or a folder of passes.dump or passes.isolate"),
    pass_: str = flag("failing passes: tritongpu-pipeline{num-stages=3}", "", unset="RUN line's"),
    when: str = flag("wrong: the passes change what a kernel computes", "", unset="they fail"),
    kernel: str = DUMPED_KERNEL,
    out: OutFile | None = again(OUT_FILE, "NAME.reduced.mlir"),
    timeout: float | None = REDUCE_TIMEOUT,
    jobs: int | None = flag(
        "candidates to test at once", None, unset="2", example="--jobs 4; 0 for the default"
    ),
    own: bool = flag("do not use triton-reduce or mlir-reduce", default=False),
    json: bool = JSON,
) -> None:
    """Reduce an IR file while a pass or command fails the same way."""
    from tritonsmith.core.envs import workspace
    from tritonsmith.core.plan import Plan, Write
    from tritonsmith.lab.isolate import issue_folder as files
    from tritonsmith.lab.isolate.issue_folder import IrSource
    from tritonsmith.lab.reduce import oracles, reduce_ir
    from tritonsmith.lab.reduce.reduce_ir import progress, summary

    space = workspace.default()
    _, command = command_line()
    source = IrSource(
        file=file,
        passes=pass_,
        command=tuple(command),
        wrong=_is_wrong(when, command),
        kernel=kernel,
        env=by.env,
        python=by.python,
        triton_opt=by.triton_opt,
        option=by.option,
    )
    dumped = source.journal_folder(space)
    # To isolate the pass takes minutes, so the status does not wait for the text of that.
    if dumped and tests.show_status(dumped, reduce_ir.WORDS, json=json):
        return
    of_isolation, of_candidates = tests.rules_by_part
    failing = source.read(space, of_isolation, silent=json)
    if failing.warning:
        console.warn(failing.warning)
    to, way = failing.out, failing.runner
    # Before anything is tested, and by the file rather than its name: the input may be given through a link.
    if out and source.is_input(to := out.path(to.name)):
        raise UsageError("--out is the file to reduce, which is never changed", where=to)
    if tests.show_status(reduce_ir.folder_of(failing.text, way, space), reduce_ir.WORDS, json=json):
        return
    options = reduce_ir.ReduceOptions(
        timeout or reduce_ir.ReduceOptions.timeout,
        jobs or reduce_ir.JOBS,
        None if own else oracles.find_reducer(way.opt),
        source.file_name,
        out=to,
        silent=json,
        rules=of_candidates if dumped and not when else tests.rules,  # `wrong` isolates without --skip
        folder=dumped,
    )
    reduced = reduce_ir.reduce(failing.text, way, space, options, progress())
    # With a RUN line, so that `reduce` and `triton-opt` can be called again on the result without any flag.
    text = files.headed(reduced.text, way.pipeline) if way.pipeline else reduced.text
    space.run(Plan("keep", (Write(to, text, phase="keep"),)), "passes.reduce", quiet=True)
    answer = [str(reduced.failure), summary(reduced)]
    _print(reduced, to, json=json)
    tests.write_page(reduced.journal, "reduce", answer, reduce_ir.WORDS)
    # After the result and the page, which a reduction that was stopped has, too: only the exit code differs.
    if reduced.why == reduce_ir.INTERRUPTED:
        raise InterruptedRunError("interrupted; the best so far is kept", where=to)


def _print(reduced: Reduced, to: Path, *, json: bool) -> None:
    from tritonsmith.lab.reduce.reduce_ir import as_json, sizes, summary

    if json:
        output.json({**as_json(reduced), "path": str(to)}, indent=None)
    else:
        console.out().print(sizes(reduced))
        console.out().print(summary(reduced), markup=False)
        console.write(to)


def _is_wrong(when: str, command: Sequence[str]) -> bool:
    """Report whether `--when wrong` is given."""
    from tritonsmith.check import when_wrong

    if not when:
        return False
    if command or not when_wrong.is_requested([when]):
        what = "--when and a command contradict each other" if command else f"--when cannot be {when!r}"
        raise UsageError(what, hints=["--when wrong", "-- command {}"])
    return True


@task(tables=True, name="reduce")
def reduce_kernel(
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
    from tritonsmith.compiler import request, source_tree, user_program
    from tritonsmith.core.envs import workspace
    from tritonsmith.lab.triage.reduce import reduce_kernel
    from tritonsmith.lab.triage.reduce.reduce_kernel import as_json, progress, sizes, summary
    from tritonsmith.lab.triage.verdict import SYMPTOM

    _, argv = command_line()
    space = workspace.default()
    if argv:
        if when or triton or what != KernelOptions():
            raise UsageError("--when, --triton and flags of a compile are for a kernel, not for a command")
        path, name = request.kernel_of(kernel)
        # A notebook is reduced as the Python that is made of it.
        source = source_tree.as_python(path)
        file = _out(out, source, name or source.stem)
        if tests.show_status(reduce_kernel.folder_of(file, space), SYMPTOM, json=json):
            return
        reduced = reduce_kernel.by_command(
            tuple(argv),
            user_program.interpreter(env, python, space),
            source,
            name,
            file,
            progress(),
            tests.rules,
            jobs=jobs or reduce_kernel.JOBS,
            timeout=timeout or reduce_kernel.TIMEOUT,
            silent=json,
        )
    else:
        compiled = what.request(kernel)
        file = _out(
            out,
            compiled.file,
            compiled.name or compiled.kernel or compiled.file.stem,
        )
        if tests.show_status(reduce_kernel.folder_of(file, space), SYMPTOM, json=json):
            return
        # Called after all that can be wrong with the command line, as it may install a release.
        get_interpreter = partial(toolchain, triton, env, python, jobs=jobs, timeout=timeout)
        subject = reduce_kernel.subject_of(compiled, when, file, get_interpreter)
        reduced = reduce_kernel.by_compile(subject, file, progress(), tests.rules, silent=json)
    answer = [reduced.expected, summary(reduced)]
    if json:
        output.json(as_json(reduced), indent=None)
    else:
        console.out().print(sizes(reduced))
        console.out().print(summary(reduced), markup=False)
        console.write(reduced.file)
    tests.write_page(reduced.journal, "reduce", answer, SYMPTOM)
    if reduced.interrupted:
        raise InterruptedRunError("interrupted; the best so far is kept", where=reduced.file)


def _out(out: OutFile | None, file: Path, name: str) -> Path:
    """Return the file to write.

    Raises:
        UsageError: it is the source.
    """
    from tritonsmith.compiler.manifest import folder_name

    default = f"{folder_name(name)}.reduced.py"
    path = out.path(default) if out else Path.cwd() / default
    if path == file or (path.exists() and path.samefile(file)):
        raise UsageError("--out is the file to reduce, which is never changed", where=path)
    return path
