"""`kernel.compile`: compile a request with an interpreter that has Triton, into a folder with a manifest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from tritonsmith.compiler import call, manifest, output_folder, report, source, targets
from tritonsmith.compiler.describe import Described, described, refused
from tritonsmith.compiler.interpreter import (
    Interpreter,
    worker_variables,
)
from tritonsmith.compiler.manifest import FILE, Manifest, Point
from tritonsmith.compiler.output_folder import folder_name
from tritonsmith.compiler.request import CompilePoint, CompileRequest, expand_points
from tritonsmith.compiler.signature import BoundSignature
from tritonsmith.compiler.source import KernelSource
from tritonsmith.compiler.targets import Target
from tritonsmith.core import configs
from tritonsmith.core.errors import FactError, InterruptedRunError, SmithError, UsageError
from tritonsmith.core.plan import MakeDir, Plan, Remove, Run, Step, Write, files
from tritonsmith.core.plan.steps.base import CommandFailedError
from tritonsmith.core.ui import console
from tritonsmith.worker.border import text_of
from tritonsmith.worker.messages import (
    CompiledRow,
    CompileHead,
    FileRequest,
    PointRequest,
    PointsRequest,
    ServedRow,
)


@dataclass(frozen=True)
class PreparedCompile:
    """A compile that is ready to run.

    Attributes:
        plan: its steps.
        asked: the request.
        kernel: name of the function.
        wanted: the points.
        out: the output folder.
        work: folder of the request, the results and the caches.
    """

    plan: Plan
    asked: CompileRequest
    kernel: str
    wanted: tuple[CompilePoint, ...]
    out: Path
    work: Path

    @property
    def results(self) -> Path:
        """The worker's results file, with one JSON object per line."""
        return self.work / "results.jsonl"

    def under(self, change: Mapping[str, str]) -> PreparedCompile:
        """Return a copy that sets more environment variables for the compiler."""
        more = tuple(change.items())
        steps = [
            replace(step, env=(*step.env, *more)) if isinstance(step, Run) else step
            for step in self.plan.steps
        ]
        return replace(self, plan=Plan(self.plan.title, tuple(steps)))


@dataclass(frozen=True)
class CompileResult:
    """The result of a compile.

    Attributes:
        manifest: the output folder.
        notes: messages for the user: options left out, modules replaced, disassemblers missing.
    """

    manifest: Manifest
    notes: tuple[str, ...]


def check(asked: CompileRequest) -> None:
    """Check a request as far as the file's text allows, so that mistakes are reported without a Triton.

    Raises:
        SmithError: the file, the kernel or the signature is wrong.
    """
    try:
        _check(asked)
    except SmithError as error:
        if asked.listed:
            error.where = f"{asked.listed}:{asked.name}" + (f", {error.where}" if error.where else "")
        raise


def _check(asked: CompileRequest) -> None:
    name, kernel = _in_text(asked)
    if (kernel and not asked.runs_for_configs) or asked.from_ir:
        expand_points(asked, kernel)
    elif kernel and not kernel.autotuned:
        raise _not_tuned(name)


def prepare(asked: CompileRequest, where: Interpreter, out: Path | None = None) -> PreparedCompile:
    """Find the kernel, and create the points and the plan.

    Raises:
        SmithError: the file, the kernel or the signature is wrong, or the folder holds something else.
    """
    name, wanted = _wanted(asked, where)
    folder = (out or where.output(asked, name)).absolute()
    manifest.check_output(folder)
    work = output_folder.scratch(folder, where.space)
    stale = Remove((folder,), where.space.root, phase=f"compile {name}")
    steps = [*([] if out else [stale]), *_steps(asked, name, wanted, where, folder, work)]
    return PreparedCompile(Plan(f"compile {name}", tuple(steps)), asked, name, wanted, folder, work)


def compile_all(
    asked: CompileRequest, where: Interpreter, out: Path | None = None, *, silent: bool = False
) -> Manifest:
    """Compile every point; a failed one is a row of the manifest.

    Args:
        asked: the request.
        where: the interpreter.
        out: the output folder; None for a folder of the workspace.
        silent: show neither progress nor notes.

    Raises:
        SmithError: nothing could be compiled, because of the file, the kernel, an option or the interpreter.
        InterruptedRunError: ^C.
    """
    result = execute(prepare(asked, where, out), where, silent=silent)
    for text in () if silent else result.notes:
        console.note(text)
    return result.manifest


def prepare_all(
    asked: Sequence[CompileRequest], where: Interpreter, out: Path | None = None
) -> tuple[PreparedCompile, ...]:
    """Return the plans of `execute_all`.

    Raises:
        SmithError: as `prepare`.
    """
    return tuple(prepare(request, where, place) for request, place in _places(asked, out))


