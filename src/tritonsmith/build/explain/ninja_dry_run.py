"""Ask Ninja for its work in a build folder, and for the reasons, without changing any file there.

Ninja gets a graph of ours that includes the folder's, and so reads its logs from copies: even a dry run
truncates entries that a killed build left half written. CMake's regeneration is an edge like others: Ninja
would not look beyond it where it is due.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tritonsmith.core.errors import FactError
from tritonsmith.core.plan import files
from tritonsmith.core.process import query
from tritonsmith.facts.ninja_graph import GRAPH

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
