"""`reduce`: reduce a kernel's source while a symptom persists, or an IR file while a pass fails alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
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
from tritonsmith.core import untrusted
from tritonsmith.core.errors import FactError, InterruptedRunError, SmithError, UndecidedError, UsageError
from tritonsmith.core.ui import console

if TYPE_CHECKING:
    from tritonsmith.compiler.dump.index import DumpIndex
    from tritonsmith.compiler.interpreter import Interpreter
    from tritonsmith.compiler.request import CompileRequest
    from tritonsmith.core.envs.workspace import Workspace
    from tritonsmith.lab.experiment import Rules
    from tritonsmith.lab.reduce.oracles import PassRunner
    from tritonsmith.lab.reduce.reduce_ir import Reduced
    from tritonsmith.lab.triage.kernel import KernelSubject


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
    jobs: int | None = flag("candidates at once", None, unset="2", example="--jobs 4; 0 for the default"),
    own: bool = flag("do not use triton-reduce or mlir-reduce", default=False),
    json: bool = JSON,
) -> None:
    """Reduce an IR file while a pass or command fails the same way."""
    from tritonsmith.core.envs import workspace
    from tritonsmith.core.plan import Plan, Write
    from tritonsmith.lab.isolate import issue_folder as files
    from tritonsmith.lab.reduce import mlir_reduce, reduce_ir
    from tritonsmith.lab.reduce.reduce_ir import progress, summary

    space = workspace.default()
    _, command = command_line()
    dumped = _folder_of_dump(file, pass_, when, kernel, command, space, by)
    # To isolate the pass takes minutes, so the status does not wait for the text of that.
    if dumped and tests.show_status(dumped, reduce_ir.WORDS, json=json):
        return
    of_isolation, of_candidates = tests.rules_by_part
    text, way, to = _read_subject(file, pass_, when, kernel, command, space, by, of_isolation, silent=json)
    if out and _is_input(to := out.path(to.name), file):
        raise UsageError("--out is the file to reduce, which is never changed", where=to)
    if tests.show_status(reduce_ir.folder_of(text, way, space), reduce_ir.WORDS, json=json):
        return
    options = reduce_ir.ReduceOptions(
        timeout or reduce_ir.ReduceOptions.timeout,
        jobs or reduce_ir.JOBS,
        None if own else mlir_reduce.find(way.opt),
        file.name if command and not file.is_dir() else "in.mlir",
        out=to,
        silent=json,
        rules=of_candidates if dumped and not when else tests.rules,  # `wrong` isolates without --skip
        folder=dumped,
    )
    reduced = reduce_ir.reduce(text, way, space, options, progress())
    text = files.headed(reduced.text, way.pipeline) if way.pipeline else reduced.text
    space.run(Plan("keep", (Write(to, text, phase="keep"),)), "passes.reduce", quiet=True)
    answer = [str(reduced.failure), summary(reduced)]
    _print(reduced, to, json=json)
    tests.write_page(reduced.journal, "reduce", answer, reduce_ir.WORDS)
    if reduced.why == reduce_ir.INTERRUPTED:
        raise InterruptedRunError("interrupted; the best so far is kept", where=to)


def _read_subject(
    file: Path,
    passes: str,
    when: str,
    kernel: str,
    command: Sequence[str],
    space: Workspace,
    by: ReplayerOptions,
    rules: Rules,
    *,
    silent: bool,
) -> tuple[str, PassRunner, Path]:
    """Return the text to reduce, what fails on it, and the file to write without `--out`."""
    from tritonsmith.compiler.dump import index
    from tritonsmith.compiler.replay import replayer
    from tritonsmith.compiler.request import options_of
    from tritonsmith.lab.isolate import failing_pass
    from tritonsmith.lab.isolate import issue_folder as files
    from tritonsmith.lab.reduce.oracles import PassRunner

    wrong = _is_wrong(when, command)
    is_dump = _is_dump(file)
    if wrong and is_dump:
        return (*_wrong_pass(index.read(file), kernel, space, by), file / "reduced.mlir")
    if is_dump and not (passes or command):
        dump = index.read(file)
        chosen = replayer.choose(dump, space, env=by.env, python=by.python, triton_opt=by.triton_opt)
        isolated, _ = failing_pass.isolate(
            dump,
            index.choose_kernel(dump, kernel),
            chosen,
            space,
            options_of(by.option),
            rules,
            silent=silent,
        )
        if not isolated.same:
            console.warn(failing_pass.summary(isolated))
        return isolated.text, isolated.way, file / "reduced.mlir"
    path = file / "input.mlir" if file.is_dir() else file
    text = _read(path)
    to = path.with_name("reduced.mlir" if file.is_dir() else f"{path.stem}.reduced{path.suffix}")
    if command:
        if passes:
            raise UsageError("--pass and a command contradict each other")
        _runnable(command[0])
        return text, PassRunner(command=tuple(command)), to
    pipeline = passes or files.pipeline_of(text)
    if not pipeline:
        raise UsageError(
            "no failing pass is named",
            where=path,
            hints=["--pass tritongpu-coalesce", "-- command {}", "a RUN line in the file names them"],
        )
    return text, _way(pipeline, space, path, by, wrong=wrong), to


def _is_dump(file: Path) -> bool:
    from tritonsmith.compiler.dump import index

    return file.is_dir() and (file / index.FILE).is_file()


def _folder_of_dump(
    file: Path,
    passes: str,
    when: str,
    kernel: str,
    command: Sequence[str],
    space: Workspace,
    by: ReplayerOptions,
) -> Path | None:
    """Return the folder of the journal if a dump is reduced whose text is not known yet; None for a file."""
    from tritonsmith.compiler.dump import index
    from tritonsmith.core.plan import digest

    wrong = _is_wrong(when, command)
    if not _is_dump(file) or ((passes or command) and not wrong):
        return None
    name = index.choose_kernel(index.read(file), kernel).name
    return space.root / "passes" / "reduce" / digest("dump", str(file.absolute()), name, when, by)


def _is_input(path: Path, file: Path) -> bool:
    source = file / "input.mlir" if file.is_dir() else file
    return path.exists() and source.exists() and path.samefile(source)


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


def _read(path: Path) -> str:

    try:
        return untrusted.read_bytes(path, untrusted.OURS).decode()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        hints = ["give an MLIR file, or a folder that passes.dump or passes.isolate wrote"]
        raise UsageError("cannot read this file", where=path, why=why, hints=hints) from error


def _runnable(program: str) -> None:
    from tritonsmith.core import process

    if process.which(program) is None:
        raise FactError(f"no program {program}", hints=["a path, or a name on PATH"])


def _wrong_pass(
    dump: DumpIndex, kernel: str, space: Workspace, by: ReplayerOptions
) -> tuple[str, PassRunner]:
    """Return the first pass of a dump that changes the result, and its input."""
    from tritonsmith.check import check
    from tritonsmith.check.answer import verdict
    from tritonsmith.compiler.dump import index
    from tritonsmith.compiler.replay import replayer
    from tritonsmith.compiler.replay import run as replay_run
    from tritonsmith.core.command_line import command
    from tritonsmith.lab.isolate import failing_pass
    from tritonsmith.lab.reduce.oracles import WrongPassRunner

    dumped = index.choose_kernel(dump, kernel)
    chosen = replayer.choose(dump, space, env=by.env, python=by.python, triton_opt=None)
    answer = check.check(dump, dumped, replayer.require_python(chosen), space)
    several = f"one pass is reduced at a time: {command('reduce', 'FILE', '--pass', 'NAME')}"
    if answer.culprit is None or len(answer.culprit.suspects) > 1:
        error = UndecidedError if answer.culprit or answer.open else SmithError
        raise error(verdict(answer), where=dump.folder, hints=answer.reasons or [several])
    before = check.dump_before(dump, dumped, answer.culprit.checked)
    text = dump.content(before).decode()
    # No options are given: those that a release does not print are read off its backend.
    passes = replay_run.look(dump, dumped, chosen, space, {})
    links = [link for link in passes.links if link.dump.number == before.number]
    way = failing_pass.way(passes, links, chosen, space)
    if isinstance(way, str):
        what = f"{before.argument} cannot be run alone"
        raise FactError(what, where=chosen.python, why=way, hints=[several])
    return text, WrongPassRunner(way.pipeline, python=way.python, calls=way.calls)


def _way(
    pipeline: str, space: Workspace, path: Path, by: ReplayerOptions, *, wrong: bool = False
) -> PassRunner:
    """Return the program that runs the passes of a file."""
    from tritonsmith.compiler.dump.index import DumpIndex
    from tritonsmith.compiler.replay import bindings, replayer
    from tritonsmith.lab.reduce import oracles

    # A file has no dump that would know its interpreter.
    nothing = DumpIndex(path.parent)
    env = by.env if by.env or by.python or by.triton_opt else "wheel"
    chosen = replayer.choose(nothing, space, env=env, python=by.python, triton_opt=by.triton_opt)
    if chosen.opt and wrong:
        raise FactError("only an interpreter with Triton prints the generic form", hints=["--python PATH"])
    if chosen.opt:
        return oracles.PassRunner(oracles.spelled(pipeline), opt=chosen.opt)
    python = replayer.require_python(chosen)
    calls = oracles.calls(pipeline, bindings.known_bindings(python, space), python)
    kind = oracles.WrongPassRunner if wrong else oracles.PassRunner
    return kind(oracles.spelled(pipeline), python=python, calls=calls)


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
        get_interpreter = partial(toolchain, triton, env, python, jobs=jobs, timeout=timeout)
        subject = _kernel_subject(compiled, file, when, get_interpreter)
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


def _kernel_subject(
    compiled: CompileRequest,
    file: Path,
    when: Sequence[str],
    get_interpreter: Callable[[], Interpreter],
) -> KernelSubject:
    from tritonsmith.compiler import run
    from tritonsmith.core.envs import workspace
    from tritonsmith.core.plan import digest
    from tritonsmith.lab.triage import kernel as kernels

    # What is wrong with the command line is reported before a missing Triton.
    symptom = kernels.parse_when(when)
    run.check(compiled)
    where = get_interpreter()
    folder = workspace.default().root / "reduce" / digest(str(file))[:16]
    if symptom is None:
        where = replace(where, jobs=1)
    return kernels.subject_of(compiled, symptom, where, folder, silent=symptom is None)


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
