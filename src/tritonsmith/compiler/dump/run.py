"""`passes.dump`: compile a kernel, or run a program that compiles some, and record the IR of every pass."""

from __future__ import annotations

import shlex
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path

from tritonsmith.compiler import run as compile_run
from tritonsmith.compiler import user_program
from tritonsmith.compiler.dump import binaries, import_log
from tritonsmith.compiler.dump.index import UNFINISHED, DumpIndex, record_origin
from tritonsmith.compiler.dump.splitter import Splitter
from tritonsmith.compiler.interpreter import Interpreter
from tritonsmith.compiler.manifest import Manifest
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.core import configs, process, redact, untrusted
from tritonsmith.core.command_line import command
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, SmithError
from tritonsmith.core.plan import MakeDir, Plan, Remove, RemoveWritten, Step, Write
from tritonsmith.core.plan.steps import base
from tritonsmith.core.plan.steps.base import AttachedRun, CommandFailedError, Tap
from tritonsmith.core.ui import console
from tritonsmith.facts import installed_tritons

_TASK = "passes.dump"
_TRACE = "Traceback (most recent call last)"
_LINES = 12  # of an error on the screen; the index has all of it
_LAST = "llir"  # what comes after this stage prints no module of MLIR


@dataclass(frozen=True)
class PreparedDump:
    """A dump that is ready to run.

    Attributes:
        before: steps that make the folders.
        run: steps that run the compiler.
        after: steps that clear up; a note shows the commands that would split the compiler's output.
        out: the output folder.
        work: a scratch folder of the workspace, deleted afterwards.
        environ: environment variables that are set.
        log: the run's log file.
    """

    before: Plan
    run: Plan
    after: Plan
    out: Path
    work: Path
    environ: Mapping[str, str]
    log: Path

    @property
    def plan(self) -> Plan:
        """The whole plan, in order."""
        return self.before + self.run + self.after


@dataclass(frozen=True)
class Choices:
    """A choice of what is printed.

    Attributes:
        llvm: the IR after LLVM's passes, and their durations.
        backend: PTX and AMD's assembly.
        line_info: locations.
        reproducers: write a reproducer for each pipeline.
    """

    llvm: bool = False
    backend: bool = False
    line_info: bool = True
    reproducers: bool = False

    def environ(self, out: Path) -> dict[str, str | None]:
        """Return the variables to set; None marks one that must be unset."""
        table = configs.load("ir-dump")["variables"]
        enabled = {
            "always": True,
            "llvm": self.llvm,
            "backend": self.backend,
            "no-line-info": not self.line_info,
            "reproducers": self.reproducers,
        }
        chosen: dict[str, str | None] = dict.fromkeys(table["off"])
        for name in filter(enabled.get, enabled):
            chosen |= {key: value.format(out=out) for key, value in table[name].items()}
        return chosen


@dataclass(frozen=True)
class DumpOfKernel:
    """A dump of a kernel: the plan, its compile, and the interpreter that runs it."""

    prepared: PreparedDump
    compile: compile_run.PreparedCompile
    interpreter: Interpreter


def of_kernel(
    request: CompileRequest, interpreter: Interpreter, choices: Choices, out: Path | None
) -> DumpOfKernel:
    """Find the kernel and make the plan; without `out`, the dump goes into a folder of the workspace.

    Raises:
        SmithError: the file, the kernel or the signature is wrong.
    """
    work = _work(interpreter.space)
    # One at a time, so that one point's output comes after the other's.
    alone = replace(interpreter, jobs=1)
    compiling = compile_run.prepare(request, alone, work / "compiled")
    # A dump of the same kernel replaces the last one, so that the workspace does not fill.
    to = (out or interpreter.space.root / "passes" / f"{request.file.stem}.{compiling.kernel}").absolute()
    compiling = compiling.under(_set(choices, to))
    logs = [str(compiling.out / point.id / "log") for point in compiling.points]
    title = compiling.plan.title.replace("compile", "dump")
    record = record_origin(compiling.request.flags(), str(interpreter.python), interpreter.space, "prepare")
    prepared = _prepared(
        title, compiling.plan.steps, logs, to, work, choices, interpreter.space, record, own=out is None
    )
    return DumpOfKernel(prepared, compiling, alone)


def dump_kernel(what: DumpOfKernel, *, silent: bool = False) -> tuple[DumpIndex, Manifest]:
    """Compile, and split the output.

    Raises:
        SmithError: nothing could be compiled.
    """
    prepared, interpreter = what.prepared, what.interpreter
    _begin(prepared, interpreter.space)
    splitter = Splitter(prepared.out)
    logs = [what.compile.out / point.id / "log" for point in what.compile.points]
    over = threading.Event()
    reader = _Reader(logs, splitter, over)
    try:
        reader.start()
        manifest: Manifest | None = None
        try:
            manifest = compile_run.execute(what.compile, interpreter, silent=silent).manifest
        # After ^C, too: what came until then is a dump, and its folder can be used again.
        finally:
            over.set()
            reader.join()
            if reader.error:
                raise reader.error
            index = splitter.close(
                command=what.compile.request.flags(),
                triton=manifest.triton if manifest else "",
                python=str(interpreter.python),
                environ=prepared.environ,
                reproducers=_reproducers(prepared.out),
                died=_death(manifest),
            )
            if manifest is not None:
                binaries.keep(index, [manifest])
            elif index.dumps:
                console.note(f"the passes recorded so far are in {index.folder}")
            import_log.finish(prepared.out)
    finally:
        splitter.stop()
        _end(prepared, interpreter.space)
    return index, manifest


