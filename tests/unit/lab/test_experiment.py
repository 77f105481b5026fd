"""The loop and its journal: whenever a run is killed, the next one tests nothing again and ends alike."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.unit.lab.fake_subject import FakeChange, FakeSubject, KilledError, begin, quiet, read, stop
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import (
    DownloadError,
    FactError,
    InterruptedRunError,
    LockedError,
    SmithError,
    StepError,
    UsageError,
)
from tritonsmith.core.ui import console
from tritonsmith.lab import experiment, journal
from tritonsmith.lab.experiment import BASELINE, Rules, Search, emptied
from tritonsmith.lab.failure import Failure
from tritonsmith.lab.journal import Journal, Observation, Verdict

WRONG = Observation(
    Verdict.BAD,
    "spills 8",
    "",
    0.5,
    Failure("error", "no end"),
    "c0de",
    ("slow",),
    "cse",
    ("13", "12"),
    "CSE",
    2.5,
)


def subject(lives: int = -1) -> FakeSubject[Observation]:
    """Good, but for `d`."""
    return FakeSubject(lambda name: Observation(Verdict.GOOD, name), {"d": WRONG}, lives)


def search() -> Search[FakeChange, list[str]]:
    """Ask for one change, for three at once, and for one of them again."""
    (first,) = yield [FakeChange("a")]
    several = yield [FakeChange(name) for name in "bcd"]
    (again,) = yield [FakeChange("c")]
    return [seen.figures for seen in (first, *several, again)]


def asking(names: str) -> Search[FakeChange, list[Observation]]:
    """Ask for all of them at once."""
    return list((yield [FakeChange(name) for name in names]))


def run(tested: FakeSubject[Observation], notes: Journal) -> list[str]:
    return experiment.run(search(), tested.each, notes, quiet)


def test_what_a_search_asks_for_is_tested_in_this_order() -> None:
    whole = subject()
    assert run(whole, Journal()) == ["a", "b", "c", "spills 8", "c"]
    assert whole.tested == ["a", "b", "c", "d", "c"]


@pytest.mark.parametrize("lives", range(5))
def test_a_run_that_was_killed_goes_on(tmp_path: Path, lives: int) -> None:
    path = tmp_path / journal.FILE
    first, second, third = subject(lives), subject(), subject()
    known = stop(begin(path), partial(run, first))
    assert run(second, known) == ["a", "b", "c", "spills 8", "c"]
    assert first.tested + second.tested == ["a", "b", "c", "d", "c"]
    whole = read(path)
    assert whole.observations["d"] == [WRONG]
    assert run(third, whole) == ["a", "b", "c", "spills 8", "c"]
    assert third.tested == []


@pytest.mark.parametrize("lives", range(10))
def test_each_change_is_confirmed_and_no_test_of_it_is_repeated(tmp_path: Path, lives: int) -> None:
    """A kill between two tests of one change loses neither."""
    first, second = subject(lives), subject()
    known = stop(begin(tmp_path / journal.FILE, confirm=2), partial(run, first))
    known.confirm = 2
    assert run(second, known) == ["a", "b", "c", "spills 8", "c"]
    assert sorted(first.tested + second.tested) == sorted("aabbccccdd")


def test_tests_that_disagree_are_a_skip_that_says_so() -> None:
    bad, good = replace(WRONG, seconds=1.0), Observation(Verdict.GOOD, "exit code 0", seconds=2.0)
    skip = Observation(Verdict.SKIP, why="no GPU", seconds=0.5)
    assert experiment.agreed([bad, good, bad]) == Observation(
        Verdict.SKIP, "spills 8; exit code 0", "flaky: 2 bad, 1 good of 3 tests", 4.0
    )
    assert experiment.agreed([good, good]) == replace(good, seconds=4.0)
    assert experiment.agreed([bad, skip]) == replace(skip, seconds=1.5)


def test_what_could_not_be_tested_once_is_not_tried_again_to_confirm_it() -> None:
    broken = FakeSubject(lambda _: Observation(Verdict.SKIP, why="does not build"))
    run(broken, Journal(confirm=3))
    assert broken.tested == ["a", "b", "c", "d", "c"]


def test_a_change_that_is_skipped_is_not_tested_and_stays_so(tmp_path: Path) -> None:
    notes = begin(tmp_path / journal.FILE)
    notes.skip("c")
    notes.skip("c")
    first, second = subject(2), subject()
    known = stop(notes, partial(run, first))
    assert known.skipped == {"c"}
    run(second, known)
    assert experiment.run(asking("c"), second.each, known, quiet) == [experiment.BY_HAND]
    assert first.tested + second.tested == ["a", "b", "d"]


def test_the_status_is_read_and_nothing_is_written(tmp_path: Path) -> None:
    """Another process may be writing the last line at this moment."""
    assert experiment.status(tmp_path) is None
    notes = begin(tmp_path / journal.FILE)
    notes.add("a", WRONG)
    notes.add("b", Observation(Verdict.SKIP, why="no network"))
    half = (tmp_path / journal.FILE).read_text() + '{"change": "c", "verd'
    (tmp_path / journal.FILE).write_text(half)
    known = experiment.status(tmp_path)
    assert known is not None
    assert list(known.observations) == ["a", "b"]
    assert (tmp_path / journal.FILE).read_text() == half


def test_a_line_that_was_cut_off_is_tested_again(tmp_path: Path) -> None:
    path = tmp_path / journal.FILE
    notes = begin(path)
    run(subject(), notes)
    path.write_bytes(path.read_bytes()[:-10])
    second = subject()
    run(second, read(path))
    assert second.tested == ["c"]


def test_what_has_ended_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / journal.FILE
    notes = begin(path)
    run(subject(), notes)
    notes.end("a is right")
    known = read(path)
    assert known.ended
    assert "a is right" in path.read_text()


def test_what_could_not_be_tested_is_tested_again(tmp_path: Path) -> None:
    """Its reason, a network or a GPU that is gone, may not hold any more."""
    notes = begin(tmp_path / journal.FILE)
    notes.add("a", Observation(Verdict.GOOD))
    notes.add("b", Observation(Verdict.SKIP, why="no network"))
    known = read(tmp_path / journal.FILE)
    assert set(known.observations) == {"a"}


def test_no_journal_and_that_of_another_version_are_none(tmp_path: Path) -> None:
    path = tmp_path / journal.FILE
    assert journal.read(path) is None
    path.write_text('{"schema": 0, "key": ""}\n')
    assert journal.read(path) is None


def test_a_line_is_not_appended_to_one_that_was_cut_off(tmp_path: Path) -> None:
    path = tmp_path / journal.FILE
    first = begin(path)
    first.add("a", WRONG)
    path.write_text(f'{path.read_text()}{{"change": "b", "verd')
    known = read(path)
    known.add("b", WRONG)
    known.add("c", Observation(Verdict.GOOD, "a \0 in a line\n"))
    whole = read(path)
    assert whole.observations == known.observations


def test_a_journal_that_is_gone_is_an_error(tmp_path: Path) -> None:
    notes = begin(tmp_path / journal.FILE)
    (tmp_path / journal.FILE).unlink()
    with pytest.raises(StepError, match="cannot write to"):
        run(subject(), notes)


def test_a_search_is_not_ended_by_a_test_that_stops_iterating() -> None:
    """An error of a test is its own, not the end of the search."""

    def test(_changes: Sequence[FakeChange]) -> Iterator[Observation]:
        return iter(())

    with pytest.raises(ValueError, match="not tested: a"):
        experiment.run(search(), test, Journal(), quiet)


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        '{"change": 3}',
        '{"change": "a", "verdict": "well"}',
        "\0",
        "[" * 9999,
        '{"change": "a", "verdict": "good", "failure": null, "seconds": NaN}',
        '{"change": "a", "verdict": "good", "failure": null, "notes": "abc"}',
        '{"change": "a", "verdict": "good", "failure": {"kind": 3}}',
        '{"change": "a", "verdict": "good", "failure": null, "figures": {}}',
    ],
)
def test_a_damaged_journal_says_where_it_is(tmp_path: Path, line: str) -> None:
    path = tmp_path / journal.FILE
    begin(path)
    path.write_text(f"{path.read_text()}{line}\n")
    with pytest.raises(FactError, match="line 2 of this journal is damaged") as caught:
        journal.read(path)
    assert str(path) in str(caught.value)
    hint = f"mend the line, or start again: rm {shlex.quote(str(path))}"  # not the user's whole folder
    assert caught.value.hints[0] == hint


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    made = Workspace(tmp_path / "home")
    made.claim()
    for name in ("triage/k", "passes/knockout/program", "envs/dev"):
        (made.root / name).mkdir(parents=True)
        (made.root / name / "file").touch()
    return made


@dataclass
class Begun:
    """An experiment in a folder, as a command begins it."""

    folder: Path
    space: Workspace
    notes: list[str]
    baselines: int = 0
    rules: Rules = Rules()  # noqa: RUF009 - frozen

    def run(
        self, key: object = "key", baseline: Observation = WRONG, error: Exception | None = None
    ) -> Journal:
        """Begin it, test the baseline and one change, and stop, end, or fail."""

        def tested() -> Observation:
            self.baselines += 1
            return baseline

        with experiment.begun(
            self.folder, key, self.space, "triage", tested, self.rules, silent=False
        ) as begun:
            begun.requested |= {BASELINE, "a"}
            for name, seen in ((BASELINE, baseline), ("a", Observation(Verdict.GOOD))):
                if begun.known(name) is None:
                    begun.add(name, seen)
            if error:
                raise error
            begun.end("well")
        return begun

    def stopped(self, error: Exception | None = None, **more: Any) -> None:
        """Begin it, and come to an error."""
        error = error or KilledError()
        with pytest.raises(type(error)):
            self.run(error=error, **more)


@pytest.fixture
def begun(space: Workspace, monkeypatch: pytest.MonkeyPatch) -> Begun:
    notes: list[str] = []
    monkeypatch.setattr(console, "note", notes.append)
    return Begun(space.root / "triage" / "k", space, notes)


def test_a_run_that_was_stopped_is_taken_up_once_its_baseline_is_as_before(begun: Begun) -> None:
    begun.stopped()
    begun.stopped(InterruptedRunError("^C"))
    known = begun.run(baseline=replace(WRONG, figures="at 0x7f", seconds=9.0))
    assert known.observations[BASELINE] == [WRONG]
    assert begun.baselines == 2, "once for each run that goes on"
    assert [note.partition(":")[0] for note in begun.notes] == [
        "2 tests of a run that was stopped are known"
    ] * 2


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"key": "another"}, "other inputs"),
        ({"baseline": replace(WRONG, verdict=Verdict.GOOD)}, "with nothing changed, the result differs"),
        ({"baseline": replace(WRONG, failure=Failure("signal", "SIGSEGV"))}, "with nothing changed"),
        ({"baseline": replace(WRONG, code="beef")}, "with nothing changed"),
    ],
)
@pytest.mark.parametrize("place", ["home/triage/k", "out"])
def test_where_it_cannot_be_sure_it_begins_anew_and_says_so(
    begun: Begun, tmp_path: Path, more: dict[str, Any], why: str, place: str
) -> None:
    begun.folder = tmp_path / place
    begun.stopped()
    (begun.folder / "left by a test").touch()
    new = begun.run(**more)
    assert new.observations[BASELINE] == [more.get("baseline", WRONG)]
    assert [note for note in begun.notes if note.startswith("it starts over: ") and why in note]
    assert (begun.folder / "left by a test").exists() == (place == "out"), "a user's folder loses nothing"
    if place == "out":
        with pytest.raises(UsageError, match="the folder of --out is not empty"):
            begun.run(key="a third one")


def test_what_ended_by_an_error_begins_anew(begun: Begun) -> None:
    begun.stopped(FactError("the program compiles no kernel"))
    known = read(begun.folder / journal.FILE)
    assert known.ended
    begun.run()
    assert begun.baselines == 0
    assert begun.notes == []


@pytest.mark.parametrize(
    "error", [StepError("no space left"), LockedError("another build"), DownloadError("no network")]
)
def test_what_an_error_stopped_that_may_pass_goes_on(begun: Begun, error: SmithError) -> None:
    begun.stopped(error)
    known = read(begun.folder / journal.FILE)
    assert not known.ended
    begun.run()
    assert begun.baselines == 1
    assert begun.notes[0].startswith("2 tests of a run that was stopped are known")


def test_a_name_to_skip_that_no_change_has_is_reported(begun: Begun, monkeypatch: pytest.MonkeyPatch) -> None:
    warnings: list[str] = []
    monkeypatch.setattr(console, "warn", warnings.append)
    begun.rules = Rules(confirm=2, skip=("a", "nothing chnged"))
    notes = begun.run()
    assert (notes.confirm, notes.skipped) == (2, {"a", "nothing chnged"})
    (warning,) = warnings
    assert warning.startswith("--skip 'nothing chnged': nothing is tested under this name; did you mean ")
    with pytest.raises(UsageError, match="all others are compared with it"):
        Rules(skip=(BASELINE,))


def test_a_name_to_skip_is_of_one_command(begun: Begun) -> None:
    """The next one without the flag tests the change, and the file does not say that it is skipped."""
    begun.rules = Rules(skip=("a",), command="tritonsmith triage --skip a")
    begun.stopped()
    begun.stopped()
    known = read(begun.folder / journal.FILE)
    assert known.skipped == {"a"}
    begun.rules = Rules(command="tritonsmith triage")
    begun.stopped()
    known = read(begun.folder / journal.FILE)
    assert (known.skipped, known.count) == (set(), 2)
    assert (known.task, known.command) == ("triage", "tritonsmith triage --skip a"), "which has begun it"


@pytest.mark.parametrize("mode", ["begun", "recorded"])
def test_what_another_command_was_stopped_at_in_a_folder_of_the_user_is_not_lost(
    begun: Begun, tmp_path: Path, mode: str
) -> None:
    begun.folder = tmp_path / "out"
    begun.rules = Rules(command="tritonsmith triage")
    begun.stopped()
    before = (begun.folder / journal.FILE).read_bytes()

    def other() -> Any:
        if mode == "recorded":
            return experiment.recorded(begun.folder, "key", "study", Rules())
        return experiment.begun(begun.folder, "key", begun.space, "study", lambda: WRONG, silent=False)

    with (
        pytest.raises(UsageError, match="this folder has a stopped run of another command") as caught,
        other(),
    ):
        pass
    assert caught.value.hints[0] == "to go on with it: tritonsmith triage"
    assert (begun.folder / journal.FILE).read_bytes() == before
    begun.run()
    with other():
        pass


def test_a_run_without_results_is_no_news(begun: Begun) -> None:
    Journal(begun.folder / journal.FILE, "another").begin()
    begun.run()
    assert begun.notes == []


def test_two_commands_do_not_share_a_journal(begun: Begun) -> None:
    begun.stopped()
    with experiment.begun(
        begun.folder, "key", begun.space, "passes.knockout", lambda: WRONG, silent=False
    ) as other:
        assert other.count == 0


def test_each_test_has_a_folder_of_its_own(tmp_path: Path) -> None:
    for name in ("a", "a-2", "a-3"):
        assert experiment.fresh(tmp_path / "a") == tmp_path / name
        (tmp_path / name).mkdir()


@pytest.mark.parametrize("name", ["triage/k", "passes/knockout/program"])
def test_what_an_earlier_run_left_is_removed(space: Workspace, name: str) -> None:
    assert name in emptied(space.root / name, space).shell()


@pytest.mark.parametrize(
    "name",
    ["envs", "envs/dev", "triage", "passes/knockout", "triage/../envs", "triage/k/../../envs"],
)
def test_other_folders_of_the_workspace_are_not(space: Workspace, name: str) -> None:
    with pytest.raises(UsageError, match="the folder of --out is not empty"):
        emptied(space.root / name, space)


def test_a_link_to_another_folder_is_not_followed(space: Workspace) -> None:
    (space.root / "triage" / "link").symlink_to(space.root / "envs")
    with pytest.raises(UsageError, match="the folder of --out is not empty"):
        emptied(space.root / "triage" / "link", space)


def test_an_empty_folder_elsewhere_is_taken_as_it_is(space: Workspace, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    assert emptied(tmp_path / "out", space).steps == ()
    assert emptied(tmp_path / "not there", space).steps == ()


def test_of_several_tests_at_once_the_first_that_ends_is_noted_first(tmp_path: Path) -> None:
    notes = begin(tmp_path / journal.FILE)

    def test(changes: Sequence[FakeChange]) -> Iterator[tuple[int, Observation]]:
        yield from ((place, Observation(Verdict.GOOD, changes[place].name)) for place in (2, 0, 1))

    observations = experiment.run(asking("abc"), test, notes, quiet)
    assert [seen.figures for seen in observations] == ["a", "b", "c"]
    lines = (tmp_path / journal.FILE).read_text().splitlines()[1:]
    assert [json.loads(line)["change"] for line in lines] == ["c", "a", "b"]


def test_a_change_is_not_tested_twice_for_one_wish() -> None:
    def test(_changes: Sequence[FakeChange]) -> Iterator[tuple[int, Observation]]:
        yield from [(0, WRONG), (0, WRONG)]

    with pytest.raises(ValueError, match="tested twice: "):
        experiment.run(search(), test, Journal(), quiet)


def test_a_journal_that_begins_has_what_is_known_and_what_could_not_be_tested_if_that_counts(
    tmp_path: Path,
) -> None:
    path = tmp_path / journal.FILE
    skip = Observation(Verdict.SKIP, why="cannot be built")
    old = Journal(path, "key", skipped={"c"}, ended=True, answer="a is right")
    old.observations.update({"a": [WRONG, WRONG], "b": [skip]})
    old.begin()
    known = read(path, untested=True)
    assert (known.key, known.observations, known.skipped, known.answer) == (
        "key",
        old.observations,
        {"c"},
        "a is right",
    )
    again = read(path)
    assert [*again.observations] == ["a"]


def test_a_fact_that_differs_from_test_to_test_is_a_skip() -> None:
    """Their verdicts agree: both compile."""
    compiles = [Observation(Verdict.GOOD, code=code) for code in ("c0de", "beef")]
    table: dict[str, Observation | Iterator[Observation]] = {"a": iter(compiles), "b": compiles[0]}
    notes = Journal(confirm=2)
    steady = experiment.steady(FakeSubject(lambda _: WRONG, table).each, notes, lambda seen: seen.code)
    flaky, same = experiment.run(asking("ab"), steady, notes, quiet)
    assert flaky.verdict is Verdict.SKIP
    assert flaky.why == "flaky: another result, then another result"
    assert (same.verdict, same.code) == (Verdict.GOOD, "c0de")
    assert experiment.ruled_out(flaky)
    assert experiment.ruled_out(experiment.BY_HAND)
    assert not experiment.ruled_out(Observation(Verdict.SKIP, why="no network"))


def test_journals_of_several_experiments_are_told_apart_by_their_names() -> None:
    first, second = Journal(skipped={"b"}, answer="left", ended=True), Journal()
    first.add("a", WRONG)
    second.add("a", Observation(Verdict.GOOD))
    both = journal.merged({"k": first, "l": second})
    assert list(both.observations) == ["k: a", "l: a"]
    assert (both.skipped, both.answer, both.ended) == ({"b"}, "left", False)
    assert list(journal.merged({"k": first}).observations) == ["a"]


@pytest.mark.parametrize("stopped", [KeyboardInterrupt, lambda: InterruptedRunError("interrupted")])
def test_after_an_interrupt_the_next_run_goes_on_and_says_so(
    space: Workspace, stopped: Callable[[], BaseException]
) -> None:
    # The plan of one test knows nothing of the tests before it, and would say that the next run starts over.
    folder = space.root / "triage" / "x"
    with (
        pytest.raises(InterruptedRunError, match="what was tested is kept") as caught,
        experiment.begun(folder, "key", space, "triage", lambda: WRONG, silent=True),
    ):
        raise stopped()
    assert caught.value.hints == ("run the same command again to continue",)
    assert caught.value.exit_code == 130
