"""Demangle names of C++ with the first demangler on this machine."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tritonsmith.core.plan import process
from tritonsmith.facts import tools

_MANGLED = re.compile(r"\b_Z\w+")
_PROGRAMS = ("llvm-cxxfilt", "c++filt", "cxxfilt")


def names(mangled: Sequence[str]) -> tuple[str, ...]:
    """Return the names demangled; unchanged if no program is there, or it does not answer for each."""
    candidates = (*_PROGRAMS, *tools.versioned("llvm-cxxfilt"))
    program = next(filter(None, map(process.which, candidates)), None)
    lines = (process.capture((program, *mangled)) or "").splitlines() if program and mangled else []
    return tuple(lines) if len(lines) == len(mangled) else tuple(mangled)


def text(message: str) -> str:
    """Return a message, such as a linker's, with the names in it demangled."""
    mangled = tuple(dict.fromkeys(_MANGLED.findall(message)))
    known = dict(zip(mangled, names(mangled), strict=True))
    return _MANGLED.sub(lambda match: known[match[0]], message)
