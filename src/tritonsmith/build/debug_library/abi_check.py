"""Comparison of an LLVM with a recompiled library of it; every value is read, none is assumed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.build.debug_library.archive import Traits
from tritonsmith.build.debug_library.cmake_lists import Library
from tritonsmith.build.debug_library.includes import Reached
from tritonsmith.build.debug_library.llvm_options import LlvmOptions, LlvmSources
from tritonsmith.core.errors import FactError
from tritonsmith.facts.llvm_tree import LlvmTree, same_commit

_SHOWN = 4  # names of one point
_PATCHED = (
    0.02  # share of headers that a distribution may have patched in a release; Debian's LLVM 19: 1 of 4000
)


@dataclass(frozen=True)
class AbiRow:
    """One compared property.

    Attributes:
        what: name of the property.
        llvm: value in the LLVM.
        here: value in the sources, or in the new objects.
        agrees: whether they may be linked together.
    """

    what: str
    llvm: str
    here: str
    agrees: bool


def before(
    tree: LlvmTree,
    options: LlvmOptions,
    sources: LlvmSources,
    library: Library,
    reached: Reached,
    old: Traits,
    members: tuple[str, ...],
) -> tuple[AbiRow, ...]:
    """Compare an LLVM with sources, and with its own archive, before anything is compiled.

    `old` and `members` describe the LLVM's own archive; `reached` is what the library includes.
    """
    commits = (tree.commit[:12] or "not recorded", sources.commit[:12] or "not under git")
    known = bool(tree.commit and sources.commit)
    objects = [f"{source.name}.o" for source in library.sources]
    strange = sorted(set(objects) - set(members))
    same, differing = _headers(tree, sources, reached)
    return (
        AbiRow("release", tree.version, sources.version, tree.version.startswith(sources.version)),
        AbiRow("commit", *commits, not known or same_commit(tree.commit, sources.commit)),
        AbiRow(
            "included headers",
            f"{same} identical",
            _listed(differing, "differ") + ("; the LLVM's are used" if differing else ""),
            len(differing) <= (0 if "git" in tree.version else _PATCHED * (same + len(differing))),
        ),
        AbiRow("objects", f"{len(members)} in its archive", _listed(strange, "not among them"), not strange),
        _claim("assertions", tree.assertions, seen=old.assertions),
        AbiRow(
            "ABI-breaking checks",
            _in(options.checks),
            "unknown" if old.checks is None else _in(old.checks),
            old.checks in (None, options.checks),
        ),
        _claim("RTTI", tree.rtti, seen=old.rtti),
        _claim("exceptions", options.exceptions, seen=old.exceptions),
    )


def after(old: Traits, new: Traits) -> tuple[AbiRow, ...]:
    """Compare the new objects with those that they replace."""
    lost, extra = sorted(old.strong - new.strong), sorted(new.strong - old.strong)
    both = old.strong & new.strong
    other = sorted((old.hidden ^ new.hidden) & both)
    return (
        AbiRow("symbols", f"{len(old.strong)}", _listed(lost, "missing"), not lost),
        AbiRow("additional symbols", "none", _listed(extra, "added"), agrees=True),  # the user's edit
        AbiRow("visibility", f"{len(old.hidden)} hidden", _listed(other, "differ"), not other),
        AbiRow("assertions", _in(old.assertions), _in(new.assertions), old.assertions or not new.assertions),
        _same("ABI-breaking checks", old.checks, new.checks),
        AbiRow("RTTI", _in(old.rtti), _in(new.rtti), old.rtti or not new.rtti),
        AbiRow("exceptions", _in(old.exceptions), _in(new.exceptions), old.exceptions or not new.exceptions),
        _same("std::string with the new ABI", old.cxx11, new.cxx11),
        _same("libc++", old.libcxx, new.libcxx),
    )


def enforce(rows: Iterable[AbiRow], what: str, where: Path, hints: Iterable[str]) -> None:
    """Raise an error if a row does not agree.

    Args:
        rows: results of `before` or `after`.
        what: message of the error, a sentence.
        where: path that the error names.
        hints: remedies.

    Raises:
        FactError: some rows differ; it names all of them.
    """
    wrong = [row for row in rows if not row.agrees]
    if wrong:
        lines = [f"{row.what}: the LLVM has {row.llvm or 'none'}, here {row.here}" for row in wrong]
        raise FactError(what, where=where, why="\n".join(lines), hints=hints)


def _headers(tree: LlvmTree, sources: LlvmSources, reached: Reached) -> tuple[int, list[str]]:
    """Return the number of identical public headers and the names of those that differ."""
    same, differing = 0, []
    for name in sorted(reached.public):
        project = "mlir" if name.startswith("mlir") else "llvm"
        theirs, ours = tree.prefix / "include" / name, sources.path / project / "include" / name
        # Generated headers exist on one side only; there is nothing to compare.
        if not theirs.is_file() or not ours.is_file():
            continue
        if theirs.read_bytes() == ours.read_bytes():
            same += 1
        else:
            differing.append(name)
    return same, differing


def _claim(what: str, claimed: bool, *, seen: bool) -> AbiRow:
    """Compare a claim of the CMake package with the objects, which can only refute that it is off."""
    return AbiRow(what, _in(claimed), "found in its objects" if seen else "not found", claimed or not seen)


def _same(what: str, old: bool | None, new: bool | None) -> AbiRow:
    return AbiRow(what, _in(old), _in(new), old is None or new is None or old == new)


def _in(value: bool | None) -> str:
    return {True: "yes", False: "no", None: "unknown"}[value]


def _listed(names: list[str], word: str) -> str:
    if not names:
        return f"none {word}"
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{len(names)} {word}: {', '.join(names[:_SHOWN])}{more}"
