"""Compare an LLVM with a recompiled library of it: every value is read, none is assumed.

The library's Ninja file runs this as a program before the new archive gets its name:
`python -m tritonsmith.build.debug_library.abi_check LLVM OLD.a NEW.a`
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.build.debug_library.resolve import Library, Reached
from tritonsmith.core import untrusted
from tritonsmith.core.errors import EXIT_FAILURE, FactError
from tritonsmith.core.plan.archive import BadArchiveError, read_ar
from tritonsmith.core.process import capture
from tritonsmith.facts import llvm_tree, tools
from tritonsmith.facts.llvm_tree import LlvmTree, same_commit

_VERSION_FILES = ("cmake/Modules/LLVMVersion.cmake", "llvm/CMakeLists.txt")  # the first since LLVM 19
_CXX = re.compile(r"set\((?:LLVM_REQUIRED_)?(?:CMAKE_)?CXX_STANDARD (\d+)")
_SHOWN = 4  # names of one point
# Share of headers that a distribution may have patched in a release; in Debian's LLVM 19 it is 1 of 4000.
_PATCHED = 0.02
# A line of `objdump --syms`: value, seven flags, section, size, visibility, name. Mach-O has no size.
_SYMBOL = re.compile(
    r"^[0-9a-f]{8,16} (.{7}) (\S+)(?:\s+[0-9a-f]{8,16})?\s+(?:\.(hidden|internal|protected) )?(\S+)$"
)
_OLD_STRING = re.compile(r"_ZN?K?Ss|RKSs")  # std::string before the dual ABI
_PATIENCE = 120.0  # seconds; the largest archives hold 100,000 symbols


@dataclass(frozen=True)
class LlvmOptions:
    """Build options that an LLVM records, besides the facts in `LlvmTree`.

    Attributes:
        checks: ABI-breaking checks are in (`llvm/Config/abi-breaking.h`).
        exceptions: compiled with exceptions.
        pic: position-independent.
        definitions: `-D` flags with which every file was compiled.
        includes: folders of its headers.
    """

    checks: bool
    exceptions: bool
    pic: bool
    definitions: tuple[str, ...]
    includes: tuple[Path, ...]


@dataclass(frozen=True)
class LlvmSources:
    """A local llvm-project source tree.

    Attributes:
        path: the folder that holds `llvm/` and `mlir/`.
        version: `19.1.7`.
        commit: HEAD; empty if it is not under git.
        standard: C++ standard of its files: `17`.
    """

    path: Path
    version: str
    commit: str
    standard: str


def read(tree: LlvmTree) -> LlvmOptions:
    """Read an LLVM's CMake package and headers.

    Raises:
        FactError: a header is missing.
    """
    text = untrusted.read_text(tree.cmake_dir("llvm") / "LLVMConfig.cmake")
    source = llvm_tree.source_of(tree.prefix)
    # A build folder has generated headers only, MLIR's below tools/mlir; the others are in the sources.
    own = [tree.prefix / "include", tree.prefix / "tools" / "mlir" / "include"]
    of_sources = [source / "llvm" / "include", source / "mlir" / "include"] if source else []
    header = tree.prefix / "include" / "llvm" / "Config" / "abi-breaking.h"
    try:
        checks = "#define LLVM_ENABLE_ABI_BREAKING_CHECKS 1" in untrusted.read_text(header)
    except OSError as error:
        raise FactError("cannot determine the ABI of this LLVM", where=header, why=error.strerror) from error
    return LlvmOptions(
        checks=checks,
        exceptions=_on(text, "LLVM_ENABLE_EH"),
        pic=_on(text, "LLVM_ENABLE_PIC"),
        definitions=tuple(_value(text, "LLVM_DEFINITIONS").split()),
        includes=tuple(folder for folder in (*own, *of_sources) if folder.is_dir()),
    )


def sources(path: Path) -> LlvmSources:
    """Read the version and commit of sources.

    Raises:
        FactError: they do not contain their version.
    """
    texts = [untrusted.read_text(path / name) for name in _VERSION_FILES if (path / name).is_file()]
    text = "\n".join(texts)
    parts = [re.search(rf"set\(LLVM_VERSION_{part} (\d+)\)", text) for part in ("MAJOR", "MINOR", "PATCH")]
    standard = _CXX.search(text)
    if not all(parts) or standard is None:
        raise FactError("cannot determine the LLVM version of these sources", where=path / _VERSION_FILES[1])
    version = ".".join(part[1] for part in parts if part)
    return LlvmSources(path, version, llvm_tree.source_commit(path), standard[1])


def _value(text: str, name: str) -> str:
    match = re.search(rf'^\s*set\({name} "?([^")]*)"?\)', text, re.MULTILINE)
    return match[1].strip() if match else ""


def _on(text: str, name: str) -> bool:
    return _value(text, name).upper() in {"ON", "1", "TRUE", "YES"}


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


def rows_before(
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
        # LLVM's own version may end in `git` or `rc1`, which the sources' CMake files have in another
        # variable.
        AbiRow("release", tree.version, sources.version, tree.version.startswith(sources.version)),
        AbiRow("commit", *commits, not known or same_commit(tree.commit, sources.commit)),
        AbiRow(
            "included headers",
            f"{same} identical",
            _listed(differing, "differ") + ("; the LLVM's are used" if differing else ""),
            # Distributions patch releases. A build of main is at one commit, where any difference means other
            # sources.
            len(differing) <= (0 if "git" in tree.version else _PATCHED * (same + len(differing))),
        ),
        AbiRow("objects", f"{len(members)} in its archive", _listed(strange, "not among them"), not strange),
        _claim("assertions", tree.assertions, traced=old.assertions),
        AbiRow(
            "ABI-breaking checks",
            _in(options.checks),
            "unknown" if old.checks is None else _in(old.checks),
            old.checks in (None, options.checks),
        ),
        _claim("RTTI", tree.rtti, traced=old.rtti),
        _claim("exceptions", options.exceptions, traced=old.exceptions),
    )


def rows_after(old: Traits, new: Traits) -> tuple[AbiRow, ...]:
    """Compare the new objects with those that they replace."""
    lost, extra = sorted(old.strong - new.strong), sorted(new.strong - old.strong)
    both = old.strong & new.strong
    other = sorted((old.hidden ^ new.hidden) & both)
    return (
        AbiRow("symbols", f"{len(old.strong)}", _listed(lost, "missing"), not lost),
        AbiRow("additional symbols", "none", _listed(extra, "added"), agrees=True),  # the user's edit
        AbiRow("visibility", f"{len(old.hidden)} hidden", _listed(other, "differ"), not other),
        # What the new objects do not show proves nothing: they may contain no assert, no class, no cleanup.
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


def _claim(what: str, claimed: bool, *, traced: bool) -> AbiRow:
    """Compare a claim of the CMake package with the objects, which can only refute that it is off."""
    # An object without a trace of assertions proves nothing: it may contain no assert.
    return AbiRow(
        what, _in(claimed), "found in its objects" if traced else "not found", claimed or not traced
    )


def _same(what: str, old: bool | None, new: bool | None) -> AbiRow:
    return AbiRow(what, _in(old), _in(new), old is None or new is None or old == new)


def _in(value: bool | None) -> str:
    return {True: "yes", False: "no", None: "unknown"}[value]


def _listed(names: list[str], word: str) -> str:
    if not names:
        return f"none {word}"
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{len(names)} {word}: {', '.join(names[:_SHOWN])}{more}"


@dataclass(frozen=True)
class Traits:
    """The way an archive's objects were compiled, as far as their symbols show; None where they do not.

    Attributes:
        strong: external symbols that only this archive defines.
        hidden: those of them that are hidden.
        assertions: it calls the function that a failed `assert` calls.
        checks: it requires an LLVM with (True) or without (False) ABI-breaking checks.
        rtti: it defines type information.
        exceptions: it has code that runs during exception unwinding.
        cxx11: it names the `std::string` of libstdc++'s new ABI (True) or of its old one (False).
        libcxx: it names libc++'s namespace.
    """

    strong: frozenset[str]
    hidden: frozenset[str]
    assertions: bool
    checks: bool | None
    rtti: bool
    exceptions: bool
    cxx11: bool | None
    libcxx: bool


def archive_members(archive: Path) -> tuple[Path, ...]:
    """Return the objects in an archive: their names, or their paths if the archive is thin.

    Raises:
        FactError: it cannot be read.
    """
    try:
        contents = read_ar(archive)
    except (OSError, BadArchiveError) as error:
        raise FactError("cannot read this archive", where=archive, why=str(error)) from error
    return tuple(
        contents.object_path(member) if contents.thin else Path(member.name) for member in contents.objects
    )


def read_traits(archive: Path, tree: LlvmTree) -> Traits:
    """Read an archive's symbols.

    Raises:
        FactError: it cannot be read.
    """
    tool = tools.find("llvm-objdump", folders=[tree.bin], names=[f"llvm-objdump-{tree.major}", "objdump"])
    if tool is None:
        raise FactError(
            "neither llvm-objdump nor objdump was found",
            hints=["install LLVM's tools (Debian: apt install llvm) or binutils"],
        )
    listing = capture((str(tool.path), "--syms", str(archive)), timeout=_PATIENCE)
    if listing is None:
        raise FactError("cannot read the symbols of this archive", where=archive)
    return parse_traits(listing.splitlines())


def parse_traits(lines: Iterable[str]) -> Traits:
    """Parse the output of `objdump --syms`."""
    strong: set[str] = set()
    hidden: set[str] = set()
    names: set[str] = set()
    defined: set[str] = set()
    for line in lines:
        match = _SYMBOL.match(line)
        if not match:
            continue
        flags, section, visibility, name = match.groups()
        names.add(name)
        if section == "*UND*":
            continue
        defined.add(name)
        # Weak symbols are inline functions and templates, which any object may define; strong ones
        # belong to this archive alone.
        if flags[0] == "g" and flags[1] != "w":
            strong.add(name)
            if visibility == "hidden":
                hidden.add(name)
    text = "\n".join(names)
    return Traits(
        strong=frozenset(strong),
        hidden=frozenset(hidden),
        assertions=not names.isdisjoint(("__assert_fail", "___assert_rtn")),
        # LLVM's own guard: every object that includes abi-breaking.h refers to one of two symbols, of
        # which a build defines one.
        checks=_either(text, "EnableABIBreakingChecksE", "DisableABIBreakingChecksE"),
        # Type information of LLVM's own classes: that of the standard library's is there without RTTI, too.
        rtti=any(
            name.startswith(("_ZTIN4llvm", "_ZTIN4mlir", "__ZTIN4llvm", "__ZTIN4mlir")) for name in defined
        ),
        exceptions=not names.isdisjoint(("__gxx_personality_v0", "___gxx_personality_v0")),
        cxx11=True if "cxx11" in text else False if _OLD_STRING.search(text) else None,
        libcxx="St3__1" in text,
    )


def _either(text: str, yes: str, no: str) -> bool | None:
    return True if f"23{yes}" in text else False if f"24{no}" in text else None


def main(argv: list[str]) -> int:
    """Compare the two archives; the exit code is 0 if they agree."""
    llvm, old, new = map(Path, argv)
    tree = llvm_tree.read(llvm)
    rows = rows_after(read_traits(old, tree), read_traits(new, tree))
    try:
        enforce(
            rows,
            "the new objects cannot replace the LLVM's own; nothing was linked",
            new,
            ["check that these are the sources of this LLVM, including a distribution's patches"],
        )
    except FactError as error:
        print(f"error: {error}")
        return EXIT_FAILURE
    print("; ".join(f"{row.what}: {row.llvm or row.here}" for row in rows))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
