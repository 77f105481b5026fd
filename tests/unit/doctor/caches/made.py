"""Caches as Triton's versions leave them: names, files and metadata of real compiles, with short contents."""

from __future__ import annotations

import hashlib
import json
import os
import time
from pathlib import Path
from typing import Any

from tritonsmith.facts.triton_cache import Root

HOUR = 3600.0
CUDA = ("ttir", "ttgir", "llir", "ptx", "cubin")
HIP = ("ttir", "ttgir", "llir", "amdgcn", "hsaco")
ERAS = ("md5", "sha256", "base64url", "base32")
_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"


def name_of(era: str, seed: object) -> str:
    """A name of an entry, always the same for a seed."""
    digest = hashlib.sha256(repr(seed).encode()).hexdigest()
    if era == "base64url":
        return "-" + digest[:42]  # some begin with a hyphen
    if era == "base32":
        return "".join(_ALPHABET[int(digest[2 * at : 2 * at + 2], 16) % 32] for at in range(26)) * 2
    return digest[: {"md5": 32, "sha256": 64}[era]]


def folder(root: Path, era: str, seed: object, *, ago: float = HOUR) -> Path:
    """An empty entry, as a compile makes it first; `age` it once it is filled."""
    path = root / name_of(era, seed)
    path.mkdir(parents=True)
    return age(path, ago)


def age(path: Path, ago: float) -> Path:
    """Set the time stamp of an entry or of something in it, in seconds ago."""
    then = time.time() - ago
    os.utime(path, (then, then), follow_symlinks=False)
    return path


def kernel(
    root: Path,
    kernel: str = "vector_add",
    *,
    era: str = "base32",
    version: str = "3.9.0",
    target: tuple[str, int | str, int] = ("cuda", 90, 32),
    ago: float = HOUR,
    seed: object = None,
    **options: Any,
) -> Path:
    """A finished compile of a kernel."""
    path = folder(root, era, (kernel, version, target, seed, sorted(options.items())))
    stages = HIP if target[0] == "hip" else CUDA
    names = [f"{kernel}.{stage}" for stage in stages]
    if era == "base32":
        names.insert(0, f"{kernel}.source")
    for name in names:
        (path / name).write_text(f"{name} " * 20)
    metadata = f"{kernel}.json"
    defaults = {"num_warps": 4, "num_stages": 2 if target[0] == "hip" else 3, "num_ctas": 1, "debug": False}
    told: dict[str, Any] = {**defaults, **options, "shared": 0, "name": kernel}
    if era == "md5":  # 2.1
        told |= {"arch": target[1], "device_type": target[0], "constants": {"4": 1024}}
    else:
        told |= {"target": dict(zip(("backend", "arch", "warp_size"), target, strict=True))}
    if era == "base32":
        told["triton_version"] = version
    (path / metadata).write_text(json.dumps(told))
    children = [*names, metadata]
    index: Any = sorted(children) if era == "md5" else {name: str(path / name) for name in children}
    (path / f"__grp__{metadata}").write_text(json.dumps({"child_paths": index}))
    return age(path, ago)


def launcher(root: Path, file: str = "cuda_utils.so", *, era: str = "base32", ago: float = HOUR) -> Path:
    """A driver's helper or a launcher."""
    path = folder(root, era, file)
    (path / file).write_bytes(b"\x7fELF" * 10)
    return age(path, ago)


def autotune(root: Path, function: str = "matmul", *, ago: float = HOUR) -> Path:
    """What an autotuner found out."""
    path = folder(root, "base32", ("autotune", function))
    (path / f"{function}.autotune.json").write_text("{}")
    return age(path, ago)


def unfinished(root: Path, kernel: str = "slow", *, era: str = "base32", ago: float = HOUR) -> Path:
    """A compile that did not come to its index."""
    path = folder(root, era, ("unfinished", kernel))
    for stage in ("ttir", "ttgir"):
        (path / f"{kernel}.{stage}").write_text(stage)
    return age(path, ago)


def writing(entry: Path, pid: int, *, ago: float = HOUR, as_file: bool = False) -> Path:
    """What a writer has not renamed yet: a folder since 3.2, a file before."""
    if as_file:
        path = entry / f"slow.llir.tmp.pid_{pid}_123456"
        path.write_text("half")
    else:
        path = entry / f"tmp.pid_{pid}_7f6bd6a1-3bb1-4bd4-b2a5-32d2c1ab8e0c"
        path.mkdir()
        (path / "slow.llir").write_text("half")
    age(path, ago)
    age(entry, ago)
    return path


def as_root(path: Path, kind: Any = "named") -> Root:
    """A cache that somebody names."""
    path.mkdir(exist_ok=True)
    return Root(kind, path, "a test")
