"""Resolve `import triton` from the path and finders, without importing it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.core import untrusted
from tritonsmith.facts import editables
from tritonsmith.facts.distributions import Distribution
from tritonsmith.facts.editables import PACKAGE


@dataclass(frozen=True)
class ResolvedImport:
    """The result of an import.

    Attributes:
        folder: the package's folder, or the module's file.
        by: the entry of the path, or the finder, that provides it.
        namespace: a folder without `__init__.py`: importing it gives an empty package.
    """

    folder: Path
    by: Path
    namespace: bool = False


def find(path: Sequence[Path], finders: Iterable[Path] = ()) -> ResolvedImport | None:
    """Resolve by the entries of the path in order, then by setuptools' finders of editable installs."""
    spaces = []
    for entry in path:
        folder = entry / PACKAGE
        if untrusted.is_file(folder / "__init__.py"):
            return ResolvedImport(folder, entry)
        if untrusted.is_file(module := entry / f"{PACKAGE}.py"):
            return ResolvedImport(module, entry)
        if untrusted.is_dir(folder):
            spaces.append(ResolvedImport(folder, entry, namespace=True))
    if spaces:
        return spaces[0]
    for finder in finders:
        mapped = editables.mapping(finder).get(PACKAGE)
        if mapped and untrusted.is_file(mapped / "__init__.py"):
            return ResolvedImport(mapped, finder)
    return None


def finders(sites: Iterable[Path], distributions: Iterable[Distribution]) -> tuple[Path, ...]:
    """Return the finders of editable installs, including those that no distribution owns any more."""
    known = [
        hook
        for distribution in distributions
        if distribution.editable
        for hook in distribution.editable.hooks
    ]
    forsaken = [hook for site in sites for hook in editables.forsaken(site, known)]
    return tuple(hook for hook in (*known, *forsaken) if hook.suffix == ".py")
