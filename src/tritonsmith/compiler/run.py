"""`kernel.compile`: compile a request with an interpreter that has Triton, into a folder with a manifest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock

from tritonsmith.compiler import call, report, signature, source, targets
from tritonsmith.compiler.interpreter import (
    Interpreter,
    KernelDescription,
    describe_kernel,
    failed_run,
    worker_variables,
)
from tritonsmith.compiler.manifest import (
    FILE,
    Manifest,
    Point,
    check_output,
    folder_name,
    from_results,
    give_locks_back,
    hold_output,
    record_triton,
    scratch_folder,
)
from tritonsmith.compiler.request import CompilePoint, CompileRequest, expand_points, narrow
from tritonsmith.compiler.source import KernelSource
from tritonsmith.compiler.targets import Target
from tritonsmith.core import configs
from tritonsmith.core.errors import FactError, InterruptedRunError, SmithError, UsageError
from tritonsmith.core.plan import MakeDir, Plan, Remove, Run, Step, Write, files
from tritonsmith.core.plan.steps.base import CommandFailedError
from tritonsmith.core.ui import console
from tritonsmith.worker.border import text_of
from tritonsmith.worker.messages import (
    ChildRow,
    CompiledRow,
    CompileHead,
    FileRequest,
    GenericRequest,
    PointsRequest,
    ServedRow,
)

_TASK = "kernel.compile"
_RESULTS = "results.jsonl"
# What the kernel's file imports would leave `__pycache__` in the user's folders.
_QUIET = {"PYTHONDONTWRITEBYTECODE": "1"}


@dataclass(frozen=True)
class PreparedCompile:
    """A compile that is ready to run.

    Attributes:
        plan: its steps.
        request: the request.
        kernel: name of the function.
        points: the points that the request expands to.
        out: the output folder.
        work: folder of the worker's request, the results and the caches.
        presumed: the parameters are those in the file's text, which a decorator may change.
    """

    plan: Plan
    request: CompileRequest
    kernel: str
    points: tuple[CompilePoint, ...]
    out: Path
    work: Path
    presumed: bool = False

    @property
    def results(self) -> Path:
        """The worker's results file, with one JSON object per line."""
        return self.work / _RESULTS

    def under(self, change: Mapping[str, str]) -> PreparedCompile:
        """Return a copy that sets more environment variables for the compiler."""
        more = tuple(change.items())
        # At the end of each step's list, so that they win over what the interpreter sets.
        steps = [
            replace(step, env=(*step.env, *more)) if isinstance(step, Run) else step
            for step in self.plan.steps
        ]
        return replace(self, plan=Plan(self.plan.title, tuple(steps)))

    def warm(self, workers: call.WarmWorkers, state: str = "") -> PreparedCompile:
        """Return a copy that compiles by a worker that has imported Triton, if there can be one.

        Args:
            workers: the workers.
            state: see `call.WarmRun`.
        """
        steps = [
            call.WarmRun(step, self.results, workers, state, phase=step.phase)
            if isinstance(step, Run)
            else step
            for step in self.plan.steps
        ]
        return replace(self, plan=Plan(self.plan.title, tuple(steps)))


class OtherParametersError(SmithError):
    """A kernel has other parameters than was presumed by its file's text."""


@dataclass(frozen=True)
class CompileResult:
    """The result of a compile.

    Attributes:
        manifest: the output folder.
        notes: messages for the user: options left out, modules replaced, disassemblers missing.
    """

    manifest: Manifest
    notes: tuple[str, ...]


def compile_all(
    request: CompileRequest,
    interpreter: Interpreter,
    out: Path | None = None,
    *,
    silent: bool = False,
    last: str = "",
) -> Manifest:
    """Compile every point; a failed one is a row of the manifest.

    Args:
        request: the request.
        interpreter: the interpreter.
        out: the output folder; None for a folder of the workspace.
        silent: show neither progress nor notes.
        last: the stage after which the compile ends; empty for a whole compile.

    Raises:
        SmithError: nothing could be compiled, because of the file, the kernel, an option or the interpreter.
        InterruptedRunError: ^C.
    """
    result = execute(prepare(request, interpreter, out, last=last), interpreter, silent=silent)
    for text in () if silent else result.notes:
        console.note(text)
    return result.manifest


