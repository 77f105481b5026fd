"""Compile a kernel once for each run of a pass in its pipelines, without that one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from tritonsmith.compiler import run
from tritonsmith.compiler.folder_name import folder_name
from tritonsmith.compiler.manifest import Manifest, Point
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.compiler.resources import measure
from tritonsmith.compiler.resources.table import ResourceRow
from tritonsmith.compiler.run import PreparedCompile, Toolchain
from tritonsmith.compiler.surgery import Surgery
from tritonsmith.core import untrusted
from tritonsmith.core.errors import FactError, SmithError
from tritonsmith.ir import normalize

_LAST = ("ptx", "amdgcn")  # the last stage of text
_KEPT = {"cuda": ("ptx", "cubin"), "hip": ("amdgcn", "hsaco")}
_OWN = ("hash", "cache_dir")  # of a compile's metadata: what differs though the code is the same

Effect = Literal["no effect", "changes the code", "needed", "does not compile", "timed out"]  # of a pass


@dataclass(frozen=True)
class KnockedOut:
    """One run of a pass, and what the compile is without it.

    Attributes:
        name: of the pass: `canonicalize`.
        number: which of its runs, from 1.
        binding: that adds it: `passes.common.add_canonicalizer`.
        stage: that it is part of: `ttgir`.
        verdict: `needed` where nothing compiles without it.
        row: the resources, or why there is no code.
        seconds: of the compile.
    """

    name: str
    number: int
    binding: str
    stage: str
    verdict: Effect
    row: ResourceRow
    seconds: float

    @property
    def named(self) -> str:
        """As `--skip-pass` takes it."""
        return f"{self.name}#{self.number}"


@dataclass(frozen=True)
class Knockout:
    """A kernel for a target.

    Attributes:
        kernel: its name.
        target: what for.
        triton: the version that compiles.
        row: the resources with all passes.
        seconds: of that compile.
        passes: in the order of the pipelines.
        folder: of the compiles.
    """

    kernel: str
    target: str
    triton: str
    row: ResourceRow
    seconds: float
    passes: tuple[KnockedOut, ...]
    folder: Path


def first(asked: CompileRequest, where: Toolchain, out: Path | None) -> PreparedCompile:
    """The compile with all passes, which says what the others are.

    Raises:
        SmithError: as `run.prepare`.
    """
    return run.prepare(counting(asked), where, folder_of(asked, where, out) / "all")


def execute(
    asked: CompileRequest, where: Toolchain, out: Path | None = None, *, silent: bool = False
) -> Iterator[Knockout]:
    """Compile with all passes, and then without each: one result for each target.

    Raises:
        SmithError: the kernel does not compile with all its passes.
    """
    folder = folder_of(asked, where, out)
    base = with_all(counting(asked), where, folder / "all", silent=silent)
    for target, point, row in zip(asked.targets, base.points, measure.of_manifest(base).rows, strict=True):
        runs = [(str(one["pass"]), int(one["number"])) for one in point.passes or ()]
        if not runs:
            raise FactError("no pass of this Triton could be counted", where=where.python)
        cuts = tuple(Surgery(skip=(f"{name}#{number}",)) for name, number in runs)
        wanted = replace(counting(asked), targets=(target,), variants=cuts)
        made = run.compile_all(wanted, where, folder / folder_name(point.id), silent=silent)
        if len(made.points) != len(runs):
            raise SmithError("the compiler gave no result for some of the passes", where=made.folder)
        yield Knockout(
            asked.name or base.kernel,
            str(target),
            base.triton,
            row,
            point.seconds,
            tuple(_results(base, point, made)),
            folder,
        )


def with_all(asked: CompileRequest, where: Toolchain, out: Path, *, silent: bool) -> Manifest:
    """The compile with which the others are compared.

    Raises:
        SmithError: it fails.
    """
    base = run.compile_all(asked, where, out, silent=silent)
    if bad := [point for point in base.points if point.status != "ok"]:
        raise SmithError(
            f"{base.kernel} does not compile with all its passes",
            where=base.folder,
            why="\n".join(f"{point.id}: {point.gist}" for point in bad),
            hints=["choose targets for which it does: --target"],
        )
    return base


def _results(base: Manifest, whole: Point, made: Manifest) -> Iterator[KnockedOut]:
    expected = code_of(base, whole)
    rows = measure.of_manifest(made).rows
    for one, point, row in zip(whole.passes or (), made.points, rows, strict=True):
        effect: Effect = "timed out" if point.status == "timeout" else "needed"
        if point.status == "ok":
            effect = "no effect" if code_of(made, point) == expected else "changes the code"
        about = (str(one["pass"]), int(one["number"]), str(one["binding"]), str(one["stage"]))
        yield KnockedOut(*about, effect, row, point.seconds)


def code_of(manifest: Manifest, point: Point) -> tuple[str, dict[str, object]]:
    """The assembly in normal form, and what a launch takes from the metadata: shared memory, warps ..."""
    stage = next(stage for stage in _LAST if stage in point.stages)
    path = manifest.folder / point.stages[stage].path
    about = {name: value for name, value in point.metadata.items() if name not in _OWN}
    return normalize.text(untrusted.read_text(path, untrusted.OURS), stage), about


def counting(asked: CompileRequest, surgery: Surgery = Surgery()) -> CompileRequest:  # noqa: B008 - frozen
    """The compile that counts its passes, and keeps what is compared."""
    stages = [stage for target in asked.targets for stage in _KEPT[target.backend]]
    return replace(asked, variants=(surgery,), stages=tuple(dict.fromkeys(stages)), disassemble=False)


def folder_of(asked: CompileRequest, where: Toolchain, out: Path | None) -> Path:
    """The folder of a kernel's compiles."""
    name = folder_name(asked.name or f"{asked.file.stem}.{asked.kernel or 'kernel'}")
    return (out or where.space.root / "passes" / "knockout").absolute() / name


def removable(found: Sequence[Knockout]) -> dict[tuple[str, str], dict[str, list[Effect]]]:
    """What each pass is to several kernels: target and pass to the effects of its runs, by kernel."""
    table: dict[tuple[str, str], dict[str, list[Effect]]] = {}
    for one in found:
        for knocked in one.passes:
            kernels = table.setdefault((one.target, knocked.name), {})
            kernels.setdefault(one.kernel, []).append(knocked.verdict)
    return table
