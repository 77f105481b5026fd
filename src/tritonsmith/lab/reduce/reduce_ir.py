"""`reduce FILE.mlir`: shrink IR on which passes fail while they fail in the same way."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from tritonsmith.core import configs
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import InterruptedRunError, SmithError
from tritonsmith.core.plan import digest, files
from tritonsmith.core.plan.steps.base import CommandFailedError
from tritonsmith.core.text import duration
from tritonsmith.core.ui import console, tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.ir import ir_text
from tritonsmith.ir.ir_text import IrText, parse
from tritonsmith.lab import experiment, journal
from tritonsmith.lab.experiment import Rules
from tritonsmith.lab.failure import Failure
from tritonsmith.lab.journal import Journal, Observation, Verdict
from tritonsmith.lab.reduce import ir_control_flow, ir_operations, oracles, shrink
from tritonsmith.lab.reduce.ir_operations import Cutter
from tritonsmith.lab.reduce.oracles import Oracle, OraclePool, OracleResult, PassRunner
from tritonsmith.lab.reduce.shrink import DeltaSearch, OutOfTimeError, Part

JOBS = 2
WORDS = {
    Verdict.BAD: "fails in the same way",
    Verdict.GOOD: "does not fail",
    Verdict.OTHER: "another failure",
    Verdict.SKIP: "not tested",
}
INTERRUPTED = "interrupted"
_SLOWER = 10  # a candidate may take so many times as long as the input did, and some seconds
_SECONDS = 5.0
_TOOL = 60.0  # seconds for MLIR's own reducer, which gets a small file
_SAID = 4000  # characters of a log in an error
T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True)
class Reduced:
    """The result of a reduction.

    Attributes:
        text: the smallest text with the failure.
        failure: the failure that stayed.
        log: the output when it fails.
        before: size of the text at the start.
        after: size of `text`.
        tried: number of candidates.
        seconds: wall time of the reduction.
        why: the reason for an early end, after which it may become smaller still: a timeout or ^C.
        steps: the reducers in their order: name, and number of operations left.
        journal: of all candidates.
    """

    text: str
    failure: Failure
    log: str
    before: Size
    after: Size
    tried: int
    seconds: float
    why: str = ""
    steps: tuple[tuple[str, int], ...] = ()
    journal: Journal = field(default_factory=Journal, compare=False)


@dataclass(frozen=True)
class ReduceOptions:
    """Options of a reduction.

    Attributes:
        timeout: seconds for the whole reduction.
        jobs: number of candidates that are tested at once.
        reducer: MLIR's own reducer, tried on the result of ours; None for ours alone.
        name: of the file that a command reads.
        out: file of the result.
        silent: say nothing of a run that was stopped.
        rules: how often a candidate is tested, and which are not.
        folder: of the journal; None for `folder_of`.
    """

    timeout: float = 600.0
    jobs: int = JOBS
    reducer: Path | None = None
    name: str = "in.mlir"
    out: Path | None = None
    silent: bool = False
    rules: Rules = field(default_factory=Rules)
    folder: Path | None = None


def folder_of(text: str, way: PassRunner, space: Workspace) -> Path:
    """Return the folder of the journal of a reduction."""
    return space.root / "passes" / "reduce" / digest(text, type(way).__name__, way)


def reduce(
    text: str,
    way: PassRunner,
    space: Workspace,
    options: ReduceOptions,
    on_better: Callable[[Size, int], None] = lambda *_: None,
) -> Reduced:
    """Reduce the text of a file.

    Args:
        text: the text that fails.
        way: the passes that fail on it.
        space: the workspace.
        options: of the reduction.
        on_better: called with each smaller size, and the number of candidates that were tried.

    Raises:
        SmithError: it does not fail at the start, or the result does not fail in a new process.
    """
    began = time.monotonic()
    space.claim()
    with ExitStack() as stack:
        folder = stack.enter_context(files.scratch("reduce-"))
        limit = float(configs.load("passes-replay")["limits"]["pass"])
        # It stays until the end, where it prints the best text.
        first = stack.enter_context(_oracle(way, folder / "first", limit, options.name))
        began_first = time.monotonic()
        answer = first.ask(text)
        seconds = time.monotonic() - began_first
        sought = check(answer, way)
        start = _plain(text, first, sought)
        # A candidate may loop for ever, and thousands are tested; but a slow machine is not to decide.
        limit = min(limit, _SECONDS + _SLOWER * max(seconds, 0.1))
        # Every candidate that is still interesting would take the whole limit, and there are thousands.
        if sought.kind == "timeout":
            raise SmithError(
                "the passes do not terminate: such a failure cannot be reduced",
                why=f"stopped after {limit:.0f} s",
            )
        members = [
            stack.enter_context(_oracle(way, folder / str(number), limit, options.name))
            for number in range(options.jobs)
        ]
        team = OraclePool(members, sought)
        search = IrSearch(
            start,
            jobs=options.jobs,
            on_better=lambda smaller, tried: on_better(size_of(smaller), tried),
        )
        notes = stack.enter_context(
            experiment.kept(
                options.folder or folder_of(text, way, space),
                _inputs(text, way, options),
                space,
                "passes.reduce",
                # If this run fails in another way than the one that was stopped, the tests of that one say
                # nothing.
                Observation(Verdict.BAD, str(sought), failure=sought),
                options.rules,
                silent=options.silent,
            )
        )
        steps, why = [], ""
        # The oracles end before the threads that ask them: so ^C does not wait for a candidate.
        try:
            with shrink.asking(team.test, options.jobs, began + options.timeout) as test, closing(team):
                smallest = experiment.run(search.search(), test, notes, _untold, first=True)
                steps.append(("tritonsmith", size_of(smallest).ops))
                # It gets a small file, as it is slow; what it removes may make room for ours again.
                if options.reducer and way.opt:
                    by_tool = _by_tool(options.reducer, way, sought, search.best, folder / "tool", space)
                    if by_tool and experiment.run(search.accept(by_tool), test, notes, _untold, first=True):
                        experiment.run(search.search(), test, notes, _untold, first=True)
                    steps.append((options.reducer.name, size_of(search.best).ops))
        except OutOfTimeError:
            # This is no error: what is smaller by then is a result, and the journal lets the same command go
            # on.
            why = f"timed out: --timeout {options.timeout:.0f}"
        except (KeyboardInterrupt, InterruptedRunError):
            why = INTERRUPTED
        best = _pretty(search, first, sought)
        # A worker that has run thousands of candidates may fail for a reason of its own.
        final = _again(best, way, sought, folder, options)
        if not why:  # the same command goes on otherwise
            notes.end(f"{size_of(best).ops} operations are left")
    sizes = (size_of(text), size_of(best))
    seconds = time.monotonic() - began
    return Reduced(best, sought, final.log, *sizes, search.tried, seconds, why, tuple(steps), notes)


def check(answer: OracleResult, way: PassRunner) -> Failure:
    """Return the failure of a first answer.

    Raises:
        SmithError: there is none, or the file does not parse.
    """
    printed = answer.log.strip()[-_SAID:]
    # This comes first: a text that does not parse has no failure either, and the other message would mislead.
    if not answer.began:
        raise SmithError(
            "no pass ran on this file: it cannot be parsed, or a pass cannot be added",
            where=way.who,
            why=printed,
            hints=[
                "use IR of exactly this Triton",
                "if the parser itself fails, use a command: -- command {}",
            ],
        )
    if answer.failure is None:
        what, hints = "the passes succeed on this file", [f"the passes that ran: {way.pipeline}"]
        if way.command:
            what = "the command does not report the file as interesting"
            hints = ["exit code 0 means interesting", "{} in the command is replaced by the file"]
        raise SmithError(what, where=way.who, why=printed or "nothing was printed", hints=hints)
    return answer.failure


@contextmanager
def _oracle(way: PassRunner, folder: Path, limit: float, name: str) -> Iterator[Oracle]:
    files.make_folder(folder)
    oracle = way.oracle(folder, limit, name)
    try:
        yield oracle
    finally:
        oracle.close()


def _inputs(text: str, way: PassRunner, options: ReduceOptions) -> object:
    """Return everything that a test depends on, except the candidate."""
    # The class, too: a `WrongPassRunner` has the fields of a `PassRunner`, and another question.
    apart = (options.out,) if options.out else ()
    command = (
        journal.command(way.command, Path.cwd(), os.environ.get("PATH", ""), apart) if way.command else None
    )
    program = journal.program(way.opt) if way.opt else way.python and journal.python(way.python)
    return (text, type(way).__name__, way, options.name, command, program, journal.environment())


def _untold(_name: str, _observation: Observation) -> None:
    """Ignore a candidate, as the search reports those that are smaller."""


def _plain(text: str, oracle: Oracle, sought: Failure) -> str:
    """Return the text to begin with: as the compiler prints it, if it still fails."""
    # The edits want one operation per line, and no locations, which are most of a dump's text.
    stripped = ir_text.without_locations("mlir", text.encode()).decode()
    for candidate in (oracle.printed(text), stripped):
        if candidate and oracle.ask(candidate).failure == sought:
            return candidate
    return text


def _pretty(search: IrSearch, oracle: Oracle, sought: Failure) -> str:
    """Return the best text as the compiler prints it: values numbered in order, no blank lines."""
    best = search.best
    printed = oracle.printed(best)
    # The oracle is asked once more: the printer renumbers values, and a failure may depend on that.
    if printed and size_of(printed).ops <= size_of(best).ops and oracle.ask(printed).failure == sought:
        return printed
    return best


def _again(text: str, way: PassRunner, sought: Failure, folder: Path, options: ReduceOptions) -> OracleResult:
    """Check the result once more in a new process, without the shortened time limit."""
    limit = float(configs.load("passes-replay")["limits"]["pass"])
    with _oracle(way, folder / "last", limit, options.name) as oracle:
        answer = oracle.ask(text)
    if answer.failure != sought:
        raise SmithError(
            "the reduced IR does not fail in a new process",
            why=answer.log[-_SAID:] or "nothing was printed",
            hints=["an intermittent failure cannot be reduced", "--jobs 1 may help"],
        )
    return answer


def _by_tool(
    reducer: Path, way: PassRunner, sought: Failure, text: str, folder: Path, space: Workspace
) -> str:
    """Return the output of MLIR's reducer; empty if it fails or takes too long."""
    plan = oracles.reducer_plan(reducer, way, sought, text, folder, _TOOL)
    try:
        space.run(plan, "passes.reduce", quiet=True)
    # Its failure, or that it takes too long, is not ours: the result so far stands.
    except CommandFailedError:
        return ""
    result = folder / "reduced.mlir"
    return result.read_text(encoding="utf-8") if result.is_file() else ""


