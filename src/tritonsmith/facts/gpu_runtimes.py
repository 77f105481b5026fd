"""Read the versions of the libraries between PyTorch and a GPU's driver from files; none is loaded."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.facts.editables import read_text


@dataclass(frozen=True)
class Rocm:
    """A ROCm installation; texts are empty for missing parts.

    Attributes:
        version: version of ROCm as a whole.
        hip: version of HIP's runtime.
        miopen: version of MIOpen.
    """

    version: str = ""
    hip: str = ""
    miopen: str = ""


def rocm(root: Path) -> Rocm:
    """Return the ROCm in a folder, usually `/opt/rocm`, which may be missing."""
    return Rocm(
        version=read_text(root / ".info" / "version").strip(),
        hip=_defined(root / "include" / "hip" / "hip_version.h", "HIP_VERSION"),
        miopen=_defined(root / "include" / "miopen" / "version.h", "MIOPEN_VERSION"),
    )


def wheels(dists: Iterable[tuple[str, str]], library: str) -> str:
    """Return NVIDIA's wheels of a library: `nvidia-cudnn-cu12 9.10.2.21`; CUDA 13 drops some `-cuNN`."""
    pattern = re.compile(rf"nvidia-{library}(-cu\d+)?")
    return ", ".join(f"{name} {version}" for name, version in dists if pattern.fullmatch(name))


def conda(prefix: Path) -> tuple[tuple[str, str], ...]:
    """Return name and version of every package of a Conda environment; nothing for another prefix.

    The names of its files tell both (`NAME-VERSION-BUILD.json`), so none is read.
    """
    stems = (path.stem.rsplit("-", 2) for path in sorted((prefix / "conda-meta").glob("*-*-*.json")))
    return tuple((name, version) for name, version, _ in stems)


def _defined(header: Path, prefix: str) -> str:
    parts = dict(
        re.findall(rf"^#define\s+{prefix}_(MAJOR|MINOR|PATCH)\s+(\d+)", read_text(header), re.MULTILINE)
    )
    return ".".join(parts[part] for part in ("MAJOR", "MINOR", "PATCH") if part in parts)
