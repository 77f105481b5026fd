"""Read definitions from TableGen files: as text, or exactly, by `llvm-tblgen --dump-json` of an LLVM at hand.

As text, only names are evaluated: a parameter stands for its argument, everything else is text.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from tritonsmith.atlas.source_files import (
    HAS,
    Definition,
    PassOption,
    SourceFiles,
    cpp_class,
    full_name,
    line_of,
)
from tritonsmith.core import process, untrusted
from tritonsmith.core.text import split_outside_brackets


class _Root(NamedTuple):
    """A class of MLIR at which a chain ends: the kind, and the numbers of its arguments."""

    kind: str
    dialect: int | None = None
    cpp: int | None = None
    name: int | None = None


# The positions are those of the parameters in MLIR's OpBase.td, AttrTypeBase.td, EnumAttr.td and PassBase.td.
_ROOTS = {
    "Op": _Root("op", dialect=0, name=1),
    "LLVM_OpBase": _Root("op", dialect=0, name=1),
    "AttrDef": _Root("attribute", dialect=0, cpp=1),
    "TypeDef": _Root("type", dialect=0, cpp=1),
    "EnumAttr": _Root("attribute", dialect=0, name=2),
    "ArrayOfAttr": _Root("attribute", dialect=0, cpp=1, name=2),
    "Dialect": _Root("dialect"),
    "Pat": _Root("pattern"),
    "Pattern": _Root("pattern"),
    **dict.fromkeys(("Pass", "PassBase", "InterfacePass"), _Root("pass", name=0)),
    **dict.fromkeys(("OpInterface", "AttrInterface", "TypeInterface"), _Root("interface", cpp=0, name=0)),
    **dict.fromkeys(
        ("I32EnumAttr", "I64EnumAttr", "I32BitEnumAttr", "I32Enum", "I64Enum"), _Root("enum", cpp=0, name=0)
    ),
}
# What is never closed reaches to the end of the file: else each opening would be looked at up to there.
_HIDDEN = re.compile(r'//[^\n]*|/\*.*?(?:\*/|\Z)|"(?:\\.|[^"\\\n])*"|\[\{.*?(?:\}\]|\Z)', re.DOTALL)
_BEGIN = re.compile(r"\b(def|class)\s+(\w+)")
_LET = re.compile(r"\blet\s+(\w+)\s*=")
_STRING = re.compile(r'"((?:\\.|[^"\\])*)"|\[\{(.*?)(?:\}\]|\Z)', re.DOTALL)
_WORD = re.compile(r"\w+")
_LONGEST = 1 << 16  # characters of an argument in which parameters are replaced


@dataclass(frozen=True)
class _Record:
    """A `def` or a `class`, as written."""

    name: str
    is_class: bool
    file: str
    line: int
    end: int
    parameters: tuple[tuple[str, str], ...]  # names, and defaults
    parents: tuple[tuple[str, tuple[str, ...]], ...]
    lets: dict[str, str]


def read_td(tree: SourceFiles) -> tuple[Definition, ...]:
    """Return the definitions in all `.td` files of a tree, in the order of files and lines."""
    records = [record for name in tree.having(".td") for record in _records(name, tree.text(name))]
    return tuple(_RecordReader(records).definitions())


# Triton's files need no more than classes, parameters and `let`: in all versions from 2.0 on they have
# neither `defm` nor `foreach`.
class _RecordReader:
    """The records of a tree, each followed up to MLIR's classes."""

    def __init__(self, records: list[_Record]) -> None:
        self._records = records
        self._classes: dict[str, list[_Record]] = {}
        for record in records:
            if record.is_class:
                self._classes.setdefault(record.name, []).append(record)
        # An EnumAttr names the record of its enum, and its class in C++ is that enum's.
        self._enums = {record.name: _plain(record.parents[0][1][0]) for record in records if _is_enum(record)}
        dialects = (record for record in records if any(name == "Dialect" for name, _ in record.parents))
        self._dialects = {record.name: _value(record.lets.get("name", ""), {}) for record in dialects}

    def definitions(self) -> Iterator[Definition]:
        for record in self._records:
            if not record.is_class and (definition := self._definition(record)):
                yield definition

    def _definition(self, record: _Record) -> Definition | None:
        lets: dict[str, str] = {}
        root = self._climb(record, {}, lets, set())
        if root is None:
            return None
        end, arguments = root
        kind = end.kind
        dialect = _argument(arguments, end.dialect)
        named = _argument(arguments, end.cpp)
        name = lets.get("name" if kind == "dialect" else "mnemonic", "") or _argument(arguments, end.name)
        if kind == "attribute" and end.cpp is None:  # an EnumAttr
            named = self._enums.get(_argument(arguments, 1), "")
        # A dialect of MLIR's, such as LLVM_Dialect, has no record in this tree.
        prefix = self._dialects.get(dialect, dialect.removesuffix("_Dialect"))
        definition = Definition(
            kind=kind,
            name=full_name(kind, name, prefix) if name else record.name,
            record=record.name,
            cpp=lets.get("cppClassName") or cpp_class(kind, record.name, named),
            file=record.file,
            line=record.line,
            end=record.end,
            summary=" ".join(lets.get("summary", "").split()),
            description=lets.get("description", ""),
            dialect=dialect,
            constructor=_constructor(lets.get("constructor", "")),
            has=tuple(words for key, words in HAS.items() if lets.get(key) == "1"),
        )
        if kind == "pass":
            return replace(
                definition,
                options=tuple(_options_in_text(lets.get("options", ""))),
                statistics=tuple(_options_in_text(lets.get("statistics", ""))),
            )
        lists = {"op": ("arguments", "results"), "type": ("parameters", ""), "attribute": ("parameters", "")}
        first, second = lists.get(kind, ("", ""))
        return replace(
            definition,
            arguments=tuple(_operands(lets.get(first, ""))),
            results=tuple(_operands(lets.get(second, ""))),
            traits=tuple(_traits(arguments[2:] if kind == "op" else ())),
        )

    def _climb(
        self, record: _Record, bound: dict[str, str], lets: dict[str, str], visited: set[str]
    ) -> tuple[_Root, tuple[str, ...]] | None:
        """Return the class of MLIR at the end of a chain, with its arguments; `lets` is filled on the way."""
        for name, raw in record.lets.items():
            # The nearest `let` counts, and the way leads from the definition up to MLIR's classes.
            if name not in lets:
                lets[name] = _value(raw, bound)
        reached = None
        for name, raw_arguments in record.parents:
            arguments = tuple(_value(argument, bound, keep=True) for argument in raw_arguments)
            if name in ("Arguments", "Results") and arguments:  # of MLIR, instead of a `let`
                lets.setdefault(name.lower(), arguments[0])
            elif name in _ROOTS:
                reached = reached or (_ROOTS[name], tuple(map(_plain, arguments)))
            # A class that derives from itself is an error in TableGen, and would be an endless climb here.
            elif (known := self._class(name, record.file)) and known.name not in visited:
                values = {
                    parameter: arguments[at] if at < len(arguments) else _value(default, bound, keep=True)
                    for at, (parameter, default) in enumerate(known.parameters)
                }
                reached = reached or self._climb(known, values, lets, visited | {known.name})
        return reached

    def _class(self, name: str, file: str) -> _Record | None:
        """Return the class of that name; of several the one in the nearest file."""
        # Includes are not followed, and two dialects may have a class of one name: the file that shares more
        # folders is more likely the one that is included.
        known = self._classes.get(name, [])
        return max(known, key=lambda record: _common(record.file, file), default=None)


