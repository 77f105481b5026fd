"""`kernel.export`: compile kernels into C sources that launch them, or into PTX for inline assembly."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from invoke.context import Context

from tritonsmith.cli.tasks import output
from tritonsmith.cli.tasks.kernel_options import (
    BackendOptions,
    CompileOptions,
    PoolOptions,
    folder_of,
    target_of,
)
from tritonsmith.cli.tasks.option_fields import CommaLists, OutFile, again, flag, word
from tritonsmith.cli.tasks.options import DRY_RUN, JSON, KERNEL_SOURCE, OUT, OUT_FILE, SWEEP, TARGET
from tritonsmith.cli.tasks.task import task
from tritonsmith.compiler import manifest, run, targets
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.core.ui import console, tables
from tritonsmith.facts import gpus
from tritonsmith.inspect import c_types
from tritonsmith.inspect import export_c as emit
from tritonsmith.inspect.export_ptx import compiled_kernel, cuda

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tritonsmith.compiler.manifest import Manifest
    from tritonsmith.compiler.targets import Target
    from tritonsmith.inspect.export_c import PreparedAot


_WARPS = 1  # as upstream's triton/tools/compile.py, whose scripts should mean the same here


@task(tables=True, reads_outputs=True)
def aot(
    context: Context,
    backend: BackendOptions,
    by: PoolOptions,
    source: str = KERNEL_SOURCE,
    grid: str = flag("C expression over parameters: '(n+BLOCK-1)/BLOCK,1,1'", ""),
    signature: tuple[str, ...] = flag("signature of one variant: '*fp32:16,i32,BLOCK=1024' (repeatable)", ()),
    target: CommaLists = TARGET,
    sweep: tuple[str, ...] = SWEEP,
    point: tuple[str, ...] = flag("only this compiled point of the folder: its id (repeatable)", ()),
    out_name: str = flag("name of the functions", "", unset="the kernel's"),
    out: Path | None = again(OUT, "beside the compiled kernel"),
    check: bool = flag("compile and link the sources with the system's C compiler", default=False),
    json: bool = JSON,
    dry_run: bool = DRY_RUN,
) -> None:
    """Compile kernels ahead of time into C sources that launch them."""
    # Both are checked before minutes of compiling.
    c_types.parse_grid(grid)
    c_types.check_name(out_name)
    plain = not folder_of(source) and not source.partition(":")[0].endswith(".toml")
    backend = _as_upstream(backend, sweep) if plain else backend
    # A dispatcher in C chooses among them by the hints that the arguments fulfil, as triton/tools/link.py
    # does.
    variants = [
        CompileOptions(signature=text, target=target, sweep=sweep, **vars(backend))
        for text in signature or ("",)
    ]
    manifests: Sequence[Manifest]
    if folder := folder_of(source):
        variants[0].refuse()
        manifests = [manifest.read(folder)]
    else:
        if point:
            hints = ["omit it, or give a folder of kernel.compile"]
            raise UsageError("--point chooses among compiled points", hints=hints)
        requests = [variant.request(source, by=by) for variant in variants]
        where = by.toolchain(*requests, dry_run=dry_run)
        # Code to be linked into a program has to run, so the default is this machine's GPU.
        if plain and not target:
            requests = [replace(request, targets=_target_here()) for request in requests]
        if dry_run:
            for prepared in emit.prepare_compiles(requests, where):
                output.compile_of(prepared)
            output.warnings(("the rest depends on the result of this compile",))
            return
        results = [run.execute(prepared, where) for prepared in emit.prepare_compiles(requests, where)]
        # Each variant has the same notes about its Triton.
        output.notes(dict.fromkeys(note for result in results for note in result.notes))
        manifests = [result.manifest for result in results]
    export = emit.prepare(manifests, grid, out, out_name=out_name, points=point, check=check)
    if dry_run:
        output.plan(export.plan)
        return
    emit.execute(export)
    if json:
        output.json(emit.as_json(export, checked=check))
    else:
        print_sources(export, checked=check)


def _as_upstream(backend: BackendOptions, sweep: Sequence[str]) -> BackendOptions:
    """Add upstream's default number of warps unless an option or sweep sets another."""
    swept = any(text.startswith(("num_warps", "autotune")) for text in (*sweep, *backend.option))
    return backend if swept or backend.num_warps else replace(backend, num_warps=_WARPS)


