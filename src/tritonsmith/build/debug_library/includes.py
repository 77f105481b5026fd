"""The headers that a library's sources reach: includes are followed as text, without conditions.

It finds the generated headers that a library needs before anything is compiled, and which of LLVM's own
headers it depends on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.core import untrusted

_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">]', re.MULTILINE)
_OF_LLVM = ("llvm/", "llvm-c/", "mlir/", "mlir-c/")


@dataclass(frozen=True)
class Reached:
    """The headers reached through includes.

    Attributes:
        public: names of LLVM's own headers, as they are included: `mlir/IR/Operation.h`.
        missing: names that do not exist: generated headers, and those of other systems.
        private: the library's own headers.
    """

    public: frozenset[str]
    missing: frozenset[str]
    private: frozenset[Path] = frozenset()


def follow(sources: Iterable[Path], private: tuple[Path, ...], public: tuple[Path, ...]) -> Reached:
    """Follow the includes of sources and of every header that they reach.

    Args:
        sources: files to start from.
        private: include folders of the library itself.
        public: include folders of the LLVM that the library is compiled against.
    """
    own: set[Path] = set()
    todo = list(sources)
    visited: set[Path] = set(todo)
    headers: set[str] = set()
    missing: set[str] = set()
    places: dict[str, Path | None] = {}
    while todo:
        file = todo.pop()
        for name in _names(file):
            beside = file.parent / name
            if beside.is_file() and not name.startswith(_OF_LLVM):
                header: Path | None = beside
            else:
                if name not in places:
                    places[name] = _find(name, private, public)
                header = places[name]
                if header is None:
                    missing.add(name)
                elif name.startswith(_OF_LLVM):
                    headers.add(name)
            if header is not None and header not in visited:
                visited.add(header)
                todo.append(header)
                if not name.startswith(_OF_LLVM):
                    own.add(header)
    return Reached(frozenset(headers), frozenset(missing), frozenset(own))


def _names(file: Path) -> list[str]:
    return [name.decode(errors="replace") for name in _INCLUDE.findall(untrusted.read_bytes(file))]


def _find(name: str, private: tuple[Path, ...], public: tuple[Path, ...]) -> Path | None:
    folders = public if name.startswith(_OF_LLVM) else private
    return next((folder / name for folder in folders if (folder / name).is_file()), None)