def _is_enum(record: _Record) -> bool:
    return bool(not record.is_class and record.parents and record.parents[0][1])


def _common(path: str, other: str) -> int:
    pairs = zip(path.split("/"), other.split("/"), strict=False)
    return next((at for at, (left, right) in enumerate(pairs) if left != right), 99)


def _records(file: str, text: str) -> Iterator[_Record]:
    # Blanks in place of strings, code and comments: brackets in those do not count, and offsets stay.
    hidden = _HIDDEN.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    begins, last = [*_BEGIN.finditer(hidden)], 0
    for begin, after in zip_longest(begins, begins[1:]):
        if begin.start() < last:  # no record is in another one
            continue
        stop = _end_of_header(hidden, begin.end(), after.start() if after else len(hidden))
        if stop is None:
            continue
        last = _closing(hidden, stop) if hidden[stop] == "{" else stop
        # Comments would be taken for arguments.
        head = _uncommented(text[begin.end() : stop])
        parameters, parents = _header(head)
        lets = dict(_lets(text, hidden, stop, last)) if last > stop else {}
        yield _Record(
            begin[2],
            begin[1] == "class",
            file,
            line_of(text, begin.start()),
            line_of(text, last),
            parameters,
            parents,
            lets,
        )


def _uncommented(text: str) -> str:
    return _HIDDEN.sub(lambda match: " " if match[0].startswith(("//", "/*")) else match[0], text)