def execute_all(
    asked: Sequence[CompileRequest], where: Interpreter, out: Path | None = None, *, silent: bool = False
) -> tuple[CompileResult, ...]:
    """Compile kernels one after the other; a refused kernel among several is a row, not the end.

    Args:
        asked: one kernel; or several of a kernels file, each into a folder of its name.
        where: the interpreter.
        out: the output folder, or the parent of several; None for folders of the workspace.
        silent: show no progress.

    Raises:
        SmithError: the only kernel is refused.
        InterruptedRunError: ^C.
    """
    results = []
    for request, place in _places(asked, out):
        try:
            # Two commands that kept the locks of several kernels would wait for each other.
            with output_folder.not_kept() if len(asked) > 1 else nullcontext():
                results.append(execute(prepare(request, where, place), where, silent=silent))
        except SmithError as error:
            if len(asked) == 1 or isinstance(error, InterruptedRunError):
                raise
            results.append(
                CompileResult(_refused(request, place or where.output(request, request.kernel), error), ())
            )
    return tuple(results)


def _places(
    asked: Sequence[CompileRequest], out: Path | None
) -> Iterator[tuple[CompileRequest, Path | None]]:
    """Yield each request with its output folder: several share a parent folder."""
    for request in asked:
        yield request, out / folder_name(request.name) if out and len(asked) > 1 else out


def _refused(asked: CompileRequest, folder: Path, error: SmithError) -> Manifest:
    message = "\n".join(filter(None, (error.what, error.why)))
    points = tuple(
        Point(name.replace(":", "-"), name, {}, {}, {}, dict(asked.options), "failed", 0.0, error=message)
        for name in map(str, asked.targets)
    )
    return Manifest(folder, asked.kernel, str(asked.file), "", "", "", "", "", points)


def execute(prepared: PreparedCompile, where: Interpreter, *, silent: bool = False) -> CompileResult:
    """Run a plan of `prepare`, and write the manifest.

    Raises:
        SmithError: as `compile_all`.
    """
    where.space.claim()
    log = where.space.log("kernel.compile")
    with output_folder.held(prepared.out, where.space, "kernel.compile"):
        try:
            where.space.run(prepared.plan, "kernel.compile", quiet=silent, log=log)
        except CommandFailedError as failure:
            raise refused(prepared.results, prepared.asked, where.python, failure) from failure
        head, rows = call.headed_results(prepared.results, CompileHead, CompiledRow)
        flags = prepared.asked.flags(**where.flags, out=prepared.out)
        result_manifest = manifest.from_results(
            head, rows, prepared.out, prepared.kernel, prepared.asked.file, prepared.wanted, flags
        )
        written = Write(prepared.out / FILE, result_manifest.render(), phase="manifest")
        steps = (written, manifest.record(result_manifest, where.space))
        where.space.run(Plan("manifest", steps), "kernel.compile", quiet=True, log=log)
    return CompileResult(result_manifest, tuple(report.notes(head, result_manifest, prepared.asked)))


def worker_request(
    file: Path,
    kernel: str,
    wanted: Sequence[CompilePoint],
    out: Path,
    work: Path,
    where: Interpreter,
    *,
    strict: bool = False,
    keep: Sequence[str] = (),
    disassemble: bool = True,
) -> PointsRequest:
    """Return the worker's request.

    Args:
        file: the kernel's file, or the IR's.
        kernel: name of the function.
        wanted: the points.
        out: folder of the outputs.
        work: folder of the results and the caches.
        where: the interpreter.
        strict: fail if one of the points does.
        keep: the stages to keep; all if empty.
        disassemble: also disassemble each binary.
    """
    table = configs.load("kernels")
    return PointsRequest(
        **vars(file_request(file, kernel, wanted, where)),
        output=str(out),
        scratch=str(work),
        results=str(work / "results.jsonl"),
        jobs=where.jobs,
        timeout=where.timeout,
        strict=strict,
        keep=tuple(keep),
        disassemble=disassemble,
        stages=tuple(table["stages"]["compiler"]),
    )


def file_request(file: Path, kernel: str, wanted: Sequence[CompilePoint], where: Interpreter) -> FileRequest:
    """Return the part of a request that says what to load, and what to put around it."""
    return FileRequest(
        file=str(file),
        kernel=kernel,
        ir=all(point.bound is None for point in wanted),
        points=tuple(map(_point, wanted)),
        stand_ins=tuple(configs.load("kernels")["stand-ins"]["modules"]),
        gpus=targets.all_gpu_facts(point.target for point in wanted),
        disassemblers={tool.binary: tool.request() for tool in where.programs.disassemblers},
        lent=dict(where.programs.lent),
    )


def _in_text(asked: CompileRequest) -> tuple[str, KernelSource | None]:
    """Return the kernel's name and its head; no head for IR, or if only running the file can tell it."""
    text = source.read(asked.file)
    if asked.from_ir:
        return asked.kernel, None
    name = source.choose(text, asked.kernel, asked.file)
    return name, source.find(text, name, asked.file)


