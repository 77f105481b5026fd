"""`explain`: find the meaning of a word, put the answer together, and show it.

Besides words it explains a checkout's folders, the stages, and the way from a launch to the driver
(`configs/source-map.toml`).
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from rich.text import Text

from tritonsmith.atlas import answer, symbols, tablegen
from tritonsmith.atlas.answer import AtlasFacts
from tritonsmith.atlas.index import KINDS, Entry, Index, foreign_tops, known_variable, mlir_passes
from tritonsmith.atlas.source_files import (
    Definition,
    FilesState,
    KeptDefinitions,
    Place,
    SourceFiles,
    line_of,
    state_of,
)
from tritonsmith.core import configs
from tritonsmith.core.command_line import command
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import FactError, SmithError, UsageError, did_you_mean
from tritonsmith.core.plan import files
from tritonsmith.core.text import counted
from tritonsmith.core.ui import tables
from tritonsmith.core.ui.tables import Grid

_MLIR = "mlir-passes"
LISTS = {"passes": "pass", _MLIR: "pass", "ops": "op", "debug-types": "debug-type", "variables": "variable"}


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
    # A question alone makes no workspace; see `files.mark`.
    home = workspace.default().root
    kept = KeptDefinitions(home / "atlas" if files.is_marked(home) else None)
    return Index(sources, next((candidate for candidate in llvm if tablegen.program(candidate)), None), kept)


@dataclass(frozen=True)
class Origins:
    """The origins of an answer, besides the command line, the environment and the tool.

    Attributes:
        tops: files, and folders with all that is below them.
        lone: files, and folders without what is below them.
        state: of all these, before any of the first was read.
        index: the names, which note what git was asked.
    """

    tops: tuple[Path, ...]
    lone: tuple[Path, ...]
    state: FilesState
    index: Index


origins: list[Origins] = []  # of the questions that were asked in this process


def note_origins(index: Index, lone: tuple[Path, ...]) -> None:
    """Note, before any question, what the answers come from, for those who keep them.

    Args:
        index: the names.
        lone: files and folders by which the tree and the LLVM were chosen; empty if others count, too.
    """
    if lone:
        llvm = index.llvm
        tops = (llvm / "bin" / "llvm-tblgen", *tablegen.includes(llvm), *foreign_tops(llvm)) if llvm else ()
        tops, lone = (*index.tree.origins, *tops), (index.tree.root, *lone)
        origins.append(Origins(tops, lone, state_of(tops, lone), index))


def explain(index: Index, thing: str, kind: str = "") -> AtlasFacts:
    """Return the answer for one thing.

    Raises:
        SmithError: no thing, or more than one, has that name.
        UsageError: there is no such kind.
    """
    if kind and kind not in KINDS:
        raise UsageError(f"unknown kind {kind!r}", hints=did_you_mean(kind, KINDS))
    # From the surest to the vaguest, and from fast to slow: a symbol is searched for in all of C++, and
    # a message fits almost anything. A name that upstream removed may live on as a class.
    meanings = (_mapped, _entry, _file, _renamed, _symbol, _upstream_removed, _printed)
    answers = (meaning(index, thing, kind) for meaning in meanings)
    answered = next((meant for meant in answers if meant), None)
    if answered is None:
        raise _unknown(index, thing, kind)
    return _noted(index, answered)


def _mapped(index: Index, thing: str, kind: str) -> AtlasFacts | None:
    """Return a map, or a stage; None if it is neither."""
    if thing in _MAPS and not kind:
        return _MAPS[thing](index)
    name = thing.removeprefix(".")
    return stage(index, name) if kind in ("", "stage") and name in stages() else None


def _entry(index: Index, thing: str, kind: str) -> AtlasFacts | None:
    entries = index.find(thing, kind)
    if len(entries) > 1:
        raise _ambiguous(thing, entries)
    return answer.explain(index, entries[0]) if entries else None


def _file(index: Index, thing: str, kind: str) -> AtlasFacts | None:
    files = _files(index, thing) if kind in ("", "file") else []
    if len(files) > 1:
        hints = [command("explain", file) for file in files[:10]]
        raise SmithError(f"{thing} may be one of {len(files)} files", hints=hints)
    return answer.of_file(index, files[0]) if files else None


def _renamed(index: Index, thing: str, kind: str) -> AtlasFacts | None:
    for other in answer.names_over_time(thing):
        # An old name that fits several things of this checkout is no answer; the error lists what the name
        # was later.
        if len(same := index.find(other, kind)) == 1:
            chosen = answer.explain(index, same[0])
            chosen.notes.insert(0, f"{thing} is called {other} in this checkout")
            return chosen
    return None


def _symbol(index: Index, thing: str, kind: str) -> AtlasFacts | None:
    return symbols.explain(index, thing, kind)


def _printed(index: Index, thing: str, kind: str) -> AtlasFacts | None:
    printable = kind in ("", "message") and " " in thing.strip()
    return answer.of_message(index, thing) if printable else None


def listing(index: Index, what: str) -> list[AtlasFacts]:
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
            listed = AtlasFacts(entry.kind, entry.name, entry.what.summary)
            listed.places["defined"] = (Place(entry.what.file, entry.what.line),)
        else:
            row = known_variable(entry.name) if entry.kind == "variable" else None
            listed = AtlasFacts(entry.kind, entry.name, row.what if row else of_mlir.get(entry.name, ""))
            section = "called" if entry.kind == "pass" else "read"
            listed.places[section] = answer.places_of(entry)
        rows.append(listed)
    return sorted(rows, key=lambda listed: listed.name)


def _noted(index: Index, answer: AtlasFacts) -> AtlasFacts:
    if not index.has_sources:
        # Nothing was found because nothing was there to search: an empty section would mislead.
        answer.notes.append(
            "no sources: this comes from the Python files of an installed Triton; "
            "C++ needs a checkout (--source)"
        )
        for name in ("implemented", "tests", "bound", "built"):
            if not answer.places.get(name):
                answer.places.pop(name, None)
    return answer


def _upstream_removed(index: Index, thing: str, kind: str) -> AtlasFacts | None:
    """Return upstream's history of a removed name; None if it was not removed."""
    row = answer.removed(thing, kind)
    if row is None:
        return None
    since = f" in {row.release}" if row.release else ""
    answered = AtlasFacts(row.kind, row.name, f"removed{since}")
    answered.facts["removed by"] = f"{row.date} {row.commit} {row.title}"
    answered.others = answer.other_names(row.kind, row.name)
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


