"""Read CMakeCache.txt, the configuration of a build folder."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.core import untrusted

_ENTRY = re.compile(r"^([^#/\s][^:=]*):([A-Z]+)=(.*)$", re.MULTILINE)
_PROGRAMS = ("_COMPILER", "_EXECUTABLE", "_LAUNCHER")
_PLACES = (  # paths without which nothing works, though `-D` and `-C` give them other types
    "CMAKE_CACHEFILE_DIR",
    "CMAKE_COMMAND",
    "CMAKE_HOME_DIRECTORY",
    "CMAKE_MAKE_PROGRAM",
    "LLVM_DIR",
    "LLVM_SYSPATH",
    "MLIR_DIR",
)
# Variables of folders that do not exist before an install or a download: their absence means nothing.
_MADE_LATER = (
    "CMAKE_INSTALL_",
    "CMAKE_LIBRARY_OUTPUT_",
    "CPACK_",
    "FETCHCONTENT_",
    "TRITON_CACHE_PATH",
    "TRITON_WHEEL_DIR",
)


@dataclass(frozen=True)
class CmakeCache:
    """The cache of one build folder.

    Attributes:
        file: CMakeCache.txt.
        entries: variable, type, value.
    """

    file: Path
    entries: tuple[tuple[str, str, str], ...]

    def get(self, name: str) -> str:
        """Return a variable's value; empty if it has none."""
        return next((value for key, _, value in self.entries if key == name), "")

    def gone(self) -> Iterator[tuple[str, Path]]:
        """Yield variables that name a missing file or folder, with its path."""
        for name, kind, value in self.entries:
            named = kind in ("PATH", "FILEPATH") or name in _PLACES or name.endswith(_PROGRAMS)
            if not named or name.startswith(_MADE_LATER):
                continue
            # A value may be CMake's list.
            for path in map(Path, value.split(";")):
                if path.is_absolute() and not untrusted.exists(path):
                    yield name, path


def read(folder: Path) -> CmakeCache | None:
    """Return the cache of a build folder; None if it was never configured."""
    file = folder / "CMakeCache.txt"
    if not untrusted.is_file(file):
        return None
    text = untrusted.read_text(file)
    return CmakeCache(file, tuple(match.groups() for match in _ENTRY.finditer(text)))  # type: ignore[misc]
