"""The loop of every experiment: a search says what to test, a subject tests it, a journal remembers it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Protocol, TypeVar

import tritonsmith
from tritonsmith.compiler import manifest
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import (
    DownloadError,
    InterruptedRunError,
    LockedError,
    SmithError,
    StepError,
    UsageError,
    did_you_mean,
)
from tritonsmith.core.plan import Plan, Remove, digest
from tritonsmith.core.text import counted
from tritonsmith.core.ui import console
from tritonsmith.lab import journal
from tritonsmith.lab.journal import UNNEEDED, Journal, Observation, Verdict

BASELINE = "nothing changed"
BY_HAND = Observation(Verdict.SKIP, why="skipped by hand")
FLAKY = "flaky: "  # the beginning of a reason: the tests of a change disagree
# Folders of the workspace that hold nothing but experiments, so that a new one may empty them.
_OURS = ("triage", "passes/knockout", "passes/reduce", "passes/isolate", "reduce", "blame")


@dataclass(frozen=True)
class Rules:
    """The rules by which an experiment tests, whatever it tests.

    Attributes:
        confirm: how many tests of a change have to agree.
        skip: names of changes that are not tested.
        command: the command line of the experiment, for its journal; secrets in it are hidden.
    """

    confirm: int = 1
    skip: tuple[str, ...] = ()
    command: str = ""

    def __post_init__(self) -> None:
        if BASELINE in self.skip:
            raise UsageError(f"--skip cannot be {BASELINE!r}: all others are compared with it")


class Change(Protocol):
    """One thing that is changed."""

    @property
    def name(self) -> str:
        """Its name, in tables, folders and journals."""


C = TypeVar("C", bound=Change)
A = TypeVar("A")

# A search yields the changes that it wants tested and is sent their observations, in the same order. It
# depends on nothing else, no clock and no file: so to resume it is to run it again on the journal.
Search = Generator[Sequence[C], Sequence[Observation], A]


def run(
    search: Search[C, A],
    test: Callable[[Sequence[C]], Iterable[Observation | tuple[int, Observation]]],
    journal: Journal,
    tell: Callable[[str, Observation], None],
    *,
    first: bool = False,
) -> A:
    """Run a search to its end; nothing that the journal has is tested again.

    Each change is tested as often as `journal.confirm` says. The search gets one observation for all of these
    tests, or a skip where they disagree, and a skip for a change that `journal.skipped` names.

    Args:
        search: the search. A change that it wants twice is tested twice.
        test: tests changes, and yields their observations in the same order; or, where several are tested at
            once, each with the place of its change, as they come.
        journal: of this experiment.
        tell: gets each new observation, as it comes.
        first: the search takes the first change of each request that is `BAD`, and needs no test of those
            after it. It is sent `UNNEEDED` for those that were not tested.

    Raises:
        ValueError: a change was not tested, or twice: a bug of the subject.
    """
    advance: Callable[[], Sequence[C]] = partial(next, search)
    while True:
        try:
            changes = advance()
        except StopIteration as end:
            answer: A = end.value
            return answer
        journal.requested.update(change.name for change in changes)
        # Each test is a line of the journal of its own, so that a kill between two of a change loses neither.
        tests = [
            [BY_HAND] if change.name in journal.skipped else journal.tests(change.name) for change in changes
        ]
        while new := _open(tests, journal.confirm, first=first):
            left = dict.fromkeys(range(len(new)))  # in order, and thousands are removed
            for result in test([changes[place] for place in new]):
                # A slow test does not keep the others from the journal: a kill would lose them.
                number, observation = result if isinstance(result, tuple) else (next(iter(left)), result)
                if number not in left:
                    raise ValueError(f"tested twice: {changes[new[number]].name}")
                del left[number]
                place = new[number]
                journal.add(changes[place].name, observation)
                tell(changes[place].name, observation)
                tests[place].append(observation)
                if first and observation.verdict is Verdict.BAD:
                    # Tests that have begun are not lost: what is still needed of them is asked for again.
                    left.clear()
                    break
            if left:
                raise ValueError(f"not tested: {', '.join(changes[new[number]].name for number in left)}")
        enough = [_enough(known, journal.confirm) for known in tests]
        answers = [agreed(known) if whole else UNNEEDED for known, whole in zip(tests, enough, strict=True)]
        advance = partial(search.send, answers)


def _open(tests: Sequence[Sequence[Observation]], wanted: int, *, first: bool) -> list[int]:
    """Return the places of the changes that have to be tested; with `first`, none after one that is `BAD`."""
    places = []
    for place, known in enumerate(tests):
        if not _enough(known, wanted):
            places.append(place)
        elif first and agreed(known).verdict is Verdict.BAD:
            break
    return places


def _enough(tests: Sequence[Observation], wanted: int) -> bool:
    """Report whether a change needs no further test; one that could not be tested once is not tried again."""
    return len(tests) >= wanted or any(test.verdict is Verdict.SKIP for test in tests)


def agreed(tests: Sequence[Observation]) -> Observation:
    """Return one observation for all tests of a change; a skip where their verdicts disagree."""
    seconds = sum(test.seconds for test in tests)
    untested = next((test for test in tests if test.verdict is Verdict.SKIP), None)
    verdicts = Counter(test.verdict for test in tests)
    # The first test's metrics win where they differ: a commit is built for that one, and only taken again for
    # the others.
    metrics = {name: value for test in reversed(tests) for name, value in test.metrics.items()}
    if untested or len(verdicts) == 1:
        return replace(untested or tests[-1], seconds=seconds, metrics=metrics)
    counts = ", ".join(f"{number} {verdict}" for verdict, number in sorted(verdicts.items()))
    figures = "; ".join(dict.fromkeys(test.figures for test in tests if test.figures))
    why = f"{FLAKY}{counts} of {len(tests)} tests"
    return Observation(Verdict.SKIP, figures, why, seconds, metrics=metrics)


def steady(
    test: Callable[[Sequence[C]], Iterable[Observation]],
    journal: Journal,
    fact: Callable[[Observation], object],
) -> Callable[[Sequence[C]], Iterator[Observation]]:
    """Return a test that skips a change if a fact differs between two tests of that change.

    Args:
        test: tests changes.
        journal: of the experiment.
        fact: returns the part of an observation that has to be the same each time.
    """

    # `agreed` compares verdicts alone, and two compiles may differ though both succeed.
    def compared(changes: Sequence[C]) -> Iterator[Observation]:
        for change, observation in zip(changes, test(changes), strict=True):
            earlier = journal.observations[change.name]
            if earlier and fact(earlier[-1]) != fact(observation):
                both = (
                    before.figures or before.why or "another result" for before in (earlier[-1], observation)
                )
                yield Observation(
                    Verdict.SKIP, why=f"{FLAKY}{', then '.join(both)}", seconds=observation.seconds
                )
            else:
                yield observation

    return compared


def ruled_out(observation: Observation) -> bool:
    """Report whether a change has no result because a person skipped it, or because its tests disagree."""
    by_hand = observation.why == BY_HAND.why or observation.why.startswith(FLAKY)
    return observation.verdict is Verdict.SKIP and by_hand


@contextmanager
def begun(
    folder: Path,
    key: object,
    space: Workspace,
    task: str,
    baseline: Callable[[], Observation],
    rules: Rules = Rules(),
    *,
    silent: bool,
) -> Iterator[Journal]:
    """Yield the journal of a run that was stopped, or a new one in a folder that was emptied.

    The body of the `with` calls `Journal.end` with the answer. An error that would come again ends the
    journal, too; ^C, a full disk, a lock and a failed download do not.

    Args:
        folder: of the experiment, which is locked.
        key: all that its tests depend on, except the change.
        space: the workspace.
        task: name of the command.
        baseline: tests the subject with nothing changed.
        rules: how often each change is tested, and which are not.
        silent: say nothing.

    Raises:
        UsageError: the folder has other content, or a stopped run of another command.
    """
    new = Journal(folder / journal.FILE, key_of(task, key), task=task, command=rules.command)
    # The baseline, too: a run that goes on tests it again, and what was tested before is still there.
    with _interruptible():
        notes = _begun(new, folder, space, baseline, silent=silent)
        with _governed(notes, rules):
            yield notes


@contextmanager
def recorded(
    folder: Path, key: object, task: str, rules: Rules, clear: Callable[[], None] = lambda: None
) -> Iterator[tuple[Journal, Journal | None]]:
    """Yield a new journal of an experiment, and the one of the same experiment whose run was stopped.

    For a subject that finds its own results again: it decides which observations of that run still hold, and
    takes them up with `Journal.recall`. So there is no baseline to test once more.

    Args:
        folder: of the journal, which is locked.
        key: all that its tests depend on, except the change.
        task: name of the command.
        rules: how often each change is tested, and which are not.
        clear: removes the files of an earlier run, where there is nothing to go on with.

    Raises:
        UsageError: the folder has a stopped run of another command.
    """
    path = folder / journal.FILE
    whole = key_of(task, key)
    old = journal.read(path)
    earlier = old if old and not old.ended and old.key == whole else None
    if earlier is None:
        _check_task(old, task)
        clear()
    notes = Journal(path, whole, task=task, command=rules.command)
    notes.begin()
    with _interruptible(), _governed(notes, rules):
        yield notes, earlier


@contextmanager
def _interruptible() -> Iterator[None]:
    """Say after ^C that the next run goes on, which the plan of a single test cannot know.

    Raises:
        InterruptedRunError: ^C.
    """
    try:
        yield
    except (KeyboardInterrupt, InterruptedRunError) as error:
        where = error.where if isinstance(error, InterruptedRunError) else None
        hints = ["run the same command again to continue"]
        raise InterruptedRunError("interrupted; what was tested is kept", where=where, hints=hints) from None


@contextmanager
def _governed(notes: Journal, rules: Rules) -> Iterator[None]:
    """Apply the rules to a journal, and end it with an error that would come again."""
    notes.confirm = rules.confirm
    # --skip is of this command: what only the stopped run left out is tested now. A check that passes must
    # not owe that to a flag of some earlier day.
    if notes.skipped - set(rules.skip):
        notes.skipped &= set(rules.skip)
        notes.begin()
    for name in rules.skip:
        notes.skip(name)
    try:
        yield
        # Only now: a search asks for its changes one after the other, and none of them is known before.
        check_names(rules.skip, notes.requested)
    except (InterruptedRunError, LockedError, DownloadError, StepError):
        raise  # these pass: the next run goes on with what is known, after hours of tests perhaps
    except SmithError as error:
        with suppress(StepError):  # the disk may be full
            notes.end(error.what)
        raise


@contextmanager
def kept(
    folder: Path,
    key: object,
    space: Workspace,
    task: str,
    baseline: Observation,
    rules: Rules = Rules(),
    *,
    silent: bool,
) -> Iterator[Journal]:
    """Yield the journal of an experiment that tests its baseline first in each run; see `begun`.

    Args:
        folder: of the journal alone, which is locked; in the workspace, one that has ended leaves nothing.
        key: all that a test depends on, except the change.
        space: the workspace.
        task: name of the command.
        baseline: the test of this run with nothing changed.
        rules: as `begun`.
        silent: say nothing of a run that was stopped.
    """
    with manifest.hold_output(folder, space, task):
        with begun(folder, key, space, task, lambda: baseline, rules, silent=silent) as notes:
            # The search does not ask for it, and the next run compares with the one in the journal.
            if notes.known(BASELINE) is None:
                notes.add(BASELINE, baseline)
            yield notes
        if notes.ended:
            space.run(emptied(folder, space), task, quiet=True)


def check_names(skipped: Iterable[str], known: Iterable[str]) -> None:
    """Warn of names that no change of an experiment has: they are misspelt, or the search never got there."""
    for name in skipped:
        if name not in (names := list(known)):
            near = next(iter(did_you_mean(name, names)), "")
            console.warn(f"--skip {name!r}: nothing is tested under this name; {near}".rstrip("; "))


def status(folder: Path) -> Journal | None:
    """Return the journal of an experiment, which another process may be running; None if there is none.

    Raises:
        FactError: its journal is damaged.
    """
    return journal.read(folder / journal.FILE, to_go_on=False)


def key_of(task: str, key: object) -> str:
    """Return the key of a journal: the command, everything that its tests depend on, and this tool itself."""
    return digest(task, tritonsmith.__version__, _tool(), key)


@cache
def _tool() -> object:
    """Return the state of this tool's own sources when it first asked: what is imported does not change."""
    # Another state of them may give the same change another name, or the same name to another change.
    return journal.tree(Path(tritonsmith.__file__).parent)


