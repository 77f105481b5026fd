"""The libraries between PyTorch and a GPU's driver, by their files; none is loaded."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.facts.editables import read_text


@dataclass(frozen=True)
class Rocm:
    """A ROCm; texts are empty for what it lacks.

    Attributes:
        version: of the whole.
        hip: of HIP's runtime.
        miopen: of MIOpen.
    """

    version: str = ""
    hip: str = ""
    miopen: str = ""


def rocm(root: Path) -> Rocm:
    """The ROCm in a folder, `/opt/rocm` as a rule, which may be missing."""
    return Rocm(
        version=read_text(root / ".info" / "version").strip(),
        hip=_defined(root / "include" / "hip" / "hip_version.h", "HIP_VERSION"),
        miopen=_defined(root / "include" / "miopen" / "version.h", "MIOPEN_VERSION"),
    )


def wheels(dists: Iterable[tuple[str, str]], library: str) -> str:
    """NVIDIA's wheels of a library: `nvidia-cudnn-cu12 9.10.2.21`; since CUDA 13 some have no `-cuNN`."""
    wanted = re.compile(rf"nvidia-{library}(-cu\d+)?")
    return ", ".join(f"{name} {version}" for name, version in dists if wanted.fullmatch(name))


def conda(prefix: Path) -> tuple[tuple[str, str], ...]:
    """Name and version of every package of a Conda environment, Python's or not; nothing for another prefix.

    The names of its files tell both (`NAME-VERSION-BUILD.json`), so none is read.
    """
    stems = (path.stem.rsplit("-", 2) for path in sorted((prefix / "conda-meta").glob("*-*-*.json")))
    return tuple((name, version) for name, version, _ in stems)


def _defined(header: Path, prefix: str) -> str:
    parts = dict(
        re.findall(rf"^#define\s+{prefix}_(MAJOR|MINOR|PATCH)\s+(\d+)", read_text(header), re.MULTILINE)
    )
    return ".".join(parts[part] for part in ("MAJOR", "MINOR", "PATCH") if part in parts)
