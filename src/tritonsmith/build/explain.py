"""`build-triton --explain`: what the next build will rebuild, and why. Read-only.

Ninja's reasons come from a dry run, and are grouped: a changed flag is one line and not two hundred. The
steps of this tool that precede Ninja add theirs, and ccache's records explain its misses.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from tritonsmith.build import cmake
from tritonsmith.build.cmake import CMakeChange
from tritonsmith.build.triton import commands, recipe
from tritonsmith.build.triton.source import TritonSource, pin_notes
from tritonsmith.core.envs import receipts
from tritonsmith.core.envs.settings import Settings
from tritonsmith.core.envs.settings import explain as keys_of
from tritonsmith.core.envs.workspace import EnvDir, Workspace
from tritonsmith.core.errors import FactError
from tritonsmith.core.plan import Copy, OutdateForeignOutput, Plan, Stamp, Step, files
from tritonsmith.core.process import query
from tritonsmith.core.text import (
    NO_CHANGE,
    changed_words,
    counted,
    describe_changed_words,
    duration,
    short_age,
)
from tritonsmith.facts import build_folder, ccache, tools
from tritonsmith.facts.build_folder import GRAPH
from tritonsmith.facts.ccache import Compile
from tritonsmith.wheels import venv

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
_BUILT = re.compile(
    r"(?:Building|Linking) \w+ (?:object|static library|shared library|shared module|executable) (.+)"
)
_PRECOMPILED = re.compile(r"(?:.*/)?tritonsmith_pch_(\w+)\.dir/.*\.pch")
_NAMED = 3  # files in a sentence
_HINTS = ("build before and after, each time with CCACHE_DEBUG=1 CCACHE_DEBUGDIR=/an/empty/folder",)
_WORDS = {  # https://github.com/ccache/ccache/blob/v4.7.5/src/ccache.cpp, `hash_common_info`
    "cc_mtime": "the compiler changed",
    "cc_hash": "the compiler changed",
    "cc_content": "the compiler changed",
    "cwd": "compiled in a different folder, which the debug info records (hash_dir)",
    "object file": "the object has a different path, which split DWARF records",
    "LANG": "the language of messages changed",
    "cache entry version": "written by a different version of ccache",
}
_NOTHING = "nothing differs: the result was never stored or was evicted"
_SOURCE = "sourcecode hash"
_MARKER = re.compile(r'^# \d+ "$')
SCHEMA = 1
_ENDS = (".a", ".so", ".dylib")
_SHOWN = 20  # reasons


@dataclass(frozen=True)
class Explanation:
    """The parts of a build that will be rebuilt, and the reasons.

    Attributes:
        folder: the build folder.
        own: steps of this tool before Ninja and their reasons, in sentences.
        regeneration: reasons for Ninja to run CMake first; the rows then describe the current graph.
        rows: Ninja's reasons.
        totals: steps that Ninja would run.
        notes: other things to know.
    """

    folder: Path
    own: tuple[str, ...]
    regeneration: tuple[str, ...]
    rows: tuple[RebuildReason, ...]
    totals: RebuildTotals
    notes: tuple[str, ...] = ()

    @property
    def nothing(self) -> bool:
        """Report whether nothing will be rebuilt."""
        return not (self.own or self.regeneration or self.rows or sum(self.steps))

    @property
    def steps(self) -> tuple[int, int, int]:
        """The numbers of compiles, links and other steps."""
        return self.totals.compiles, self.totals.links, self.totals.others

    def as_json(self) -> dict[str, Any]:
        """Return the explanation as JSON data."""
        return {"schema": SCHEMA, **asdict(self), "folder": str(self.folder)}


def of_triton(
    settings: Settings, space: Workspace, located: TritonSource, bare: Settings, targets: Sequence[str] = ()
) -> Explanation:
    """Explain what `build-triton` would rebuild, with the settings of the last build.

    `bare` is the env without the flags of the last build. Without `targets`, the env's own are used.

    Raises:
        FactError: there is no checkout or LLVM, or Ninja does not answer.
    """
    inputs, request = commands.gather(settings, space, located)
    env, plan = inputs.env, recipe.plan(inputs)
    last = receipts.read(env.receipt("build-triton"))
    own = (*pin_notes(last, request, inputs.llvm), *own_steps(plan, env, last, inputs))
    explanation = of_folder(
        inputs.tools.ninja, env.build, tuple(targets) or inputs.settings.triton.targets, inputs.checkout.root
    )
    notes = tuple(_flags_matter(settings, bare))
    if own and explanation.folder.is_dir():
        notes += ("Ninja's answer is for the folder as it is now, before the steps above",)
    return Explanation(
        explanation.folder, own, explanation.regeneration, explanation.rows, explanation.totals, notes
    )


def of_llvm(env: EnvDir, targets: Sequence[str] = ()) -> Explanation:
    """Explain what Ninja would rebuild in an environment's LLVM; by default, of what was built before.

    Raises:
        FactError: there is no LLVM, the LLVM was not built here, or Ninja does not answer.
    """
    receipt = receipts.read(env.receipt("setup-mlir")) or {}
    prefix, ninja = Path(str(receipt.get("prefix") or "")), tools.own("ninja")
    if not receipt or not (prefix / build_folder.GRAPH).is_file() or ninja is None:
        raise FactError(
            f"the LLVM of environment {env.name!r} is not built here",
            where=prefix if receipt else env.receipt("setup-mlir"),
            hints=["leave --llvm out to explain what Triton rebuilds"],
        )
    return of_folder(ninja.path, prefix, tuple(targets) or _built_before(prefix), None)


def of_folder(ninja: Path, build: Path, targets: Sequence[str], source: Path | None) -> Explanation:
    """Explain what Ninja would rebuild in a folder; the result is empty if it is not configured yet.

    Paths below `source` are shown relative to it.

    Raises:
        FactError: Ninja does not answer.
    """
    if not (build / build_folder.GRAPH).is_file():
        return Explanation(build, (), (), (), RebuildTotals(0, 0, 0, 0.0, 0))
    run = dry_run(ninja, build, targets)
    outputs = {reason.output for reason in run.reasons if reason.kind == "command"}
    # Ninja says only that a command changed: the graph of the last build, which was kept, has the words to
    # compare with. Reading a graph takes long, and is left out if no command changed.
    before = build_folder.commands(build / cmake.BUILT_FOLDER, outputs) if outputs else {}
    after = build_folder.commands(build, outputs) if outputs else {}
    now, short = time.time(), shortener(build, source)

    def changed(path: str) -> float | None:
        try:
            # Ninja writes paths relative to the build folder; an absolute one replaces it here.
            return now - (build / path).stat().st_mtime
        except OSError:
            return None

    return Explanation(
        build,
        (),
        tuple(regeneration(run, changed, short)),
        rows(run.reasons, before, after, changed, short),
        totals(run, build_folder.outputs_by_description(build), build_folder.durations(build)),
    )


def own_steps(
    plan: Plan, env: EnvDir, last: Mapping[str, Any] | None, inputs: recipe.Inputs
) -> tuple[str, ...]:
    """Return the reasons for the steps of a plan whose stamps are outdated; `last` is the last receipt."""
    # Steps of a phase often share a reason, as when another environment has built the same checkout since.
    return tuple(dict.fromkeys(_own_steps(plan, env, last, inputs)))


def _own_steps(
    plan: Plan, env: EnvDir, last: Mapping[str, Any] | None, inputs: recipe.Inputs
) -> Iterator[str]:
    changes = tuple(cmake.pending_changes(plan))
    for stamp, step in _undone(plan):
        if stamp.path.name == cmake.STAMP_FILE:
            yield from _configure(stamp, changes)
        elif stamp.path.name == cmake.ABOUT_FILE:
            # Without this log of Ninja nothing was compiled yet, so nothing is compiled again.
            if (env.build / ".ninja_deps").exists():
                yield (
                    "everything is recompiled, through the compiler cache: the LLVM or the compiler "
                    "changed since the last compile"
                )
        elif stamp.path == env.venv / venv.STAMP:
            before, after = (last or {}).get("requirements"), recipe.requirements(inputs.checkout)
            words = describe_changed_words(before, after) if before else "not installed yet"
            yield f"pip installs into the virtual environment: {words}"
        elif stamp.result is not None and not stamp.result.exists():
            yield f"{step.phase}: {stamp.result} is missing"
        else:
            yield f"{step.phase}: an input changed"
    for step in plan.steps:
        if isinstance(step, OutdateForeignOutput):
            yield from (
                f"{path.name} is linked again: another build folder wrote it" for path in step.foreign()
            )


def _undone(plan: Plan) -> Iterator[tuple[Stamp, Step]]:
    stamps: set[Stamp] = set()
    for step in plan.steps:
        # A Copy step compares the files itself.
        if step.stamp and step.stamp not in stamps and not isinstance(step, Copy):
            stamps.add(step.stamp)
            if not step.stamp.holds():
                yield step.stamp, step


def _configure(stamp: Stamp, changes: Sequence[CMakeChange]) -> Iterator[str]:
    if stamp.result is not None and not stamp.result.exists():
        yield "CMake runs: this folder is not configured"
    elif changes:
        yield from cmake.change_notes(changes)
    else:
        yield "CMake runs again: the last run failed, or CMake or a file of tritonsmith changed"


def _flags_matter(settings: Settings, bare: Settings) -> Iterator[str]:
    """Yield one sentence for each setting that differs without the flags of the last build."""
    alone = {key: value for key, value, _ in keys_of(bare)}
    for key, value, _ in keys_of(settings):
        # `build-triton` without those flags may configure anew, which surprises who
        # only repeats the command.
        if alone[key] != value:
            yield f"settings of the last build: {key} = {value!r}; without flags, the value is {alone[key]!r}"


def _built_before(build: Path) -> tuple[str, ...]:
    """Return the libraries and programs that Ninja built here and that are still in its graph."""
    # The log of durations also has outputs that a later configure dropped; Ninja
    # would refuse them as targets.
    names = {
        name
        for name in build_folder.durations(build)
        if not name.startswith("/") and (name.endswith(_ENDS) or name.startswith("bin/"))
    }
    return tuple(sorted(build_folder.commands(build, {name for name in names if (build / name).exists()})))


@dataclass(frozen=True)
class RebuildReason:
    """A reason, as a sentence, and the outputs that it directly rebuilds, as Ninja names them."""

    files: tuple[str, ...]
    why: str


@dataclass(frozen=True)
class RebuildTotals:
    """The number of steps that Ninja would run at most; steps whose inputs stay unchanged are then skipped.

    Attributes:
        compiles: compiles of objects.
        links: links of archives, libraries and programs.
        others: generated files, copies.
        seconds: sum of the durations of these steps when they last ran.
        unknown: steps that never ran here.
    """

    compiles: int
    links: int
    others: int
    seconds: float
    unknown: int


def rows(
    reasons: Iterable[Reason],
    before: Mapping[str, Sequence[str]],
    after: Mapping[str, Sequence[str]],
    changed: Callable[[str], float | None],
    short: Callable[[str], str],
) -> tuple[RebuildReason, ...]:
    """Group reasons; those that rebuild the most come first.

    Args:
        reasons: reasons from Ninja.
        before: output to its command in the last build, as far as it is known.
        after: output to its command now.
        changed: returns how many seconds ago a file changed; None if it is gone.
        short: shortens a path for display.
    """
    groups: dict[str, list[str]] = {}
    for reason in reasons:
        why = _why(reason, before, after, changed, short)
        if header := _PRECOMPILED.fullmatch(reason.output):
            why = (
                f"the precompiled header `{header[1]}` is made again, because {why.replace('{files}', 'it')}"
            )
        groups.setdefault(why, []).append(reason.output)
    # Names come in after grouping: with them, no two sentences would be equal.
    grouped = [RebuildReason(tuple(files), _with_names(why, files, short)) for why, files in groups.items()]
    return tuple(sorted(grouped, key=lambda row: -len(row.files)))


def regeneration(
    run: DryRun, changed: Callable[[str], float | None], short: Callable[[str], str]
) -> list[str]:
    """Return the reasons for Ninja to run CMake first."""
    sentences = (
        _with_names(_why(reason, {}, {}, changed, short), [reason.output], short)
        for reason in run.regeneration
    )
    # Ninja compares the times of both the output and its log for one file.
    return list(dict.fromkeys(sentences))


def totals(run: DryRun, described: Mapping[str, str], seconds: Mapping[str, float]) -> RebuildTotals:
    """Count the steps.

    Args:
        run: dry run of Ninja.
        described: description of a custom command, as Ninja prints it, to its output.
        seconds: output to the duration of its last build.
    """
    # A custom command is printed by its description, which does not name its output.
    outputs = []
    for step in run.steps:
        match = _BUILT.match(step)
        outputs.append(match[1] if match else described.get(step, ""))
    # The numbers come from CMake's descriptions, which it does not translate.
    compiles = sum(re.match(r"Building \w+ object ", step) is not None for step in run.steps)
    links = sum(step.startswith("Linking ") for step in run.steps)
    known = [seconds[output] for output in outputs if output in seconds]
    return RebuildTotals(
        compiles, links, len(run.steps) - compiles - links, sum(known), len(run.steps) - len(known)
    )


def _why(
    reason: Reason,
    before: Mapping[str, Sequence[str]],
    after: Mapping[str, Sequence[str]],
    changed: Callable[[str], float | None],
    short: Callable[[str], str],
) -> str:
    """Return a sentence with `{files}` in place of the outputs."""
    if reason.kind == "newer":
        seconds = changed(reason.input)
        when = "deleted" if seconds is None else f"changed {short_age(seconds)} ago"
        return f"{short(reason.input)} is newer than {{files}} ({when})"
    if reason.kind == "command":
        return f"command line of {{files}} changed: {_flags(reason.output, before, after)}"
    if reason.kind == "other":
        return reason.output
    return {
        "missing": "{files} is missing",
        "unrecorded": "{files}: Ninja has no record of building it",
        "headers": "{files}: the list of its included headers is missing or out of date",
    }[reason.kind]


def _flags(output: str, before: Mapping[str, Sequence[str]], after: Mapping[str, Sequence[str]]) -> str:
    if output not in before or output not in after:
        return "the old command line is not recorded (no build by tritonsmith has succeeded here)"
    words = describe_changed_words(before[output], after[output])
    if words == NO_CHANGE:
        return "before the last successful build, which did not include this file"
    return words


def _with_names(why: str, files: Sequence[str], short: Callable[[str], str]) -> str:
    names = ", ".join(short(file) for file in files[:_NAMED])
    if len(files) > _NAMED:
        kind = "objects" if all(file.endswith(".o") for file in files) else "files"
        names = f"{len(files)} {kind} ({short(files[0])}, ...)"
    return why.replace("{files}", names)


def shortener(build: Path, source: Path | None) -> Callable[[str], str]:
    """Return a function that shortens paths: objects to their name, others relative to a known folder."""
    sources = source.resolve() if source else None

    def short(path: str) -> str:
        # CMake's path of an object names its target and its source: as long as a line, and no more telling
        # than the name.
        if path.endswith((".o", ".obj")):
            return Path(path).name
        full = build / path
        if full.is_relative_to(build) and not (build / full.relative_to(build).parts[0]).is_symlink():
            return str(full.relative_to(build))
        # Compiles may go through the link to the sources that `compiler_cache` makes.
        real = full.resolve()
        return str(real.relative_to(sources)) if sources and real.is_relative_to(sources) else path

    return short


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
        # Ninja reads copies of its logs: even a dry run truncates entries that a killed build left half
        # written.
        for log in _LOGS:
            with suppress(FileNotFoundError):
                files.copy(build / log, copies / log)
        graph = copies / GRAPH
        included = str(build / GRAPH).replace("$", "$$").replace(" ", "$ ")
        files.write(graph, f"builddir = {copies}\ninclude {included}\n")
        # CMake's regeneration is an edge like others, and Ninja would not look beyond it where it is due. So
        # our graph includes the folder's own.
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


@dataclass(frozen=True)
class Misses:
    """The numbers of hits and misses, and the reasons for misses, the most frequent first."""

    hits: int
    misses: int
    rows: tuple[RebuildReason, ...]


def explain_misses(after: Path, before: Path) -> Misses:
    """Compare the build to explain with the one whose results should have hit.

    Each folder is the `CCACHE_DEBUGDIR` of that build.

    Raises:
        FactError: a folder has no records of ccache.
    """
    new, old = _compiles(after), _compiles(before)
    groups: dict[str, list[str]] = {}
    missed = {name: compile_ for name, compile_ in new.items() if compile_.hit is False}
    for name, compile_ in missed.items():
        groups.setdefault(_why_missed(compile_, old.get(name)), []).append(name)
    rows = sorted(
        (RebuildReason(tuple(names), why) for why, names in groups.items()), key=lambda row: -len(row.files)
    )
    hits = sum(compile_.hit is True for compile_ in new.values())
    return Misses(hits, len(missed), tuple(rows))


def _compiles(folder: Path) -> Mapping[str, Compile]:
    """Return compiles by the path of their object, relative to their common folder."""
    compiles = ccache.read_inputs(folder)
    if not compiles:
        raise FactError("ccache recorded no compile here", where=folder, hints=_HINTS)
    # The two builds may have been in different folders: what is under the common folder corresponds.
    top = os.path.commonpath([compile_.object.parent for compile_ in compiles])
    return {str(compile_.object.relative_to(top)): compile_ for compile_ in compiles}


def _why_missed(new: Compile, old: Compile | None) -> str:
    if old is None:
        return "not compiled before"
    if flags := changed_words(old.values("arg"), new.values("arg")):
        return "flags: " + "; ".join(
            f"{before or 'nothing'} -> {after or 'nothing'}" for before, after in flags
        )
    # ccache hashes in a fixed order: the first difference is the cause, later ones may follow from it.
    for (_, name, was), (_, _, value) in zip(old.inputs, new.inputs, strict=False):
        # Ccache's direct mode hashes the source itself, before the preprocessed text, which says more.
        if was == value or name == _SOURCE:
            continue
        if name == "cpp":
            return f"the preprocessed source changed, first in {_place(was.splitlines(), value.splitlines())}"
        return _WORDS.get(name, f"{name} changed: {_short(was)} -> {_short(value)}")
    if old.values(_SOURCE) != new.values(_SOURCE):
        return "the source file changed"  # ccache did not get as far as the includes
    more = len(old.inputs) != len(new.inputs)
    return "the key has more or fewer inputs" if more else _NOTHING


def _place(was: Sequence[str], now: Sequence[str]) -> str:
    """Return the file in which preprocessed sources first differ, from ccache's form of `# 1 "FILE" 2`."""
    file = "an unknown file"
    for number, line in enumerate(now):
        if number >= len(was) or was[number] != line:
            break
        if _MARKER.match(line) and number + 1 < len(now):
            file = now[number + 1]
    return file


