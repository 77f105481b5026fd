"""Plan how each pass is replayed, by bindings or by `triton-opt`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.compiler.dump.index import DumpIndex
from tritonsmith.compiler.replay import bindings, pass_chain
from tritonsmith.compiler.replay.bindings import Binding, Call, TracedCall
from tritonsmith.compiler.replay.pass_chain import PassLink

# As Triton prints its dumps: with locations, and without the elements of large constants.
_AS_DUMPED = ("--mlir-print-debuginfo", "--mlir-elide-elementsattrs-if-larger=16")


@dataclass(frozen=True)
class ReplayJob:
    """One or more passes, run on the input of the first.

    Attributes:
        links: the passes, in order.
        input: file with the IR before the first.
        after: file with the IR that the dump has after the last; None if it has none.
        out: file for the resulting IR.
        log: file for the compiler's messages.
        calls: bindings, one for each pass.
        argv: the command instead, if `triton-opt` runs them.
        why: reason why nothing can be run; empty if something can.
        notes: messages for the user.
    """

    links: tuple[PassLink, ...]
    input: Path
    after: Path | None
    out: Path
    log: Path
    calls: tuple[Call, ...] = ()
    argv: tuple[str, ...] = ()
    why: str = ""
    notes: tuple[str, ...] = ()

    @property
    def inside(self) -> bool:
        """True if another pass runs any of its passes."""
        return any(link.inside for link in self.links)

    @property
    def number(self) -> int:
        """The number of its first pass."""
        return self.links[0].dump.number

    @property
    def title(self) -> str:
        """A short description: the number and name of its pass, or of the first and last."""
        first, last = self.links[0].dump, self.links[-1].dump
        head = f"{first.number} {first.argument}"
        return head if first is last else f"{head} to {last.number} {last.argument}"


def empty(index: DumpIndex, links: Sequence[PassLink], out: Path) -> ReplayJob:
    """Return a job without a command or calls; `why` is set if its passes run inside another pass."""
    first = links[0].dump
    inside = next((link.inside for link in links if link.inside), "")
    name = f"{first.number:03d}-{first.argument}"
    after = links[-1].after
    return ReplayJob(
        tuple(links),
        index.path(first).absolute(),
        index.path(after).absolute() if after else None,
        out / f"{name}.mlir",
        out / f"{name}.log",
        why=f"runs as part of {inside}" if inside else "",
    )


def tells_options(links: Sequence[PassLink]) -> bool:
    """Report whether this compiler's banners contain pass options, as those of LLVM 22 and later do."""
    # Of all passes, at least one has options: a dump without any brace is by an older compiler.
    return any("{" in link.dump.pipeline for link in links)


def by_bindings(
    links: Sequence[PassLink],
    known: Sequence[Binding],
    rehearsed: Mapping[int, TracedCall],
    *,
    has_options: bool,
) -> tuple[tuple[Call, ...], str, tuple[str, ...]]:
    """Return the calls of bindings that run some passes.

    Args:
        links: the passes.
        known: all bindings.
        rehearsed: by number of the dump.
        has_options: the banners contain options.

    Returns:
        The calls; the reason why there are none; notes.
    """
    calls: list[Call] = []
    notes = []
    for dump in (link.dump for link in links):
        # A dump that has the options is the truth; the rehearsal is by the Triton that replays, perhaps
        # another one.
        mine = rehearsed.get(dump.number)
        form = pass_chain.parse_form(dump.pipeline) if has_options else None
        call = bindings.resolve(known, dump.argument, form, mine.call if mine else None)
        if isinstance(call, str):
            return (), call, ()
        if form is None and mine is None:
            notes.append(f"{dump.argument}: with the default options of {call.binding}")
        calls.append(call)
    return tuple(calls), "", tuple(notes)


def pipeline_of(
    links: Sequence[PassLink], rehearsed: Mapping[int, TracedCall], *, has_options: bool
) -> tuple[str, tuple[str, ...]]:
    """Return a pipeline of some passes for `--pass-pipeline`, and notes on changes to their printed forms."""
    parts, notes = [], []
    for dump in (link.dump for link in links):
        mine = rehearsed.get(dump.number)
        printed = dump.pipeline if has_options else mine.printed if mine else dump.argument
        if not has_options and not mine:
            notes.append(
                f"{dump.argument}: the dump does not contain its options, so the pass runs with its defaults"
            )
        text, changes = pass_chain.parsable_form(printed, dump.operation)
        parts.append(text)
        notes += changes
    return f"{pass_chain.MODULE}({','.join(parts)})", tuple(dict.fromkeys(notes))


def by_opt(job: ReplayJob, opt: Path, passes: str, debug: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the command of `triton-opt` that runs a pipeline for a job, with flags for debug output."""
    argv = [str(opt), str(job.input), f"--pass-pipeline={passes}", *_AS_DUMPED]
    # Debug output of several threads would be interleaved line by line.
    if debug:
        argv += [*debug, "--mlir-disable-threading"]
    return (*argv, "-o", str(job.out))
