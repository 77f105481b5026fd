"""What Ninja would do in a build folder, and why, without changing any file there.

Ninja is given a graph of ours that includes the folder's. So its logs are read from copies: even a dry run
cuts off what a killed build left half written. And CMake's regeneration is an edge like others: Ninja would
not look beyond it where it is due.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tritonsmith.core import untrusted
from tritonsmith.core.errors import FactError
from tritonsmith.core.plan import files
from tritonsmith.core.plan.process import query

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
    """Why one file is rebuilt. Consequences have no reason of their own.

    Attributes:
        kind: an input is newer; the file is missing; its command changed; Ninja never made it; the list of
            its headers is lost; or something else.
        output: path as Ninja writes it, mostly below the build folder; the whole sentence for `other`.
        input: that is newer.
    """

    kind: Kind
    output: str
    input: str = ""


@dataclass(frozen=True)
class DryRun:
    """What Ninja would do.

    Attributes:
        reasons: in Ninja's order, each once; none for what only follows from another.
        steps: their descriptions: `Building CXX object lib/X.cpp.o`. Without CMake's regeneration.
        regeneration: why CMake would be run first; then the steps are those of the graph as it is now.
    """

    reasons: tuple[Reason, ...]
    steps: tuple[str, ...]
    regeneration: tuple[Reason, ...] = ()


def read(ninja: Path, build: Path, targets: Sequence[str] = ()) -> DryRun:
    """Ask Ninja about targets in a configured build folder, or about what it builds there by default.

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
        wanted = (GRAPH, *(targets or ("all",)))
        argv = (str(ninja), "-C", str(build), "-f", str(graph), "-n", "-d", "explain", *wanted)
        change = {"NINJA_STATUS": "[%f/%t] "}
        answer = query(argv, change=change, timeout=_PATIENCE)
    if answer is None or answer.code:
        said = (answer.out + "\n" + answer.err) if answer else "timeout"
        told = [line for line in said.splitlines() if line.startswith("ninja: error: ")]
        raise FactError("Ninja's dry run failed", where=build, why=(told or [said.strip()])[0])
    return parse(answer.out, answer.err)


def parse(out: str, err: str) -> DryRun:
    """A dry run from what Ninja printed: steps to its standard output, explanations to standard error."""
    said = [line.removeprefix(_EXPLAINED) for line in err.splitlines() if line.startswith(_EXPLAINED)]
    reasons = [_reason(line) for line in dict.fromkeys(said) if not _DIRTY.match(line)]
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
    """How long each output took when it was last made, in seconds, from Ninja's log."""
    found: dict[str, float] = {}
    for line in untrusted.text_if_any(build / ".ninja_log").splitlines()[1:]:
        fields = line.split("\t")
        if len(fields) == 5 and fields[0].isdigit() and fields[1].isdigit():  # noqa: PLR2004 - versions 5 to 7
            found[fields[3]] = (int(fields[1]) - int(fields[0])) / 1000
    return found
