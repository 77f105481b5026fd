"""Describe a checkout's folders, the stages, and the way from a launch to the driver (`source-map.toml`)."""

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
    """Return the folders that a checkout has, in the order of a compile, with their contents."""
    answer = AtlasAnswer("map", "tree", "the folders, in the order in which a kernel goes through them")
    rows: dict[str, str] = configs.load(_CONFIG)["folders"]
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


def launcher(index: Index) -> AtlasAnswer:
    """Return the steps of a launch."""
    answer = AtlasAnswer("map", "launcher", "from kernel[grid](...) to the driver")
    for step in configs.load(_CONFIG)["launch"]:
        sign = re.compile(step["sign"], re.MULTILINE)
        if places := _places(index.tree, step["files"], sign):
            answer.places[f"{len(answer.places) + 1}. {step['about']}"] = places
    if not answer.places:
        raise FactError("no step of a launch was found: is this a checkout of Triton?", where=index.tree.root)
    return answer


def stages() -> dict[str, dict[str, str]]:
    """Return every stage and suffix, by its name."""
    rows: dict[str, dict[str, str]] = configs.load(_CONFIG)["stages"]
    return rows


def stage(index: Index, name: str) -> AtlasAnswer:
    """Return a stage of a compile: its format, its tools, and the place where each backend makes it."""
    row = stages()[name]
    answer = AtlasAnswer("stage", name, row["about"])
    answer.facts |= {"backend": row["of"] or "all", "format": row["format"]}
    if row["tool"]:
        answer.facts["read by"] = row["tool"]
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
        answer.places |= {"made by": tuple(defined), "in the pipeline": tuple(listed)}
    else:
        answer.notes.append("no pipeline of this Triton has a stage of that name")
    if name in _SHOWN:
        answer.facts["show it"] = command("kernel.show", "FILE.py:KERNEL", stage=name)
    return answer


def _places(sources: SourceFiles, patterns: list[str], sign: re.Pattern[str]) -> tuple[Place, ...]:
    """Return matches in the first pattern of files that has the sign; later patterns are for old versions."""
    for pattern in patterns:
        for top in (
            pattern,
            pattern.replace("third_party/*/backend", "backends/*"),
            pattern.replace("python/triton/", ""),
        ):
            places = []
            for file in sources.names:
                if fnmatchcase(file, top) and (match := sign.search(sources.text(file))):
                    text = sources.text(file)
                    places.append(Place(file, line_of(text, match.start("here")), _first(text, match)))
            if places:
                return tuple(places)
    return ()


def _first(text: str, match: re.Match[str]) -> str:
    """Return the line, with those that belong to the call."""
    end = text.find("\n", match.start("here")) if "ParseTuple" not in match["here"] else match.end("here")
    return " ".join(text[match.start("here") : end].replace("\\", "").split())
