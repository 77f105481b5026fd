"""Which headers a library's sources reach: followed as text, conditions aside.

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
    """The headers that includes reach.

    Attributes:
        public: names of LLVM's own headers, as written: `mlir/IR/Operation.h`.
        missing: names that are nowhere: generated headers, and those of other systems.
        private: headers of the library's own.
    """

    public: frozenset[str]
    missing: frozenset[str]
    private: frozenset[Path] = frozenset()


def follow(sources: Iterable[Path], private: tuple[Path, ...], public: tuple[Path, ...]) -> Reached:
    """Follow the includes of sources, and of every header that they lead to.

    Args:
        sources: where to begin.
        private: include folders of the library itself.
        public: include folders of the LLVM that it is compiled against.
    """
    own: set[Path] = set()
    todo = list(sources)
    seen: set[Path] = set(todo)
    headers: set[str] = set()
    missing: set[str] = set()
    places: dict[str, Path | None] = {}
    while todo:
        file = todo.pop()
        for name in _names(file):
            beside = file.parent / name
            if beside.is_file() and not name.startswith(_OF_LLVM):
                found: Path | None = beside
            else:
                if name not in places:
                    places[name] = _find(name, private, public)
                found = places[name]
                if found is None:
                    missing.add(name)
                elif name.startswith(_OF_LLVM):
                    headers.add(name)
            if found is not None and found not in seen:
                seen.add(found)
                todo.append(found)
                if not name.startswith(_OF_LLVM):
                    own.add(found)
    return Reached(frozenset(headers), frozenset(missing), frozenset(own))


def _names(file: Path) -> list[str]:
    return [name.decode(errors="replace") for name in _INCLUDE.findall(untrusted.read_bytes(file))]


def _find(name: str, private: tuple[Path, ...], public: tuple[Path, ...]) -> Path | None:
    folders = public if name.startswith(_OF_LLVM) else private
    return next((folder / name for folder in folders if (folder / name).is_file()), None)
