"""What a dump says of its failure, and texts that name no folders."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.unit.compiler.replay.dumps import dump
from tests.unit.lab.fake_subject import FakeSubject, KilledError
from tritonsmith.compiler.dump.index import DumpedKernel, DumpIndex
from tritonsmith.compiler.replay import run as replay_run
from tritonsmith.compiler.replay.bindings import NOTHING
from tritonsmith.compiler.replay.pass_chain import PassLink
from tritonsmith.compiler.replay.replayer import Replayer
from tritonsmith.compiler.replay.run import KernelPasses
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import SmithError, UndecidedError, UsageError
from tritonsmith.lab import experiment
from tritonsmith.lab.experiment import Rules
from tritonsmith.lab.failure import Failure
from tritonsmith.lab.isolate import failing_pass
from tritonsmith.lab.reduce.oracles import OracleResult, PassRunner

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        ("the compiler died: SIGSEGV", Failure("signal", "SIGSEGV")),
        ("Fatal Python error: Segmentation fault\n\n  File a.py", Failure("signal", "SIGSEGV")),
        (
            "Traceback (most recent call last):\n    x('error: y')\nIndexError: map::at",
            Failure("exception", "IndexError: map::at"),
        ),
        ("a.py:1:2: error: 'tt.dot' op is wrong", Failure("error", "'tt.dot' op is wrong")),
    ],
)
def test_the_failure_of_a_dump(error: str, failure: Failure) -> None:
    assert failing_pass.recorded_failure(DumpedKernel("k", "k", "cuda:90", "SomePass", error)) == failure


def test_locations_keep_the_names_of_files() -> None:
    text = '%0 = a loc("/home/jane/secret/k.py":1:2)\n#loc = loc(callsite("/a b/c.py":1:1 at "f"))\n"/x/y"\n'
    made = failing_pass.without_folders(text)
    assert 'loc("k.py":1:2)' in made
    assert 'callsite("c.py":1:1 at "f")' in made
    assert "jane" not in made
    assert '"/x/y"' in made


@pytest.mark.parametrize(
    ("recorded", "seen", "same"),
    [
        ("unreachable: no layout in Prefetch.cpp", "unreachable: no layout in Prefetch.cpp", True),
        ("unreachable: no layout in Prefetch.cpp", "unreachable: no type in Prefetch.cpp", False),
        # Dumps of before 2026-11 lack the message.
        ("unreachable:  in Prefetch.cpp", "unreachable: no layout in Prefetch.cpp", True),
        ("unreachable:  in Prefetch.cpp", "unreachable: no layout in Utility.cpp", False),
    ],
)
def test_unreachable_code_is_the_same_by_message_and_file(recorded: str, seen: str, same: bool) -> None:
    assert failing_pass._same(Failure("assertion", recorded), Failure("assertion", seen)) is same


CRASH, OTHER = Failure("signal", "SIGSEGV"), Failure("error", "no layout")
Answer = Failure | str | None
Answers = Mapping[str, Answer | Iterator[Answer]]  # by the input of the first pass and its locations

ONCE = Rules()


@dataclass
class Passes:
    """Four passes, of which the last fails in a dump; a script says how they fail now."""

    tmp_path: Path
    monkeypatch: pytest.MonkeyPatch
    answers: Answers
    lives: int = -1

    def __post_init__(self) -> None:
        self.subject: FakeSubject[Answer] = FakeSubject(lambda _: None, self.answers, self.lives)
        dumps = []
        for number in range(4):
            text = f'module{number} loc("/home/jane/k.py":1:2)\n'
            one = dump(number, f"pass{number}")
            path = self.tmp_path / one.path
            path.parent.mkdir(exist_ok=True)
            if not path.exists():  # a file that is written again is another input
                path.write_text(text)
            dumps.append(one)
        self.kernel = DumpedKernel("k", "k", "cuda:90:32", "pass3", "the compiler died: SIGSEGV")
        self.index = DumpIndex(self.tmp_path, "", "", "", 0, (self.kernel,), tuple(dumps))
        links = tuple(PassLink(one, None) for one in dumps)
        seen = KernelPasses(self.index, self.kernel, links, NOTHING)
        self.monkeypatch.setattr(replay_run, "look", lambda *_: seen)
        self.monkeypatch.setattr(failing_pass, "way", lambda _, links, *__: self.way(links))
        self.space = Workspace(self.tmp_path / "home")
        self.tool = Replayer(None, Path("/bin/triton-opt"), None, None)

    def way(self, links: tuple[PassLink, ...]) -> PassRunner | str:
        passes = self

        class Runner(PassRunner):
            def oracle(self, *_: object) -> Any:
                return FakeOracle(passes.subject)

        return "no binding" if self.answers.get(f"from {links[0].dump.number}") == "refused" else Runner("p")

    def isolate(self, rules: Rules = ONCE) -> failing_pass.Isolated:
        return failing_pass.isolate(self.index, self.kernel, self.tool, self.space, {}, rules)[0]


@dataclass
class FakeOracle:
    """An oracle that asks a fake subject about a text."""

    subject: FakeSubject[Answer]

    def ask(self, text: str) -> OracleResult:
        name = text.partition(" ")[0].strip() + (" loc" if "loc(" in text else "")
        answer = self.subject.ask(name)
        if answer == "lacking":
            raise UsageError("no pass")
        if isinstance(answer, str):
            return OracleResult(None, began=False, log=answer)
        return OracleResult(answer, began=True, log=f"the log of {name}")

    def close(self) -> None:
        """Nothing runs."""


@pytest.mark.parametrize(
    ("answers", "number", "stripped"),
    [
        ({"module3": CRASH}, 1, True),
        ({"module3": OTHER, "module3 loc": CRASH}, 1, False),
        ({"module2": CRASH}, 2, True),
        ({"module3": OTHER, "module1 loc": CRASH}, 3, False),
        ({"module3 loc": OTHER}, 1, False),
        ({"module2": "not parsed", "module1": CRASH}, 3, True),
        ({"module3 loc": OTHER, "module2": "lacking", "module1": CRASH}, 1, False),
        ({"from 3": "refused", "module2": CRASH}, 2, True),
    ],
)
def test_the_shortest_end_that_fails_as_in_the_dump(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: Answers, number: int, stripped: bool
) -> None:
    isolated = Passes(tmp_path, monkeypatch, answers).isolate()
    assert len(isolated.links) == number
    assert isolated.stripped == stripped
    assert isolated.same == (CRASH in answers.values() and "lacking" not in answers.values())
    assert isolated.log == f"the log of module{4 - number}{'' if stripped else ' loc'}"
    assert "jane" not in isolated.text


@pytest.mark.parametrize(
    ("answers", "text"),
    [
        ({}, "cannot reproduce: pass3 succeeds on the dumped input"),
        ({"from 3": "refused"}, "pass3 cannot be run alone by this Triton"),
        ({"module3 loc": "not parsed"}, "the input of the failing pass cannot be parsed"),
        ({"module3": "lacking"}, "no pass"),
    ],
)
def test_what_cannot_be_reproduced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: Answers, text: str
) -> None:
    with pytest.raises(SmithError, match=text):
        Passes(tmp_path, monkeypatch, answers).isolate()


@pytest.mark.parametrize("lives", range(6))
def test_an_isolation_that_was_killed_runs_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lives: int
) -> None:
    answers: Answers = {"module3": OTHER, "module1 loc": CRASH}
    first = Passes(tmp_path, monkeypatch, answers, lives)
    with pytest.raises(KilledError):
        first.isolate()
    folder = failing_pass.folder_of(first.index, first.kernel, first.tool, first.space)
    journal = experiment.status(folder)
    assert journal
    assert journal.count == 1 + lives
    second = Passes(tmp_path, monkeypatch, answers)
    isolated = second.isolate()
    assert [link.dump.number for link in isolated.links] == [1, 2, 3]
    assert isolated.log == "the log of module1 loc"
    assert first.subject.tested + second.subject.tested == [
        "module3",
        "module3 loc",
        "module2",
        "module2 loc",
        "module1",
        "module1 loc",
    ]
    assert not folder.exists(), "an isolation that has ended leaves nothing"


def test_what_is_skipped_is_not_run_and_what_is_confirmed_is_run_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes = Passes(tmp_path, monkeypatch, {"module3": CRASH, "module2": CRASH})
    isolated = passes.isolate(Rules(2, ("3 pass3", "3 pass3, with locations")))
    assert len(isolated.links) == 2
    assert passes.subject.tested == ["module2", "module2"]
    assert isolated.notes[-1].startswith("the last pass alone was not tested")
    tested = passes.isolate(Rules(1, ("3 pass3",)))  # with locations it was run
    assert tested.notes[-1].startswith("the last pass does not fail alone")


def test_a_last_pass_whose_tests_disagree_was_not_tested_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flaky = itertools.cycle([CRASH, None])
    answers: Answers = {"module2": CRASH, "module3": flaky, "module3 loc": flaky}
    passes = Passes(tmp_path, monkeypatch, answers)
    assert passes.isolate(Rules(2)).notes[-1].startswith("the last pass alone was not tested")


def test_nothing_succeeds_that_was_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    passes = Passes(tmp_path, monkeypatch, {"module3": CRASH})
    with pytest.raises(UndecidedError, match="what was run of the pipeline succeeds") as caught:
        passes.isolate(Rules(1, ("3 pass3",)))
    assert caught.value.why == "not tested: 3 pass3"
