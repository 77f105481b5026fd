"""Ninja's reasons in words: grouped, so that a changed flag is one line and not two hundred."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.build.explain.ninja_dry_run import DryRun, Reason
from tritonsmith.core.errors import FactError
from tritonsmith.core.ui import diff
from tritonsmith.core.ui.units import age
from tritonsmith.facts import ccache
from tritonsmith.facts.ccache import Compile

_BUILT = re.compile(
    r"(?:Building|Linking) \w+ (?:object|static library|shared library|shared module|executable) (.+)"
)
_PRECOMPILED = re.compile(r"(?:.*/)?tritonsmith_pch_(\w+)\.dir/.*\.pch")
_NAMED = 3  # files in a sentence


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
    outputs = []
    for step in run.steps:
        match = _BUILT.match(step)
        outputs.append(match[1] if match else described.get(step, ""))
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
        when = "deleted" if seconds is None else f"changed {age(seconds)} ago"
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
    words = diff.in_words(before[output], after[output])
    if words == diff.NOTHING:
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
        if path.endswith((".o", ".obj")):
            return Path(path).name
        full = build / path
        if full.is_relative_to(build) and not (build / full.relative_to(build).parts[0]).is_symlink():
            return str(full.relative_to(build))
        # Compiles may go through the link to the sources that `compiler_cache` makes.
        real = full.resolve()
        return str(real.relative_to(sources)) if sources and real.is_relative_to(sources) else path

    return short


# Explain cache misses: compare the inputs of each compile with those of its previous run.

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
    top = os.path.commonpath([compile_.object.parent for compile_ in compiles])
    return {str(compile_.object.relative_to(top)): compile_ for compile_ in compiles}


def _why_missed(new: Compile, old: Compile | None) -> str:
    if old is None:
        return "not compiled before"
    if flags := diff.changed_words(old.values("arg"), new.values("arg")):
        return "flags: " + "; ".join(
            f"{before or 'nothing'} -> {after or 'nothing'}" for before, after in flags
        )
    # ccache hashes in a fixed order: the first difference is the cause, later ones may follow from it.
    for (_, name, was), (_, _, value) in zip(old.inputs, new.inputs, strict=False):
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
