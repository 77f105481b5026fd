"""`kernel.compile`: compile a request with an interpreter that has Triton, into a folder with a manifest."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from tritonsmith import worker
from tritonsmith.compiler import disassemblers, gpu_models, manifest, output_lock, points, report, source
from tritonsmith.compiler.describe import Described, described, refused
from tritonsmith.compiler.disassemblers import HostPrograms
from tritonsmith.compiler.folder_name import folder_name
from tritonsmith.compiler.manifest import FILE, Manifest, Point
from tritonsmith.compiler.points import CompilePoint
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.compiler.source import KernelSource
from tritonsmith.compiler.targets import Target
from tritonsmith.core import configs
from tritonsmith.core.command_line import command
from tritonsmith.core.envs import settings, workspace
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, InterruptedRunError, SmithError, UsageError
from tritonsmith.core.plan import MakeDir, Plan, Remove, Run, Step, Write
from tritonsmith.core.plan.steps.base import CommandFailedError
from tritonsmith.core.ui import console
from tritonsmith.facts import installed_tritons, machine

_MIB = 1 << 20


@dataclass(frozen=True)
class Toolchain:
    """The interpreter that compiles, and its limits.

    Attributes:
        python: an interpreter that has Triton.
        space: the workspace: scratch folders, logs, and outputs whose place nobody named.
        folder: of outputs whose place nobody named.
        jobs: compiles at once.
        timeout: seconds for one point.
        flags: those that name this place again, for a shell.
        programs: of this machine, that Triton does not bring along.
        variables: set for the compiler.
    """

    python: Path
    space: Workspace
    folder: Path
    jobs: int
    timeout: int
    flags: Mapping[str, str] = field(default_factory=dict)
    programs: HostPrograms = field(default_factory=HostPrograms)
    variables: Mapping[str, str] = field(default_factory=dict)

    def output(self, asked: CompileRequest, kernel: str) -> Path:
        """The default output folder of a kernel."""
        own = folder_name(f"{asked.listed.stem}.{asked.name}") if asked.listed else ""
        return self.folder / (own or f"{asked.file.stem}.{kernel}")


@dataclass(frozen=True)
class PreparedCompile:
    """A compile that is ready to run.

    Attributes:
        plan: its steps.
        asked: what for.
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
        """Where the worker leaves its results, one JSON object a line."""
        return self.work / "results.jsonl"

    def under(self, change: Mapping[str, str]) -> PreparedCompile:
        """The same with other variables set for the compiler."""
        more = tuple(change.items())
        steps = [
            replace(one, env=(*one.env, *more)) if isinstance(one, Run) else one for one in self.plan.steps
        ]
        return replace(self, plan=Plan(self.plan.title, tuple(steps)))


@dataclass(frozen=True)
class CompileResult:
    """The result of a compile.

    Attributes:
        manifest: the output folder.
        notes: what a person should know: options left out, modules replaced, disassemblers missing.
    """

    manifest: Manifest
    notes: tuple[str, ...]


