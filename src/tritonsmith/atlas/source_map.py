"""The folders of a checkout, the stages, and the way from a launch to the driver (`source-map.toml`)."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from tritonsmith.atlas.answer import AtlasAnswer
from tritonsmith.atlas.index import Index
from tritonsmith.atlas.place import Place
from tritonsmith.atlas.source_files import SourceFiles, line_of
from tritonsmith.core import configs
from tritonsmith.core.command_line import command
from tritonsmith.core.errors import FactError
from tritonsmith.core.ui.units import counted

_CONFIG = "source-map"
_SHOWN = ("ttir", "ttgir", "llir", "ptx", "sass", "amdgcn", "gcnasm")  # texts that `kernel.show` prints


def tree(index: Index) -> AtlasAnswer:
    """The folders that a checkout has, in the order of a compile, with what is in them."""
    made = AtlasAnswer("map", "tree", "the folders, in the order in which a kernel goes through them")
    rows: dict[str, str] = configs.load(_CONFIG)["folders"]
    made.tables["folders"] = [
        (folder, _count(index.tree, folder), about)
        for folder, about in rows.items()
        if (index.tree.root / folder).is_dir()
    ]
    if not made.tables["folders"]:
        raise FactError(
            "this is not a checkout of Triton: it has none of the expected folders", where=index.tree.root
        )
    return made


def _count(sources: SourceFiles, folder: str) -> str:
    return counted(sum(1 for _ in sources.below(folder)), "file")


def launcher(index: Index) -> AtlasAnswer:
    """The steps of a launch."""
    made = AtlasAnswer("map", "launcher", "from kernel[grid](...) to the driver")
    for step in configs.load(_CONFIG)["launch"]:
        sign = re.compile(step["sign"], re.MULTILINE)
        if places := _places(index.tree, step["files"], sign):
            made.places[f"{len(made.places) + 1}. {step['about']}"] = places
    if not made.places:
        raise FactError("no step of a launch was found: is this a checkout of Triton?", where=index.tree.root)
    return made


def stages() -> dict[str, dict[str, str]]:
    """Every stage and suffix, by its name."""
    rows: dict[str, dict[str, str]] = configs.load(_CONFIG)["stages"]
    return rows


def stage(index: Index, name: str) -> AtlasAnswer:
    """A stage of a compile: its format, its tools, and where each backend makes it."""
    row = stages()[name]
    made = AtlasAnswer("stage", name, row["about"])
    made.facts |= {"backend": row["of"] or "all", "format": row["format"]}
    if row["tool"]:
        made.facts["read by"] = row["tool"]
    assigned = re.compile(rf"^[ \t]*stages\[[\"']{name}[\"']\]\s*=\s*(?P<call>.*)", re.MULTILINE)
    makers: dict[str, set[str]] = {}
    listed, defined = [], []
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
        made.places |= {"made by": tuple(defined), "in the pipeline": tuple(listed)}
    else:
        made.notes.append("no pipeline of this Triton has a stage of that name")
    if name in _SHOWN:
        made.facts["show it"] = command("kernel.show", "FILE.py:KERNEL", stage=name)
    return made


def _places(sources: SourceFiles, patterns: list[str], sign: re.Pattern[str]) -> tuple[Place, ...]:
    """Of the first pattern of files that has the sign: a later one is how older versions did it."""
    for pattern in patterns:
        for top in (
            pattern,
            pattern.replace("third_party/*/backend", "backends/*"),
            pattern.replace("python/triton/", ""),
        ):
            found = []
            for file in sources.names:
                if fnmatchcase(file, top) and (match := sign.search(sources.text(file))):
                    text = sources.text(file)
                    found.append(Place(file, line_of(text, match.start("here")), _first(text, match)))
            if found:
                return tuple(found)
    return ()


def _first(text: str, match: re.Match[str]) -> str:
    """The line, and those that belong to the call."""
    end = text.find("\n", match.start("here")) if "ParseTuple" not in match["here"] else match.end("here")
    return " ".join(text[match.start("here") : end].replace("\\", "").split())
