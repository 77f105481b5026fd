"""Which operations `passes.check` knows: of those that the TableGen files of a checkout define, or all."""

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
    """Operations of one dialect, without its prefix, sorted.

    Attributes:
        dialect: `ttg`.
        known: those that are run.
        unknown: those that stop a check.
    """

    dialect: str
    known: tuple[str, ...]
    unknown: tuple[str, ...] = ()


def of_all() -> list[DialectCoverage]:
    """Every operation that is known, of whichever release."""
    return _by_dialect(known_operations())


def of_checkout(root: Path) -> list[DialectCoverage]:
    """The operations that a checkout of Triton defines; those of LLVM's dialects are not among them.

    Raises:
        FactError: it defines none.
    """
    defined = {one.name for one in td_text.read(SourceFiles(root)) if one.kind == "op"}
    if not defined:
        raise FactError("no TableGen file here defines an operation", where=root, hints=["--source CHECKOUT"])
    return _by_dialect(defined)


def _by_dialect(names: Iterable[str]) -> list[DialectCoverage]:
    known, found = known_operations(), defaultdict[str, list[str]](list)
    for name in sorted(names):
        dialect, dot, rest = name.partition(".")
        if dot:
            found[dialect].append(rest)
    return [
        DialectCoverage(
            dialect,
            tuple(one for one in every if f"{dialect}.{one}" in known),
            tuple(one for one in every if f"{dialect}.{one}" not in known),
        )
        for dialect, every in sorted(found.items())
    ]