class WarmDumps:
    """Dumps of one kernel after the other, each by a fork of a process that has imported Triton.

    Args:
        interpreter: the interpreter.
        folder: a folder of its own, which must exist.
    """

    def __init__(self, interpreter: Interpreter, folder: Path) -> None:
        self.folder, self._environ = folder, _set(Choices(), folder)
        self._python = interpreter.python
        variables = {**interpreter.variables, **self._environ}
        self.compiler = compile_run.WarmCompiler(replace(interpreter, variables=variables), folder)

    def dump(self, request: CompileRequest, out: Path) -> tuple[DumpIndex, Manifest]:
        """Compile up to LLVM's IR, and split the output into an empty folder.

        Raises:
            SmithError: nothing could be compiled.
        """
        # The surgery may be about ptxas, which must have run then.
        last = "" if request.surgery else _LAST
        compiled = self.compiler.compile(request, self.folder / "compiled", last)
        if compiled is None:
            raise FactError("the kernel, its signature or the file is rejected", where=request.file)
        splitter = Splitter(out)
        try:
            for log in (compiled.folder / point.id / "log" for point in compiled.points):
                # A process that died at once has left none.
                if log.is_file():
                    splitter.feed(untrusted.read_bytes(log, untrusted.OURS))
            index = splitter.close(
                command=request.flags(),
                triton=compiled.triton,
                python=str(self._python),
                environ=self._environ,
                reproducers=(),
                died=_death(compiled),
            )
        finally:
            splitter.stop()
        return index, compiled


def _death(compiled: Manifest | None) -> str:
    """Return the error of the first point whose compiler died; empty if none did."""
    points = compiled.points if compiled else ()
    return next((point.error for point in points if point.status in ("crashed", "timeout")), "")


def of_program(
    argv: Sequence[str], space: Workspace, choices: Choices, out: Path | None
) -> tuple[PreparedDump, AttachedRun]:
    """Make the plan for a command; without `out`, the dump goes into a folder of the workspace.

    Raises:
        FactError: the program does not exist.
    """
    if process.which(argv[0]) is None:
        hints = ["give a path, or a name on PATH: -- python script.py"]
        raise FactError(f"no program {argv[0]}", hints=hints)
    work = _work(space)
    name = next((Path(word).stem for word in argv[1:] if word.endswith(".py")), Path(argv[0]).name)
    to = (out or space.root / "passes" / name).absolute()
    # A cache of this run alone: a kernel that comes from the user's own would not be compiled, and print
    # nothing.
    cache = ("TRITON_CACHE_DIR", str(work / "cache"))
    change = (*choices.environ(to).items(), cache)
    step = AttachedRun(tuple(argv), change, work / "stream", both=choices.backend, phase="run")
    steps = (MakeDir(work / "cache", phase="prepare"), step)
    record = record_origin(_command(step), _python(step.argv[0]), space, "prepare")
    logs = [str(step.errors)]
    prepared = _prepared(f"dump {name}", steps, logs, to, work, choices, space, record, own=out is None)
    return prepared, step


def dump_program(prepared: PreparedDump, step: AttachedRun, space: Workspace) -> tuple[DumpIndex, int]:
    """Run the program with its output on the terminal, and split what the compiler prints.

    Returns:
        The index, and the program's exit code, as a shell would report it.

    Raises:
        SmithError: it could not be run.
    """
    _begin(prepared, space)
    splitter = Splitter(prepared.out, user_program.pass_on)
    code = 0
    try:
        tap = Tap(import_log.explaining_full_disk(prepared.out)(splitter.feed), splitter.idle)
        try:
            space.run(prepared.run, _TASK, quiet=True, log=prepared.log, tap=tap)
        except CommandFailedError as failure:
            code = failure.code
        # The program's last words, before anything of ours follows them on the terminal.
        splitter.idle()
        index = splitter.close(
            command=_command(step),
            triton=_version(prepared.work / "cache", step.argv[0]),
            python=_python(step.argv[0]),
            environ=prepared.environ,
            reproducers=_reproducers(prepared.out),
            died=f"the program died: signal {-code}" if code < 0 else "",
        )
        binaries.keep(index, binaries.of_cache(prepared.work / "cache", index.python, space))
        import_log.finish(prepared.out)
    finally:
        splitter.stop()
        _end(prepared, space)
    return index, code if code >= 0 else 128 - code


