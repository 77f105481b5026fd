"""The passes of a dump: input, result and printed form of each, and its source in a checkout.

The compiler prints the whole module before each pass, in sequence: the result of a pass is the next dump. A
pass that runs pipelines of its own (`inline` cleans up each function) is followed by their dumps first, and
its result comes after all of them. A pass that runs on functions has one dump per function.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.atlas import mentions, tablegen
from tritonsmith.atlas.source_files import SourceFiles
from tritonsmith.compiler.dump.index import Dump
from tritonsmith.core import configs
from tritonsmith.core.errors import UsageError
from tritonsmith.core.text import split_outside_brackets

MODULE = "builtin.module"
_NEST = re.compile(r"([\w.]+)\((.*)\)", re.DOTALL)
_PASS = re.compile(r"([\w.-]+)\s*(?:\{(.*)\})?", re.DOTALL)
# Folders of Triton's sources, and of LLVM's: either may be the checkout.
_FOLDERS = ("include", "lib", "third_party", "mlir/include", "mlir/lib")


@dataclass(frozen=True)
class PassLink:
    """A pass with its input.

    Attributes:
        dump: the IR before it.
        after: the IR after it; None if nothing was printed afterwards.
        inside: name of the pass that ran this one as a part of itself; empty if the pipeline ran it.
    """

    dump: Dump
    after: Dump | None
    inside: str = ""


def of(dumps: Sequence[Dump], own: Collection[int] | None = None) -> tuple[PassLink, ...]:
    """Return the passes of one kernel that can be examined alone, in order.

    Args:
        dumps: of that kernel, in order.
        own: numbers of the dumps whose passes the backend's pipelines run directly; None if unknown.
    """
    before = passes(dumps)
    owners = _owners(before, own)
    # From the end, so that the result of a pass is known when its input is reached.
    after: dict[int, Dump] = {}
    following: Dump | None = None
    for dump in reversed(before):
        if owners[dump.number]:
            continue
        if following is None:
            pass
        elif not _same_pass(dump, following):
            after[dump.number] = following
        # The input of a later function shows the earlier ones changed already, but a pass that is run alone
        # runs on all of them: its result is what the last function's is.
        elif following.number in after:
            after[dump.number] = after[following.number]
        following = dump
    return tuple(PassLink(dump, after.get(dump.number), owners[dump.number]) for dump in before)


def chosen(
    links: Sequence[PassLink],
    number: str,
    first: int | None,
    last: int | None,
    *,
    everything: bool,
    dumps: Sequence[Dump] = (),
) -> tuple[PassLink, ...]:
    """Select the requested passes.

    Args:
        links: all passes.
        dumps: all dumps, including those that are not an MLIR pass's input: the error explains these.
        number: of a pass, or its name if that occurs once; empty for a range.
        first: number of the first of a range; the pipeline's first if None.
        last: number of its last; the pipeline's last if None.
        everything: every pass of the pipeline, each alone.

    Raises:
        UsageError: no such pass, or not exactly one of these is requested.
    """
    if sum((bool(number), first is not None or last is not None, everything)) != 1:
        raise UsageError(
            "give exactly one: a pass, a range or --all",
            hints=[
                "invoke passes.replay DIR N",
                "invoke passes.replay DIR --from N --until M",
                "invoke passes.replay DIR --all",
            ],
        )
    if everything:
        return tuple(links)
    if number:
        return (_choose_one(links, number, dumps),)
    numbers = [link.dump.number for link in links]
    begin = numbers[0] if first is None else _choose_one(links, str(first), dumps).dump.number
    end = numbers[-1] if last is None else _choose_one(links, str(last), dumps).dump.number
    selected = tuple(link for link in links if begin <= link.dump.number <= end and not link.inside)
    if not selected:
        raise UsageError(f"no pass from {begin} to {end}", hints=["--from must not be after --until"])
    return selected


def passes(dumps: Sequence[Dump]) -> tuple[Dump, ...]:
    """Return the dumps that are the complete input of an MLIR pass: LLVM's own passes print LLVM IR."""
    # A banner of LLVM's has no argument, and a truncated text would not parse.
    return tuple(
        dump
        for dump in dumps
        if dump.when == "before" and dump.argument and dump.whole and dump.path.endswith(".mlir")
    )


def _owners(dumps: Sequence[Dump], own: Collection[int] | None) -> dict[int, str]:
    """Return, by number of a dump, the pass that runs the dump's pass as a part of itself; empty for none."""
    # Banners do not tell who runs a pass. Without the backend's calls, a list tells for the passes that are
    # known to run others.
    known: dict[str, list[str]] = configs.load("passes-replay")["inside"]
    owners: dict[int, str] = {}
    owner: Dump | None = None
    for dump in dumps:
        if owner is None or _same_pass(owner, dump):
            inside = False
        elif own is None:
            inside = dump.operation != MODULE and dump.argument in known.get(owner.argument, ())
        else:
            inside = dump.number not in own
        owners[dump.number] = owner.argument if owner and inside else ""
        if not inside:
            owner = dump
    return owners


def _same_pass(dump: Dump, other: Dump) -> bool:
    """Report whether both dumps belong to one pass of a pipeline that ran on several functions."""
    same = (dump.argument, dump.operation) == (other.argument, other.operation)
    return same and dump.operation != MODULE and dump.symbol != other.symbol


