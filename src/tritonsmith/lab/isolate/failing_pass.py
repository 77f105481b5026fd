"""`passes.isolate`: run the failing pass alone, or else the shortest failing end of the pipeline."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tritonsmith.compiler.dump.index import DumpedKernel, DumpIndex
from tritonsmith.compiler.replay import bindings, run
from tritonsmith.compiler.replay import run as replay_run
from tritonsmith.compiler.replay.pass_chain import PassLink
from tritonsmith.compiler.replay.replayer import Replayer
from tritonsmith.compiler.replay.run import KernelPasses
from tritonsmith.core import configs, untrusted
from tritonsmith.core.command_line import command
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, SmithError, UndecidedError, UsageError
from tritonsmith.core.plan import digest, files
from tritonsmith.ir import ir_text
from tritonsmith.lab import experiment, failure, journal
from tritonsmith.lab.experiment import Rules, Search
from tritonsmith.lab.failure import Failure
from tritonsmith.lab.journal import Journal, Observation, Verdict
from tritonsmith.lab.reduce import reduce_ir
from tritonsmith.lab.reduce.oracles import Oracle, PassRunner
from tritonsmith.lab.reduce.reduce_ir import Reduced

WORDS = {
    Verdict.GOOD: "succeeds",
    Verdict.BAD: "fails as in the dump",
    Verdict.OTHER: "another failure",
    Verdict.SKIP: "not tested",
}
_DIED = re.compile(r"\b(SIG[A-Z]+)\b")
_PYTHON = {  # the first line of Python's faulthandler, by signal
    "Fatal Python error: Segmentation fault": "SIGSEGV",
    "Fatal Python error: Aborted": "SIGABRT",
}
_TOGETHER = "the last pass does not fail alone, so the passes that it depends on run first"
_ALONE_UNTESTED = "the last pass alone was not tested, so the passes before it run first"
_LACKING = "this program has not all of these passes"
_FILE = re.compile(r'"(?:[^"\\]|\\.)*/((?:[^"\\/]|\\.)*)"(?=:\d+:\d+)')


@dataclass(frozen=True)
class PipelineEnd:
    """The last passes of a pipeline, run on the input of the first of them.

    Attributes:
        links: the passes; one if it runs alone.
        stripped: whether the input has no locations; otherwise they are without folders.
    """

    links: tuple[PassLink, ...]
    stripped: bool

    @property
    def name(self) -> str:
        """Its name in the journal: `12 tritongpu-coalesce`, `10 cse to 12 licm, with locations`."""
        # The numbers are part of the name, as `canonicalize` and `cse` run many times in one pipeline.
        first, last = (f"{link.dump.number} {link.dump.argument}" for link in (self.links[0], self.links[-1]))
        passes = last if len(self.links) == 1 else f"{first} to {last}"
        return passes if self.stripped else f"{passes}, with locations"


@dataclass(frozen=True)
class Isolated:
    """Passes that fail, and their input.

    Attributes:
        passes: the kernel of the dump, with all its passes.
        links: the passes that fail; one if it fails alone.
        way: the program that runs them.
        text: their input.
        log: the output when they failed.
        failure: the failure in that output.
        recorded: the failure in the dump.
        stripped: whether the input has no locations; otherwise they are without folders.
        notes: remarks for the user.
    """

    passes: KernelPasses
    links: tuple[PassLink, ...]
    way: PassRunner
    text: str
    log: str
    failure: Failure
    recorded: Failure
    stripped: bool
    notes: tuple[str, ...]

    @property
    def names(self) -> str:
        """The passes, as on a command line."""
        return ", ".join(link.dump.argument for link in self.links)

    @property
    def same(self) -> bool:
        """Report whether it fails as in the dump."""
        return _same(self.recorded, self.failure)


@dataclass
class PipelineEndTests:
    """Runs ends of a pipeline on their inputs.

    Attributes:
        passes: the kernel's passes.
        ways: by the number of the first pass, the runner of an end, or the reason why there is none.
        recorded: the failure in the dump.
        folder: for the logs.
    """

    passes: KernelPasses
    ways: Mapping[int, PassRunner | str]
    recorded: Failure
    folder: Path
    _stack: ExitStack = field(default_factory=ExitStack)
    _begin: int = -1  # number of the first pass that the oracle runs
    _oracle: Oracle | None = None

    def __call__(self, ends: Sequence[PipelineEnd]) -> Iterator[Observation]:
        """Run each: BAD where it fails as in the dump, OTHER where it fails in another way.

        Raises:
            FactError: the failing pass cannot read its own input.
            UsageError: this program has no such pass.
        """
        for end in ends:
            began = time.monotonic()
            try:
                answer = self._oracle_of(end).ask(self.text(end))
            except UsageError as error:
                if len(end.links) == 1:
                    raise
                yield Observation(Verdict.OTHER, error.what, _LACKING)
                continue
            # Neither form of its own input can be read, so this is another Triton: no longer end will do.
            if not answer.began and not end.stripped and len(end.links) == 1:
                raise self._unreadable(end, answer.log)
            # Not in the journal, which would become as large as all logs together.
            files.write(self.log(end), answer.log)
            seconds = time.monotonic() - began
            if answer.failure is None:
                why = "" if answer.began else "the passes did not begin"
                yield Observation(Verdict.GOOD if answer.began else Verdict.OTHER, why=why, seconds=seconds)
                continue
            verdict = Verdict.BAD if _same(self.recorded, answer.failure) else Verdict.OTHER
            yield Observation(verdict, str(answer.failure), seconds=seconds, failure=answer.failure)

    def text(self, end: PipelineEnd) -> str:
        """Return the input of its first pass."""
        text = self.passes.index.text(end.links[0].dump, edited=True)
        if not end.stripped:
            return without_folders(text)
        return ir_text.without_locations("mlir", text.encode()).decode().strip() + "\n"

    def log(self, end: PipelineEnd) -> Path:
        """Return the file with the output of the last test of an end."""
        return self.folder / f"{digest(end.name)[:16]}.log"

    def close(self) -> None:
        """Stop the interpreter that runs passes."""
        self._stack.close()

    def _oracle_of(self, end: PipelineEnd) -> Oracle:
        begin = end.links[0].dump.number
        # An interpreter takes seconds to import Triton, and both texts of an end go to the same one.
        if self._oracle is None or begin != self._begin:
            self._stack.close()
            way = self.ways[begin]
            assert isinstance(way, PassRunner)  # noqa: S101 - the search asks for no other
            scratch = self._stack.enter_context(files.scratch("isolate-"))
            limit = float(configs.load("passes-replay")["limits"]["pass"])
            self._oracle = self._stack.enter_context(closing(way.oracle(scratch, limit)))
            self._begin = begin
        return self._oracle

    def _unreadable(self, end: PipelineEnd, log: str) -> FactError:
        way = self.ways[end.links[0].dump.number]
        triton = self.passes.index.triton or "its version is unknown"
        return FactError(
            "the input of the failing pass cannot be parsed, or the pass cannot be added",
            where=way.who if isinstance(way, PassRunner) else None,
            # An error goes into issues, too, so it names no folder.
            why=failure.anonymous(log.strip())[-2000:] or None,
            hints=[f"use the Triton that wrote the dump: {triton}"],
        )


def search(
    links: Sequence[PassLink], runnable: Callable[[PassLink], bool]
) -> Search[PipelineEnd, tuple[PipelineEnd, Observation] | None]:
    """Ask for the last pass alone, then for one more before it each time, until it fails as in the dump.

    Args:
        links: the passes up to the one that failed.
        runnable: reports whether the passes from this one on can be run.

    Returns:
        The first that fails as in the dump, or else the first that fails at all; None if none does.
    """
    other: tuple[PipelineEnd, Observation] | None = None
    # Most passes that fail do so alone: the first test is usually the last one.
    for begin in reversed(range(len(links))):
        if not runnable(links[begin]):
            continue
        # Without locations a file is short and has no private paths; but some failures are about locations.
        for stripped in (True, False):
            end = PipelineEnd(tuple(links[begin:]), stripped)
            (test,) = yield [end]
            if test.verdict is Verdict.BAD:
                return end, test
            if test.why == _LACKING:  # so has each longer end
                return other
            # Another failure than the dump's may be the same bug, with a message that this build lacks.
            if test.failure and other is None:
                other = end, test
    return other


def isolate(
    index: DumpIndex,
    kernel: DumpedKernel,
    tool: Replayer,
    space: Workspace,
    options: Mapping[str, Any],
    rules: Rules = Rules(),  # noqa: B008 - frozen
    *,
    silent: bool = False,
) -> tuple[Isolated, Journal]:
    """Find the failing pass, and run it alone; with the passes before it if it does not fail alone.

    A run that was stopped goes on with the passes that it had not run.

    Args:
        index: the dump.
        kernel: a kernel of the dump.
        tool: runs the passes.
        space: the workspace.
        options: of the compile, as far as the IR does not name them.
        rules: how often passes are run, and which are not.
        silent: say nothing of a run that was stopped.

    Raises:
        SmithError: nothing failed in this dump, or the failure cannot be reproduced.
        UndecidedError: no pass that was run fails, and some were skipped.
        FactError: the pass that failed cannot be run alone.
    """
    if not kernel.failed:
        hints = [
            f"find the first pass with a text: {command('passes.isolate', index.folder, pattern='TEXT')}",
            f"list all passes: {command('passes.list', index.folder)}",
        ]
        raise SmithError(f"no pass of {kernel.name} failed in this dump", where=index.folder, hints=hints)
    passes = run.look(index, kernel, tool, space, options)
    links = _until(passes)
    recorded = recorded_failure(kernel)
    ways: dict[int, PassRunner | str] = {}

    def runnable(first: PassLink) -> bool:
        number = first.dump.number
        if number not in ways:
            ways[number] = way(passes, links[links.index(first) :], tool, space)
        return not isinstance(ways[number], str)

    space.claim()
    folder = folder_of(index, kernel, tool, space)
    program = journal.program(tool.opt) if tool.opt else tool.python and journal.python(tool.python)
    # The texts of a dump are large, so their sizes and times have to do.
    texts = [(link.dump.pipeline, journal.file(index.path(link.dump))) for link in links]
    key = (texts, dict(options), str(tool), program, journal.environment())
    # The failure in the dump is the baseline: the next run has to find the same there, and nothing is run for
    # it.
    baseline = Observation(Verdict.BAD, str(recorded), failure=recorded)
    with (
        experiment.kept(folder, key, space, "passes.isolate", baseline, rules, silent=silent) as notes,
        closing(PipelineEndTests(passes, ways, recorded, folder)) as tests,
    ):
        answer = experiment.run(search(links, runnable), tests, notes, lambda _name, _observation: None)
        if answer is None and (untested := _untested(notes)):
            why = f"not tested: {', '.join(untested)}"
            raise UndecidedError(
                "not decided: what was run of the pipeline succeeds", where=index.folder, why=why
            )
        if answer is None:
            raise _not_reproduced(links, ways, recorded, index, tool)
        end, test = answer
        chosen = ways[end.links[0].dump.number]
        assert isinstance(chosen, PassRunner)  # noqa: S101 - it was run
        assert test.failure is not None  # noqa: S101 - it failed
        together = _TOGETHER if _tested_alone(links, notes) else _ALONE_UNTESTED
        isolated = Isolated(
            passes,
            end.links,
            chosen,
            tests.text(end),
            untrusted.read_text(tests.log(end), untrusted.OURS),
            test.failure,
            recorded,
            end.stripped,
            passes.notes if len(end.links) == 1 else (*passes.notes, together),
        )
        notes.end(str(test.failure))
    return isolated, notes


def _tested_alone(links: Sequence[PassLink], notes: Journal) -> bool:
    """Report whether the last pass was run alone, with or without locations, and its tests agree."""
    names = {PipelineEnd((links[-1],), stripped).name for stripped in (True, False)}
    return bool(names & notes.requested - set(_untested(notes)))


def _untested(notes: Journal) -> list[str]:
    """Return the ends that were skipped by hand, or whose tests disagree."""
    tests = {name: notes.observations[name] for name in notes.requested if name not in notes.skipped}
    flaky = {
        name for name, known in tests.items() if known and experiment.agreed(known).verdict is Verdict.SKIP
    }
    return sorted(notes.requested & notes.skipped | flaky)


def folder_of(index: DumpIndex, kernel: DumpedKernel, tool: Replayer, space: Workspace) -> Path:
    """Return the folder of the journal of a kernel's isolation."""
    about = digest(str(index.folder.absolute()), kernel.name, str(tool.opt or tool.python))
    return space.root / "passes" / "isolate" / f"{about[:16]}-journal"


