"""The definitions of TableGen files: a pass, op, type, attribute, dialect, interface, enum or pattern."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class PassOption:
    """An option or a statistic of a pass.

    Attributes:
        name: its name on a command line: `num-stages`.
        type: its type in C++; empty for a statistic.
        default: as it is written; may be empty.
        about: its description.
    """

    name: str
    type: str
    default: str
    about: str


@dataclass(frozen=True)
class Definition:
    """A record of TableGen.

    Attributes:
        kind: `pass`, `op`, `type`, `attribute`, `dialect`, `interface`, `enum` or `pattern`.
        name: `tritongpu-coalesce`, `ttg.convert_layout`, `#ttg.blocked`, `!ttg.memdesc`, `ttg`.
        record: its name in TableGen: `TTG_ConvertLayoutOp`.
        cpp: the class in C++, without namespaces; may be empty.
        file: relative to the tree.
        line: the first line of the record.
        end: the last line of the record.
        summary: one line; may be empty.
        description: may be empty.
        dialect: the record of its dialect; empty for a pass.
        constructor: the function that a pass names as its constructor, without namespaces.
        arguments: operands and attributes of an op, parameters of a type: `$src` with its type.
        results: the results of an op.
        options: the options of a pass.
        statistics: the statistics of a pass.
        has: the methods that C++ adds to an op: `canonicalizer`, `canonicalize method`, `folder`, `verifier`.
        traits: as written.
        by: `tablegen` or `text`.
    """

    kind: str
    name: str
    record: str
    cpp: str
    file: str
    line: int
    end: int
    summary: str = ""
    description: str = ""
    dialect: str = ""
    constructor: str = ""
    arguments: tuple[tuple[str, str], ...] = ()
    results: tuple[tuple[str, str], ...] = ()
    options: tuple[PassOption, ...] = ()
    statistics: tuple[PassOption, ...] = ()
    has: tuple[str, ...] = ()
    traits: tuple[str, ...] = ()
    by: str = "text"

    @property
    def place(self) -> str:
        """The place as `FILE:LINE`."""
        return f"{self.file}:{self.line}"

    def as_json(self) -> dict[str, Any]:
        """Return the definition as JSON."""
        return asdict(self)


# What a record says that it is made by C++, and the words for that.
HAS = {
    "hasCanonicalizer": "canonicalizer",
    "hasCanonicalizeMethod": "canonicalize method",
    "hasFolder": "folder",
    "hasVerifier": "verifier",
    "hasRegionVerifier": "region verifier",
    "hasCustomAssemblyFormat": "parser and printer",
}


def cpp_class(kind: str, record: str, own_name: str) -> str:
    """Return the class that TableGen makes of a record.

    Args:
        kind: the kind of definition.
        record: its name; for an op MLIR drops the part up to the first underscore.
        own_name: the name that a type or an attribute gives itself.
    """
    if kind == "op":
        head, _, tail = record.partition("_")
        return tail if head and tail else record
    if kind in ("type", "attribute") and own_name:
        return own_name + ("Type" if kind == "type" else "Attr")
    return own_name or record


def full_name(kind: str, name: str, dialect: str) -> str:
    """Return the name as MLIR prints it."""
    if kind == "op":
        return f"{dialect}.{name}"
    mark = {"type": "!", "attribute": "#"}.get(kind, "")
    return f"{mark}{dialect}.{name}" if mark and dialect else name