def _end_of_header(hidden: str, at: int, end: int) -> int | None:
    depth = 0
    for place in range(at, end):
        char = hidden[place]
        if depth == 0 and char in ";{":
            return place
        depth += (char in "<([{") - (char in ">)]}")
    return None


def _closing(hidden: str, at: int) -> int:
    depth = 0
    for place in range(at, len(hidden)):
        depth += (hidden[place] == "{") - (hidden[place] == "}")
        if depth == 0:
            return place
    return len(hidden) - 1


def _header(text: str) -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, tuple[str, ...]], ...]]:
    # `<list<Trait> traits = []> : Op<TT_Dialect, mnemonic, traits>`: own parameters, then the parents with
    # arguments.
    own, _, rest = _split_once(text)
    parameters = []
    for parameter in split_outside_brackets(own.strip()[1:-1], ",") if own.strip() else ():
        left, _, default = parameter.partition("=")
        parameters.append((left.split()[-1] if left.split() else "", default.strip()))
    parents = []
    for parent in split_outside_brackets(rest, ",") if rest.strip() else ():
        name, _, inside = parent.partition("<")
        arguments = tuple(split_outside_brackets(inside.rstrip()[:-1], ",")) if inside else ()
        parents.append((name.strip(), arguments))
    return tuple(parameters), tuple(parents)


def _split_once(text: str) -> tuple[str, str, str]:
    """Split at the colon between a record's own parameters and its parents."""
    parts = split_outside_brackets(text, ":")
    return parts[0], ":", ":".join(parts[1:])


def _lets(text: str, hidden: str, begin: int, end: int) -> Iterator[tuple[str, str]]:
    every = [*_LET.finditer(hidden, begin, end)]
    for match, after in zip_longest(every, every[1:]):
        depth, place, most = 0, match.end(), after.start() if after else end
        while place < most and not (depth == 0 and hidden[place] == ";"):
            depth += (hidden[place] in "<([{") - (hidden[place] in ">)]}")
            place += 1
        yield match[1], _uncommented(text[match.end() : place]).strip()


def _value(raw: str, bound: dict[str, str], *, keep: bool = False) -> str:
    """Return the text of a string or code block, or a parameter's argument; else the expression as written.

    Args:
        raw: the expression.
        bound: parameters and their values.
        keep: strings stay quoted, to be passed on.
    """
    if _WORD.fullmatch(raw) and raw in bound:
        return bound[raw] if keep else _plain(bound[raw])
    if keep:
        many = sum(len(bound.get(word[0], "")) for word in _WORD.finditer(raw))
        if '"' in raw or many > _LONGEST:  # a parameter may stand twice, in class upon class
            return raw
        return _WORD.sub(lambda word: bound.get(word[0], word[0]), raw)
    return _plain(raw)


def _plain(raw: str) -> str:
    # TableGen joins adjacent strings, as C does. With anything else beside them it is an expression, which
    # stays as it is.
    pieces = [*_STRING.finditer(raw)]
    rest = _STRING.sub("", raw).strip()
    if not pieces or rest:
        return raw
    return "".join(
        textwrap.dedent(piece[2]).strip()
        if piece[2] is not None
        else piece[1].replace('\\"', '"').replace("\\n", "\n")
        for piece in pieces
    )


