"""The search on an oracle without a compiler: what it leaves is interesting, small, and always the same."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from threading import Barrier, Event

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.lab.fake_subject import FakeSubject, begin, quiet, read
from tests.unit.lab.reduce.programs import operations, programs, valid
from tests.unit.lab.reduce.searching import searched
from tritonsmith.ir.ir_text import parse
from tritonsmith.lab import experiment, journal
from tritonsmith.lab.experiment import Search
from tritonsmith.lab.journal import UNNEEDED, Journal, Observation, Verdict
from tritonsmith.lab.reduce import ir_control_flow, ir_operations, shrink
from tritonsmith.lab.reduce.ir_operations import Cutter
from tritonsmith.lab.reduce.reduce_ir import IrSearch, size_of
from tritonsmith.lab.reduce.shrink import DeltaCandidate, DeltaSearch, OutOfTimeError, Part, PendingTest

pytestmark = pytest.mark.unit


def interesting(wanted: dict[str, int], text: str) -> bool:
    """Well formed, and with at least so many of these operations."""
    found = operations(text)
    return valid(text) and all(found[name] >= count for name, count in wanted.items())


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(programs(), st.data())
def test_the_result_is_interesting_no_larger_and_minimal(text: str, data: st.DataObject) -> None:
    here = operations(text)
    assert valid(text)
    names = data.draw(st.lists(st.sampled_from(sorted(here)), max_size=3)) if here else []
    wanted = {name: min(here[name], names.count(name)) for name in names}
    best = searched(IrSearch(text), lambda one: interesting(wanted, one))
    assert interesting(wanted, best)
    assert size_of(best) <= size_of(text)
    source = parse(best)
    cutter = Cutter(source)
    candidates = [
        *(cutter.cut([op]) for op in cutter.items),
        *ir_control_flow.unwrapped(source),
        *ir_control_flow.lighter(source),
        *ir_control_flow.straighter(source),
        *(ir_operations.without_pieces(source, [one]) for one in ir_operations.attributes(source)),
        ir_operations.without_aliases(source),
    ]
    for one in candidates:
        assert one is None or size_of(one) >= size_of(best) or not interesting(wanted, one)


@settings(deadline=None, max_examples=20)
@given(programs())
def test_the_result_does_not_depend_on_how_many_ask_at_once(text: str) -> None:
    wanted = dict.fromkeys(list(operations(text))[:2], 1)

    def reduced(jobs: int) -> str:
        return searched(IrSearch(text, jobs=jobs), lambda one: interesting(wanted, one), jobs=jobs)

    assert reduced(1) == reduced(2) == reduced(3)


PROGRAM = """\
module {
  tt.func public @f(%lo: i32, %hi: i32, %on: i1) {
    %v1 = test.a %lo, %hi : i32
    %v2 = scf.for %i = %lo to %hi step %lo iter_args(%c = %v1) -> (i32)  : i32 {
      %v3 = test.b %c, %v1 : i32
      %v4 = test.c %v3, %i : i32
      scf.yield %v4 : i32
    }
    test.store %v2, %v1 : i32
    tt.return
  }
}
"""


def test_one_operation_deep_inside_is_all_that_is_left() -> None:
    best = searched(IrSearch(PROGRAM), lambda one: interesting({"test.c": 1}, one))
    assert [op.name for op in parse(best).ops()] == ["module", "tt.func", "test.c", "tt.return"]
    assert "scf.for" not in best


def test_the_best_so_far_is_kept_when_time_is_up() -> None:
    def slow(text: str) -> bool:
        time.sleep(0.05)
        return interesting({"test.b": 1, "test.store": 1}, text)

    subject = FakeSubject(slow)
    search = IrSearch(PROGRAM)
    with pytest.raises(OutOfTimeError):
        searched(search, subject.ask, until=time.monotonic() + 0.1)
    assert subject.tested
    assert interesting({"test.b": 1, "test.store": 1}, search.best)


def test_what_an_oracle_raises_comes_out() -> None:
    with pytest.raises(KeyboardInterrupt):
        searched(IrSearch(PROGRAM), FakeSubject(bool, lives=0, killed=KeyboardInterrupt).ask)


def test_a_search_that_was_stopped_anywhere_asks_for_nothing_twice(tmp_path: Path) -> None:
    """And ends with the same text after as many candidates."""
    subject = FakeSubject(
        lambda text: interesting({"test.b": 1, "test.store": 1}, text), killed=KeyboardInterrupt
    )
    whole = IrSearch(PROGRAM)
    best = searched(whole, subject.ask)
    every, path = list(subject.tested), tmp_path / journal.FILE
    assert len(set(every)) == len(every) == whole.tried
    begin(path)
    subject.tested.clear()
    for lives in range(1, len(every) + 1, 4):
        subject.lives, notes = lives, read(path)
        with pytest.raises(KeyboardInterrupt):
            searched(IrSearch(PROGRAM), subject.ask, notes=notes)
        known = read(path)
        assert known.count == lives
        del subject.tested[known.count :]
    subject.lives, resumed, notes = -1, IrSearch(PROGRAM), read(path)
    assert searched(resumed, subject.ask, notes=notes) == best
    assert resumed.tried == whole.tried
    assert sorted(subject.tested) == sorted(every)


def test_of_several_at_once_nothing_in_the_journal_is_asked_for_again(tmp_path: Path) -> None:
    """Which tests end before the one that is taken is chance; the result is not."""

    def rule(text: str) -> bool:
        return interesting({"test.b": 1, "test.store": 1}, text)

    best = searched(IrSearch(PROGRAM), rule)
    for lives in range(1, 14, 4):
        path = tmp_path / f"{lives}.jsonl"
        begin(path)
        stopped, resumed = FakeSubject(rule, lives=lives, killed=KeyboardInterrupt), FakeSubject(rule)
        with pytest.raises(KeyboardInterrupt):
            searched(IrSearch(PROGRAM, jobs=3), stopped.ask, jobs=3, notes=read(path))
        known = set(read(path).observations)
        assert searched(IrSearch(PROGRAM, jobs=3), resumed.ask, jobs=3, notes=read(path)) == best
        assert not known & {DeltaCandidate(text).name for text in resumed.tested}


def test_a_slow_candidate_keeps_no_other_from_the_journal() -> None:
    """A kill would lose what has been tested."""
    heard = Event()

    def ask(name: str, _: PendingTest) -> Observation:
        return Observation(Verdict.GOOD if name == "quick" or heard.wait(60) else Verdict.SKIP)

    with shrink.asking(ask, 2) as test:
        coming = iter(test([DeltaCandidate("slow"), DeltaCandidate("quick")]))
        assert next(coming) == (1, Observation(Verdict.GOOD))
        heard.set()
        assert list(coming) == [(0, Observation(Verdict.GOOD))]


def test_what_comes_after_the_first_that_is_interesting_is_not_waited_for() -> None:
    """A test that has begun is not lost: whoever needs its result later gets it."""
    over, tested = Event(), []

    def ask(name: str, _: PendingTest) -> Observation:
        tested.append(name)
        if name == "endless":
            over.wait(60)
        return Observation(Verdict.BAD if name == "smaller" else Verdict.GOOD)

    def search() -> Search[DeltaCandidate[str], list[Observation]]:
        first = yield [DeltaCandidate("smaller"), DeltaCandidate("endless")]
        over.set()
        return [*first, *(yield [DeltaCandidate("endless")])]

    with shrink.asking(ask, 2) as test:
        answers = experiment.run(search(), test, Journal(), quiet, first=True)
    assert [answer.verdict for answer in answers] == [Verdict.BAD, Verdict.SKIP, Verdict.GOOD]
    assert tested.count("endless") == 1


class Numbers(DeltaSearch[tuple[int, ...]]):
    """Removes numbers one by one."""

    def moves(self) -> Sequence[Callable[[], Part[tuple[int, ...], bool]]]:
        """See `DeltaSearch`."""
        start = self.best
        return (lambda: self._delta(start, lambda gone: tuple(n for n in start if n not in gone)),)


def test_what_follows_a_candidate_is_tested_while_its_test_goes_on() -> None:
    """Tests that end only when both have begun: the second one follows the first, which is no failure."""
    both = Barrier(2, timeout=60)
    together = {(1, 3, 4, 5), (1, 4, 5)}  # 2 goes, and then 3

    def ask(numbers: tuple[int, ...], _: PendingTest) -> Observation:
        if numbers in together:
            both.wait()
        return Observation(Verdict.BAD if {1, 4, 5} <= set(numbers) else Verdict.GOOD)

    with shrink.asking(ask, 2) as test:
        search = Numbers((1, 2, 3, 4, 5), len, jobs=2)
        assert experiment.run(search.search(), test, Journal(), quiet, first=True) == (1, 4, 5)


def test_later_moves_are_tested_while_the_test_of_an_earlier_one_goes_on() -> None:
    """Tests that end only when both have begun: each is the only one of its move."""
    both = Barrier(2, timeout=60)

    def ask(numbers: tuple[int, ...], _: PendingTest) -> Observation:
        both.wait()
        return Observation(Verdict.GOOD if numbers else Verdict.BAD)

    class Moves(DeltaSearch[tuple[int, ...]]):
        def moves(self) -> Sequence[Callable[[], Part[tuple[int, ...], bool]]]:
            return (lambda: self.accept((1, 5)), lambda: self.accept((1, 4)))

    with shrink.asking(ask, 2) as test:
        search = Moves((1, 4, 5), len, jobs=2)
        assert experiment.run(search.search(), test, Journal(), quiet, first=True) == (1, 4, 5)


class Ends(DeltaSearch[tuple[int, ...]]):
    """Removes the last number, and the first one, as one move each."""

    def moves(self) -> Sequence[Callable[[], Part[tuple[int, ...], bool]]]:
        """See `DeltaSearch`."""
        return [partial(self._without, kept) for kept in (slice(-1), slice(1, None))]

    def _without(self, kept: slice) -> Part[tuple[int, ...], bool]:
        return self.accept(self.best[kept])


def test_while_an_answer_is_likely_what_follows_in_later_moves_is_tested() -> None:
    """The test of what is taken ends only when that of the follower has begun."""
    taken, follower = (1, 2), (2,)
    begun = Event()

    def ask(numbers: tuple[int, ...], pending: PendingTest) -> Observation:
        if numbers == taken:
            pending.likely = True
            assert begun.wait(60)
        if numbers == follower:
            begun.set()
        return Observation(Verdict.BAD if numbers == taken else Verdict.GOOD)

    with shrink.asking(ask, 2) as test:
        search = Ends((1, 2, 3), len, jobs=2)
        assert experiment.run(search.search(), test, Journal(), quiet, first=True) == taken


def test_what_follows_goes_on_when_the_candidate_before_it_is_taken() -> None:
    """A test that asks all the time whether anybody needs it is not told to end while that is noted."""
    begun, noted = Event(), Event()
    tested = []

    def ask(numbers: tuple[int, ...], pending: PendingTest) -> Observation:
        tested.append(numbers)
        if numbers == (1, 3, 4, 5):
            pending.likely = True
            assert begun.wait(60)
        if numbers == (1, 4, 5):
            begun.set()
            while not noted.is_set():
                if pending.is_unneeded():
                    return UNNEEDED
        return Observation(Verdict.BAD if {1, 4, 5} <= set(numbers) else Verdict.GOOD)

    def better(numbers: tuple[int, ...], _tried: int) -> None:
        if numbers == (1, 3, 4, 5):
            time.sleep(0.05)
            noted.set()

    with shrink.asking(ask, 2) as test:
        search = Numbers((1, 2, 3, 4, 5), len, jobs=2, on_better=better)
        assert experiment.run(search.search(), test, Journal(), quiet, first=True) == (1, 4, 5)
    assert tested.count((1, 4, 5)) == 1


def test_what_supposes_the_contrary_of_a_likely_answer_ends_and_what_follows_begins() -> None:
    """Without 2, the list seems interesting; the test without 3 ends for that, and 2 and 3 go together."""
    tested, contrary, both = [], Event(), Event()

    def ask(numbers: tuple[int, ...], pending: PendingTest) -> Observation:
        tested.append(numbers)
        if numbers == (1, 3, 4, 5):
            assert contrary.wait(60)
            pending.likely = True
            assert both.wait(60)
        if numbers == (1, 2, 4, 5):
            contrary.set()
            while not pending.is_unneeded():
                time.sleep(0.001)
            return UNNEEDED
        if numbers == (1, 4, 5):
            both.set()
        return Observation(Verdict.BAD if {1, 4, 5} <= set(numbers) else Verdict.GOOD)

    with shrink.asking(ask, 2) as test:
        search = Numbers((1, 2, 3, 4, 5), len, jobs=2)
        assert experiment.run(search.search(), test, Journal(), quiet, first=True) == (1, 4, 5)
    assert tested.index((1, 4, 5)) > tested.index((1, 3, 4, 5))


def test_a_test_that_ended_early_begins_anew_if_its_result_is_needed() -> None:
    """What seems likely may fail: nothing is lost but the time."""
    begun, ended, tested = Event(), Event(), []

    def ask(name: str, pending: PendingTest) -> Observation:
        tested.append(name)
        if name == "likely":
            assert begun.wait(60)
            pending.likely = True
            assert ended.wait(60)
            return Observation(Verdict.GOOD)
        if tested.count(name) == 1:
            begun.set()
            while not pending.is_unneeded():
                time.sleep(0.001)
            ended.set()
            return UNNEEDED
        return Observation(Verdict.BAD)

    with shrink.asking(ask, 2) as test:
        candidates = [DeltaCandidate("likely"), DeltaCandidate("other")]
        assert sorted(test(candidates), key=lambda row: row[0]) == [
            (0, Observation(Verdict.GOOD)),
            (1, Observation(Verdict.BAD)),
        ]
    assert tested.count("other") == 2