def _not_reproduced(
    links: Sequence[PassLink],
    ways: Mapping[int, PassRunner | str],
    recorded: Failure,
    index: DumpIndex,
    tool: Replayer,
) -> SmithError:
    failing = links[-1].dump.argument
    # The shortest end comes first, and its refusal says most.
    refused = next((way for way in ways.values() if isinstance(way, str)), "")
    if refused:
        return FactError(
            f"{failing} cannot be run alone by this Triton",
            where=tool.python,
            why=refused,
            hints=["triton-opt of a build runs every pass: --triton-opt PATH, --env NAME"],
        )
    return SmithError(
        f"cannot reproduce: {failing} succeeds on the dumped input",
        where=tool.opt or tool.python,
        why=f"failure in the dump: {recorded}",
        hints=[
            f"use the Triton that wrote the dump: {index.triton or 'its version is unknown'}",
            "give options of the compile that the dump does not contain: --option num_stages=4",
        ],
    )


def way(seen: KernelPasses, links: Sequence[PassLink], tool: Replayer, space: Workspace) -> PassRunner | str:
    """Return the runner of some passes, or the reason why they cannot run."""
    has_options, rehearsed = replay_run.tells_options(seen.links), seen.rehearsal.calls
    pipeline, _ = replay_run.pipeline_of(links, rehearsed, has_options=has_options)
    if tool.opt:
        return PassRunner(pipeline, opt=tool.opt)
    assert tool.python is not None  # noqa: S101 - `replayer.choose` found one of the two
    known = bindings.known_bindings(tool.python, space)
    calls, why, _ = replay_run.by_bindings(links, known, rehearsed, has_options=has_options)
    return why or PassRunner(pipeline, python=tool.python, calls=calls)