def prepare(
    request: CompileRequest,
    interpreter: Interpreter,
    out: Path | None = None,
    shared: Path | None = None,
    sent: tuple[str, ...] = (),
    *,
    last: str = "",
    presume: bool = False,
) -> PreparedCompile:
    """Find the kernel, expand the request into points, and make the plan.

    Args:
        request: the request.
        interpreter: the interpreter.
        out: the output folder; None for a folder of the workspace.
        shared: see `worker_request`.
        sent: see `worker_request`.
        last: the stage after which the compile ends; empty for a whole compile.
        presume: do not run the file for the parameters if the signature fits those in its text: `execute`
            then raises an `OtherParametersError` if a decorator has changed them.

    Raises:
        SmithError: the file, the kernel or the signature is wrong, or the folder holds something else.
    """
    guess = _presumed_points(request) if presume else None
    kernel, points = guess or points_of(request, interpreter)
    folder = (out or interpreter.output(request, kernel)).absolute()
    # Before any step, so that a folder with somebody else's manifest is refused and not emptied.
    check_output(folder)
    work = scratch_folder(folder, interpreter.space)
    phase = f"compile {kernel}"
    steps: list[Step] = [MakeDir(folder, phase=phase)]
    # A folder that the user named keeps what else is in it.
    if out is None:
        steps.insert(0, Remove((folder,), interpreter.space.root, phase=phase))
    question = worker_request(request, kernel, points, interpreter, folder, work, shared=shared, sent=sent)
    question = replace(question, last=last)
    variables = worker_variables(interpreter)
    steps += call.steps(interpreter.python, question, work / "request.json", env=variables, phase=phase)
    plan = Plan(phase, tuple(steps))
    return PreparedCompile(plan, request, kernel, points, folder, work, guess is not None)


def points_of(request: CompileRequest, interpreter: Interpreter) -> tuple[str, tuple[CompilePoint, ...]]:
    """Return the kernel's name and the points; the file is run only if its text does not tell them.

    Raises:
        SmithError: the file, the kernel or the signature is wrong.
    """
    kernel, head = _head_in_text(request)
    if request.from_ir or (head and not request.runs_for_configs):
        return kernel, expand_points(request, head)
    return kernel, tuple(_points_by_running(request, kernel, interpreter))


def _presumed_points(request: CompileRequest) -> tuple[str, tuple[CompilePoint, ...]] | None:
    """Return the kernel's name and the points by the file's text; None if that might tell something else."""
    # To run the file takes as long as to compile a kernel, and five times as long where it imports torch.
    kernel, head = _head_in_text(request)
    if request.from_ir or head or request.runs_for_configs:
        return None
    head = source.find(source.read(request.file), kernel, request.file, presume=True)
    if head is None:
        return None
    # A signature that does not fit is an error only where the parameters are sure.
    with suppress(UsageError):
        points = expand_points(request, head)
        # Defaults and heuristics are not sure either, so each parameter has to have an entry of its own.
        if len(signature.assigned(request.signature, head)) == len(head.parameters):
            return kernel, points
    return None


def execute(prepared: PreparedCompile, interpreter: Interpreter, *, silent: bool = False) -> CompileResult:
    """Run a plan of `prepare`, and write the manifest.

    Raises:
        SmithError: as `compile_all`.
        OtherParametersError: see `prepare`.
    """
    space, request = interpreter.space, prepared.request
    space.claim()
    log = space.log(_TASK)
    # The lock covers the manifest, too: between the compile and the manifest, a second command would
    # replace the files that the manifest is about.
    with hold_output(prepared.out, space, _TASK):
        try:
            space.run(prepared.plan, _TASK, quiet=silent, log=log)
        except CommandFailedError as failure:
            refusal = call.refusal_in(prepared.results) if prepared.presumed else None
            if refusal and refusal.kind == "parameters":
                raise OtherParametersError(refusal.what, where=request.file) from failure
            raise failed_run(prepared.results, request, interpreter.python, failure) from failure
        head, rows = call.headed_results(prepared.results, CompileHead, CompiledRow)
        # A file that asks about the GPU may define another kernel for one of the targets.
        if prepared.presumed and not all(row.loaded for row in rows):
            raise OtherParametersError("a target has another kernel", where=request.file)
        flags = request.flags(**interpreter.flags, out=prepared.out)
        manifest = from_results(
            head, rows, prepared.out, prepared.kernel, request.file, prepared.points, flags
        )
        written = Write(prepared.out / FILE, manifest.render(), phase="manifest")
        # After the compile: only a Triton that has compiled here may have its ptxas run for a manifest later.
        space.run(Plan("manifest", (written, record_triton(manifest, space))), _TASK, quiet=True, log=log)
    return CompileResult(manifest, tuple(report.notes(head, manifest, request)))


