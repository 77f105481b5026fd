"""Find the input and the result of each pass among the dumps.

The compiler prints the whole module before each pass, in sequence: the result of a pass is the next dump. A
pass that runs pipelines of its own (`inline` cleans up each function) is followed by their dumps first, and
its result comes after all of them. A pass that runs on functions has one dump per function.

Find a pass in a checkout: its tablegen definition, the C++ file that implements it, its DEBUG_TYPE.

The argument leads to the definition (`def TritonGPUCoalesce : Pass<"tritongpu-coalesce"`). The file is the
one that requests this pass from tablegen (`GEN_PASS_DEF_TRITONGPUCOALESCE`), or derives from its base class,
or defines the function that the definition names as its constructor.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.atlas import mentions, tablegen
from tritonsmith.atlas.source_files import SourceFiles
from tritonsmith.compiler.dump.index import Dump
from tritonsmith.compiler.replay.pipeline import MODULE
from tritonsmith.core import configs
from tritonsmith.core.errors import UsageError


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


def passes(dumps: Sequence[Dump]) -> tuple[Dump, ...]:
    """Return the dumps that are the complete input of an MLIR pass: LLVM's own passes print LLVM IR."""
    return tuple(
        dump
        for dump in dumps
        if dump.when == "before" and dump.argument and dump.whole and dump.path.endswith(".mlir")
    )


def of(dumps: Sequence[Dump], own: Collection[int] | None = None) -> tuple[PassLink, ...]:
    """Return the passes of one kernel that can be examined alone, in order.

    Args:
        dumps: of that kernel, in order.
        own: numbers of the dumps whose passes the backend's pipelines run directly; None if unknown.
    """
    before = passes(dumps)
    owners = _owners(before, own)
    after: dict[int, Dump] = {}
    following: Dump | None = None
    for dump in reversed(before):
        if owners[dump.number]:
            continue
        if following is None:
            pass
        elif not _same_pass(dump, following):
            after[dump.number] = following
        elif following.number in after:  # run alone, it runs on every function
            after[dump.number] = after[following.number]
        following = dump
    return tuple(PassLink(dump, after.get(dump.number), owners[dump.number]) for dump in before)


def _same_pass(dump: Dump, other: Dump) -> bool:
    """Report whether both dumps belong to one pass of a pipeline that ran on several functions."""
    same = (dump.argument, dump.operation) == (other.argument, other.operation)
    return same and dump.operation != MODULE and dump.symbol != other.symbol


def _owners(dumps: Sequence[Dump], own: Collection[int] | None) -> dict[int, str]:
    """Return, by number of a dump, the pass that runs the dump's pass as a part of itself; empty for none."""
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
        return (_one(links, number, dumps),)
    numbers = [link.dump.number for link in links]
    begin = numbers[0] if first is None else _one(links, str(first), dumps).dump.number
    end = numbers[-1] if last is None else _one(links, str(last), dumps).dump.number
    selected = tuple(link for link in links if begin <= link.dump.number <= end and not link.inside)
    if not selected:
        raise UsageError(f"no pass from {begin} to {end}", hints=["--from must not be after --until"])
    return selected


def _one(links: Sequence[PassLink], word: str, dumps: Sequence[Dump] = ()) -> PassLink:
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


_FOLDERS = ("include", "lib", "third_party", "mlir/include", "mlir/lib")  # of Triton; of LLVM


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


def debug_types(root: Path) -> tuple[str, ...]:
    """Return every DEBUG_TYPE of a checkout."""
    return tuple(mentions.debug_types(SourceFiles(root, _FOLDERS)))


def find(argument: str, root: Path) -> PassSource | None:
    """Find a pass; None if the checkout lacks its definition or its file."""
    tree = SourceFiles(root, _FOLDERS)
    definition = next(
        (
            definition
            for definition in tablegen.read_td(tree)
            if definition.kind == "pass" and definition.name == argument
        ),
        None,
    )
    implementation = (
        mentions.implementation(tree, definition.record, definition.constructor) if definition else None
    )
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
