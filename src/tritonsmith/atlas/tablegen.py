"""Ask TableGen itself for a definition: `llvm-tblgen --dump-json` of an LLVM at hand."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from tritonsmith.atlas.definition import HAS, Definition, PassOption, cpp_class, full_name
from tritonsmith.atlas.source_files import SourceFiles
from tritonsmith.core import process

_PATIENCE = 60.0  # seconds; the largest file of Triton's takes one
_KINDS = {  # class of MLIR to kind, the first that fits
    "PassBase": "pass",
    "Dialect": "dialect",
    "Op": "op",
    "TypeDef": "type",
    "AttrDef": "attribute",
    "EnumAttr": "attribute",
    "Interface": "interface",
    "EnumAttrInfo": "enum",
    "EnumInfo": "enum",
    "Pattern": "pattern",
}


class TableGenError(Exception):
    """A file that TableGen refuses, mostly because it needs the MLIR of another LLVM."""


def program(llvm: Path) -> Path | None:
    """Return the `llvm-tblgen` of an LLVM that has MLIR's files, too; None if it lacks one of them."""
    path = llvm / "bin" / "llvm-tblgen"
    return path if path.is_file() and includes(llvm) else None


def includes(llvm: Path) -> tuple[Path, ...]:
    """Return the folders of MLIR's and LLVM's `.td` files, of an installed LLVM or a build folder."""
    tops = [llvm / "include", llvm / "tools" / "mlir" / "include", llvm.parent / "mlir" / "include"]
    tops += [llvm.parent / "llvm" / "include"]
    existing = tuple(top for top in tops if top.is_dir())
    return existing if any((top / "mlir" / "IR" / "OpBase.td").is_file() for top in existing) else ()


def read(tree: SourceFiles, file: str, llvm: Path) -> tuple[Definition, ...]:
    """Return the definitions in one `.td` file of a tree.

    Raises:
        TableGenError: TableGen refuses the file.
    """
    records = _dump(tree, file, llvm)
    lines = _lines_of(tree, file)
    kinds: Mapping[str, list[str]] = records["!instanceof"]
    definitions: dict[str, Definition] = {}
    for of, kind in _KINDS.items():
        for name in kinds.get(of, ()):
            if name in lines and name not in definitions:
                definitions[name] = _definition(records, name, kind, file, lines[name])
    return tuple(sorted(definitions.values(), key=lambda one: one.line))


def agree(definition: Definition, by_text: Definition) -> Definition:
    """Merge TableGen's answer with facts of the text: the last line, types and traits as written."""
    written = dict(by_text.arguments) | dict(by_text.results)
    return replace(
        definition,
        end=by_text.end,
        arguments=tuple((name, written.get(name, type_)) for name, type_ in definition.arguments),
        results=tuple((name, written.get(name, type_)) for name, type_ in definition.results),
        traits=by_text.traits,
        by="tablegen",
    )


def _dump(tree: SourceFiles, file: str, llvm: Path) -> dict[str, Any]:
    tool = program(llvm)
    if tool is None:
        raise TableGenError(f"{llvm} has no llvm-tblgen with MLIR's files")
    folders = [*includes(llvm), *_folders(tree), tree.root / Path(file).parent]
    words = [f"-I{folder}" for folder in dict.fromkeys(folders)]
    answer = process.query(
        (str(tool), "--dump-json", *words, str(tree.root / file)), change={}, timeout=_PATIENCE
    )
    if answer is None or answer.code:
        lines = answer.err.splitlines() if answer else ["it did not finish in time"]
        raise TableGenError(next((line for line in lines if "error:" in line), "it fails"))
    records: dict[str, Any] = json.loads(answer.out)
    return records


@cache
def _folders(tree: SourceFiles) -> tuple[Path, ...]:
    """Return TableGen's search path in Triton's CMake: the folders named `include`, and those around them."""
    tops = {name.rpartition("/include/")[0] for name in tree.having(".td") if "/include/" in name}
    folders = [tree.root / "include", tree.root, tree.root / "third_party"]
    folders += [tree.root / top / "include" for top in sorted(tops)]
    return tuple(folders)


def _lines_of(tree: SourceFiles, file: str) -> dict[str, int]:
    """Return the lines of records that this very file defines: TableGen's `!locs` name no folder."""
    text = tree.text(file)
    return {
        match[1]: text.count("\n", 0, match.start(1)) + 1
        for match in re.finditer(r"^\s*def\s+(\w+)", text, re.MULTILINE)
    }


def _definition(records: Mapping[str, Any], name: str, kind: str, file: str, line: int) -> Definition:
    record = records[name]
    dialect = _named(record.get("dialect") or record.get("opDialect"))
    prefix = str(records[dialect]["name"]) if dialect in records else ""
    own = str(
        (record.get("argument") if kind == "pass" else "")
        or (record.get("opName") if kind == "op" else "")
        or (record.get("mnemonic") if kind in ("type", "attribute") else "")
        or (record.get("name") if kind == "dialect" else "")
        or (record.get("cppInterfaceName") if kind == "interface" else "")
        or (record.get("className") if kind == "enum" else "")
        or ""
    )
    named = str(record.get("cppClassName") or record.get("cppInterfaceName") or record.get("className") or "")
    plain = {"EnumAttr", "ArrayOfAttr"}.isdisjoint(record["!superclasses"])  # MLIR gives them a parameter
    return Definition(
        kind=kind,
        name=full_name(kind, own, prefix) if own else name,
        record=name,
        cpp=named.rpartition("::")[2] or cpp_class(kind, name, ""),
        file=file,
        line=line,
        end=line,
        summary=" ".join(_text(record.get("summary")).split()),
        description=textwrap.dedent(_text(record.get("description"))).strip(),
        dialect=dialect,
        constructor=re.split(r"[(\s]", _text(record.get("constructor")))[0].rpartition("::")[2],
        arguments=_dag(record.get("arguments"))
        if kind == "op"
        else _dag(record.get("parameters"))
        if plain
        else (),
        results=_dag(record.get("results")) if kind == "op" else (),
        options=tuple(_options(records, record.get("options"))) if kind == "pass" else (),
        statistics=tuple(_options(records, record.get("statistics"))) if kind == "pass" else (),
        has=tuple(words for key, words in HAS.items() if record.get(key) == 1),
        by="tablegen",
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _named(value: Any) -> str:
    return str(value.get("def", "")) if isinstance(value, dict) else ""


def _dag(value: Any) -> tuple[tuple[str, str], ...]:
    pairs: Iterable[Any] = value.get("args", ()) if isinstance(value, dict) else ()
    return tuple((str(name), _named(argument) or _text(argument)) for argument, name in pairs if name)


def _options(records: Mapping[str, Any], listed: Any) -> Iterable[PassOption]:
    for item in listed or ():
        row = records[_named(item)]
        if "argument" not in row:
            yield PassOption(str(row["name"]), "", "", str(row["description"]))
        elif "ListOption" in row["!superclasses"]:
            yield PassOption(str(row["argument"]), f"list of {row['type']}", "", str(row["description"]))
        else:
            default = _text(row.get("defaultValue"))
            yield PassOption(str(row["argument"]), str(row["type"]), default, str(row["description"]))
