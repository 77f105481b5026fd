"""Export compiled kernels as C sources, and check them with a C compiler: `kernel.export`."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tritonsmith.compiler import run
from tritonsmith.compiler.interpreter import Interpreter
from tritonsmith.compiler.manifest import Manifest, Point
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.compiler.resources import measure
from tritonsmith.compiler.resources.measure import Measured
from tritonsmith.compiler.resources.table import LAUNCH, ResourceRow
from tritonsmith.core import configs, process
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import FactError, UsageError, did_you_mean
from tritonsmith.core.plan import MakeDir, Plan, Remove, Run, Step, Write, digest
from tritonsmith.core.plan.steps.base import CommandFailedError
from tritonsmith.inspect.export_c import c_source, c_types
from tritonsmith.inspect.export_c.c_types import Variant

_WRITE, _CHECK = "write C", "check C"


@dataclass(frozen=True)
class VariantGroup:
    """The variants for one target, to be linked into one program.

    Attributes:
        folder: of their files.
        variants: in the order of the request.
        headers: folder of `cuda.h` or `hip/`, in the Triton that compiled them.
    """

    folder: Path
    variants: tuple[Variant, ...]
    headers: Path

    @property
    def sources(self) -> tuple[Path, ...]:
        """The dispatcher, and one file per variant."""
        stems = [self.variants[0].out_name, *(variant.stem for variant in self.variants)]
        return tuple(self.folder / f"{stem}.c" for stem in stems)


@dataclass(frozen=True)
class PreparedAot:
    """Sources that are ready to be written.

    Attributes:
        plan: the steps, including the check.
        folder: the folder of the files.
        groups: one per target.
    """

    plan: Plan
    folder: Path
    groups: tuple[VariantGroup, ...]


def compiles(requests: Sequence[CompileRequest], where: Interpreter) -> tuple[run.PreparedCompile, ...]:
    """Prepare one compile per signature, each in its own folder; disassembly is not needed.

    Raises:
        SmithError: a file, a kernel or a signature is wrong.
    """
    wanted = [replace(request, stages=(), disassemble=False) for request in requests]
    first = run.prepare(wanted[0], where)
    more = [
        run.prepare(request, where, first.out.with_name(f"{first.out.name}.{number}"))
        for number, request in enumerate(wanted[1:], 2)
    ]
    return (first, *more)


def prepare(
    manifests: Sequence[Manifest],
    dimensions: str,
    out: Path | None = None,
    *,
    out_name: str = "",
    points: Sequence[str] = (),
    check: bool = False,
) -> PreparedAot:
    """Name the variants, and plan their files.

    Args:
        manifests: folders of `kernel.compile`, of one kernel.
        dimensions: the grid: `(n+1023)/1024,1,1`.
        out: folder of the files; None for a folder beside the first compile.
        out_name: name of the functions; the kernel's name if empty.
        points: ids of the points to take; all if empty.
        check: also compile the files with the C compiler.

    Raises:
        SmithError: a variant cannot be launched from C, or no dispatcher could choose among them.
    """
    name = c_types.check_name(out_name)
    shape = c_types.parse_grid(dimensions)
    space = workspace.default()
    folder = (out or manifests[0].folder.with_name(f"{manifests[0].folder.name}.aot")).absolute()
    chosen = list(_chosen(manifests, points))
    groups = []
    targets = list(dict.fromkeys(point.target for _, point in chosen))
    for target in targets:
        mine = [(source, point) for source, point in chosen if point.target == target]
        variants = tuple(c_types.variant(source, point, name) for source, point in mine)
        c_source.check_variants(variants)
        part = folder / target.replace(":", "-") if len(targets) > 1 else folder
        headers = configs.load("aot")["backends"][target.partition(":")[0]]["headers"]
        groups.append(VariantGroup(part, variants, Path(mine[0][0].origin, headers)))
    steps: list[Step] = []
    if out is None and folder.is_relative_to(space.root):  # an earlier run's files would be linked, too
        steps.append(Remove((folder,), space.root, phase=_WRITE))
    for group in groups:
        steps += _writes(group, shape)
    if check:
        steps += _checks(groups, _compiler(), space.root / "kernels" / "work" / f"aot-{digest(folder)}")
    return PreparedAot(Plan(f"C of {manifests[0].kernel}", tuple(steps)), folder, tuple(groups))


def execute(prepared: PreparedAot) -> None:
    """Write the files, and check them if requested.

    Raises:
        SmithError: a file cannot be written, or the compiler refuses one.
    """
    space = workspace.default()
    space.claim()
    try:
        space.run(prepared.plan, "kernel.aot", quiet=True)
    except CommandFailedError as failure:
        if any("stdlib.h" in line for line in failure.output):  # the first header of cuda.h
            hints = ["Debian: apt install libc6-dev", "or omit --check"]
            output = "\n".join(failure.output)
            raise FactError(
                "the headers of the C library are missing", where=failure.log, why=output, hints=hints
            ) from None
        raise


def resources(variant: Variant) -> ResourceRow:
    """Measure a variant: its resources, launchability and the remarks of ptxas."""
    # An unreadable binary is no failure: C holds its bytes all the same.
    point = variant.point
    row = ResourceRow(
        variant.out_name, variant.name, point.target, values={LAUNCH: None}, remarks=point.remarks
    )
    try:
        return replace(row, values=measure.values(variant.binary, point.arch, point.metadata, None))
    except FactError as error:
        return replace(row, error=error.what)


def warnings(prepared: PreparedAot) -> tuple[str, ...]:
    """Return the variants that cannot be launched, and the remarks of ptxas."""
    return Measured(
        tuple(resources(variant) for group in prepared.groups for variant in group.variants)
    ).warnings


def as_json(prepared: PreparedAot, *, checked: bool) -> dict[str, Any]:
    """Return the result as JSON data."""
    return {
        "schema": 1,
        "folder": str(prepared.folder),
        "checked": checked,
        "warnings": list(warnings(prepared)),
        "targets": [
            {
                "target": group.variants[0].point.target,
                "dispatcher": group.variants[0].out_name,
                "algorithms": list(c_source.algorithms(group.variants)),
                "headers": str(group.headers),
                "sources": [str(path) for path in group.sources],
                "variants": [
                    {
                        "function": variant.name,
                        "algorithm": variant.algorithm,
                        "point": variant.point.id,
                        "launch": resources(variant).values[LAUNCH],
                        "remarks": variant.point.remarks,
                    }
                    for variant in group.variants
                ],
            }
            for group in prepared.groups
        ],
    }


def _chosen(manifests: Sequence[Manifest], points: Sequence[str]) -> Iterator[tuple[Manifest, Point]]:
    every = [(folder, point) for folder in manifests for point in folder.points]
    names = list(dict.fromkeys(point.id for _, point in every))
    for name in points:
        if name not in names:
            raise UsageError(f"no point {name!r} in {manifests[0].folder}", hints=did_you_mean(name, names))
    chosen = [(folder, point) for folder, point in every if not points or point.id in points]
    if not chosen:
        raise FactError("this folder has no compiled points", where=manifests[0].folder)
    yield from chosen


def _writes(group: VariantGroup, shape: tuple[str, str, str]) -> Iterator[Step]:
    for variant in group.variants:
        yield Write(group.folder / f"{variant.stem}.h", c_source.header(variant), phase=_WRITE)
        yield Write(group.folder / f"{variant.stem}.c", c_source.source(variant, shape), phase=_WRITE)
    stem = group.variants[0].out_name
    yield Write(group.folder / f"{stem}.h", c_source.dispatcher_header(group.variants), phase=_WRITE)
    yield Write(group.folder / f"{stem}.c", c_source.dispatcher_source(group.variants), phase=_WRITE)


def _compiler() -> tuple[str, ...]:
    named = tuple(shlex.split(os.environ.get("CC", "")))
    for words in (named,) if named else (("cc",), ("gcc",), ("clang",)):
        path = process.which(words[0])
        if path:
            return (path, *words[1:])
    raise FactError(
        "--check needs a C compiler, and none was found",
        where=named[0] if named else "PATH",
        hints=["install one (Debian: apt install gcc) or set CC", "or omit --check"],
    )


def _checks(groups: Sequence[VariantGroup], compiler: tuple[str, ...], work: Path) -> Iterator[Step]:
    """Yield steps that compile each file, and link all: that shows whether a function is defined twice."""
    flags = configs.load("aot")["check"]["flags"]
    for group in groups:
        target = group.variants[0].point.target.replace(":", "-")
        if not group.headers.is_dir():
            raise FactError(
                "the headers of the driver API are missing",
                where=group.headers,
                hints=["compile the kernel again with a Triton on this machine", "or omit --check"],
            )
        yield MakeDir(work / target, phase=_CHECK)
        objects = []
        for path in group.sources:
            object_file = str(work / target / f"{path.stem}.o")
            objects.append(object_file)
            argv = (*compiler, *flags, "-isystem", str(group.headers), "-c", "-o", object_file, str(path))
            yield Run(argv, cwd=group.folder, phase=_CHECK)
        linked = (*compiler, "-r", "-nostdlib", "-o", str(work / target / "all.o"), *objects)
        yield Run(linked, cwd=group.folder, phase=_CHECK)
