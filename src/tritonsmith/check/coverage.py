"""List the operations that `passes.check` knows: all, or those that a checkout's TableGen files define."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.atlas import td_text
from tritonsmith.atlas.source_files import SourceFiles
from tritonsmith.check.evaluate import known_operations
from tritonsmith.core.errors import FactError


@dataclass(frozen=True)
class DialectCoverage:
    """The operations of one dialect, without its prefix, sorted.

    Attributes:
        dialect: `ttg`.
        known: operations that the check can run.
        unknown: operations that stop a check.
    """

    dialect: str
    known: tuple[str, ...]
    unknown: tuple[str, ...] = ()


def of_all() -> list[DialectCoverage]:
    """Return every known operation, of any release."""
    return _by_dialect(known_operations())


def of_checkout(root: Path) -> list[DialectCoverage]:
    """Return the operations that a checkout of Triton defines, without those of LLVM's dialects.

    Raises:
        FactError: the checkout defines none.
    """
    defined = {definition.name for definition in td_text.read(SourceFiles(root)) if definition.kind == "op"}
    if not defined:
        raise FactError("no TableGen file here defines an operation", where=root, hints=["--source CHECKOUT"])
    return _by_dialect(defined)


def _by_dialect(names: Iterable[str]) -> list[DialectCoverage]:
    known, by_prefix = known_operations(), defaultdict[str, list[str]](list)
    for name in sorted(names):
        dialect, dot, rest = name.partition(".")
        if dot:
            by_prefix[dialect].append(rest)
    return [
        DialectCoverage(
            dialect,
            tuple(operation for operation in members if f"{dialect}.{operation}" in known),
            tuple(operation for operation in members if f"{dialect}.{operation}" not in known),
        )
        for dialect, members in sorted(by_prefix.items())
    ]
