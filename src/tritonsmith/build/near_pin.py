"""Errors caused by an LLVM near the pin, recognised by the location they point to, not by their text.

A changed API shows in the compiler's output as a location: the error, or a note of it, points to a
declaration in LLVM's headers, or the error is about a header, a library or a name of LLVM's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_PLACE = re.compile(r"^(?P<file>[^\s:][^:\n]*):\d+:(?:\d+:)? (?P<kind>(?:fatal )?error|note): (?P<text>.*)$")
# `llvm-19/include/mlir/IR/X.h`, `llvm-project/mlir/include/mlir/IR/X.h`, `/usr/include/llvm-19/llvm/MC/X.h`
_HEADER = re.compile(r"(?:^|/)include/(?:llvm-\d+/)?(?:mlir|llvm|lld)(?:-c)?/")
# Notes on how the compiler got there; they do not point to a declaration.
_WAY = re.compile(
    r"in (?:instantiation|implicit|definition|expansion|evaluation)|while |during |expanded from"
)
_FILE = re.compile(r"[\s'\"\u2018](?P<name>(?:mlir|llvm|lld)(?:-c)?/[\w./-]+\.(?:h|inc|td|def))\b")
_LIBRARY = re.compile(r"(?:find|found).*?\s-l(?P<name>(?:MLIR|LLVM)\w+)")
# In quotes (\u2018 in GCC's output): `mlir::LLVM::CallOp`, but nothing in Triton's own `mlir::triton`.
_NAME = re.compile(
    r"['\u2018](?:const |class |struct |enum |union )*(?:::)?"
    r"(?P<name>(?:mlir|llvm)(?:::(?!triton\b|gluon\b|proton\b)\w+)*)(?![\w:])"
)


@dataclass(frozen=True)
class Evidence:
    """The reason why an error is attributed to the LLVM.

    Attributes:
        why: the reason, in words.
        sure: it points to LLVM itself; a mere name may be one that Triton declares in LLVM's namespaces.
    """

    why: str
    sure: bool = True


def evidence(error: Sequence[str]) -> Evidence | None:
    """Return evidence that an error, including all its notes, is caused by the LLVM; None for none."""
    if not error or "[-Werror" in error[0]:
        return None  # a compiler's warning, with a remedy of its own
    for pattern in (_FILE, _LIBRARY):
        if (missing := pattern.search(error[0])) and _is_missing(error[0]):
            return Evidence(f"this LLVM has no {missing['name']}")
    for line in error:
        place = _PLACE.match(line)
        if (
            place
            and _HEADER.search(place["file"])
            and not (place["kind"] == "note" and _WAY.match(place["text"]))
        ):
            return Evidence(f"it points to {place['file']}")
    first = _PLACE.match(error[0])
    if first and first["file"].endswith(".inc"):
        return Evidence("it is in a file that this LLVM's mlir-tblgen generated", sure=False)
    if first and (named := _NAME.search(first["text"])):
        return Evidence(f"it names {named['name']} but points to no LLVM declaration", sure=False)
    return None


def _is_missing(line: str) -> bool:
    """Report whether an error line of a compiler or linker names a missing file or library."""
    return bool(re.search(r"not found|[Nn]o such file|(?:unable to|cannot|not) find", line))
