"""Read the graph of a build folder, Ninja's answer to a dry run, and the headers that it recorded.

Of the graph it is enough of the format to compare the commands of two of them:
https://ninja-build.org/manual.html#ref_ninja_file
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tritonsmith.core import untrusted
from tritonsmith.core.errors import FactError
from tritonsmith.core.plan import files
from tritonsmith.core.plan.process import query

RULES = "rules.ninja"
_VARIABLE = re.compile(r"\$(?:\{([\w.-]+)\}|([\w-]+)|([$ :]))")
_SEPARATOR = re.compile(r"(?<!\$)((?:\$\$)*): ?")
_SPACE = re.compile(r"(?<!\$)((?:\$\$)*) +")


def commands(folder: Path, wanted: Collection[str]) -> dict[str, list[str]]:
    """Return the command that makes each of some outputs, as words.

    Paths of inputs and outputs are left out of it: they add nothing about the output.

    Args:
        folder: the folder with build.ninja, and with rules.ninja beside it or in CMakeFiles.
        wanted: the outputs as Ninja writes them.

    Returns:
        Output to words; an output that the graph does not have is absent.
    """
    places = (folder / RULES, folder / "CMakeFiles" / RULES)
    rules = next((path for path in places if path.is_file()), None)
    graph = folder / "build.ninja"
    if rules is None or not graph.is_file():
        return {}
    templates = {  # long commands of the linker go through a file
        name: " ".join((table.get("command", ""), table.get("rspfile_content", "")))
        for name, table in _rules(rules).items()
    }
    names = frozenset(wanted)
    result: dict[str, list[str]] = {}
    for outputs, rule, variables in _edges(graph, names):
        text = variables.get("COMMAND") if rule == "CUSTOM_COMMAND" else None
        expanded = _expand(text or templates.get(rule, ""), variables)
        words = _words(expanded)
        result |= {output: words for output in outputs if output in names}
    return result


def outputs_by_description(folder: Path) -> dict[str, str]:
    """Return the first output of each custom command, by the description that Ninja prints."""
    graph = folder / "build.ninja"
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


def _edges(
    path: Path, wanted: frozenset[str] | None = None
) -> Iterator[tuple[list[str], str, dict[str, str]]]:
    """Yield outputs, rule and unexpanded variables of each edge that makes a wanted output."""
    edge: tuple[list[str], str, dict[str, str]] | None = None
    for line in _lines(path):
        if line.startswith("build "):
            if edge:
                yield edge
            edge = _edge(line, wanted)
        elif edge and line.startswith("  ") and " = " in line:
            key, _, value = line.lstrip().partition(" = ")
            edge[2][key] = value
        elif edge and not line.strip():
            yield edge
            edge = None
    if edge:
        yield edge


def _edge(line: str, wanted: frozenset[str] | None) -> tuple[list[str], str, dict[str, str]] | None:
    split = _SEPARATOR.split(line.removeprefix("build "), maxsplit=1)
    if len(split) < 3:  # noqa: PLR2004 - outputs, dollars, the rest
        return None
    names = _SPACE.sub(r"\1\n", split[0] + split[1]).split("\n")
    outputs = [_expand(name, {}) for name in names if name and name != "|"]
    if wanted is not None and not wanted.intersection(outputs):
        return None
    return outputs, split[2].split(" ", 1)[0], {}


def _lines(path: Path) -> Iterator[str]:
    """Yield lines with their continuations joined."""
    text = untrusted.read_text(path, untrusted.OURS).replace("$\n", "")
    yield from text.splitlines()


def _expand(text: str, variables: Mapping[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        if match[3]:
            return match[3]
        name = match[1] or match[2]
        return "" if name in ("in", "out") else _expand(variables.get(name, ""), {})

    return _VARIABLE.sub(value, text)


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:  # a quote of another shell's
        return command.split()


# Ninja is asked for its work in a build folder, and the reasons, without changing any file there. It gets a
# graph of ours that includes the folder's, and so reads its logs from copies: even a dry run truncates
# entries that a killed build left half written. CMake's regeneration is an edge like others: Ninja would
# not look beyond it where it is due.

GRAPH = "build.ninja"
_LOGS = (".ninja_log", ".ninja_deps")
_PATIENCE = 120.0  # seconds; LLVM's graph has 5000 edges and a million recorded headers

Kind = Literal["newer", "missing", "command", "unrecorded", "headers", "other"]

# https://github.com/ninja-build/ninja/blob/v1.13.2/src/graph.cc, `explanations_.Record`
_OLDER = r"(?P<output>.+) older than most recent input (?P<input>.+) \("
_REASONS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("newer", re.compile(rf"(?:(?:restat of )?output|recorded mtime of) {_OLDER}")),
    ("missing", re.compile(r"output (?P<output>.+?)(?: of phony edge with no inputs)? doesn't exist$")),
    ("command", re.compile(r"command line changed for (?P<output>.+)$")),
    ("unrecorded", re.compile(r"command line not found in log for (?P<output>.+)$")),
    ("headers", re.compile(r"deps for '(?P<output>.+)' are missing$")),
    ("headers", re.compile(r"stored deps info out of date for '(?P<output>.+)' \(")),
    ("headers", re.compile(r"depfile '(?P<output>.+)' is missing$")),
)
_EXPLAINED = "ninja explain: "
_DIRTY = re.compile(r".+ is dirty$")  # follows from another
_STEP = re.compile(r"^\[\d+/\d+\] (.+)$")


@dataclass(frozen=True)
class Reason:
    """The reason why one file is rebuilt; consequences have no reason of their own.

    Attributes:
        kind: an input is newer; the file is missing; its command changed; Ninja never made it; the list of
            its headers is lost; or something else.
        output: path as Ninja writes it, mostly below the build folder; the whole sentence for `other`.
        input: the input that is newer.
    """

    kind: Kind
    output: str
    input: str = ""


@dataclass(frozen=True)
class DryRun:
    """The work that Ninja would do.

    Attributes:
        reasons: the reasons in Ninja's order, each once; none for files that only follow from another.
        steps: their descriptions: `Building CXX object lib/X.cpp.o`. Without CMake's regeneration.
        regeneration: the reasons to run CMake first; then the steps are those of the graph as it is now.
    """

    reasons: tuple[Reason, ...]
    steps: tuple[str, ...]
    regeneration: tuple[Reason, ...] = ()


def dry_run(ninja: Path, build: Path, targets: Sequence[str] = ()) -> DryRun:
    """Ask Ninja about targets in a configured build folder, or about its default targets there.

    Raises:
        FactError: the folder is not configured, or Ninja fails.
    """
    if not (build / GRAPH).is_file():
        raise FactError("this build folder is not configured", where=build, why=f"it has no {GRAPH}")
    with files.scratch("explain-") as copies:
        for log in _LOGS:
            with suppress(FileNotFoundError):
                files.copy(build / log, copies / log)
        graph = copies / GRAPH
        included = str(build / GRAPH).replace("$", "$$").replace(" ", "$ ")
        files.write(graph, f"builddir = {copies}\ninclude {included}\n")
        goals = (GRAPH, *(targets or ("all",)))
        argv = (str(ninja), "-C", str(build), "-f", str(graph), "-n", "-d", "explain", *goals)
        change = {"NINJA_STATUS": "[%f/%t] "}
        answer = query(argv, change=change, timeout=_PATIENCE)
    if answer is None or answer.code:
        output = (answer.out + "\n" + answer.err) if answer else "timeout"
        errors = [line for line in output.splitlines() if line.startswith("ninja: error: ")]
        raise FactError("Ninja's dry run failed", where=build, why=(errors or [output.strip()])[0])
    return parse_dry_run(answer.out, answer.err)


def parse_dry_run(out: str, err: str) -> DryRun:
    """Parse Ninja's output: steps from standard output, explanations from standard error."""
    explanations = [line.removeprefix(_EXPLAINED) for line in err.splitlines() if line.startswith(_EXPLAINED)]
    reasons = [_reason(line) for line in dict.fromkeys(explanations) if not _DIRTY.match(line)]
    steps = [match[1] for line in out.splitlines() if (match := _STEP.match(line))]
    own = tuple(reason for reason in reasons if reason.output == GRAPH)
    return DryRun(
        reasons=tuple(reason for reason in reasons if reason.output != GRAPH),
        steps=tuple(step for step in steps if step != "Re-running CMake..."),
        regeneration=own,
    )