def failures(index: DumpIndex) -> tuple[str, ...]:
    """Return the failure of each kernel: the compiler's message, without Python's stack."""
    messages = []
    for kernel in index.kernels:
        if kernel.failed:
            # Without the compiler's own message, the exception at the end of the traceback is all there is.
            lines = kernel.error.partition(_TRACE)[0].splitlines() or kernel.error.splitlines()[-1:]
            messages.append("\n  ".join([f"{kernel.name}: {kernel.failed}", *lines[:_LINES]]))
    return tuple(messages)


def check(index: DumpIndex) -> None:
    """Check that a pass printed its IR.

    Raises:
        SmithError: there is no dump in the stream.
    """
    if not index.dumps:
        hints = [
            "check that the program compiles a kernel",
            "check that the program does not override Triton's dump variables",
        ]
        raise SmithError("no pass printed its IR", where=index.folder / index.output, hints=hints)


class _Reader(threading.Thread):
    """A thread that reads the points' logs while they are written, one after the other."""

    # Logs may have gigabytes: when the compile ends, most of them is split already.

    def __init__(self, logs: Sequence[Path], splitter: Splitter, over: threading.Event) -> None:
        super().__init__(name="dump", daemon=True)
        self._logs, self._splitter, self._over = logs, splitter, over
        self.error: Exception | None = None

    def run(self) -> None:
        """Read until all logs are complete."""
        try:
            for log, later in zip_longest(self._logs, self._logs[1:]):
                self._read(log, later)
        except Exception as error:  # noqa: BLE001 - the thread that waits raises it
            self.error = error

    def _read(self, log: Path, later: Path | None) -> None:
        # The next log exists only when this one is complete, since points are compiled one after the other.
        while not log.exists():
            if self._over.wait(0.005) and not log.exists():
                return
        with log.open("rb", buffering=0) as file:
            base.follow(
                file,
                lambda: self._over.is_set() or bool(later and later.exists()),
                self._splitter.feed,
                self._splitter.idle,
            )


def _command(step: AttachedRun) -> str:
    """Return the command for the index, with secrets hidden."""
    return redact.hidden(shlex.join(step.argv))


def _python(program: str) -> str:
    """Return the absolute path of a Python interpreter; empty for any other program."""
    path = process.which(program) or program
    return str(Path(path).absolute()) if Path(path).name.startswith("python") else ""


def _version(cache: Path, program: str) -> str:
    """Return Triton's version, from its compile results (since 3.3) or else from the interpreter."""
    for path in cache.glob("*/*.json"):
        # Groups name the files of an entry, and have no metadata.
        if not path.name.startswith("__grp__"):
            try:
                version = untrusted.read_json(path).get("triton_version")
            except (OSError, ValueError):
                continue
            if version:
                return str(version)
    python = _python(program)
    triton = installed_tritons.of_python(Path(python)) if python else None
    return triton.version if triton else ""


def _prepared(
    title: str,
    steps: tuple[Step, ...],
    streams: Sequence[str],
    out: Path,
    work: Path,
    choices: Choices,
    space: Workspace,
    record: Step,
    *,
    own: bool,
) -> PreparedDump:
    """Make the plan: prepare the folder, run the steps, clear up. A note shows how the stream is split."""
    old, folders = ((), ()) if own else import_log.older(out)
    before: list[Step] = [Remove((out, work) if own else (work,), space.root, phase="prepare")]
    before += [
        MakeDir(out, phase="prepare"),
        Write(out / UNFINISHED, import_log.list_files(out, old), phase="prepare"),
    ]
    # Only what a dump has written: the folder of a user may have other files.
    before += [RemoveWritten(old, folders, phase="prepare")] if old else []
    before += [MakeDir(out / import_log.REPRODUCERS, phase="prepare")] if choices.reproducers else []
    before += [record]
    # The splitting is no step, since it happens while the steps run; this is how a person repeats it.
    joined = " ".join(map(shlex.quote, streams))
    note = f"while the command runs: cat {joined} | {command('passes.dump --from-log', '-', out=out)}"
    clear = (Remove((work,), space.root, phase="clear"),)
    plans = (Plan(title, tuple(before)), Plan(title, steps), Plan(title, clear, (note,)))
    return PreparedDump(*plans, out, work, _set(choices, out), space.log(_TASK))


def _begin(prepared: PreparedDump, space: Workspace) -> None:
    space.claim()
    space.run(prepared.before, _TASK, quiet=True, log=prepared.log)


def _end(prepared: PreparedDump, space: Workspace) -> None:
    space.run(prepared.after, _TASK, quiet=True, log=prepared.log)


def _work(space: Workspace) -> Path:
    # One for each thread, as a bisect dumps both sides at once.
    return space.root / "passes" / ".work" / str(threading.get_native_id())


def _set(choices: Choices, out: Path) -> dict[str, str]:
    """Return the variables that are set, without those that are removed."""
    return {name: value for name, value in choices.environ(out).items() if value is not None}


def _reproducers(out: Path) -> tuple[str, ...]:
    paths = (path for path in (out / import_log.REPRODUCERS).glob("*") if path.is_file())
    return tuple(sorted(str(path.relative_to(out)) for path in paths))
