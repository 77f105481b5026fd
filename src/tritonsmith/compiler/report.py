"""Show a manifest on the terminal: a table of points and stages, the failures, and notes.

Facts that only the environment's interpreter can report, about a kernel and a module, and its errors.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tritonsmith.compiler import call, interpreter, targets
from tritonsmith.compiler.interpreter import Interpreter
from tritonsmith.compiler.manifest import SCHEMA, Manifest, Point
from tritonsmith.compiler.request import CompileRequest, Config
from tritonsmith.compiler.source import KernelParameter, KernelSource
from tritonsmith.compiler.targets import Target
from tritonsmith.core import configs
from tritonsmith.core.errors import FactError, SmithError, UsageError, did_you_mean
from tritonsmith.core.plan.steps.base import CommandFailedError
from tritonsmith.core.process import query
from tritonsmith.core.text import duration
from tritonsmith.core.ui import tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.worker.border import WorkerRefusal
from tritonsmith.worker.messages import CompileHead, DescribedRow, DescribeRequest, PointRequest

_OF_LOG = 12  # lines, of a crash
_SHOWN = 4  # names of a package; the manifest has all
_LINES = 40  # of an error on the screen; the manifest has all of it


def table(manifest: Manifest) -> Iterator[Grid]:
    """Yield a table per vendor: one row per point, one column per stage, sizes in the cells."""
    for backend in dict.fromkeys(point.backend for point in manifest.points):
        yield _table(manifest, [point for point in manifest.points if point.backend == backend])


def _table(manifest: Manifest, points: Sequence[Point]) -> Grid:
    here = {name for point in points for name in point.stages} - {"source"}  # the ttir, before the first pass
    names = [name for name in stages(manifest) if name in here]
    failed = any(point.status != "ok" for point in points)
    rows = []
    for point in points:
        sizes = [f"{point.stages[name].size / 1024:.1f}" if name in point.stages else "" for name in names]
        rows.append([point.id, *([point.status] if failed else []), *sizes, duration(point.seconds)])
    by = f"by Triton {manifest.triton} on Python {manifest.python}; sizes in KiB"
    title = f"{manifest.kernel} {by if manifest.triton else 'was refused'}"
    columns = ["point", *(["status"] if failed else []), *names, "time"]
    return tables.plain(title, columns, rows, right=[*names, "time"])


def stages(manifest: Manifest) -> tuple[str, ...]:
    """Return the names of the stages that any point has, in the order of the pipeline."""
    known = configs.load("kernels")["stages"]
    here = {name for point in manifest.points for name in point.stages}
    rank = {name: number for number, name in enumerate((*known["compiler"], *known["disassembled"]))}
    after = {
        row["stage"]: rank[binary] + 0.5 for binary, row in configs.load("kernels")["disassemblers"].items()
    }
    return tuple(sorted(here, key=lambda name: (after.get(name, rank.get(name, len(rank))), name)))


def failures(manifest: Manifest) -> Iterator[str]:
    """Yield the failures, each message once, with its points."""
    about: dict[str, list[Point]] = {}
    for point in manifest.points:
        if point.status != "ok":
            about.setdefault(_words(point), []).append(point)
    for text, points in about.items():
        ids = ", ".join(point.id for point in points)
        yield f"{ids}: {points[0].status}\n{text}"


def _words(point: Point) -> str:
    lines = point.error.strip().splitlines()
    if point.status == "crashed":  # the worker's own frames tell nobody anything
        log = (line for line in point.log.splitlines() if line.strip() and line.strip() not in lines)
        lines += [line for line in log if not call.in_own_frame(line)][:_OF_LOG]
    if len(lines) > _LINES:
        lines = [*lines[:_LINES], f"... {len(lines) - _LINES} more lines in the manifest"]
    return "\n".join(f"  {line}" for line in lines)


def as_json(manifest: Manifest, notes: tuple[str, ...]) -> dict[str, Any]:
    """Return the manifest as JSON data, with its folder and the notes."""
    content: dict[str, Any] = json.loads(manifest.render())
    return content | {"folder": str(manifest.folder), "notes": list(notes)}


def failures_of_all(manifests: Sequence[Manifest]) -> Iterator[str]:
    """Yield the failures of several kernels, each with the name of the kernel's folder."""
    for manifest in manifests:
        place = f"{manifest.folder.name}/" if len(manifests) > 1 else ""
        yield from (f"{place}{text}" for text in failures(manifest))