def _argument(arguments: tuple[str, ...], at: int | None) -> str:
    return arguments[at] if at is not None and at < len(arguments) else ""


def _constructor(text: str) -> str:
    match = re.match(r"[\w:]+", text)
    return match[0].rpartition("::")[2] if match else ""


def _options_in_text(text: str) -> Iterator[PassOption]:
    """Yield the options in `[Option<"numStages", "num-stages", "int32_t", "3", "about">, Statistic<...>]`."""
    for option in split_outside_brackets(text.strip().removeprefix("[").removesuffix("]"), ","):
        kind, _, rest = option.partition("<")
        parts = [_plain(part) for part in split_outside_brackets(rest.rstrip()[:-1], ",")]
        match kind.strip(), parts:
            case "Option", [_, name, type_, default, *about]:
                yield PassOption(name, type_, default, "".join(about[:1]))
            case "ListOption", [_, name, type_, *about]:
                yield PassOption(name, f"list of {type_}", "", "".join(about[:1]))
            case "Statistic", [_, name, about]:
                yield PassOption(name, "", "", about)
            case _:
                continue


def _operands(text: str) -> Iterator[tuple[str, str]]:
    inside = re.sub(r"^\s*(?:ins|outs)\b", "", text.strip().removeprefix("(").removesuffix(")"))
    for item in split_outside_brackets(inside, ","):
        if match := re.fullmatch(r"(.*):\s*\$(\w+)", item, re.DOTALL):
            yield match[2], " ".join(match[1].split())


def _traits(arguments: tuple[str, ...]) -> Iterator[str]:
    for text in arguments:
        inside = text.strip()
        if inside.startswith("!listconcat"):
            yield from _traits(tuple(split_outside_brackets(inside.partition("(")[2][:-1], ",")))
        elif inside.startswith("["):
            yield from filter(
                None, (" ".join(trait.split()) for trait in split_outside_brackets(inside[1:-1], ","))
            )