def recorded_failure(kernel: DumpedKernel) -> Failure:
    """Return the failure that the dump recorded."""
    # Our worker names the signal; a log that is from elsewhere may have faulthandler's line alone.
    died = _DIED.search(kernel.error)
    python = next((name for text, name in _PYTHON.items() if text in kernel.error), "")
    return failure.of(kernel.error, crashed=died[1] if died else python)


def _until(seen: KernelPasses) -> tuple[PassLink, ...]:
    """Return the pipeline's own passes up to the one that failed."""
    # A pass that another one runs inside itself is run by that one.
    own = [link for link in seen.links if not link.inside]
    failed = seen.kernel.failed
    same = [link for link in seen.links if failed in (link.dump.name, link.dump.argument)]
    if not same:
        raise FactError(
            f"{failed} failed, and it is not an MLIR pass with a dumped input",
            where=seen.index.folder,
            why=seen.kernel.error[:2000] or None,
            hints=["invoke reduce FILE -- command {} reduces with any command that checks for the failure"],
        )
    last = same[-1].dump.number  # the pass may have run before, and succeeded
    links = tuple(link for link in own if link.dump.number <= last)
    if not links:
        raise FactError(f"the pass that runs {failed} is not in this dump", where=seen.index.folder)
    return links


def without_folders(text: str) -> str:
    """Return IR whose locations name files without their folders."""
    return _FILE.sub(r'"\1"', text)


