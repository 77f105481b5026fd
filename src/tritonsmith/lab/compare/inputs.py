"""Kernels that several Tritons compile, and output folders that are compiled already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from packaging.specifiers import SpecifierSet

from tritonsmith.compiler import manifest, source, targets
from tritonsmith.compiler.kernels import kernels_file
from tritonsmith.compiler.kernels.kernel_list import ListedKernel
from tritonsmith.compiler.manifest import Manifest
from tritonsmith.compiler.output_folder import folder_name
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.core.errors import FactError

Manifests = tuple[Manifest, ...]


@dataclass(frozen=True)
class ComparedKernel:
    """A kernel that both sides compile.

    Attributes:
        name: of its folder, on both sides.
        asked: with the function's own name.
        versions: of Triton that it is for.
    """

    name: str
    asked: CompileRequest
    versions: SpecifierSet = field(default_factory=SpecifierSet)


def one(asked: CompileRequest) -> tuple[ComparedKernel, ...]:
    """Return a single kernel.

    Raises:
        SmithError: there is no such file, or it has several kernels and none is named.
    """
    name = source.choose(source.read(asked.file), asked.kernel, asked.file)
    return (ComparedKernel(folder_name(name), replace(asked, kernel=name)),)


def listed(entries: Sequence[ListedKernel], path: Path, flags: CompileRequest) -> tuple[ComparedKernel, ...]:
    """Return the kernels of a kernels file; targets of flags are for entries that name none.

    Raises:
        SmithError: a kernel cannot be asked for, or a flag is not for many kernels.
    """
    default = flags.targets or targets.default()
    requests = kernels_file.requests(entries, path, replace(flags, targets=()), default)
    return tuple(
        ComparedKernel(folder_name(entry.name), request, entry.versions)
        for entry, request in zip(entries, requests, strict=True)
    )


def read(folder: Path) -> Manifests:
    """Read an output folder, or all output folders below a folder.

    Raises:
        FactError: there is none, or one cannot be read.
    """
    own = folder / manifest.FILE
    folders = [folder] if own.is_file() else sorted(path.parent for path in folder.rglob(manifest.FILE))
    if not folders:
        hints = ["invoke kernel.compile --out DIR creates such folders"]
        raise FactError("this folder has no compiled kernel", where=folder, hints=hints)
    return tuple(map(manifest.read, folders))