def _ambiguous(thing: str, entries: tuple[Entry, ...]) -> SmithError:
    # `--kind` in a hint helps only if it tells them apart; full names do so otherwise.
    kinds = {entry.kind for entry in entries}
    return SmithError(
        f"{thing} may be one of {len(entries)} things",
        why="\n".join(f"{entry.kind} {entry.name}{_place(entry)}" for entry in entries),
        hints=[
            command("explain", entry.name, kind=entry.kind if len(kinds) > 1 else None)
            for entry in entries[:8]
        ],
    )


def _place(entry: Entry) -> str:
    return f" ({entry.what.place})" if isinstance(entry.what, Definition) else ""


def _unknown(index: Index, thing: str, kind: str) -> SmithError:
    near = index.near(thing)
    hints = [f"did you mean {name!r}?" for name in near]
    why = None
    if known := answer.names_over_time(thing):
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


_CONFIG = "source-map"
_SHOWN = ("ttir", "ttgir", "llir", "ptx", "sass", "amdgcn", "gcnasm")  # texts that `kernel.show` prints


def folder_map(index: Index) -> AtlasFacts:
    """Return the folders that a checkout has, in the order of a compile, with their contents."""
    answer = AtlasFacts("map", "tree", "the folders, in the order in which a kernel goes through them")
    rows: dict[str, str] = configs.load(_CONFIG)["folders"]
    index.certain = False  # files of any kind count, in any folder
    answer.tables["folders"] = [
        (folder, _count(index.tree, folder), about)
        for folder, about in rows.items()
        if (index.tree.root / folder).is_dir()
    ]
    if not answer.tables["folders"]:
        raise FactError(
            "this is not a checkout of Triton: it has none of the expected folders", where=index.tree.root
        )
    return answer


def _count(sources: SourceFiles, folder: str) -> str:
    return counted(sum(1 for _ in sources.below(folder)), "file")


