"""The path of a tree in its texts: removed when the tree is packed, and replaced when it is unpacked."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

from tritonsmith.core import configs
from tritonsmith.core.errors import StepError
from tritonsmith.core.plan import download

PLACEHOLDER = b"@TRITONSMITH_PREFIX@"
_UNQUOTABLE = '"\\$;\n'  # what CMake's quoted strings take for something else


def check(place: Path) -> None:
    """Check that texts can contain a path.

    Raises:
        StepError: CMake would misread the path.
    """
    if found := next((char for char in _UNQUOTABLE if char in str(place)), None):
        raise StepError(
            f"CMake packages cannot contain a path with {found!r}",
            where=place,
            hints=["choose another store: `store` under [llvm] in the env file, or TRITONSMITH_HOME"],
        )


def is_text(path: Path, patterns: Iterable[str]) -> bool:
    """Return whether a file may contain the tree's path: by its name, or because it is a script."""
    if path.stat().st_size > configs.load("archives")["limits"]["text"]:
        return False
    if any(fnmatchcase(path.name, pattern) for pattern in patterns):
        return True
    with path.open("rb") as file:
        return file.read(2) == b"#!"


def replaced(text: bytes, places: Iterable[tuple[str, str]]) -> bytes:
    """Return a text, in any encoding, with a placeholder for each path that it contains.

    `places` are folders, and what stands for each below the placeholder; of nested ones the inner wins.
    """
    for place, name in sorted(places, key=lambda pair: len(pair[0]), reverse=True):
        # the path alone: not the beginning of another's name, nor the end of another's path (-I and -L aside)
        whole = rb"(?:(?<![\w.+~/-])|(?<=-[ILF]))" + re.escape(os.fsencode(place)) + rb"(?![\w.+~-])"
        fresh = PLACEHOLDER + (b"/" + os.fsencode(name) if name else b"")
        text = re.sub(whole, fresh.replace(b"\\", rb"\\"), text)
    return text


def settle(tree: Path, dest: Path, texts: Iterable[str]) -> dict[str, str]:
    """Replace the placeholder with `dest`, where an unpacked tree will lie; return the changed checksums."""
    patterns = tuple(texts)
    changed = {}
    for path in tree.rglob("*"):
        if not path.is_symlink() and path.is_file() and is_text(path, patterns):
            text = path.read_bytes()
            if PLACEHOLDER in text:
                path.write_bytes(text.replace(PLACEHOLDER, os.fsencode(dest)))
                changed[str(path.relative_to(tree))] = download.sha256_of(path)
    return changed
