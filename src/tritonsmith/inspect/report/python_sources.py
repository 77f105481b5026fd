"""The Python files that the IR refers to, to show next to it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path, PurePath

from tritonsmith.core import untrusted
from tritonsmith.inspect.show.source_lines import unescaped

_NAMES = re.compile(rb'"((?:[^"\\\n]|\\.)+\.py)"')
_DEBUG = re.compile(rb'!DIFile\(filename: "([^"\n]+\.py)", directory: "([^"\n]+)"')
_TABLE = re.compile(rb'^\s*\.file\s+\d+\s+"([^"\n]+)"\s+"([^"\n]+\.py)"', re.MULTILINE)
_LARGEST = 2**20  # bytes; a longer one was made by a program


def names(text: bytes) -> list[str]:
    """Names of Python files in the locations of a text, in the order of the text: the kernel's first."""
    found = [match[1] for match in _NAMES.finditer(text)]
    found += [b"/".join((match[2], match[1])) for match in _DEBUG.finditer(text)]
    found += [b"/".join((match[1], match[2])) for match in _TABLE.finditer(text)]
    return [name.decode("utf-8", "replace") for name in dict.fromkeys(found)]


def read(names: Iterable[str]) -> dict[str, str]:
    """The texts of those that are here, as the IR names them; without relative ones: nobody knows what to."""
    found = {}
    for name in names:
        path = Path(unescaped(name))
        if not PurePath(name).is_absolute() or path.suffix != ".py":
            continue
        try:
            found[name] = untrusted.read_text(path, _LARGEST)
        except (OSError, ValueError):  # ValueError: half of a surrogate pair in the name
            continue
    return found