def _same(recorded: Failure, seen: Failure) -> bool:
    """Report whether a failure is that of the dump, which has fewer details."""
    # A dump may lack the message: then it says only that something failed.
    if recorded == seen or recorded == Failure("failure", ""):
        return True
    # A build without messages prints only where the unreachable line is.
    if recorded.text.startswith(f"{failure.UNREACHABLE} in ") and seen.text.startswith(failure.UNREACHABLE):
        return seen.text.endswith(recorded.text.removeprefix(failure.UNREACHABLE))
    # Frames of a crash are in the log of this run, not in that of every dump.
    if recorded.kind == seen.kind == "signal":
        return recorded.text.partition(":")[0] == seen.text.partition(":")[0]
    return recorded.kind == "failure" == seen.kind


def summary(isolated: Isolated) -> str:
    """Name the pass and its failure; for a crash, the topmost frames, too."""
    names = (
        f"{isolated.names} fails alone"
        if len(isolated.links) == 1
        else f"{isolated.names} fail only together"
    )
    outcome = (
        f"as in the dump: {isolated.failure}"
        if isolated.same
        else f"but not as in the dump: {isolated.failure}"
    )
    text = f"{names}, {outcome}" if isolated.same else f"{names}, {outcome} instead of {isolated.recorded}"
    # The text of a signal has its frames already.
    frames = () if isolated.failure.kind == "signal" else failure.top_frames(isolated.log)
    return f"{text}\ntop frames: {', '.join(frames)}" if frames else text


def as_json(isolated: Isolated, reduced: Reduced | None, out: Path) -> dict[str, Any]:
    """Return the result as JSON data."""
    return {
        "schema": 1,
        "kernel": isolated.passes.kernel.name,
        "numbers": [link.dump.number for link in isolated.links],
        "passes": [link.dump.argument for link in isolated.links],
        "pipeline": isolated.way.pipeline,
        "kind": isolated.failure.kind,
        "failure": isolated.failure.text,
        "same": isolated.same,
        "frames": failure.top_frames(isolated.log),
        "stripped": isolated.stripped,
        "notes": list(isolated.notes),
        "reduced": reduce_ir.as_json(reduced) if reduced else None,
        "folder": str(out),
    }
