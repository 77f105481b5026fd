"""The precompiled header of a debug library: what most of its files include, parsed once for all of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritonsmith.build.debug_library.cmake_lists import Library
from tritonsmith.core import configs

HEADER = "precompiled.h"
COMPILED = f"{HEADER}.pch"


@dataclass(frozen=True)
class Header:
    """The header that is parsed once.

    Attributes:
        text: content of the header.
        sources: files that are compiled with it.
    """

    text: str
    sources: frozenset[Path]


def choose(library: Library, project: Path, includes: Iterable[Path]) -> Header | None:
    """Choose the header for a library, by the level that the configuration gives to its folder.

    Args:
        library: the library to compile.
        project: folder of llvm-project.
        includes: folders of the LLVM's own headers; headers that this LLVM lacks are left out.

    Returns:
        None if the header costs more than it saves, as it does for a few files.
    """
    table = configs.load("precompiled-headers")
    without = tuple(f"/{name}" for name in table["without"])
    sources = frozenset(
        source
        for source in library.sources
        if source.suffix != ".c" and not source.as_posix().endswith(without)
    )
    level = _level(table["level"], library.folder, project / "llvm")
    if level is None or len(sources) < table["pays-from"]:
        return None
    folders, lines = tuple(includes), []
    for name in level["headers"]:
        if name.startswith("<"):
            lines.append(f"#include {name}\n")
        elif any((folder / name).is_file() for folder in folders):
            lines.append(f'#include "{name}"\n')
    return Header("".join(lines), sources)


def _level(levels: list[dict[str, Any]], folder: Path, llvm: Path) -> dict[str, Any] | None:
    """Return the level with the longest folder that contains this one."""
    here = folder.resolve()
    matches = [
        (len(start.parts), level)
        for level in levels
        for start in ((llvm / name).resolve() for name in level["folders"])
        if here.is_relative_to(start)
    ]
    return max(matches, key=lambda pair: pair[0])[1] if matches else None
