"""Read a build folder: Ninja's graph and log, the headers that it recorded, and CMake's cache.

Of the graph's format it knows enough to compare the commands of two graphs:
https://ninja-build.org/manual.html#ref_ninja_file
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.core import untrusted
from tritonsmith.core.process import query

GRAPH = "build.ninja"
RULES = "rules.ninja"
_VARIABLE = re.compile(r"\$(?:\{([\w.-]+)\}|([\w-]+)|([$ :]))")
_SEPARATOR = re.compile(r"(?<!\$)((?:\$\$)*): ?")
_SPACE = re.compile(r"(?<!\$)((?:\$\$)*) +")
_DEPS_PATIENCE = 60.0  # seconds
_ENTRY = re.compile(r"^([^#/\s][^:=]*):([A-Z]+)=(.*)$", re.MULTILINE)
_PROGRAMS = ("_COMPILER", "_EXECUTABLE", "_LAUNCHER")
_PLACES = (  # paths without which nothing works, though `-D` and `-C` give them other types
    "CMAKE_CACHEFILE_DIR",
    "CMAKE_COMMAND",
    "CMAKE_HOME_DIRECTORY",
    "CMAKE_MAKE_PROGRAM",
    "LLVM_DIR",
    "LLVM_SYSPATH",
    "MLIR_DIR",
)
# Variables of folders that do not exist before an install or a download: their absence means nothing.
_MADE_LATER = (
    "CMAKE_INSTALL_",
    "CMAKE_LIBRARY_OUTPUT_",
    "CPACK_",
    "FETCHCONTENT_",
    "TRITON_CACHE_PATH",
    "TRITON_WHEEL_DIR",
)


def commands(folder: Path, outputs: Collection[str]) -> dict[str, list[str]]:
    """Return the command that makes each of some outputs, as words.

    Paths of inputs and outputs are left out of it: they add nothing about the output.

    Args:
        folder: the folder with build.ninja, and with rules.ninja beside it or in CMakeFiles.
        outputs: the outputs as Ninja writes them.

    Returns:
        Output to words; an output that the graph does not have is absent.
    """
    places = (folder / RULES, folder / "CMakeFiles" / RULES)
    rules = next((path for path in places if path.is_file()), None)
    graph = folder / GRAPH
    if rules is None or not graph.is_file():
        return {}
    # Long commands of the linker go through a response file.
    templates = {
        name: " ".join((table.get("command", ""), table.get("rspfile_content", "")))
        for name, table in _rules(rules).items()
    }
    names = frozenset(outputs)
    result: dict[str, list[str]] = {}
    for edge_outputs, rule, variables in _edges(graph, names):
        text = variables.get("COMMAND") if rule == "CUSTOM_COMMAND" else None
        expanded = _expand(text or templates.get(rule, ""), variables)
        words = _words(expanded)
        result |= {output: words for output in edge_outputs if output in names}
    return result


def outputs_by_description(folder: Path) -> dict[str, str]:
    """Return the first output of each custom command, by the description that Ninja prints."""
    graph = folder / GRAPH
    if not graph.is_file():
        return {}
    return {variables["DESC"]: outputs[0] for outputs, _, variables in _edges(graph) if "DESC" in variables}


def _rules(path: Path) -> dict[str, dict[str, str]]:
    tables: dict[str, dict[str, str]] = {}
    table: dict[str, str] = {}
    for line in _lines(path):
        if line.startswith("rule "):
            table = tables.setdefault(line.removeprefix("rule ").strip(), {})
        elif line.startswith(" ") and " = " in line:
            key, _, value = line.lstrip().partition(" = ")
            table[key] = value
    return tables


def _edges(path: Path, only: frozenset[str] | None = None) -> Iterator[tuple[list[str], str, dict[str, str]]]:
    """Yield outputs, rule and unexpanded variables of each edge that makes one of these outputs."""
    edge: tuple[list[str], str, dict[str, str]] | None = None
    for line in _lines(path):
        if line.startswith("build "):
            if edge:
                yield edge
            edge = _edge(line, only)
        elif edge and line.startswith("  ") and " = " in line:
            key, _, value = line.lstrip().partition(" = ")
            edge[2][key] = value
        elif edge and not line.strip():
            yield edge
            edge = None
    if edge:
        yield edge


def _edge(line: str, only: frozenset[str] | None) -> tuple[list[str], str, dict[str, str]] | None:
    split = _SEPARATOR.split(line.removeprefix("build "), maxsplit=1)
    if len(split) < 3:  # noqa: PLR2004 - outputs, dollars, the rest
        return None
    names = _SPACE.sub(r"\1\n", split[0] + split[1]).split("\n")
    # Behind a `|` come implicit outputs, which the command makes all the same.
    outputs = [_expand(name, {}) for name in names if name and name != "|"]
    if only is not None and not only.intersection(outputs):
        return None
    return outputs, split[2].split(" ", 1)[0], {}


def _lines(path: Path) -> Iterator[str]:
    """Yield lines with their continuations joined."""
    # `$` at the end of a line continues it: LLVM's longest edges have thousands of inputs.
    text = untrusted.read_text(path, untrusted.OURS).replace("$\n", "")
    yield from text.splitlines()


def _expand(text: str, variables: Mapping[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        if match[3]:
            return match[3]
        name = match[1] or match[2]
        # Paths of inputs and outputs add nothing about the command, and moving a build
        # folder changes all of them.
        return "" if name in ("in", "out") else _expand(variables.get(name, ""), {})

    return _VARIABLE.sub(value, text)


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:  # a quote of another shell's
        return command.split()


def durations(build: Path) -> dict[str, float]:
    """Return the seconds that each output took when it was last made, from Ninja's log."""
    # The log has a line for each time that an output was made, the last one at its end.
    seconds: dict[str, float] = {}
    for line in untrusted.text_if_any(build / ".ninja_log").splitlines()[1:]:
        fields = line.split("\t")
        # The start and end of the command in milliseconds since Ninja's start, the
        # output's time, its name, a hash.
        if len(fields) == 5 and fields[0].isdigit() and fields[1].isdigit():  # noqa: PLR2004 - versions 5 to 7
            seconds[fields[3]] = (int(fields[1]) - int(fields[0])) / 1000
    return seconds