@dataclass(frozen=True, order=True)
class Size:
    """The size of a text; fewer operations are smaller, whatever the rest.

    Attributes:
        ops: operations, modules and functions aside.
        size: bytes.
        lines: number of them.
    """

    ops: int
    size: int
    lines: int


def size_of(text: str) -> Size:
    """Measure a text."""
    return Size(parse(text).count(), len(text.encode()), len(text.splitlines()))


class IrSearch(DeltaSearch[str]):
    """Shrinks IR text while it stays interesting: see `DeltaSearch`."""

    def __init__(
        self, text: str, *, jobs: int = 1, on_better: Callable[[str, int], None] = lambda *_: None
    ) -> None:
        super().__init__(text, size_of, jobs=jobs, on_better=on_better)

    def moves(self) -> Sequence[Callable[[], Part[str, bool]]]:
        """See `DeltaSearch`."""
        # What removes most comes first: each test costs about the same, and fewer are left to make after it.
        return (
            self._functions,
            self._cut,
            partial(self._parsed, ir_control_flow.unwrapped),
            partial(self._parsed, ir_control_flow.straighter),
            partial(self._parsed, ir_control_flow.merged),
            partial(self._without, ir_control_flow.parameters, ir_control_flow.without_parameters),
            partial(self._parsed, ir_control_flow.lighter),
            partial(self._parsed, lambda source: [ir_operations.without_aliases(source)]),
            partial(self._without, ir_operations.unused_arguments, ir_operations.without_pieces),
            partial(self._without, ir_operations.attributes, ir_operations.without_pieces),
        )

    def _functions(self) -> Part[str, bool]:
        """Remove whole functions."""
        cutter = Cutter(parse(self.best))
        return self._delta([op for op in cutter.items if op.function], cutter.cut, cutter.left)

    def _cut(self) -> Part[str, bool]:
        """Remove operations."""
        # Users first: an operation that nothing uses goes without a new argument in its place.
        cutter = Cutter(parse(self.best))
        return self._delta(list(reversed(cutter.items)), cutter.cut, cutter.left)

    def _parsed(self, candidates: Callable[[IrText], Iterable[str]]) -> Part[str, bool]:
        """Make single changes, each of a text that is parsed anew."""
        return self._repeat(lambda text: candidates(parse(text)))

    def _without(
        self,
        find: Callable[[IrText], Sequence[T]],
        without: Callable[[IrText, Sequence[T]], str | None],
    ) -> Part[str, bool]:
        """Remove things that can go alone or together."""
        source = parse(self.best)
        return self._delta(find(source), partial(without, source))