def launch_map(index: Index) -> AtlasFacts:
    """Return the steps of a launch."""
    answer = AtlasFacts("map", "launcher", "from kernel[grid](...) to the driver")
    for step in configs.load(_CONFIG)["launch"]:
        sign = re.compile(step["sign"], re.MULTILINE)
        if places := _places(index.tree, step["files"], sign):
            # Numbered by what is there: a step that this version does not have leaves no gap.
            answer.places[f"{len(answer.places) + 1}. {step['about']}"] = places
    if not answer.places:
        raise FactError("no step of a launch was found: is this a checkout of Triton?", where=index.tree.root)
    return answer


def stages() -> dict[str, dict[str, str]]:
    """Return every stage and suffix, by its name."""
    rows: dict[str, dict[str, str]] = configs.load(_CONFIG)["stages"]
    return rows


def stage(index: Index, name: str) -> AtlasFacts:
    """Return a stage of a compile: its format, its tools, and the place where each backend makes it."""
    row = stages()[name]
    answer = AtlasFacts("stage", name, row["about"])
    answer.facts |= {"backend": row["of"] or "all", "format": row["format"]}
    if row["tool"]:
        answer.facts["read by"] = row["tool"]
    # `stages["ttgir"] = lambda src, metadata: self.make_ttgir(...)` in each backend's add_stages.
    assigned = re.compile(rf"^[ \t]*stages\[[\"']{name}[\"']\]\s*=\s*(?P<call>.*)", re.MULTILINE)
    makers: dict[str, set[str]] = {}
    listed, defined = [], []
    # Every backend has its stages in a compiler.py, out-of-tree ones included.
    for file in index.tree.having("compiler.py"):
        text = index.tree.text(file)
        for match in assigned.finditer(text):
            listed.append(Place(file, line_of(text, match.start()), match[0].strip()))
            makers.setdefault(file, set()).update(
                re.findall(r"\b(?:self\.)?(\w+_to_\w+|make_\w+)\(", match["call"])
            )
    for file, names in makers.items():
        text = index.tree.text(file)
        heads = (re.search(rf"^[ \t]*def {function}\(.*", text, re.MULTILINE) for function in sorted(names))
        defined += [Place(file, line_of(text, head.start()), head[0].strip()) for head in heads if head]
    if listed:
        answer.places |= {"made by": tuple(defined), "in the pipeline": tuple(listed)}
    else:
        answer.notes.append("no pipeline of this Triton has a stage of that name")
    if name in _SHOWN:
        answer.facts["show it"] = command("kernel.show", "FILE.py:KERNEL", stage=name)
    return answer


def _places(sources: SourceFiles, patterns: list[str], sign: re.Pattern[str]) -> tuple[Place, ...]:
    """Return matches in files of the first pattern that has any; later patterns are for old versions."""
    for pattern in patterns:
        # An installed Triton has the same files without the folders around the package.
        for top in (
            pattern,
            pattern.replace("third_party/*/backend", "backends/*"),
            pattern.replace("python/triton/", ""),
        ):
            places = []
            for file in sources.names:
                if fnmatchcase(file, top) and (match := sign.search(sources.text(file))):
                    text = sources.text(file)
                    places.append(Place(file, line_of(text, match.start("here")), _call_text(text, match)))
            if places:
                return tuple(places)
    return ()


def _call_text(text: str, match: re.Match[str]) -> str:
    """Return the line, with the following ones that belong to the call."""
    # The launcher parses its arguments in one call over many lines of generated C.
    end = text.find("\n", match.start("here")) if "ParseTuple" not in match["here"] else match.end("here")
    return " ".join(text[match.start("here") : end].replace("\\", "").split())


_MAPS = {"tree": folder_map, "launcher": launch_map}


_MOST = 6  # places of a section, rows of a table; --json has all
_LINES = 12  # of a description
_WIDTH = 96
# The text of a section that was searched for in vain.
_EMPTY = {
    "implemented": "no C++ file was found that implements it",
    "bound": "no binding to Python",
    "called": "no backend calls it from Python",
    "tests": "no test names it",
    "read": "no source reads it under this name",
    "language": "no function of the language builds it",
    "used": "no other file names it",
    "built": "no function of the builder makes it",
}
_ORDER = (
    "defined", "implemented", "bound", "called", "called in C++", "built", "language", "read", "declared",
    "printed", "patterns", "binds", "calls", "made by", "in the pipeline", "option of CMake", "used", "tests",
)  # fmt: skip