def _target_here() -> tuple[Target, ...]:
    """Return the target of this machine's GPU.

    Raises:
        UsageError: there is none.
    """
    try:
        return tuple(targets.of_gpus(gpus.read()))[:1]
    except FactError as error:
        hints = ["--target h100", "--target mi300x", "--target cuda:90,hip:gfx942"]
        what = "kernel.export compiles for this machine's GPU, and there is none: give a target"
        raise UsageError(what, why=error.why, hints=hints) from None


def print_sources(export: PreparedAot, *, checked: bool) -> None:
    """Print the exported functions, target by target, and the folder of their sources."""
    for group in export.groups:
        rows = [
            [
                variant.name,
                variant.algo,
                ", ".join(
                    f"{argument.name}:{argument.hint}" for argument in variant.arguments if argument.hint
                ),
                f"{variant.binary.stat().st_size / 1024:.1f}",
                str(emit.resources(variant).values["launch"] or ""),
            ]
            for variant in group.variants
        ]
        title = f"{group.variants[0].point.target}; binaries in KiB"
        columns = ["function", "algorithm", "hints", "binary", "launch"]
        console.out().print(tables.plain(title, columns, rows, right=["binary"]))
    for text in emit.warnings(export):
        console.warn(text)
    count = sum(len(group.sources) for group in export.groups)
    console.out().print(f"{export.folder}", markup=False)
    if checked:
        console.note(f"the C compiler accepts and links all {count} sources")


@task(name="inline-ptx", reads_outputs=True)
def inline_ptx(
    context: Context,
    what: CompileOptions,
    by: PoolOptions,
    source: str = word("folder of kernel.compile, .ptx file, FILE[:KERNEL] or MODULE:KERNEL"),
    point: str = flag("compiled point, if there are several: its id", ""),
    metadata: Path | None = flag("Triton's NAME.json of a .ptx file", None, unset="the one beside it"),
    header: bool = flag("write a whole .cuh, with launch bounds and a calling kernel", default=False),
    elementwise: bool = flag("write a Python string for tl.inline_asm_elementwise", default=False),
    function: str = flag("with --elementwise: PTX function that uses only registers", ""),
    out: OutFile | None = again(OUT_FILE, "print it"),
    dry_run: bool = DRY_RUN,
) -> None:
    """Export a kernel as inline PTX, for CUDA C++ or Triton."""
    if header and elementwise:
        raise UsageError("--header is for CUDA C++ and --elementwise for Triton", hints=["omit one of them"])
    # Only --elementwise makes a Python string of a single function; the other forms are whole kernels.
    if function and not elementwise:
        raise UsageError("--function requires --elementwise", hints=["omit --function for a whole kernel"])
    if folder_of(source) or source.endswith(".ptx"):
        what.refuse()
        kernel = compiled_kernel.load(Path(source).expanduser(), point=point or None, metadata=metadata)
    else:
        if metadata:
            raise UsageError("--metadata requires a .ptx file", hints=["omit it"])
        request = what.request(source, target=target_of("ptx"), by=by)
        where = by.toolchain(request, dry_run=dry_run)
        if dry_run:
            output.compile_of(run.prepare(request, where))
            output.warnings(("the rest depends on the result of this compile",))
            return
        kernel = cuda.compile_point(request, where, point or None)
    text = cuda.exported(kernel, function, header=header, for_triton=elementwise)
    if not out:
        console.write(text, end="")
        return
    place = out.path(f"{kernel.entry.name}{'.py' if elementwise else '.cuh'}")
    plan = cuda.plan(text, place)
    if dry_run:
        output.plan(plan)
        return
    space = workspace.default()
    space.claim()
    space.run(plan, "kernel.export", quiet=True)
    console.note(f"written: {place}")
