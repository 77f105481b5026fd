"""Export compiled kernels as C sources, and check them with a C compiler: `kernel.export`.

Each variant gets a source and a header, with the binary inside; one dispatcher per target chooses among them,
as Triton's tools/link.py does.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from string import Template
from typing import Any

from tritonsmith.compiler import run, signature
from tritonsmith.compiler.interpreter import Interpreter
from tritonsmith.compiler.manifest import Manifest, Point
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.compiler.resources import measure
from tritonsmith.compiler.resources.measure import LAUNCH, Measured, ResourceRow
from tritonsmith.core import configs, process
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import FactError, UsageError, did_you_mean
from tritonsmith.core.plan import MakeDir, Plan, Remove, Run, Step, Write, digest
from tritonsmith.core.plan.steps.base import CommandFailedError
from tritonsmith.inspect import c_types
from tritonsmith.inspect.c_types import CArgument, Variant

_WRITE, _CHECK = "write C", "check C"


@dataclass(frozen=True)
class VariantGroup:
    """The variants for one target, to be linked into one program.

    Attributes:
        folder: the folder of their files.
        variants: the variants, in the order of the request.
        headers: the folder of `cuda.h` or `hip/`, in the Triton that compiled them.
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


def prepare_compiles(
    requests: Sequence[CompileRequest], where: Interpreter
) -> tuple[run.PreparedCompile, ...]:
    """Prepare one compile per signature, each in its own folder; disassembly is not needed.

    Raises:
        SmithError: a file, a kernel or a signature is wrong.
    """
    binaries_only = [replace(request, stages=(), disassemble=False) for request in requests]
    first = run.prepare(binaries_only[0], where)
    # The default folder goes by the file and the kernel, which they all share.
    more = [
        run.prepare(request, where, first.out.with_name(f"{first.out.name}.{number}"))
        for number, request in enumerate(binaries_only[1:], 2)
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
    chosen = list(_choose_points(manifests, points))
    groups = []
    targets = list(dict.fromkeys(point.target for _, point in chosen))
    for target in targets:
        mine = [(source, point) for source, point in chosen if point.target == target]
        variants = tuple(c_types.variant(source, point, name) for source, point in mine)
        check_variants(variants)
        # The dispatchers of all targets have one name, so each target's files are linked on their own.
        part = folder / target.replace(":", "-") if len(targets) > 1 else folder
        headers = configs.load("aot")["backends"][target.partition(":")[0]]["headers"]
        groups.append(VariantGroup(part, variants, Path(mine[0][0].origin, headers)))
    steps: list[Step] = []
    # Builds link *.c, so the variants of an earlier run would be linked, too. A folder of the user's
    # is never cleared.
    if out is None and folder.is_relative_to(space.root):
        steps.append(Remove((folder,), space.root, phase=_WRITE))
    for group in groups:
        steps += _write_steps(group, shape)
    if check:
        steps += _check_steps(groups, _compiler(), space.root / "kernels" / "work" / f"aot-{digest(folder)}")
    return PreparedAot(Plan(f"C of {manifests[0].kernel}", tuple(steps)), folder, tuple(groups))


def execute(prepared: PreparedAot) -> None:
    """Write the files, and check them if requested.

    Raises:
        SmithError: a file cannot be written, or the compiler refuses one.
    """
    space = workspace.default()
    space.claim()
    try:
        space.run(prepared.plan, "kernel.export", quiet=True)
    except CommandFailedError as failure:
        # The first header that cuda.h includes: a gcc without the C library's headers is common in
        # containers, and the compiler's message points into Triton's package.
        if any("stdlib.h" in line for line in failure.output):
            hints = ["Debian: apt install libc6-dev", "or omit --check"]
            output = "\n".join(failure.output)
            raise FactError(
                "the headers of the C library are missing", where=failure.log, why=output, hints=hints
            ) from None
        raise


def resources(variant: Variant) -> ResourceRow:
    """Measure a variant: its resources, launchability and the remarks of ptxas."""
    # An unreadable binary is no failure: the C source holds its bytes all the same.
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
                "algorithms": list(algorithms(group.variants)),
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


def _choose_points(manifests: Sequence[Manifest], points: Sequence[str]) -> Iterator[tuple[Manifest, Point]]:
    every = [(folder, point) for folder in manifests for point in folder.points]
    names = list(dict.fromkeys(point.id for _, point in every))
    for name in points:
        if name not in names:
            raise UsageError(f"no point {name!r} in {manifests[0].folder}", hints=did_you_mean(name, names))
    chosen = [(folder, point) for folder, point in every if not points or point.id in points]
    if not chosen:
        raise FactError("this folder has no compiled points", where=manifests[0].folder)
    yield from chosen


def _write_steps(group: VariantGroup, shape: tuple[str, str, str]) -> Iterator[Step]:
    for variant in group.variants:
        yield Write(group.folder / f"{variant.stem}.h", variant_header(variant), phase=_WRITE)
        yield Write(group.folder / f"{variant.stem}.c", variant_source(variant, shape), phase=_WRITE)
    stem = group.variants[0].out_name
    yield Write(group.folder / f"{stem}.h", dispatcher_header(group.variants), phase=_WRITE)
    yield Write(group.folder / f"{stem}.c", dispatcher_source(group.variants), phase=_WRITE)


def _check_steps(groups: Sequence[VariantGroup], compiler: tuple[str, ...], work: Path) -> Iterator[Step]:
    """Yield steps that compile each file, and link all of them into one object."""
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
        # A relocatable link needs no libcuda, which a machine without a GPU lacks, and still reports
        # functions that two files define.
        linked = (*compiler, "-r", "-nostdlib", "-o", str(work / target / "all.o"), *objects)
        yield Run(linked, cwd=group.folder, phase=_CHECK)


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


_TEMPLATES = Path(__file__).with_name("c_templates")
_PACKED = {"fp16": "half.c", "bf16": "bfloat.c"}  # types that C99 lacks


def variant_header(variant: Variant) -> str:
    """Return the text of the `.h`."""
    return fill("variant.h", _variant_words(variant))


def variant_source(variant: Variant, dimensions: Sequence[str]) -> str:
    """Return the text of the `.c`.

    Args:
        variant: a variant with a binary.
        dimensions: the three expressions of the grid.

    Raises:
        FactError: the binary cannot be read.
        UsageError: an expression does not fit the variant.
    """
    try:
        content = variant.binary.read_bytes()
    except OSError as error:
        raise FactError("cannot read this binary", where=variant.binary, why=error.strerror) from error
    # The grid is a part of the launcher: upstream's dispatcher takes none, since callers in C would
    # have to know the block sizes of the variant that it chooses.
    x, y, z = (c_types.render_grid(dimension, variant) for dimension in dimensions)
    point = variant.point
    pointers = [f"&{_local(argument)}" for argument in variant.passed] + [
        f"&{name}" for name in variant.scratch
    ]
    words = _variant_words(variant) | {
        "header": f"{variant.stem}.h",
        "size": len(content),
        "data": ", ".join(f"0x{byte:02x}" for byte in content),
        "symbol": point.metadata["name"],
        "helpers": "".join(_pack_functions(variant)),
        "allow": _raise_shared_limit(variant),
        "grid_x": x,
        "grid_y": y,
        "grid_z": z,
        "locals": "".join(f"    {line}\n" for line in _locals(variant)),
        "pointers": ", ".join(pointers) or "NULL",
        "warps": point.metadata.get("num_warps", variant.asked_warps),
        # 64 on AMD's CDNA, 32 on RDNA: the launch multiplies it by the warps.
        "warp_size": point.metadata.get("warp_size", point.target.split(":")[2]),
        "shared": point.metadata.get("shared", 0),
    }
    return fill("variant.c", words)


def fill(template: str, words: dict[str, Any]) -> str:
    """Fill a template with words."""
    # `substitute` fails on a name without a value, where a half-filled C file would only fail to compile.
    return Template((_TEMPLATES / template).read_text(encoding="utf-8")).substitute(words)


def _variant_words(variant: Variant) -> dict[str, Any]:
    vendor = configs.load("aot")["backends"][variant.point.backend]
    settings = [f"{name}={signature.spell_value(value)}" for name, value in variant.constants.items()]
    settings += [f"num_warps={variant.asked_warps}", f"num_stages={variant.asked_stages}"]
    file = Path(variant.source).name
    title = f"{variant.out_name} of {file} for {variant.point.target}, compiled by Triton {variant.triton}."
    return {
        **vendor["words"],
        "backend": variant.point.backend,
        "binary": vendor["binary"],
        "name": variant.name,
        "algo": variant.algo,
        "title": comment(title),
        "docstring": comment(", ".join(settings)),
        "full_signature": ", ".join(argument.declaration for argument in variant.arguments),
        "parameters": ", ".join(
            [f"{vendor['words']['stream']} stream", *(argument.declaration for argument in variant.passed)]
        ),
    }


def comment(text: str) -> str:
    """Escape a text for a C comment: a comment end in it would turn the rest into code."""
    return " ".join(text.replace("*/", "* /").split())


def _packed(argument: CArgument) -> bool:
    """Report whether the kernel reads an argument in another form than the caller passes."""
    # Only floats are packed: `int32_t` for a bool has the right bits already.
    return argument.c_type in ("float", "double") and argument.c_type != argument.kernel_type


def _local(argument: CArgument) -> str:
    return f"{argument.c_name}_{argument.kind}" if _packed(argument) else argument.c_name


def _locals(variant: Variant) -> Iterator[str]:
    for argument in filter(_packed, variant.passed):
        how = f"pack_{argument.kind}" if argument.kind in _PACKED else f"({argument.kernel_type})"
        yield f"{argument.kernel_type} {_local(argument)} = {how}({argument.c_name});"
    pointer = configs.load("aot")["backends"][variant.point.backend]["pointer"]
    for name in variant.scratch:
        yield f"{pointer} {name} = 0;"


def _pack_functions(variant: Variant) -> Iterator[str]:
    kinds = {argument.kind for argument in variant.passed if _packed(argument)}
    for kind in sorted(kinds & set(_PACKED)):
        yield "\n" + fill(_PACKED[kind], {})


def _raise_shared_limit(variant: Variant) -> str:
    """Return C code that raises the limit of dynamic shared memory; empty if the launch needs no more."""
    # NVIDIA's driver refuses launches above 48 KiB unless the function opts in, as Triton's own
    # launcher does. HIP needs no such call.
    shared = variant.point.metadata.get("shared", 0)
    if variant.point.backend != "cuda" or shared <= configs.load("aot")["shared"]["static"]:
        return ""
    attribute = "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES"
    return (
        "    if (code == CUDA_SUCCESS)\n"
        f"        code = cuFuncSetCacheConfig({variant.name}_func, CU_FUNC_CACHE_PREFER_SHARED);\n"
        "    if (code == CUDA_SUCCESS)\n"
        f"        code = cuFuncSetAttribute({variant.name}_func, {attribute}, {shared});\n"
    )


def dispatcher_header(variants: Sequence[Variant]) -> str:
    """Return the text of the dispatcher's `.h`, for variants that passed `check_variants`."""
    return fill("dispatch.h", _dispatcher_words(variants))


def dispatcher_source(variants: Sequence[Variant]) -> str:
    """Return the text of the dispatcher's `.c`."""
    groups = algorithms(variants)
    names = list(groups)
    words = _dispatcher_words(variants) | {
        "includes": "\n".join(f'#include "{variant.stem}.h"' for variant in variants) + "\n",
        "definitions": "\n".join(_algorithm(name, group) for name, group in groups.items()),
        "table": "".join(f"    {name},\n" for name in names),
        "names": ", ".join(["stream", *(argument.c_name for argument in variants[0].arguments)]),
        "loads": _calls("load", names),
        "unloads": _calls("unload", names),
    }
    return fill("dispatch.c", words)


def algorithms(variants: Sequence[Variant]) -> dict[str, list[Variant]]:
    """Group variants by constants and options, in the order of the ids that callers pass.

    A caller chooses the constants, by the id; hints are properties of the arguments, so within a group the
    dispatcher chooses.
    """
    groups: dict[str, list[Variant]] = {}
    for variant in variants:
        groups.setdefault(variant.algorithm, []).append(variant)
    return groups


def check_variants(variants: Sequence[Variant]) -> None:
    """Check that one dispatcher can choose among all variants.

    Raises:
        UsageError: two have the same name or the same hints, or take different arguments.
    """
    first = variants[0]
    for variant in variants:
        if [a.declaration for a in variant.arguments] != [a.declaration for a in first.arguments]:
            raise UsageError(
                "these variants take different arguments in C",
                where=variant.point.id,
                why=f"{_prototype(first)} and {_prototype(variant)}",
                hints=["generate them one at a time, each with its own --out-name"],
            )
    _check_distinct(variants, lambda variant: variant.name, "have the same name in C")
    for group in algorithms(variants).values():
        _check_distinct(group, _hints, "cannot be told apart by their arguments")
        # Characters that C forbids in a name become _, so 0.5 and "0.5" may meet in one name.
        if len({str(dict(variant.constants)) for variant in group}) > 1:
            raise UsageError(f"different constants share the algorithm name: {group[0].algorithm}")


def _check_distinct(variants: Sequence[Variant], key: Callable[[Variant], object], what: str) -> None:
    by_key: dict[object, Variant] = {}
    for variant in variants:
        other = by_key.setdefault(key(variant), variant)
        if other is not variant:
            raise UsageError(
                f"two variants {what}: {other.name} and {variant.name}",
                why=f"{other.point.id} and {variant.point.id}",
                hints=[
                    "names only distinguish signatures, num_warps and num_stages",
                    "generate them one at a time, each with its own --out-name",
                ],
            )


def _hints(variant: Variant) -> object:
    return tuple(argument.hint for argument in variant.arguments)


def _prototype(variant: Variant) -> str:
    return f"({', '.join(argument.declaration for argument in variant.arguments)})"


def _dispatcher_words(variants: Sequence[Variant]) -> dict[str, str]:
    first = variants[0]
    parameters = _parameters(first)
    declared = [
        f"TT_ResultTy {name}({parameters});\nvoid load_{name}(void);\nvoid unload_{name}(void);\n"
        for name in algorithms(variants)
    ]
    return {
        **configs.load("aot")["backends"][first.point.backend]["words"],
        "out_name": first.out_name,
        "parameters": parameters,
        "algorithms": "\n".join(declared),
    }


def _parameters(variant: Variant) -> str:
    return ", ".join(["TT_StreamTy stream", *(argument.declaration for argument in variant.arguments)])


def _algorithm(name: str, group: Sequence[Variant]) -> str:
    """Return the function that chooses among variants; the one with the most hints is tried first."""
    # A variant without hints is right for every argument and would shadow all others.
    ranked = sorted(group, key=lambda variant: -sum(argument.hint != 0 for argument in variant.arguments))
    return fill(
        "algorithm.c",
        {
            "algorithm": name,
            "parameters": _parameters(group[0]),
            "choices": "".join(_choice(variant) for variant in ranked),
            "loads": _calls("load", [variant.name for variant in ranked]),
            "unloads": _calls("unload", [variant.name for variant in ranked]),
        },
    )


def _choice(variant: Variant) -> str:
    """Return the C call of one variant, under the condition that its hints hold."""
    tests = [
        f"{argument.c_name} == 1"
        if argument.hint == 1
        else f"(uintptr_t){argument.c_name} % {argument.hint} == 0"
        for argument in variant.arguments
        if argument.hint
    ]
    passed = ", ".join(["stream", *(argument.c_name for argument in variant.passed)])
    return f"    if ({' && '.join(tests) or '1'})\n        return {variant.name}({passed});\n"


def _calls(what: str, names: Sequence[str]) -> str:
    return "".join(f"    {what}_{name}();\n" for name in names)