def progress() -> Callable[[Size, int], None]:
    """Return a callback that shows each smaller size on a terminal."""
    err = console.err()

    def show(size: Size, tried: int) -> None:
        if err.is_terminal:
            err.print(f"{size.ops} operations, {size.lines} lines, {tried} candidates", style="dim", end="\r")

    return show


def sizes(reduced: Reduced) -> Grid:
    """Return a table of the sizes before and after."""
    rows = [
        [name, str(getattr(reduced.before, key)), str(getattr(reduced.after, key))]
        for name, key in (("operations", "ops"), ("lines", "lines"), ("bytes", "size"))
    ]
    return tables.plain(str(reduced.failure), ["", "before", "after"], rows, right=["before", "after"])


def summary(reduced: Reduced) -> str:
    """Return a sentence with the number of candidates, the time, and the reason for an early end."""
    text = f"{reduced.tried} candidates in {duration(reduced.seconds)}"
    if len(reduced.steps) > 1:
        text += "; " + ", ".join(f"{left} operations after {name}" for name, left in reduced.steps)
    if reduced.why:
        text += f"; {reduced.why}: this is the best result so far"
    return f"{text}; fails in the same way in a new process"


def as_json(reduced: Reduced) -> dict[str, Any]:
    """Return the result as JSON data."""
    return {
        "schema": 1,
        "kind": reduced.failure.kind,
        "failure": reduced.failure.text,
        "before": vars(reduced.before),
        "after": vars(reduced.after),
        "candidates": reduced.tried,
        "seconds": reduced.seconds,
        "done": not reduced.why,
        "why": reduced.why,
        "steps": [{"by": name, "ops": left} for name, left in reduced.steps],
    }
