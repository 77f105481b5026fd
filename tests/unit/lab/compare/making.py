"""Output folders of compiles that never were, for tests of what compares them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.unit.compiler.resources import elf_maker
from tritonsmith.compiler.manifest import FILE, Manifest, Point, Stage, Status

TTIR = "module {\n  tt.func public @k() {\n    %a = arith.constant 1 : i32\n    tt.return\n  }\n}\n"
SASS = (
    "        /*0000*/                   MOV R1, c[0x0][0x28] ;\n        /*0010*/                   EXIT ;\n"
)


def point(
    target: str = "cuda:90:32",
    rest: str = "",
    *,
    options: Mapping[str, Any] | None = None,
    constexprs: Mapping[str, Any] | None = None,
    status: Status = "ok",
    name: str = "",
    seconds: float = 1.0,
    error: str = "",
) -> Point:
    """A compile: `rest` is what its id has behind the target."""
    return Point(
        id=name or target.replace(":", "-") + rest,
        target=target,
        signature={"x": "*fp32"},
        constexprs=dict(constexprs or {}),
        hints={},
        options=dict(options or {}),
        status=status,
        seconds=seconds,
        error=error,
        metadata={"shared": 0},
    )


def manifest(
    *points: Point, kernel: str = "k", file: str = "/src/k.py", folder: Path = Path("/out")
) -> Manifest:
    """An output folder, of which nothing is on disk."""
    return Manifest(
        folder, kernel, file, "0" * 64, "3.9.0", "/site/triton", "3.11.7", "tritonsmith ...", points
    )


def written(
    folder: Path, points: Sequence[Point], *, texts: Mapping[str, str] | None = None, **of_cubin: Any
) -> Manifest:
    """An output folder on disk: a binary for every point that is a success, and texts.

    Args:
        folder: a new one.
        points: its compiles.
        texts: stage to text.
        of_cubin: what is in the cubins; see `elf_maker.cubin`.
    """
    made = []
    for one in points:
        stages = {}
        if one.status == "ok":
            amd = one.backend == "hip"
            binary = {"hsaco": elf_maker.code_object()} if amd else {"cubin": elf_maker.cubin(**of_cubin)}
            usual = {"ttir": TTIR} if amd else {"ttir": TTIR, "sass": SASS}
            every = {name: text.encode() for name, text in (texts or usual).items()}
            stages = {name: _stage(folder, one, name, content) for name, content in (every | binary).items()}
        made.append(Point(**{**vars(one), "stages": stages}))
    found = manifest(*made, folder=folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FILE).write_text(found.render(), encoding="utf-8")
    return found


def _stage(folder: Path, one: Point, name: str, content: bytes) -> Stage:
    path = Path(one.id) / f"k.{name}"
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_bytes(content)
    return Stage(str(path), len(content), hashlib.sha256(content).hexdigest())
