"""Find the first pass after which a condition holds, or at which two Tritons diverge.

`passes.isolate --pattern` and `--when` ask for the first pass, or later step, after which a text or a symptom
is there. `bisect --explain` asks for the pass at which a kernel's compiles by two Tritons diverge for good.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache, partial
from pathlib import Path
from typing import Any

from tritonsmith.compiler import tritons
from tritonsmith.compiler.dump import run as dump_run
from tritonsmith.compiler.dump.index import Dump, DumpIndex, choose_kernel
from tritonsmith.compiler.dump.run import Choices
from tritonsmith.compiler.manifest import Manifest, Point
from tritonsmith.compiler.replay import pass_chain
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.compiler.resources.measure import Value
from tritonsmith.compiler.tritons import Triton
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, InterruptedRunError, SmithError, UsageError
from tritonsmith.core.plan import digest, stopping
from tritonsmith.core.ui.progress import PhaseProgress
from tritonsmith.facts import machine
from tritonsmith.inspect import show_passes as show
from tritonsmith.inspect.show_passes import ComparedRun, Divergence
from tritonsmith.ir import ir_text
from tritonsmith.lab import experiment, journal, questions, terms
from tritonsmith.lab.compare import matching
from tritonsmith.lab.experiment import Rules, Search
from tritonsmith.lab.journal import Journal, Observation, Verdict

# The step that makes a stage out of the one before it, by stage: no pass of it prints a dump.
STEPS = {
    "ttir": "the front end",
    "ttgir": "the passes of ttgir",
    "llir": "the translation to LLVM IR, or LLVM's passes on it",
    "ptx": "LLVM's backend, from llir to ptx",
    "amdgcn": "LLVM's backend, from llir to amdgcn",
    "sass": "ptxas, from ptx to machine code",
    "gcnasm": "LLVM's assembler, from amdgcn to machine code",
}
WORDS = {
    Verdict.GOOD: "does not occur",
    Verdict.BAD: "occurs",
    Verdict.OTHER: "fails",
    Verdict.SKIP: "not searched",
}
_COUNT = "count"
_AFTER = ("llir", "ptx", "sass", "amdgcn", "gcnasm")  # stages that come after the dumps of passes


@dataclass(frozen=True)
class FirstOccurrence:
    """The first place where a condition holds.

    Attributes:
        dump: of the pass after which it holds; None for a step after the passes, or if it never holds.
        step: name of the step after the passes; empty for a pass, or if it never holds.
        before: number of occurrences before it.
        after: number of occurrences after it, or the value.
        first: whether it holds before the first pass already.
        name: of the text that has it, as in the journal; empty if none has.
        unsearched: names of the texts between the last one without it and this one, each of which may be the
            first, as they were skipped.
    """

    dump: Dump | None
    step: str
    before: int
    after: Value
    first: bool = False
    name: str = ""
    unsearched: tuple[str, ...] = ()


@dataclass(frozen=True)
class SearchedText:
    """A text in which the pattern may occur.

    Attributes:
        name: in the journal: `7 tritongpu-coalesce of ttgir`, `stage ptx`.
        read: returns the text; empty where the compile has no such stage.
    """

    name: str
    read: Callable[[], str]


def search(
    index: DumpIndex, kernel: str, stages: Mapping[str, Callable[[], str]]
) -> Search[SearchedText, FirstOccurrence | None]:
    """Ask for the text of each pass in turn, then for the stages after the passes, until one has the pattern.

    Args:
        index: the dump.
        kernel: a kernel of the dump.
        stages: names of the stages after the passes, in order, and a function that reads each.

    Returns:
        The first pass after which it occurs, with the names of texts before it that were not searched; None
        if it never does.
    """
    counts: dict[str, int] = {}
    previous: Dump | None = None
    skipped: list[Dump] = []  # since the last text without the pattern
    unsearched: list[str] = []  # names of all that were not searched
    # Not by halves: a pass may remove what an earlier one made, and a later one make it again.
    for dump in index.of(kernel):
        if dump.sha256 not in counts:  # a pass that changed nothing has the text of the one before
            (test,) = yield [SearchedText(_name(dump), partial(_text, index, dump))]
            if test.verdict is Verdict.SKIP:
                # Nothing is known of the text: the next pass, though it may have the same one, is searched.
                skipped.append(dump)
                unsearched.append(_name(dump))
                continue
            counts[dump.sha256] = _count(test)
        if counts[dump.sha256]:
            texts = [*(earlier.sha256 for earlier in skipped), dump.sha256]
            alike = texts.index(dump.sha256)
            maker = [*skipped, dump][alike]  # a skipped pass with this very text
            occurrence = _found(index, maker, previous, counts)
            return replace(occurrence, name=_name(maker), unsearched=tuple(map(_name, skipped[:alike])))
        previous, skipped = dump, []
    open_names = [_name(dump) for dump in skipped]
    for name, read in stages.items():
        (test,) = yield [SearchedText(f"stage {name}", read)]
        if test.verdict is Verdict.SKIP:
            open_names.append(f"stage {name}")
            unsearched.append(f"stage {name}")
        elif count := _count(test):
            step = STEPS.get(name, name)
            return FirstOccurrence(None, step, 0, count, name=f"stage {name}", unsearched=tuple(open_names))
    return FirstOccurrence(None, "", 0, 0, unsearched=tuple(unsearched)) if unsearched else None


def _name(dump: Dump) -> str:
    return f"{dump.number} {dump.label} of {dump.stage}"


def counted(pattern: re.Pattern[str], searched: Sequence[SearchedText]) -> Iterator[Observation]:
    """Count a pattern in each text: BAD where it occurs."""
    # All occurrences: how many a pass adds tells whether it makes the pattern or only copies it.
    for text in searched:
        began = time.monotonic()
        count = sum(1 for _ in pattern.finditer(text.read()))
        verdict = Verdict.BAD if count else Verdict.GOOD
        seconds = time.monotonic() - began
        yield Observation(verdict, f"{count} times", seconds=seconds, metrics={_COUNT: count})


def run(
    index: DumpIndex,
    kernel: str,
    pattern: re.Pattern[str],
    compiled: Callable[[], Manifest],
    compile_inputs: object,
    space: Workspace,
    rules: Rules = Rules(),  # noqa: B008 - frozen
    *,
    silent: bool = False,
) -> tuple[FirstOccurrence | None, Journal]:
    """Find the first pass after which a pattern occurs; a run that was stopped goes on.

    Args:
        index: the dump.
        kernel: a kernel of the dump.
        pattern: the pattern to search for, in texts without locations.
        compiled: compiles the kernel to the end; called once, and only if no pass has the pattern.
        compile_inputs: everything that this compile depends on.
        space: the workspace.
        rules: how often each text is searched, and which are not.
        silent: say nothing of a run that was stopped.

    Raises:
        SmithError: as `compiled`, or the kernel does not compile.
    """
    space.claim()
    texts = [(dump.number, dump.sha256, journal.file(index.path(dump))) for dump in index.of(kernel)]
    key = (pattern.pattern, texts, index.command, journal.environment(), compile_inputs)
    baseline = Observation(Verdict.GOOD, code=digest(texts))
    after = cache(
        lambda: dict(stages_of(compiled()))
    )  # compiling takes seconds, and most texts are in a pass
    stages = {name: partial(_stage, after, name) for name in _AFTER}
    folder = folder_of(index, kernel, pattern, space)
    with experiment.kept(folder, key, space, "passes.isolate", baseline, rules, silent=silent) as notes:
        answer = experiment.run(
            search(index, kernel, stages), partial(counted, pattern), notes, lambda _name, _observation: None
        )
        notes.end(sentence(answer, pattern.pattern))
    return answer, notes


def folder_of(index: DumpIndex, kernel: str, pattern: re.Pattern[str], space: Workspace) -> Path:
    """Return the folder of the journal of a search for a pattern."""
    about = digest(str(index.folder.absolute()), kernel, pattern.pattern)
    return space.root / "passes" / "isolate" / f"{about[:16]}-journal"


def _text(index: DumpIndex, dump: Dump) -> str:
    # A location has the names of files and variables, in which the pattern could occur from the first dump
    # on.
    content = ir_text.without_locations(dump.kind, index.content(dump))
    return content.decode("utf-8", errors="replace")


def _stage(after: Callable[[], Mapping[str, str]], name: str) -> str:
    return after().get(name, "")


def _count(test: Observation) -> int:
    count = test.metrics.get(_COUNT, 0)
    return count if isinstance(count, int) else 0


def _found(index: DumpIndex, dump: Dump, previous: Dump | None, counts: dict[str, int]) -> FirstOccurrence:
    after = counts[dump.sha256]
    # A dump of assembly is the end of LLVM's backend, none of whose passes prints one.
    if dump.stage in ("ptx", "amdgcn"):
        return FirstOccurrence(None, STEPS[dump.stage], 0, after)
    # What is printed before a pass is the result of the one before it.
    if dump.when != "before":
        before = counts.get(index.dumps[dump.against].sha256, 0) if dump.against is not None else 0
        return FirstOccurrence(dump, "", before, after)
    if previous is None:
        return FirstOccurrence(dump, "", after, after, first=True)
    place = index.dumps.index(dump)
    makers = (pass_dump for pass_dump in index.of(dump.kernel) if pass_dump.against == place)
    maker = next((maker for maker in makers if maker.when == "before"), previous)
    return FirstOccurrence(maker, "", counts.get(maker.sha256, 0), after)


def compiled_pattern(text: str, *, regex: bool) -> re.Pattern[str]:
    """Compile the pattern to search for.

    Raises:
        UsageError: it is empty or not a valid regular expression.
    """
    # It would occur in every text.
    if not text:
        raise UsageError("--pattern is empty")
    try:
        # IR is full of brackets and stars, so a plain text is what is usually meant; `^` and `$` are about
        # lines.
        return re.compile(text if regex else re.escape(text), re.MULTILINE)
    except re.error as error:
        raise UsageError(f"{text!r} is not a valid regular expression", why=str(error)) from error


def stages_of(manifest: Manifest) -> tuple[tuple[str, str], ...]:
    """Return name and text of the stages after the passes of the only compile.

    Raises:
        SmithError: it failed.
    """
    point = _point(manifest)
    paths = ((name, manifest.path(point, name)) for name in _AFTER)
    return tuple((name, path.read_text(encoding="utf-8", errors="replace")) for name, path in paths if path)


def limit(text: str, manifest: Manifest) -> tuple[tuple[str, Value, bool], ...]:
    """Apply terms such as `spills>0` to the kernel's binary.

    Returns:
        each term, its value, and whether it holds.

    Raises:
        UsageError: a term makes no sense, or is about a change.
        FactError: the kernel has no such metric.
    """
    _point(manifest)
    limits = terms.parse([text], "--when")
    for term in limits:
        if isinstance(term, terms.TextTerm):
            hints = ["give the text as --pattern: the first pass after which it occurs is searched for"]
            raise UsageError(f"--when {term.text}: a text is no value of the binary", hints=hints)
        if term.change:
            hints = ["use unsigned values: spills>0, registers>128"]
            raise UsageError(f"--when {term.text}: a signed value needs a second compile", hints=hints)
    readings_of_terms = []
    # Compared with itself, as `readings` wants pairs: unsigned terms look at one side alone.
    readings = questions.readings(limits, matching.pair([manifest], [manifest]))
    for term, (reading, *_) in zip(limits, readings, strict=True):
        if not reading.applies or reading.unknown:
            what = f"--when {term.text}: {term.metric} of this kernel is unknown"
            raise FactError(what, where=manifest.folder)
        readings_of_terms.append((term.text, reading.b, reading.broken))
    return tuple(readings_of_terms)


def binary_step(manifest: Manifest) -> str:
    """Return the step that determines the registers and spills of a kernel."""
    # For NVIDIA, ptxas allocates the registers; for AMD, LLVM does on the way to its assembly.
    return STEPS["sass"] if _point(manifest).backend == "cuda" else STEPS["amdgcn"]


def _point(manifest: Manifest) -> Point:
    point = manifest.points[0]
    if point.status != "ok":
        raise SmithError("the kernel does not compile", where=manifest.folder, why=point.error)
    return point


def sentence(held: FirstOccurrence | None, pattern: str) -> str:
    """Return the result in a sentence."""
    if held is None:
        return f"{pattern} does not occur in any dump, nor in any stage after the passes"
    if held.unsearched:
        skipped = ", ".join(held.unsearched)
        if not held.name:
            return f"{pattern} does not occur in any text that was searched; not searched: {skipped}"
        return (
            f"{pattern}: one of {skipped}, {held.name}: {held.after} after the last, the others not searched"
        )
    if held.first:
        return f"{pattern} occurs before the first pass: {held.after} times"
    if held.dump is None:
        return f"{pattern}: {held.step}: 0 before, {held.after} after"
    dump = held.dump
    return (
        f"{pattern}: pass {dump.number} {dump.label} of {dump.stage}: "
        f"{held.before} before, {held.after} after"
    )


def as_json(held: FirstOccurrence | None, pattern: str) -> dict[str, Any]:
    """Return the result as JSON data."""
    if held is None:
        return {"schema": 1, "pattern": pattern, "found": False}
    if held.unsearched:
        names = [*held.unsearched, *filter(None, [held.name])]
        return {"schema": 1, "pattern": pattern, "found": False, "one_of": names}
    dump = held.dump
    return {
        "schema": 1,
        "pattern": pattern,
        "found": True,
        "first": held.first,
        "step": held.step,
        "number": dump.number if dump else None,
        "pass": dump.label if dump else None,
        "stage": dump.stage if dump else None,
        "before": held.before,
        "after": held.after,
    }


_PHASE = "dump the passes"
_RELEASES = "two releases may print the same IR differently, so this is a place to start and not a proof"


class Level(StrEnum):
    """The part of the compiler in which two compiles diverge."""

    FRONT_END = "front end"
    PASSES = "passes"
    LLVM = "LLVM"
    ASSEMBLER = "assembler"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class PartingPass:
    """The place where two compiles of one kernel diverge.

    Attributes:
        level: the part of the compiler.
        sentence: the place in words.
        name: of the pass on a command line; empty where no single pass is named.
        file: its C++ file, relative to the checkout; empty where it has none, or no checkout was given.
        good: the IR that the pass leaves by the good Triton; empty where no pass is named.
        bad: by the bad one.
    """

    level: Level
    sentence: str
    name: str = ""
    file: str = ""
    good: str = ""
    bad: str = ""

    @property
    def language(self) -> str:
        """The language of both texts, as `ir.normalize` names it."""
        return "llvm" if self.level is Level.LLVM else "mlir"


def parting(
    asked: CompileRequest,
    good: Triton,
    bad: Triton,
    out: Path,
    checkout: Path | None = None,
    *,
    silent: bool = False,
) -> PartingPass:
    """Compile a kernel by both, and find the pass at which they diverge; or the reason why that is unknown.

    Args:
        asked: the kernel; the first of its targets is compiled.
        good: the Triton before the culprit.
        bad: the culprit's.
        out: folder for both dumps: `good`, `bad`, and `good-llvm`, `bad-llvm` where those are needed.
        checkout: sources in which the file of the pass is searched; None for none.
        silent: show no progress.
    """
    asked = replace(asked, targets=asked.targets[:1])
    try:
        place = _parting(asked, good, bad, out, checkout, silent=silent)
    except SmithError as error:
        return PartingPass(Level.UNKNOWN, f"passes: not comparable: {error.what}")
    # Two commits of one clone seldom change the printer; two releases often do.
    doubt = f"; {_RELEASES}" if good.version and bad.version and place.good else ""
    return replace(place, sentence=f"passes: {place.sentence}{doubt}")


def _parting(
    asked: CompileRequest,
    good: Triton,
    bad: Triton,
    out: Path,
    checkout: Path | None,
    *,
    silent: bool,
) -> PartingPass:
    # LLVM's passes are dumped only where Triton's own end with the same IR, as there are many more. Where
    # those do, too, what is left is the assembler.
    for level, name in ((Level.PASSES, ""), (Level.LLVM, "-llvm")):
        llvm = level is Level.LLVM
        dumps = {
            side: partial(_dump, asked, triton, out / f"{side}{name}", llvm=llvm)
            for side, triton in (("good", good), ("bad", bad))
        }
        runs = _both(dumps, silent=silent)
        # After the last pass that leaves the same IR in both: a front end that only writes its constants in
        # another order is not to blame.
        divergence = show.divergence(*runs, lasting=True)
        if divergence.mine or divergence.theirs:
            return _parting_pass(level, divergence, runs, checkout)
    sentence = "after all passes of Triton and LLVM, the IR is the same: the difference comes later"
    return PartingPass(Level.ASSEMBLER, sentence)


def _parting_pass(
    level: Level, divergence: Divergence, runs: tuple[ComparedRun, ComparedRun], checkout: Path | None
) -> PartingPass:
    good, bad = divergence.mine, divergence.theirs
    if divergence.already and good and bad:
        sentence = "the IR differs from the front end onwards"
        return PartingPass(
            Level.FRONT_END, sentence, good=runs[0].index.text(good), bad=runs[1].index.text(bad)
        )
    if not (good and bad and good.label == bad.label):
        labels = [{dump.label for dump in run.index.dumps} for run in runs]
        alone = " and ".join(
            f"only {by} {'changes the IR in' if dump.label in others else 'runs'} {dump.label}"
            for dump, by, others in ((good, "the good one", labels[1]), (bad, "the bad one", labels[0]))
            if dump
        )
        return PartingPass(Level.UNKNOWN, f"not one pass: after {divergence.same} passes, {alone}")
    source = pass_chain.find(good.argument, checkout) if checkout and good.argument else None
    file = source.file.relative_to(source.root).as_posix() if source else ""
    return PartingPass(
        level,
        f"{good.label} is the first pass after which the IR differs ({good.number} of the good one, "
        f"{bad.number} of the bad one){f': {file}' if file else ''}",
        good.label,
        file,
        _left(runs[0], good),
        _left(runs[1], bad),
    )


def _left(side: ComparedRun, dump: Dump) -> str:
    return side.index.text(show.after_pass(side.index, dump)) if show.shows(dump) else ""


def _both(
    dumps: Mapping[str, Callable[[], ComparedRun | SmithError]], *, silent: bool
) -> tuple[ComparedRun, ComparedRun]:
    """Dump both sides at once.

    Raises:
        SmithError: one failed; if both did, that of the good side.
    """
    began, runs = time.monotonic(), dict[str, ComparedRun | SmithError]()
    with PhaseProgress(live=False if silent else None, silent=silent) as progress:
        progress.begin(_PHASE)
        with closing(stopping.at_once(dumps, machine.read().cores)) as ended:
            for side, run in ended:
                runs[side] = run
                progress.update(len(runs), len(dumps), f"the {side} one")
        progress.end(time.monotonic() - began)
    good, bad = runs["good"], runs["bad"]
    if isinstance(good, SmithError):
        raise good
    if isinstance(bad, SmithError):
        raise bad
    return good, bad


def _dump(asked: CompileRequest, side: Triton, out: Path, *, llvm: bool) -> ComparedRun | SmithError:
    # Without locations, which differ between Tritons where the IR does not.
    choices = Choices(llvm=llvm, line_info=False)
    try:
        request = replace(tritons.applied(asked, side), disassemble=False)
        prepared = dump_run.of_kernel(request, tritons.place_of(side, 1), choices, out)
        index, _ = dump_run.dump_kernel(prepared, silent=True)
        dump_run.check(index)
        return ComparedRun(index, choose_kernel(index, index.kernels[0].name))
    except InterruptedRunError:
        raise
    except SmithError as error:  # not raised, as the other side would be stopped
        return error
