"""`explain`: find the meaning of a word, and put the answer together."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tritonsmith.atlas import answer, renamed, source_map, symbols, tablegen
from tritonsmith.atlas.answer import AtlasAnswer
from tritonsmith.atlas.definition import Definition
from tritonsmith.atlas.index import KINDS, Entry, Index, known_variable, mlir_passes
from tritonsmith.atlas.place import Place
from tritonsmith.atlas.source_files import SourceFiles
from tritonsmith.core.command_line import command
from tritonsmith.core.errors import FactError, SmithError, UsageError, did_you_mean

_MLIR = "mlir-passes"
LISTS = {"passes": "pass", _MLIR: "pass", "ops": "op", "debug-types": "debug-type", "variables": "variable"}
_MAPS = {"tree": source_map.tree, "launcher": source_map.launcher}


def index_of(root: Path, llvm: Iterable[Path]) -> Index:
    """Return the names of a checkout, of LLVM's sources or of an installed Triton.

    Args:
        root: its top folder.
        llvm: LLVMs; the first one with a TableGen and MLIR's files is used.

    Raises:
        FactError: the folder has no sources, and the answer would be the names of MLIR alone.
    """
    sources = SourceFiles(root)
    if not sources.names:
        raise FactError("no sources of Triton in this folder", where=root, hints=["--source CHECKOUT"])
    return Index(sources, next((candidate for candidate in llvm if tablegen.program(candidate)), None))


def explain(index: Index, thing: str, kind: str = "") -> AtlasAnswer:
    """Return the answer for one thing.

    Raises:
        SmithError: no thing, or more than one, has that name.
        UsageError: there is no such kind.
    """
    if kind and kind not in KINDS:
        raise UsageError(f"unknown kind {kind!r}", hints=did_you_mean(kind, KINDS))
    meanings = (_mapped, _entry, _file, _renamed, _symbol, _removed, _printed)
    answers = (meaning(index, thing, kind) for meaning in meanings)
    answered = next((meant for meant in answers if meant), None)
    if answered is None:
        raise _unknown(index, thing, kind)
    return _noted(index, answered)


def _mapped(index: Index, thing: str, kind: str) -> AtlasAnswer | None:
    """Return a map, or a stage; None if it is neither."""
    if thing in _MAPS and not kind:
        return _MAPS[thing](index)
    name = thing.removeprefix(".")
    return source_map.stage(index, name) if kind in ("", "stage") and name in source_map.stages() else None


def _entry(index: Index, thing: str, kind: str) -> AtlasAnswer | None:
    entries = index.find(thing, kind)
    if len(entries) > 1:
        raise _ambiguous(thing, entries)
    return answer.explain(index, entries[0]) if entries else None


def _file(index: Index, thing: str, kind: str) -> AtlasAnswer | None:
    files = _files(index, thing) if kind in ("", "file") else []
    if len(files) > 1:
        hints = [command("explain", file) for file in files[:10]]
        raise SmithError(f"{thing} may be one of {len(files)} files", hints=hints)
    return answer.of_file(index, files[0]) if files else None


def _renamed(index: Index, thing: str, kind: str) -> AtlasAnswer | None:
    for other in renamed.names(thing):
        if len(same := index.find(other, kind)) == 1:
            chosen = answer.explain(index, same[0])
            chosen.notes.insert(0, f"{thing} is called {other} in this checkout")
            return chosen
    return None


def _symbol(index: Index, thing: str, kind: str) -> AtlasAnswer | None:
    return symbols.explain(index, thing, kind)


def _printed(index: Index, thing: str, kind: str) -> AtlasAnswer | None:
    printable = kind in ("", "message") and " " in thing.strip()
    return answer.of_message(index, thing) if printable else None


def listing(index: Index, what: str) -> list[AtlasAnswer]:
    """Return everything of a kind in `LISTS`, each with its summary and its place.

    Raises:
        UsageError: there is no such list.
    """
    if what not in LISTS:
        raise UsageError(f"no list of {what!r}", hints=did_you_mean(what, LISTS))
    rows = []
    of_mlir = {row.name: row.about for row in mlir_passes()}
    for entry in (listed for listed in index.entries if listed.kind == LISTS[what]):
        if what == _MLIR and entry.name not in of_mlir:
            continue
        if isinstance(entry.what, Definition):
            listed = AtlasAnswer(entry.kind, entry.name, entry.what.summary)
            listed.places["defined"] = (Place(entry.what.file, entry.what.line),)
        else:
            row = known_variable(entry.name) if entry.kind == "variable" else None
            listed = AtlasAnswer(entry.kind, entry.name, row.what if row else of_mlir.get(entry.name, ""))
            section = "called" if entry.kind == "pass" else "read"
            listed.places[section] = answer.places_of(entry)
        rows.append(listed)
    return sorted(rows, key=lambda one: one.name)


def _noted(index: Index, made: AtlasAnswer) -> AtlasAnswer:
    if not index.has_sources:
        made.notes.append(
            "no sources: this comes from the Python files of an installed Triton; "
            "C++ needs a checkout (--source)"
        )
        for name in ("implemented", "tests", "bound", "built"):
            if not made.places.get(name):
                made.places.pop(name, None)
    return made


def _removed(index: Index, thing: str, kind: str) -> AtlasAnswer | None:
    """Return upstream's history of a removed name; None if it was not removed."""
    row = renamed.removed(thing, kind)
    if row is None:
        return None
    since = f" in {row.release}" if row.release else ""
    answered = AtlasAnswer(row.kind, row.name, f"removed{since}")
    answered.facts["removed by"] = f"{row.date} {row.commit} {row.title}"
    answered.others = renamed.of(row.kind, row.name)
    answered.notes.append(f"not in {index.tree.root}: this is upstream's history (triton-lang/triton)")
    return answered


def _files(index: Index, thing: str) -> list[str]:
    name = thing
    path = Path(thing).expanduser()
    if path.is_absolute() and path.is_relative_to(index.tree.root):
        name = path.relative_to(index.tree.root).as_posix()
    name = name.removeprefix("./")
    if name in index.tree.names:
        return [name]
    return [file for file in index.tree.names if file.endswith(f"/{name}")] if "." in name else []


def _ambiguous(thing: str, found: tuple[Entry, ...]) -> SmithError:
    kinds = {entry.kind for entry in found}
    return SmithError(
        f"{thing} may be one of {len(found)} things",
        why="\n".join(f"{entry.kind} {entry.name}{_place(entry)}" for entry in found),
        hints=[
            command("explain", entry.name, kind=entry.kind if len(kinds) > 1 else None) for entry in found[:8]
        ],
    )


def _place(one: Entry) -> str:
    return f" ({one.what.place})" if isinstance(one.what, Definition) else ""


def _unknown(index: Index, thing: str, kind: str) -> SmithError:
    near = index.near(thing)
    hints = [f"did you mean {name!r}?" for name in near]
    why = None
    if known := renamed.names(thing):
        why = f"other versions of Triton call it {', '.join(known)}; this checkout has none of these names"
    elif row := known_variable(thing):
        why = f"other versions of Triton read it ({row.span}): {row.what}; no source here does"
    return SmithError(
        f"nothing here is called {thing!r}" + (f" of kind {kind}" if kind else ""),
        where=index.tree.root,
        why=why,
        hints=[
            *hints,
            command("explain", list="passes") + ", or mlir-passes, ops, debug-types, variables",
            "for the text of an error: quote a longer part of it",
        ],
    )