def as_json_of_all(results: Sequence[tuple[Manifest, tuple[str, ...]]]) -> dict[str, Any]:
    """Return `as_json` of one kernel; for several, a list of these."""
    kernels = [as_json(manifest, notes) for manifest, notes in results]
    return kernels[0] if len(kernels) == 1 else {"schema": SCHEMA, "kernels": kernels}


def notes(head: CompileHead, manifest: Manifest, request: CompileRequest) -> Iterator[str]:
    """Yield notes about a successful run.

    Args:
        head: the worker's line about Triton.
        manifest: the result.
        request: the request.
    """
    yield from manifest.warnings
    yield from head.notes
    yield from _replaced(manifest.stand_ins)
    texts = configs.load("kernels")["disassemblers"]
    for binary, row in texts.items() if request.disassemble else ():
        stage = row["stage"]
        without = [point for point in manifest.points if binary in point.stages and stage not in point.stages]
        if without and stage in head.missing:
            yield interpreter.remedy(stage)
        elif without and not request.stages:
            yield f"no {stage} for {', '.join(point.id for point in without)}: see the log of each point"
    good = [point for point in manifest.points if point.status == "ok"]
    here = {name for point in good for name in point.stages}
    binaries = {row["stage"]: binary for binary, row in texts.items()}
    for name in request.stages if good else ():
        if name not in here and binaries.get(name) not in here:
            yield f"no point has a stage {name}: none of these targets produces it"


def _replaced(stand_ins: Mapping[str, str]) -> Iterator[str]:
    """Yield one line per package that stand-ins replaced, with the first names."""
    packages: dict[str, list[str]] = {}
    for name, place in stand_ins.items():
        packages.setdefault(name.partition(".")[0], []).append(f"{name} ({place})")
    for package, names in packages.items():
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        yield f"{package} is not installed, and stand-ins replaced {', '.join(names[:_SHOWN])}{more}"


@dataclass(frozen=True)
class KernelDescription:
    """A kernel as Triton sees it.

    Attributes:
        kernel: the kernel and its parameters.
        configs: the configs of its autotuner.
        queried_gpu: the file queried the GPU at import, so that the kernel may differ for another target.
    """

    kernel: KernelSource
    configs: tuple[Config, ...]
    queried_gpu: bool


def describe_kernel(
    request: CompileRequest, target: Target, kernel: str, interpreter: Interpreter
) -> KernelDescription:
    """Return the facts about a kernel that are known only by running its file.

    Args:
        request: names the file.
        target: the GPU that the file sees.
        kernel: name of the function.
        interpreter: the interpreter.

    Raises:
        SmithError: the file cannot be run, or has no such kernel.
    """
    table = configs.load("kernels")
    question = DescribeRequest(
        file=str(request.file),
        kernel=kernel,
        ir=False,
        points=(PointRequest((target.backend, target.arch, target.warp_size)),),
        stand_ins=tuple(table["stand-ins"]["modules"]),
        gpus=targets.all_gpu_facts([target]),
        lent=dict(interpreter.programs.lent),
    )
    try:
        row = call.ask_one(
            interpreter.python, question, DescribedRow, interpreter.space, timeout=table["jobs"]["start"]
        )
    except call.UnansweredError as error:
        if error.refusal:
            raise _error(error.refusal, request, interpreter.python) from error
        raise FactError(
            "cannot inspect the kernel's file",
            where=request.file,
            why=error.why,
            hints=[f"check that this works: {interpreter.python} -c 'import triton'"],
        ) from error
    parameters = tuple(KernelParameter(**asdict(parameter)) for parameter in row.parameters)
    source = KernelSource(kernel, parameters, row.heuristics, bool(row.configs))
    return KernelDescription(
        source, tuple(Config(each.values, each.options) for each in row.configs), row.asked
    )