def blocks(answer: AtlasFacts, *, everything: bool = False) -> Iterator[Text | Grid]:
    """Yield the page: summary, places, users."""
    # A map is a list to be read through; of places, the first few answer most questions.
    most = 10_000 if everything or answer.kind == "map" else _MOST
    title = Text(f"{answer.kind} ", "dim") + Text(answer.name, "bold")
    yield title + Text(f": {answer.summary}" if answer.summary else "")
    if answer.description:
        yield Text("\n".join(_description(answer.description, everything=everything)))
    if answer.facts:
        yield Text("\n".join(line for name, text in answer.facts.items() for line in _fact(name, text)))
    for name in (*_ORDER, *(item for item in answer.places if item not in _ORDER)):
        if name in answer.places and (lines := [*_section(name, answer.places[name], most)]):
            yield Text("\n".join(lines))
    for name, rows in answer.tables.items():
        if rows:
            heads = {"arguments": "constraint", "results": "constraint", "folders": "size"}.get(name, "type")
            shown = [
                [item, type_, _one_line(about)]
                for item, type_, about in (rows if answer.kind == "map" else rows[: most * 3])
            ]
            # Ops have no descriptions of operands, and statistics no types.
            used = [at for at in range(3) if any(row[at] for row in shown)]  # no empty columns
            columns = ["name", heads, "what"]
            yield tables.plain(
                name, [columns[at] for at in used], [[row[at] for at in used] for row in shown]
            )
            if (more := len(rows) - len(shown)) > 0:
                yield Text(f"  and {more} more: --json")
    for change in answer.changes:
        yield Text(
            "\n".join(
                _fact(
                    "changed",
                    f"{change.date} {change.commit} {change.author}: {change.subject}",
                    str(change.place),
                )
            )
        )
    if answer.others:
        yield Text("\n".join(_fact("elsewhere", "; ".join(answer.others))))


def table(rows: Sequence[AtlasFacts], what: str, root: object) -> Grid:
    """Return a table of all passes, ops, DEBUG_TYPEs or variables."""
    lines = [[row.name, row.summary, str(row.first or "")] for row in rows]
    return tables.plain(f"{len(rows)} {what} of {root}", ["name", "what", "where"], lines)


def _description(text: str, *, everything: bool) -> Iterator[str]:
    paragraphs = text.strip().split("\n\n")
    lines: list[str] = []
    for paragraph in paragraphs:
        # Code, lists and tables in Triton's descriptions lose their meaning if their lines are joined.
        lines += paragraph.splitlines() if _verbatim(paragraph) else textwrap.wrap(paragraph, _WIDTH)
        lines.append("")
    lines.pop()
    shown = lines if everything else lines[:_LINES]
    yield from (f"  {line}".rstrip() for line in shown)
    if len(shown) < len(lines):
        yield f"  ... {len(lines) - len(shown)} more lines: --all"


def _verbatim(paragraph: str) -> bool:
    shaped = ("  ", "* ", "- ", "[", "|")
    return "```" in paragraph or any(line.startswith(shaped) for line in paragraph.splitlines())


def _fact(name: str, text: str, place: str = "") -> Iterator[str]:
    # Names of passes, flags and paths have hyphens, and must stay whole to be copied.
    lines = textwrap.wrap(text, _WIDTH - 14, break_long_words=False, break_on_hyphens=False) or [""]
    yield f"  {name:<13} {lines[0]}"
    yield from (f"  {'':<13} {line}" for line in (*lines[1:], *filter(None, [place])))


def _section(name: str, places: Iterable[Place], most: int) -> Iterator[str]:
    listed = [*places]
    if not listed:
        if name in _EMPTY:
            yield f"  {name:<13} {_EMPTY[name]}"
        return
    head = name
    if len(name) > 13:  # noqa: PLR2004 - the column: a step of a launch
        yield f"  {name}"
        head = ""
    for place in listed[:most]:
        yield f"  {head:<13} {place}  {_one_line(place.what)}".rstrip()
        head = ""
        yield from (f"  {'':<15} if {_one_line(test)}" for test in place.when)
    if (more := len(listed) - most) > 0:
        yield f"  {'':<13} and {counted(more, 'more place')}: --all"


def _one_line(text: str) -> str:
    return textwrap.shorten(" ".join(text.split()), 160, placeholder=" ...")