def check(request: CompileRequest) -> None:
    """Check a request as far as the file's text allows, so that mistakes are reported without a Triton.

    Raises:
        SmithError: the file, the kernel or the signature is wrong.
    """
    try:
        kernel, head = _head_in_text(request)
        if request.from_ir or (head and not request.runs_for_configs):
            expand_points(request, head)
        elif head and not head.autotuned:
            raise _not_tuned(kernel)
    except SmithError as error:
        # Of a file with thirty kernels, the entry tells more than the kernel's file.
        if request.listed:
            error.where = f"{request.listed}:{request.name}" + (f", {error.where}" if error.where else "")
        raise


def _head_in_text(request: CompileRequest) -> tuple[str, KernelSource | None]:
    """Return the kernel's name and its head; no head for IR, or if only running the file can tell it."""
    text = source.read(request.file)
    if request.from_ir:
        return request.kernel, None
    kernel = source.choose(text, request.kernel, request.file)
    return kernel, source.find(text, kernel, request.file)


def points_in_text(request: CompileRequest) -> tuple[str, tuple[CompilePoint, ...]]:
    """Return the kernel's name and its points; no points if the file's text does not tell its head.

    Raises:
        SmithError: the file, the kernel or the signature is wrong.
    """
    kernel, head = _head_in_text(request)
    return kernel, tuple(expand_points(request, head)) if head else ()


def one_point(request: CompileRequest, point: str) -> CompileRequest:
    """Return a request for one of its points alone; the same request if the file's text does not tell which.

    Args:
        request: the request.
        point: the point's id.

    Raises:
        SmithError: the file, the kernel or the signature is wrong.
    """
    _, head = _head_in_text(request)
    known = not request.runs_for_configs and (head or request.from_ir)
    return (narrow(request, head, point) if known else None) or request


def _points_by_running(
    request: CompileRequest, kernel: str, interpreter: Interpreter
) -> Iterator[CompilePoint]:
    """Yield the points of a kernel whose head or configs are known only by running its file."""
    # Target by target: a file may define another kernel, or other configs, for another GPU.
    described = zip(request.targets, _descriptions(request, kernel, interpreter), strict=True)
    for target, description in described:
        if request.runs_for_configs and not description.configs:
            raise _not_tuned(kernel)
        tuned = description.configs if request.runs_for_configs else ()
        yield from expand_points(replace(request, targets=(target,)), description.kernel, tuned)


def _descriptions(request: CompileRequest, kernel: str, interpreter: Interpreter) -> list[KernelDescription]:
    """Return the kernel as each target sees it."""
    # A target for which the file fails borrows the result of another. Its points then fail in the worker,
    # which loads the file too and reports the reason; but their configs are unknown, so these raise here.
    by_target: dict[Target, KernelDescription] = {}
    errors: list[SmithError] = []
    for target in request.targets:
        first = next(iter(by_target.values()), None)
        # A file that did not look at the GPU defines the same kernel for all: running it once is enough.
        if first and not first.queried_gpu:
            by_target[target] = first
            continue
        try:
            by_target[target] = describe_kernel(request, kernel, target, interpreter)
        except FactError as error:
            errors.append(error)
    if errors and (request.runs_for_configs or not by_target):
        raise errors[0]
    return [by_target.get(target) or next(iter(by_target.values())) for target in request.targets]