def _check_task(old: Journal | None, task: str) -> None:
    """Check that no other command was stopped in the folder of a journal.

    Raises:
        UsageError: there is a stopped run, whose tests would be lost.
    """
    if old and old.path and not old.ended and old.count and old.task not in ("", task):
        hints = [f"to go on with it: {old.command}"] if old.command else []
        hints += ["choose another folder: --out DIR", f"to drop its tests: remove {old.path}"]
        # By its command line: a journal's task is a key, which may be a name that the command had before.
        what = f"this folder has a stopped run of another command{'' if old.command else f', {old.task}'}"
        raise UsageError(what, where=old.path, hints=hints)


def _begun(
    new: Journal, folder: Path, space: Workspace, baseline: Callable[[], Observation], *, silent: bool
) -> Journal:
    """Return the journal of a run that was stopped, or `new` once it is on disk."""

    def note(text: str) -> None:
        if not silent:
            console.note(text)

    old = journal.read(folder / journal.FILE)
    unfinished = old if old and not old.ended else None
    if not _is_ours(folder, space):
        _check_task(unfinished, new.task)
    if unfinished and unfinished.observations[BASELINE]:
        # An equal key does not prove an equal world: a driver or the clock of a GPU is in no file. So the
        # baseline is tested once more, and has to give the same result.
        if unfinished.key != new.key:
            note("it starts over: the stopped run had other inputs, or too many files to compare")
        elif not _alike(unfinished.observations[BASELINE][0], baseline()):
            note("it starts over: with nothing changed, the result differs from that of the stopped run")
        else:
            count = counted(unfinished.count, "test")
            known = "is" if unfinished.count == 1 else "are"
            note(f"{count} of a run that was stopped {known} known: {folder}")
            return unfinished
    # Of a user's folder nothing is removed: each test makes a folder of its own beside those of the old run.
    if not unfinished or _is_ours(folder, space):
        space.run(emptied(folder, space), new.task, quiet=True)
    new.begin()
    return new