def _not_tuned(name: str) -> UsageError:
    return UsageError(f"{name} has no @triton.autotune", hints=["omit --sweep autotune"])


def _wanted(asked: CompileRequest, where: Interpreter) -> tuple[str, tuple[CompilePoint, ...]]:
    name, kernel = _in_text(asked)
    if asked.from_ir or (kernel and not asked.runs_for_configs):
        return name, expand_points(asked, kernel)
    expanded: list[CompilePoint] = []
    for target, about in zip(asked.targets, _described(asked, name, where), strict=True):
        if asked.runs_for_configs and not about.configs:
            raise _not_tuned(name)
        tuned = about.configs if asked.runs_for_configs else ()
        expanded += expand_points(replace(asked, targets=(target,)), about.kernel, tuned)
    return name, tuple(expanded)


def _described(asked: CompileRequest, name: str, where: Interpreter) -> list[Described]:
    """Return the kernel as each target sees it."""
    # A target for which the file fails borrows the result of another. Its points then fail in the worker,
    # which loads the file too and reports the reason; but their configs are unknown, so these raise here.
    by_target: dict[Target, Described] = {}
    errors: list[SmithError] = []
    for target in asked.targets:
        about = next(iter(by_target.values()), None)
        if about and not about.asked_gpu:  # every GPU has the same
            by_target[target] = about
            continue
        try:
            by_target[target] = described(asked, target, name, where.python, where.space)
        except FactError as error:
            errors.append(error)
    if errors and (asked.runs_for_configs or not by_target):
        raise errors[0]
    return [by_target.get(target) or next(iter(by_target.values())) for target in asked.targets]


def _steps(
    asked: CompileRequest,
    name: str,
    wanted: Sequence[CompilePoint],
    where: Interpreter,
    out: Path,
    work: Path,
) -> Iterator[Step]:
    phase = f"compile {name}"
    file = work / "request.json"
    request = worker_request(
        asked.file, name, wanted, out, work, where, keep=asked.stages, disassemble=asked.disassemble
    )
    yield MakeDir(out, phase=phase)
    yield from call.steps(where.python, request, file, env=worker_variables(where), phase=phase)


def _point(point: CompilePoint) -> PointRequest:
    bound = point.bound or BoundSignature()
    return PointRequest(
        target=(point.target.backend, point.target.arch, point.target.warp_size),
        id=point.id,
        options=dict(point.options),
        signature=bound.signature,
        constexprs=bound.constexprs,
        hints=bound.hints,
        ranges=tuple(bound.ranges),
        surgery=point.surgery.request() if point.surgery is not None else None,
    )


_QUIET = {"PYTHONDONTWRITEBYTECODE": "1"}


class WarmCompiler:
    """A compiler for one request after the other; each is a fork of a process that has imported Triton.

    Args:
        where: the interpreter.
        folder: for the requests, the results and the caches; it must exist.
    """

    def __init__(self, where: Interpreter, folder: Path) -> None:
        self._where, self._folder = where, folder
        self._process: call.Conversation | None = None

    def compile(self, asked: CompileRequest, out: Path) -> Manifest | None:
        """Compile all points; return None if the kernel or the signature is refused.

        Args:
            asked: for a kernel whose head can be read from its file.
            out: folder of the outputs; existing files are overwritten.

        Raises:
            FactError: the process has ended.
        """
        try:
            kernel = source.find(source.read(asked.file), asked.kernel, asked.file)
            wanted = expand_points(asked, kernel) if kernel else ()
        except SmithError:
            return None
        if not wanted:
            return None
        files.make_folder(out)
        request, where = self._folder / "request.json", replace(self._where, jobs=1)
        content = worker_request(
            asked.file,
            asked.kernel,
            wanted,
            out,
            self._folder,
            where,
            keep=asked.stages,
            disassemble=asked.disassemble,
        )
        files.write(request, text_of(content))
        ended = self._ask(request)
        if ended.status != "ok":
            return None
        try:
            head, rows = call.headed_results(self._folder / "results.jsonl", CompileHead, CompiledRow)
        except call.UnansweredError:
            return None
        if len(rows) != len(wanted):
            return None
        return manifest.from_results(head, rows, out, asked.kernel, asked.file, wanted, asked.flags())

    def close(self) -> None:
        """Stop the process."""
        if self._process:
            self._process.close()
        self._process = None

    def _ask(self, request: Path) -> ServedRow:
        if self._process is None:
            change = {**dict(worker_variables(self._where)), **_QUIET}
            self._process = call.Conversation(
                self._where.python, "attend", str(request), folder=self._folder, change=change
            )
        self._process.say(str(request))
        return self._process.hear(ServedRow)