def _not_tuned(kernel: str) -> UsageError:
    return UsageError(f"{kernel} has no @triton.autotune", hints=["omit --sweep autotune"])


def worker_request(
    request: CompileRequest,
    kernel: str,
    points: Sequence[CompilePoint],
    interpreter: Interpreter,
    out: Path,
    work: Path,
    *,
    strict: bool = False,
    shared: Path | None = None,
    sent: tuple[str, ...] = (),
) -> PointsRequest:
    """Return the request as the worker takes it.

    Args:
        request: names the kernel's file, or the IR's, and the stages to keep.
        kernel: name of the function.
        points: the points.
        interpreter: the interpreter.
        out: folder of the outputs.
        work: folder of the results and the caches.
        strict: fail if one of the points does.
        shared: folder of outputs of stages that compiles of several Tritons share; None to run all stages.
        sent: the folder of the kernel's file, if that is a copy, and the folder that the copy is from.
    """
    return PointsRequest(
        **vars(file_request(request.file, kernel, points, interpreter)),
        output=str(out),
        scratch=str(work),
        results=str(work / _RESULTS),
        jobs=interpreter.jobs,
        timeout=interpreter.timeout,
        strict=strict,
        keep=request.stages,
        disassemble=request.disassemble,
        stages=tuple(configs.load("kernels")["stages"]["compiler"]),
        shared=str(shared or ""),
        sent=sent,
    )


def file_request(
    file: Path, kernel: str, points: Sequence[CompilePoint], interpreter: Interpreter
) -> FileRequest:
    """Return the part of a request that says what to load, and what to put around it."""
    programs = interpreter.programs
    return FileRequest(
        file=str(file),
        kernel=kernel,
        ir=all(point.bound is None for point in points),
        points=tuple(point.request() for point in points),
        stand_ins=tuple(configs.load("kernels")["stand-ins"]["modules"]),
        gpus=targets.all_gpu_facts(point.target for point in points),
        disassemblers={tool.binary: tool.request() for tool in programs.disassemblers},
        lent=dict(programs.lent),
    )


def prepare_all(
    requests: Sequence[CompileRequest], interpreter: Interpreter, out: Path | None = None
) -> tuple[PreparedCompile, ...]:
    """Return the plans of `execute_all`.

    Raises:
        SmithError: as `prepare`.
    """
    return tuple(prepare(request, interpreter, folder) for request, folder in _folders(requests, out))


def execute_all(
    requests: Sequence[CompileRequest],
    interpreter: Interpreter,
    out: Path | None = None,
    *,
    silent: bool = False,
) -> tuple[CompileResult, ...]:
    """Compile kernels one after the other; a refused kernel among several is a row, not the end.

    Args:
        requests: one kernel; or several of a kernels file, each into a folder of its name.
        interpreter: the interpreter.
        out: the output folder, or the parent of several; None for folders of the workspace.
        silent: show no progress.

    Raises:
        SmithError: the only kernel is refused.
        InterruptedRunError: ^C.
    """
    results = []
    for request, folder in _folders(requests, out):
        try:
            # Two commands that kept the locks of several kernels would wait for each other.
            with give_locks_back() if len(requests) > 1 else nullcontext():
                results.append(execute(prepare(request, interpreter, folder), interpreter, silent=silent))
        except SmithError as error:
            if len(requests) == 1 or isinstance(error, InterruptedRunError):
                raise
            refused = folder or interpreter.output(request, request.kernel)
            results.append(CompileResult(_manifest_of_refused(request, refused, error), ()))
    return tuple(results)


def _folders(
    requests: Sequence[CompileRequest], out: Path | None
) -> Iterator[tuple[CompileRequest, Path | None]]:
    """Yield each request with its output folder: several share a parent folder."""
    for request in requests:
        yield request, out / folder_name(request.name) if out and len(requests) > 1 else out


