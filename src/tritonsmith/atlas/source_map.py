"""The map of a checkout's folders, and the way from a launch to the driver (`configs/source-map.toml`)."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from tritonsmith import configs
from tritonsmith.atlas.answer import AtlasAnswer
from tritonsmith.atlas.index import Index
from tritonsmith.atlas.place import Place
from tritonsmith.atlas.source_files import SourceFiles, line_of
from tritonsmith.errors import FactError

_CONFIG = "source-map"


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
        raise FactError("this is no checkout of Triton: it has none of the folders", where=index.tree.root)
    return made


def _count(sources: SourceFiles, folder: str) -> str:
    return f"{sum(name.startswith(f'{folder}/') for name in sources.names)} files"


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