def _short(text: str) -> str:
    line = text.partition("\n")[0]
    return line if len(line) <= 60 else f"{line[:57]}..."  # noqa: PLR2004 - of a screen's line


def lines(explanation: Explanation) -> Iterator[str]:
    """Yield the lines of `build-triton --explain`: the reasons, and the number of steps with their time."""
    if explanation.nothing:
        yield f"nothing to do in {explanation.folder}"
        return
    for sentence in explanation.own:
        yield f"- {sentence}"
    for sentence in explanation.regeneration:
        yield f"- Ninja runs CMake first: {sentence}; the graph may change then"
    yield from _shortened([row.why for row in explanation.rows])
    totals = explanation.totals
    unknown = f", {totals.unknown} never run before" if totals.unknown else ""
    yield (
        f"{counted(totals.compiles, 'compile')}, {counted(totals.links, 'link')}, "
        f"{counted(totals.others, 'other step')}; "
        f"one after the other, at the speed of the last build: {duration(totals.seconds)}{unknown}"
    )


def lines_of_misses(misses: Misses) -> Iterator[str]:
    """Yield the reasons for the misses of a compiler cache, and the number of hits and misses."""
    yield from _shortened([f"{_some_files(row.files)}: {row.why}" for row in misses.rows])
    yield f"{misses.hits} cache hits, {misses.misses} misses"


def _shortened(reasons: Sequence[str]) -> Iterator[str]:
    for reason in reasons[:_SHOWN]:
        yield f"- {reason}"
    if (more := len(reasons) - _SHOWN) > 0:
        yield f"- ... and {more} more reasons: --json has them all"


def _some_files(files: tuple[str, ...]) -> str:
    return files[0] if len(files) == 1 else f"{len(files)} objects ({files[0]}, ...)"