def _manifest_of_refused(request: CompileRequest, folder: Path, error: SmithError) -> Manifest:
    """Return the manifest of a kernel that never reached the worker: each target failed, with this error."""
    # Nothing is written: the folder keeps the results of an earlier compile, if it has any.
    message = "\n".join(filter(None, (error.what, error.why)))
    points = tuple(
        Point(name.replace(":", "-"), name, {}, {}, {}, dict(request.options), "failed", 0.0, error=message)
        for name in map(str, request.targets)
    )
    return Manifest(folder, request.kernel, str(request.file), "", "", "", "", "", points)


class WarmCompiler:
    """A compiler for one request after the other; each is a fork of a process that has imported Triton.

    Args:
        interpreter: the interpreter.
        folder: the folder for the requests, the results and the caches; it must exist.

    Attributes:
        timeout: seconds that a compile may take.
    """

    def __init__(self, interpreter: Interpreter, folder: Path) -> None:
        self.timeout = interpreter.timeout
        # The caller runs as many compilers as there are jobs, so each compiles one point at a time.
        self._interpreter, self._folder = replace(interpreter, jobs=1), folder
        self._process: call.Conversation | None = None
        self._closed, self._starting = False, Lock()

    def begin(self, request: CompileRequest) -> None:
        """Start the process, which the first compile would have to wait for.

        Args:
            request: a request like those that follow, from whose GPUs the process learns what to look up.
        """
        # Whatever is wrong is the first compile's to say.
        with suppress(SmithError):
            kernel, points = points_in_text(request)
            if points:
                # Not the file of the first compile: that may be written while this one is read.
                first = self._folder / "first.json"
                files.write(first, text_of(self._question(request, kernel, points, self._folder)))
                self._started(first)

    def compile(self, request: CompileRequest, out: Path, last: str = "") -> Manifest | None:
        """Compile all points; return None if the kernel or the signature is refused.

        Args:
            request: a request for a kernel whose head can be read from its file.
            out: folder of the outputs; existing files are overwritten.
            last: the stage after which the compile ends; empty for a whole compile.

        Raises:
            FactError: the process has ended.
        """
        # Refusals are answers, not errors: a search tries thousands of kernels, and most of them are wrong.
        try:
            kernel, points = points_in_text(request)
        except SmithError:
            return None
        if not points:
            return None
        files.make_folder(out)
        results = self._folder / _RESULTS
        question = self._question(request, kernel, points, out)
        if self._ask(replace(question, last=last)).status != "ok":
            return None
        try:
            first, rows = call.headed_results(results, CompileHead, CompiledRow)
        except call.UnansweredError:
            return None
        # A manifest that lacks a point would pass for a success.
        if len(rows) != len(points):
            return None
        return from_results(first, rows, out, kernel, request.file, points, request.flags())

    def print_generic(self, request: GenericRequest) -> list[ChildRow]:
        """Print files of IR in generic form, by the process that compiled them; return a row for each.

        Raises:
            FactError: the process has ended.
        """
        if self._ask(request).status != "ok":
            raise FactError("cannot print the IR in generic form", where=self._interpreter.python)
        return call.results(Path(request.results), ChildRow)

    def close(self) -> None:
        """Stop the process."""
        # Another thread may be about to ask: it must not start a process that nobody stops any more.
        with self._starting:
            process, self._process, self._closed = self._process, None, True
        if process:
            process.close()

    def _question(
        self, request: CompileRequest, kernel: str, points: Sequence[CompilePoint], out: Path
    ) -> PointsRequest:
        question = worker_request(request, kernel, points, self._interpreter, out, self._folder)
        return replace(question, timeout=self.timeout)

    def _ask(self, request: PointsRequest | GenericRequest) -> ServedRow:
        file = self._folder / f"{request.COMMAND}.json"
        files.write(file, text_of(request))
        process = self._started(file)
        process.say(f"{request.COMMAND} {file}")
        return process.hear(ServedRow)

    def _started(self, file: Path) -> call.Conversation:
        """Return the process; if there is none, start it, with the file of a request."""
        with self._starting:
            if self._closed:
                raise FactError("the compiler was stopped", where=self._interpreter.python)
            if self._process is None:
                change = {**dict(worker_variables(self._interpreter)), **_QUIET}
                self._process = call.Conversation(
                    self._interpreter.python, "attend", str(file), folder=self._folder, change=change
                )
            return self._process