def toolchain(
    env: str, python: str = "", *, jobs: int | None = None, timeout: int | None = None
) -> Toolchain:
    """Where Triton is.

    Args:
        env: an environment, by name or file.
        python: an interpreter instead.
        jobs: compiles at once; None or 0 for as many as cores and memory allow.
        timeout: seconds for one point; None or 0 for the usual.

    Raises:
        FactError: there is no such interpreter.
    """
    space = workspace.default()
    table = configs.load("kernels")["jobs"]
    if python:
        path, folder, flags = (
            Path(python).expanduser().absolute(),
            space.root / "kernels",
            {"python": python},
        )
        hints = ["give an interpreter that has Triton: --python .venv/bin/python"]
    else:
        chosen = settings.load(env)
        made = space.env(chosen.name)
        path, folder, flags = made.python, made.path / "kernels", {"env": env}
        if chosen.triton.wheel:
            hints = [f"{command('up', env=env)} creates it"]
        else:
            hints = [
                f"{command('install-triton', env=env)} creates it, after build-triton",
                "or use a release: --env wheel",
            ]
    if not (path.is_file() and os.access(path, os.X_OK)):
        hints += [f"or use one that is there: --env {name}" for name in installed_tritons.environments(space)]
        raise FactError("no Python interpreter with Triton yet", where=path, hints=hints)
    here = machine.read()
    fitting = max(1, min(here.cores, here.memory // (table["memory"] * _MIB)))
    programs = disassemblers.locate(space)
    return Toolchain(path, space, folder, jobs or fitting, timeout or table["timeout"], flags, programs)


def check(asked: CompileRequest) -> None:
    """Check what the file's text alone shows, so that errors do not need a Triton.

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
        points.expand(asked, kernel)
    elif kernel and not kernel.autotuned:
        raise _not_tuned(name)


def prepare(asked: CompileRequest, where: Toolchain, out: Path | None = None) -> PreparedCompile:
    """Find the kernel, and create the points and the plan.

    Raises:
        SmithError: the file, the kernel or the signature is wrong, or the folder is somebody else's.
    """
    name, wanted = _wanted(asked, where)
    folder = (out or where.output(asked, name)).absolute()
    manifest.check_output(folder)
    work = output_lock.scratch(folder, where.space)
    stale = Remove((folder,), where.space.root, phase=f"compile {name}")
    steps = [*([] if out else [stale]), *_steps(asked, name, wanted, where, folder, work)]
    return PreparedCompile(Plan(f"compile {name}", tuple(steps)), asked, name, wanted, folder, work)


def compile_all(
    asked: CompileRequest, where: Toolchain, out: Path | None = None, *, silent: bool = False
) -> Manifest:
    """Compile every point; one that fails is a row of the manifest.

    Args:
        asked: what is wanted.
        where: who compiles.
        out: the output folder; a folder of the workspace's if None.
        silent: show neither progress nor notes.

    Raises:
        SmithError: nothing could be compiled, because of the file, the kernel, an option or the interpreter.
        InterruptedRunError: ^C.
    """
    made = execute(prepare(asked, where, out), where, silent=silent)
    for text in () if silent else made.notes:
        console.note(text)
    return made.manifest


def prepare_all(
    asked: Sequence[CompileRequest], where: Toolchain, out: Path | None = None
) -> tuple[PreparedCompile, ...]:
    """The plans of `execute_all`.

    Raises:
        SmithError: as `prepare`.
    """
    return tuple(prepare(one, where, place) for one, place in _places(asked, out))


def execute_all(
    asked: Sequence[CompileRequest], where: Toolchain, out: Path | None = None, *, silent: bool = False
) -> tuple[CompileResult, ...]:
    """Compile kernels one after the other; one of several that is refused is a row, not the end.

    Args:
        asked: one kernel; or several of a kernels file, each into a folder of its name.
        where: who compiles.
        out: the output folder, or theirs; folders of the workspace if None.
        silent: show no progress.

    Raises:
        SmithError: the only kernel is refused.
        InterruptedRunError: ^C.
    """
    found = []
    for one, place in _places(asked, out):
        try:
            found.append(execute(prepare(one, where, place), where, silent=silent))
        except SmithError as error:
            if len(asked) == 1 or isinstance(error, InterruptedRunError):
                raise
            found.append(CompileResult(_refused(one, place or where.output(one, one.kernel), error), ()))
    return tuple(found)


def _places(
    asked: Sequence[CompileRequest], out: Path | None
) -> Iterator[tuple[CompileRequest, Path | None]]:
    """Each with its output folder: that of several is a folder in that of all."""
    for one in asked:
        yield one, out / folder_name(one.name) if out and len(asked) > 1 else out


def _refused(asked: CompileRequest, folder: Path, error: SmithError) -> Manifest:
    said = "\n".join(filter(None, (error.what, error.why)))
    points = tuple(
        Point(name.replace(":", "-"), name, {}, {}, {}, dict(asked.options), "failed", 0.0, error=said)
        for name in map(str, asked.targets)
    )
    return Manifest(folder, asked.kernel, str(asked.file), "", "", "", "", "", points)


def execute(prepared: PreparedCompile, where: Toolchain, *, silent: bool = False) -> CompileResult:
    """Run a plan of `prepare`, and write the manifest.

    Raises:
        SmithError: as `compile_all`.
    """
    where.space.claim()
    log = where.space.log("kernel.compile")
    with output_lock.held(prepared.out, where.space, "kernel.compile"):
        try:
            where.space.run(prepared.plan, "kernel.compile", quiet=silent, log=log)
        except CommandFailedError as failure:
            raise refused(prepared.results, prepared.asked, where.python, failure) from failure
        found = manifest.read_results(prepared.results)
        flags = prepared.asked.flags(**where.flags, out=prepared.out)
        made = manifest.from_results(
            found, prepared.out, prepared.kernel, prepared.asked.file, prepared.wanted, flags
        )
        written = Write(prepared.out / FILE, made.render(), phase="manifest")
        steps = (written, manifest.record(made, where.space))
        where.space.run(Plan("manifest", steps), "kernel.compile", quiet=True, log=log)
    return CompileResult(made, tuple(report.notes(found[0], made, prepared.asked)))


def worker_request(
    file: Path,
    kernel: str,
    wanted: Sequence[CompilePoint],
    out: Path,
    work: Path,
    where: Toolchain,
    *,
    strict: bool = False,
    keep: Sequence[str] = (),
    disassemble: bool = True,
) -> dict[str, Any]:
    """The worker's request.

    Args:
        file: with the kernel, or of IR.
        kernel: name of the function.
        wanted: the points.
        out: folder of the outputs.
        work: folder of the results and the caches.
        where: who compiles.
        strict: fail if one of the points does.
        keep: the stages to keep; all if empty.
        disassemble: make a text of each binary too.
    """
    table = configs.load("kernels")
    return {
        "schema": 1,
        "file": str(file),
        "kernel": kernel,
        "ir": all(one.bound is None for one in wanted),
        "points": [_point(one) for one in wanted],
        "output": str(out),
        "scratch": str(work),
        "results": str(work / "results.jsonl"),
        "jobs": where.jobs,
        "timeout": where.timeout,
        "strict": strict,
        "keep": list(keep),
        "disassemble": disassemble,
        "stages": table["stages"]["compiler"],
        "stand-ins": table["stand-ins"]["modules"],
        "gpus": gpu_models.all_facts(one.target for one in wanted),
        "disassemblers": {one.binary: one.request() for one in where.programs.disassemblers},
        "lent": dict(where.programs.lent),
    }


def run_step(where: Toolchain, asked_file: Path, work: Path, phase: str) -> Run:
    """The step that runs the worker: `compile_points` of worker/compile.py."""
    argv = (str(where.python), str(worker.FOLDER), "compile", str(asked_file))
    return Run(argv, cwd=work, env=worker_variables(where), phase=phase)


def worker_variables(where: Toolchain) -> tuple[tuple[str, str | None], ...]:
    """The change of the worker's environment."""
    return (
        *((name, None) for name in configs.load("kernels")["variables"]["unset"]),
        *where.programs.linker,
        *where.variables.items(),
    )


def _in_text(asked: CompileRequest) -> tuple[str, KernelSource | None]:
    """The kernel's name, and what its head tells; None if only running the file can tell, and for IR."""
    text = source.read(asked.file)
    if asked.from_ir:
        return asked.kernel, None
    name = source.choose(text, asked.kernel, asked.file)
    return name, source.find(text, name, asked.file)


def _not_tuned(name: str) -> UsageError:
    return UsageError(f"{name} has no @triton.autotune", hints=["omit --sweep autotune"])


def _wanted(asked: CompileRequest, where: Toolchain) -> tuple[str, tuple[CompilePoint, ...]]:
    name, kernel = _in_text(asked)
    if asked.from_ir or (kernel and not asked.runs_for_configs):
        return name, points.expand(asked, kernel)
    found: list[CompilePoint] = []
    for target, about in zip(asked.targets, _described(asked, name, where), strict=True):
        if asked.runs_for_configs and not about.configs:
            raise _not_tuned(name)
        tuned = about.configs if asked.runs_for_configs else ()
        found += points.expand(replace(asked, targets=(target,)), about.kernel, tuned)
    return name, tuple(found)


def _described(asked: CompileRequest, name: str, where: Toolchain) -> list[Described]:
    """The kernel for each target; where it cannot be looked at for one, as for another, if there is any.

    Its points do not compile: the worker loads the file, too, and says why. Which configs they would have
    nobody knows.
    """
    found: dict[Target, Described] = {}
    errors: list[SmithError] = []
    for target in asked.targets:
        about = next(iter(found.values()), None)
        if about and not about.asked_gpu:  # every GPU has the same
            found[target] = about
            continue
        try:
            found[target] = described(asked, target, name, where.python, where.space)
        except FactError as error:
            errors.append(error)
    if errors and (asked.runs_for_configs or not found):
        raise errors[0]
    return [found.get(target) or next(iter(found.values())) for target in asked.targets]


def _steps(
    asked: CompileRequest, name: str, wanted: Sequence[CompilePoint], where: Toolchain, out: Path, work: Path
) -> Iterator[Step]:
    phase = f"compile {name}"
    file = work / "request.json"
    content = worker_request(
        asked.file, name, wanted, out, work, where, keep=asked.stages, disassemble=asked.disassemble
    )
    yield MakeDir(out, phase=phase)
    yield Write(file, json.dumps(content, indent=2) + "\n", phase=phase)
    yield run_step(where, file, work, phase)


def _point(one: CompilePoint) -> dict[str, Any]:
    bound = asdict(one.bound) if one.bound else {"signature": {}, "constexprs": {}, "hints": {}, "ranges": []}
    target = [one.target.backend, one.target.arch, one.target.warp_size]
    made = {"id": one.id, "target": target, "options": dict(one.options), **bound}
    return made if one.surgery is None else {**made, "surgery": one.surgery.request()}