def provided(module: str) -> tuple[str, ...]:
    """Return hints for a missing module; a package is named only if it is known to be the right one."""
    packages: dict[str, str] = configs.load("kernels")["packages"]
    own = f"if it is your own module: PYTHONPATH=/folder/that/has/{module}"
    if package := packages.get(module):
        return f"install it into the environment: pip install {package}", own
    return own, f"a package named {module} may be unrelated: check the requirements of the kernel's project"


def failed_run(
    results: Path, request: CompileRequest, python: Path, failure: CommandFailedError
) -> SmithError:
    """Return the error for a worker run that produced nothing."""
    if refusal := call.refusal_in(results):
        return _error(refusal, request, python)
    hints = ["the log contains the full command and its output"]
    # The worker opens its file first: an empty one means that it died before the first row, as when an
    # import of the kernel's file crashes.
    if results.is_file() and not results.stat().st_size:
        hints = [f"it ended before compiling anything, perhaps while importing {request.file}", *hints]
    return SmithError(
        f"the compiler process failed with exit code {failure.code}",
        where=failure.log,
        why="\n".join(failure.output[-8:]) or None,
        hints=hints,
    )


def _error(refusal: WorkerRefusal, request: CompileRequest, python: Path) -> SmithError:
    """Turn the worker's reason into one error with hints."""
    what, why, module = refusal.what, refusal.why or None, refusal.module
    kind: type[SmithError] = FactError
    where: Path | None = request.file
    hints: tuple[str, ...] = ()
    names: Sequence[str] = refusal.names
    if refusal.kind == "kernel":
        hints = did_you_mean(request.kernel, names) if names else ("a kernel is a function with @triton.jit",)
        kind = UsageError
    elif refusal.kind == "option":
        name = refusal.name
        if name in {sweep.name for sweep in request.sweeps}:
            what = f"{name!r} is neither a parameter of the kernel nor an option of a backend"
            names = [*refusal.parameters, *names]
        kind, where, hints = UsageError, None, did_you_mean(name, names)
    elif module == "triton":
        what, hints = (
            f"the kernel imports something that this Triton lacks: {what}",
            ("use a newer Triton: --env, --python",),
        )
    elif module:
        what = f"the kernel needs a module that is not installed: {what}"
        hints = provided(module)
    elif refusal.kind == "unknown":
        hints = (
            provided(refusal.package)
            if refusal.package
            else ("use a constant in the file instead of a value computed at import",)
        )
    elif refusal.kind == "triton":
        where, hints = python, ("invoke up creates an environment with a Triton release",)
    elif refusal.kind == "file":
        hints = ("only what the kernel needs is run from the file: its definition and the names in it",)
    return kind(what, where=where, why=why, hints=hints)


# A top-level package is searched by all finders, since that of an editable install may know it; its
# submodules are searched in the package's folder only, because `find_spec` would import the parents.
_SEARCH = """
import importlib.machinery, importlib.util, json, sys
name, *parts = sys.argv[1].split(".")
spec = importlib.util.find_spec(name)
for part in parts:
    name += "." + part
    inside = spec and spec.submodule_search_locations
    spec = importlib.machinery.PathFinder.find_spec(name, list(inside)) if inside else None
    if spec is None:
        break
print(json.dumps({"name": name, "file": spec and spec.origin}))
"""


def module_file(module: str, python: Path) -> Path:
    """Return the file of a module.

    Args:
        module: its dotted name.
        python: the interpreter that would import it, from the current folder.

    Raises:
        FactError: there is none, or it is not written in Python.
    """
    # Only that interpreter knows: its finders include those of editable installs.
    answer = query((str(python), "-c", _SEARCH, module))
    try:
        location = json.loads(answer.out.splitlines()[-1]) if answer else {}
    except (ValueError, IndexError):
        location = {}
    if not location:
        why = answer.err[-2000:] if answer else f"{python} did not respond in time"
        raise FactError("cannot search for the module", where=module, why=why)
    if not location["file"]:
        package = module.partition(".")[0]
        hints = ["give its file instead", *(provided(package) if location["name"] == package else ())]
        raise FactError(f"no module {location['name']}", where=module, why=f"for {python}", hints=hints)
    if not location["file"].endswith(".py"):
        raise FactError("this module is not written in Python", where=location["file"])
    return Path(location["file"])