def recorded_headers(ninja: Path, build: Path, outputs: Iterable[str]) -> tuple[Path, ...]:
    """Return the recorded inputs of outputs, each once and absolute; empty where nothing is recorded.

    Args:
        ninja: the program.
        build: a build folder in which no build runs.
        outputs: the outputs as Ninja names them.
    """
    # .ninja_deps is a binary log of Ninja's own, whose format changes with its versions.
    answer = query((str(ninja), "-C", str(build), "-t", "deps", *outputs), timeout=_DEPS_PATIENCE)
    lines = answer.out.splitlines() if answer and answer.code == 0 else []
    return tuple(dict.fromkeys(build / line.strip() for line in lines if line.startswith("    ")))


@dataclass(frozen=True)
class CmakeCache:
    """The cache of one build folder.

    Attributes:
        file: CMakeCache.txt.
        entries: variable, type, value.
    """

    file: Path
    entries: tuple[tuple[str, str, str], ...]

    def get(self, name: str) -> str:
        """Return a variable's value; empty if it has none."""
        return next((value for key, _, value in self.entries if key == name), "")

    def gone(self) -> Iterator[tuple[str, Path]]:
        """Yield variables that name a missing file or folder, with its path."""
        for name, kind, value in self.entries:
            named = kind in ("PATH", "FILEPATH") or name in _PLACES or name.endswith(_PROGRAMS)
            if not named or name.startswith(_MADE_LATER):
                continue
            # A value may be a list, as CMake writes it.
            for path in map(Path, value.split(";")):
                if path.is_absolute() and not untrusted.exists(path):
                    yield name, path


def read_cmake_cache(folder: Path) -> CmakeCache | None:
    """Return the cache of a build folder; None if it was never configured."""
    file = folder / "CMakeCache.txt"
    if not untrusted.is_file(file):
        return None
    text = untrusted.read_text(file)
    return CmakeCache(file, tuple(match.groups() for match in _ENTRY.finditer(text)))  # type: ignore[misc]
