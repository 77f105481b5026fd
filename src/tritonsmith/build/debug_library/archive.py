"""Facts about how an archive's objects were compiled, read from its members and symbols."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.core.errors import FactError
from tritonsmith.core.plan import ar_archive
from tritonsmith.core.plan.process import capture
from tritonsmith.facts import tools
from tritonsmith.facts.llvm_tree import LlvmTree

# A line of `objdump --syms`: value, seven flags, section, size, visibility, name. Mach-O has no size.
_SYMBOL = re.compile(
    r"^[0-9a-f]{8,16} (.{7}) (\S+)(?:\s+[0-9a-f]{8,16})?\s+(?:\.(hidden|internal|protected) )?(\S+)$"
)
_OLD_STRING = re.compile(r"_ZN?K?Ss|RKSs")  # std::string before the dual ABI
_PATIENCE = 120.0  # seconds; the largest archives hold 100,000 symbols


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


def members(archive: Path) -> tuple[Path, ...]:
    """Return the objects in an archive: their names, or their paths if the archive is thin.

    Raises:
        FactError: it cannot be read.
    """
    try:
        contents = ar_archive.read(archive)
    except (OSError, ar_archive.BadArchiveError) as error:
        raise FactError("cannot read this archive", where=archive, why=str(error)) from error
    return tuple(
        contents.object_path(member) if contents.thin else Path(member.name) for member in contents.objects
    )


def read(archive: Path, tree: LlvmTree) -> Traits:
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
    return parse(listing.splitlines())


def parse(lines: Iterable[str]) -> Traits:
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
        if flags[0] == "g" and flags[1] != "w":
            strong.add(name)
            if visibility == "hidden":
                hidden.add(name)
    text = "\n".join(names)
    return Traits(
        strong=frozenset(strong),
        hidden=frozenset(hidden),
        assertions=not names.isdisjoint(("__assert_fail", "___assert_rtn")),
        checks=_either(text, "EnableABIBreakingChecksE", "DisableABIBreakingChecksE"),
        rtti=any(
            name.startswith(("_ZTIN4llvm", "_ZTIN4mlir", "__ZTIN4llvm", "__ZTIN4mlir")) for name in defined
        ),
        exceptions=not names.isdisjoint(("__gxx_personality_v0", "___gxx_personality_v0")),
        cxx11=True if "cxx11" in text else False if _OLD_STRING.search(text) else None,
        libcxx="St3__1" in text,
    )


def _either(text: str, yes: str, no: str) -> bool | None:
    return True if f"23{yes}" in text else False if f"24{no}" in text else None