def _alike(before: Observation, now: Observation) -> bool:
    """Report whether two tests with nothing changed have the same result."""
    # Not their figures, which may have times and addresses in them.
    facts = [(test.verdict, test.failure, test.code, test.cause, test.failed_in) for test in (before, now)]
    return facts[0] == facts[1]


def emptied(folder: Path, space: Workspace) -> Plan:
    """Plan the removal of the folder of an earlier run, where that is one of the tool's own.

    Raises:
        UsageError: the folder of `--out` has content.
    """
    if _is_ours(folder, space):
        return Plan("experiment", (Remove((folder,), space.root, phase="experiment"),))
    # A journal that has ended, alone, is the rest of an experiment that leaves its files elsewhere.
    rest = {path.name for path in folder.iterdir()} if folder.exists() else set()
    if all(name.startswith(".lock") or name == journal.FILE for name in rest):
        return Plan("experiment")
    hints = ["--out DIR: an empty or a new folder"]
    raise UsageError("the folder of --out is not empty", where=folder, hints=hints)


def _is_ours(folder: Path, space: Workspace) -> bool:
    return any((space.root / name).resolve() in folder.resolve().parents for name in _OURS)


def fresh(folder: Path) -> Path:
    """Return a folder that does not exist yet, for one test."""
    # A test that was killed may have left half of its files in the folder of that name.
    number = 1
    while (place := folder if number == 1 else folder.with_name(f"{folder.name}-{number}")).exists():
        number += 1
    return place