def _reason(line: str) -> Reason:
    for kind, pattern in _REASONS:
        if match := pattern.match(line):
            return Reason(kind, match["output"], match.groupdict().get("input") or "")
    return Reason("other", line)


def durations(build: Path) -> dict[str, float]:
    """Return the seconds that each output took when it was last made, from Ninja's log."""
    seconds: dict[str, float] = {}
    for line in untrusted.text_if_any(build / ".ninja_log").splitlines()[1:]:
        fields = line.split("\t")
        if len(fields) == 5 and fields[0].isdigit() and fields[1].isdigit():  # noqa: PLR2004 - versions 5 to 7
            seconds[fields[3]] = (int(fields[1]) - int(fields[0])) / 1000
    return seconds


# Headers that Ninja recorded when it built a file.

_DEPS_PATIENCE = 60.0  # seconds


def recorded_headers(ninja: Path, build: Path, outputs: Iterable[str]) -> tuple[Path, ...]:
    """Return the recorded inputs of outputs, each once and absolute; empty where nothing is recorded.

    Args:
        ninja: the program.
        build: a build folder in which no build runs.
        outputs: the outputs as Ninja names them.
    """
    answer = query((str(ninja), "-C", str(build), "-t", "deps", *outputs), timeout=_DEPS_PATIENCE)
    lines = answer.out.splitlines() if answer and answer.code == 0 else []
    return tuple(dict.fromkeys(build / line.strip() for line in lines if line.startswith("    ")))
