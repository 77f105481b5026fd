"""Find files of `triton` in site folders that belong to no installed distribution."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from tritonsmith.core import untrusted
from tritonsmith.facts import distributions, editables
from tritonsmith.facts.distributions import Distribution
from tritonsmith.facts.editables import PACKAGE


@dataclass(frozen=True)
class Orphans:
    """Files without an owner in a site folder.

    Attributes:
        site: the site folder.
        files: files and links below `triton/`, or `triton` itself where it is a link.
        leftovers: folders that an interrupted pip left: `~riton`, `~riton-3.5.0.dist-info`.
        hooks: `.pth` files and finders of an editable install that is gone.
        hollow: `triton` is a folder without a single file: an import of it works, and gives nothing.
        size: bytes of all of them.
    """

    site: Path
    files: tuple[Path, ...] = ()
    leftovers: tuple[Path, ...] = ()
    hooks: tuple[Path, ...] = ()
    hollow: bool = False
    size: int = 0

    @property
    def any(self) -> bool:
        """Report whether there is anything."""
        return bool(self.files or self.leftovers or self.hooks or self.hollow)

    @property
    def all(self) -> tuple[Path, ...]:
        """The files, hooks and leftover folders."""
        return (*self.files, *self.hooks, *self.leftovers)

    @property
    def words(self) -> str:
        """The orphans in a few words."""
        copied = [path.name for path in self.files if path.suffix == ".so"]
        parts = [
            f"{PACKAGE}/ without a file in it" if self.hollow else "",
            f"{len(self.files)} below {PACKAGE}/" if self.files else "",
            f"copied in: {', '.join(copied)}" if copied else "",
            f"left by an interrupted pip: {_names(self.leftovers)}" if self.leftovers else "",
            f"of a removed editable install: {_names(self.hooks)}" if self.hooks else "",
        ]
        return "; ".join(filter(None, parts))


def read(site: Path, installed: Iterable[Distribution]) -> Orphans:
    """Find orphans in a site folder, beside the distributions installed in it.

    Bytecode of an owned file is no orphan: Python may write it at any time.
    """
    owners = [owner for owner in distributions.owners(installed) if owner.site == site]
    owned = {path for owner in owners for path in distributions.recorded(owner)}
    folder = site / PACKAGE
    present = tuple(distributions.files_below(folder))
    files = tuple(sorted(path for path in present if path not in owned and _source(path) not in owned))
    leftovers = distributions.leftovers(site)
    claimed = [hook for owner in owners if owner.editable for hook in owner.editable.hooks]
    hooks = editables.forsaken(site, claimed)
    orphans = Orphans(site, files, leftovers, hooks, hollow=untrusted.is_dir(folder) and not present)
    size = sum(path.lstat().st_size for top in orphans.all for path in distributions.files_below(top))
    return replace(orphans, size=size)


def _names(paths: Iterable[Path]) -> str:
    return ", ".join(path.name for path in paths)


def _source(path: Path) -> Path | None:
    """Return the source of `__pycache__/NAME.cpython-311.pyc`; None for other files."""
    if path.suffix != ".pyc" or path.parent.name != "__pycache__":
        return None
    return path.parent.parent / f"{path.name.split('.', 1)[0]}.py"