_BASE = Path("mlir", "IR", "OpBase.td")
_INCLUDE = re.compile(r'\binclude\s*"([^"\n]+)"')
_TIMEOUT = 60.0  # seconds; Triton's largest file takes one
# MLIR's class to kind, the first that fits.
_KINDS = {
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
    existing = tuple(top for top in _tops(llvm) if top.is_dir())
    return existing if any((top / _BASE).is_file() for top in existing) else ()


def files_behind(llvm: Path) -> tuple[Path, ...]:
    """Return the files that decide whether an LLVM has a TableGen and MLIR's files, and where."""
    return llvm / "bin" / "llvm-tblgen", *(path for top in _tops(llvm) for path in (top, top / _BASE))


def _tops(llvm: Path) -> tuple[Path, ...]:
    # A build folder (llvm-project/build) has only what is generated; the .td files stay in the sources around
    # it.
    around = (llvm.parent / "mlir" / "include", llvm.parent / "llvm" / "include")
    return llvm / "include", llvm / "tools" / "mlir" / "include", *around


def read_exact(tree: SourceFiles, file: str, llvm: Path) -> tuple[Definition, ...]:
    """Return the definitions in one `.td` file of a tree.

    Raises:
        TableGenError: TableGen refuses the file.
    """
    records = _dump(tree, file, llvm)
    lines = _lines_of(tree, file)
    kinds: Mapping[str, list[str]] = records["!instanceof"]
    definitions: dict[str, Definition] = {}
    for superclass, kind in _KINDS.items():
        for name in kinds.get(superclass, ()):
            if name in lines and name not in definitions:
                definitions[name] = _definition_of_record(records, name, kind, file, lines[name])
    return tuple(sorted(definitions.values(), key=lambda definition: definition.line))


def merge_text(definition: Definition, by_text: Definition) -> Definition:
    """Merge TableGen's answer with facts of the text: the last line, types and traits as written."""
    # TableGen's JSON has anonymous records for types, and traits after all `!listconcat`s: unreadable.
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
    folders = _search_path(tree, file, llvm)
    words = ("--dump-json", *(f"-I{folder}" for folder in folders), str((tree.root / file).absolute()))
    # TableGen looks into its current folder before all others: the user's may have files of the same names.
    answer = process.query((str(tool.absolute()), *words), cwd=folders[0], change={}, timeout=_TIMEOUT)
    if answer is None or answer.code:
        lines = answer.err.splitlines() if answer else ["it did not finish in time"]
        raise TableGenError(next((line for line in lines if "error:" in line), "it fails"))
    records: dict[str, Any] = json.loads(answer.out)
    return records


def _search_path(tree: SourceFiles, file: str, llvm: Path) -> tuple[Path, ...]:
    folders = (*includes(llvm), *_folders(tree), tree.root / Path(file).parent)
    return tuple(dict.fromkeys(folder.absolute() for folder in folders))


def looked_up(tree: SourceFiles, file: str, llvm: Path) -> tuple[Path, ...]:
    """Return the paths at which TableGen looks for what a file of a tree includes; not those in an LLVM.

    Of any name, and not only of `.td` files. Some paths are missing: a file there would be included instead.
    """
    folders, foreign = _search_path(tree, file, llvm), includes(llvm)
    looked: dict[Path, None] = {}
    waiting = [tree.root / file]
    while waiting:
        for name in _INCLUDE.findall(untrusted.text_if_any(waiting.pop())):
            for path in (folder / name for folder in folders):
                there = untrusted.is_file(path)
                if not any(map(path.is_relative_to, foreign)):
                    if there and path not in looked:  # two files may include each other
                        waiting.append(path)
                    looked[path] = None
                if there:
                    break
    return tuple(looked)


@cache
def _folders(tree: SourceFiles) -> tuple[Path, ...]:
    """Return TableGen's search path in Triton's CMake: the folders named `include`, and those around them."""
    tops = {name.rpartition("/include/")[0] for name in tree.having(".td") if "/include/" in name}
    folders = [tree.root / "include", tree.root, tree.root / "third_party"]
    folders += [tree.root / top / "include" for top in sorted(tops)]
    return tuple(folders)


def _lines_of(tree: SourceFiles, file: str) -> dict[str, int]:
    """Return the lines of the records that this very file defines."""
    # TableGen's `!locs` name no folder, and its answer holds the records of all included files, too.
    text = tree.text(file)
    return {
        match[1]: text.count("\n", 0, match.start(1)) + 1
        for match in re.finditer(r"^\s*def\s+(\w+)", text, re.MULTILINE)
    }


def _definition_of_record(
    records: Mapping[str, Any], name: str, kind: str, file: str, line: int
) -> Definition:
    record = records[name]
    dialect = _def_name(record.get("dialect") or record.get("opDialect"))
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
    # TableGen's JSON has one key for each kind of record, and an empty text or null where it is not set.
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
        options=tuple(_options_in_records(records, record.get("options"))) if kind == "pass" else (),
        statistics=tuple(_options_in_records(records, record.get("statistics"))) if kind == "pass" else (),
        has=tuple(words for key, words in HAS.items() if record.get(key) == 1),
        by="tablegen",
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _def_name(value: Any) -> str:
    return str(value.get("def", "")) if isinstance(value, dict) else ""


def _dag(value: Any) -> tuple[tuple[str, str], ...]:
    pairs: Iterable[Any] = value.get("args", ()) if isinstance(value, dict) else ()
    return tuple((str(name), _def_name(argument) or _text(argument)) for argument, name in pairs if name)


def _options_in_records(records: Mapping[str, Any], listed: Any) -> Iterable[PassOption]:
    for item in listed or ():
        row = records[_def_name(item)]
        # A statistic is no option: it has no argument on a command line.
        if "argument" not in row:
            yield PassOption(str(row["name"]), "", "", str(row["description"]))
        elif "ListOption" in row["!superclasses"]:
            yield PassOption(str(row["argument"]), f"list of {row['type']}", "", str(row["description"]))
        else:
            default = _text(row.get("defaultValue"))
            yield PassOption(str(row["argument"]), str(row["type"]), default, str(row["description"]))