def _choose_one(links: Sequence[PassLink], word: str, dumps: Sequence[Dump] = ()) -> PassLink:
    same = [link for link in links if word in (str(link.dump.number), link.dump.argument)]
    if len(same) == 1:
        return same[0]
    if other := next((dump for dump in dumps if not same and word in (str(dump.number), dump.name)), None):
        why = (
            "its dump is truncated"
            if not other.whole
            else "the previous pass printed it while running"
            if other.inside
            else "its input was not printed separately: only MLIR passes can be run alone"
        )
        raise UsageError(f"{other.number} {other.name} cannot be replayed", why=why)
    if not same:
        listing = ", ".join(f"{link.dump.number} {link.dump.argument}" for link in links)
        raise UsageError(f"no pass {word} in this dump", hints=[f"passes of this dump: {listing}"])
    numbers = ", ".join(str(link.dump.number) for link in same)
    raise UsageError(f"{word} ran {len(same)} times", hints=[f"choose one by its number: {numbers}"])


@dataclass(frozen=True)
class PipelineForm:
    """One pass with its options.

    Attributes:
        argument: name of the pass on a command line: `tritongpu-pipeline`.
        options: names and values, in the order of the text.
        nest: operations that it is nested in, outermost first; without `any`, which stands for any operation.
    """

    argument: str
    options: tuple[tuple[str, str], ...] = ()
    nest: tuple[str, ...] = ()

    def render(self) -> str:
        """Return the pass as a person would write it, without its nesting."""
        words = " ".join(f"{name}={value}" if value else name for name, value in self.options)
        return f"{self.argument}{{{words}}}" if words else self.argument


def parse_form(text: str) -> PipelineForm:
    """Parse the form of a single pass; of a list, only its first."""
    nest: list[str] = []
    rest = text.strip()
    while match := _NEST.fullmatch(rest):
        nest += [] if match[1] == "any" else [match[1]]
        rest = match[2].strip()
    first, *_ = split_form(rest, ",") or [""]
    match = _PASS.fullmatch(first)
    if match is None:
        return PipelineForm(first)
    options = tuple(
        (name, value) for name, _, value in (word.partition("=") for word in split_form(match[2] or ""))
    )
    return PipelineForm(match[1], options, tuple(nest))


def split_form(text: str, separator: str = " ") -> list[str]:
    """Split a text at separators outside brackets and quotes; empty parts are left out."""
    return [part for part in split_outside_brackets(text, separator) if part]


def parsable_form(printed: str, operation: str) -> tuple[str, tuple[str, ...]]:
    """Return the form that `--pass-pipeline` accepts for a pass that ran on an operation.

    Returns:
        `cse`, or `tt.func(cse)`, to be put into `builtin.module()`; and notes on parts that do not parse as
        they were printed, and how they were changed.
    """
    # A pass manager prints itself as `any(cse)`, a reproducer up to 3.2 has `builtin.module(any(cse))`:
    # inside a module, either would run the pass on the operations in it. So the nesting is rebuilt.
    form = parse_form(printed)
    changes, options = [], []
    for name, value in form.options:
        # MLIR's parser of options ends a value at the first brace, unless braces surround it.
        if "{" in value and not value.startswith("{"):
            changes.append(f"{form.argument}: braces around the value of {name}")
            options.append((name, f"{{{value}}}"))
        else:
            options.append((name, value))
    text = PipelineForm(form.argument, tuple(options)).render()
    return f"{operation}({text})" if operation != MODULE else text, tuple(changes)


@dataclass(frozen=True)
class PassSource:
    """A pass in its sources.

    Attributes:
        argument: `tritongpu-coalesce`.
        file: the C++ file.
        found_by: the way in which that file was found.
        debug_type: of that file; empty if it has none.
        line: of `runOnOperation` in it; None if it is not there.
        root: the checkout.
    """

    argument: str
    file: Path
    found_by: str
    debug_type: str
    line: int | None
    root: Path

    @property
    def place(self) -> str:
        """The breakpoint: FILE:LINE, as debuggers match it, or the function's name."""
        name = self.file.relative_to(self.root).as_posix()
        return f"{name}:{self.line}" if self.line else "runOnOperation"


def find(argument: str, root: Path) -> PassSource | None:
    """Find a pass; None if the checkout lacks its definition or its file."""
    tree = SourceFiles(root, _FOLDERS)
    # The argument leads to the definition: `def TritonGPUCoalesce : Pass<"tritongpu-coalesce"`. The file is
    # the one that requests this pass from tablegen (`GEN_PASS_DEF_TRITONGPUCOALESCE`), or derives from its
    # base class, or defines the function that the definition names as its constructor.
    passes_ = (row for row in tablegen.read_td(tree) if row.kind == "pass")
    definition = next((row for row in passes_ if row.name == argument), None)
    if definition is None:
        return None
    implementation = mentions.implementation(tree, definition.record, definition.constructor)
    if implementation is None:
        return None
    return PassSource(
        argument,
        root / implementation.file,
        implementation.found_by,
        implementation.debug_type,
        implementation.line or None,
        root,
    )


def debug_types(root: Path) -> tuple[str, ...]:
    """Return every DEBUG_TYPE of a checkout."""
    return tuple(mentions.debug_types(SourceFiles(root, _FOLDERS)))
