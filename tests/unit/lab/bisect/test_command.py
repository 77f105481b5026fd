"""A bisect over releases by a test that is not a compile: what it answers, and where it goes on."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from tests.unit.lab.fake_subject import FakeSubject
from tritonsmith.compiler import tritons
from tritonsmith.core.errors import FactError, InterruptedRunError, SmithError, UsageError
from tritonsmith.core.text import version_key
from tritonsmith.facts import machine
from tritonsmith.lab import journal
from tritonsmith.lab.bisect import command, history, report, session
from tritonsmith.lab.bisect.command import TritonBisect
from tritonsmith.lab.bisect.kernels import KernelCompiles, KernelTests
from tritonsmith.lab.bisect.search import LACKS, LLVM, NATIVE_TREE, TOOLS
from tritonsmith.lab.bisect.session import BisectQuestion, BisectSession
from tritonsmith.lab.bisect.stages import BisectResult, NotReproducedError
from tritonsmith.lab.journal import Observation, Verdict

pytestmark = pytest.mark.unit

GOOD, BAD, SKIP = Verdict.GOOD, Verdict.BAD, Verdict.SKIP
QUESTION = BisectQuestion(
    good="3.0.0", bad="3.9.0", kernel="/k.py:k", when=("spills>0",), flags={"sweep": ["a"]}
)


def releases(
    culprit: str, others: Mapping[str, Verdict] | None = None, lives: int = -1
) -> FakeSubject[Observation]:
    """Bad from one release on, but for others; ^C comes after so many tests."""

    def tested(label: str) -> Observation:
        bad = version_key(label) >= version_key(culprit)
        return Observation(BAD if bad else GOOD, f"spills {int(bad)}")

    table = {
        label: replace(tested(label), verdict=verdict, why="broken" if verdict is SKIP else "")
        for label, verdict in (others or {}).items()
    }
    return FakeSubject(tested, table, lives, KeyboardInterrupt)


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITONSMITH_HOME", str(tmp_path / "home"))


def bisect(
    tests: FakeSubject[Observation], question: BisectQuestion = QUESTION, *, jobs: int = 1
) -> tuple[BisectResult, BisectSession]:
    told: list[str] = []
    good, bad = (tritons.parse_end(text, "--good") for text in (question.good, question.bad))
    one = TritonBisect(session.begin(question), tests, good, bad, jobs=jobs, tell=told.append)
    result = command.run(one, (), silent=True)
    for_fix = (
        ["3.9.0 is the newer end and is good: the search is for the fix"] if good.label > bad.label else []
    )
    assert told[: -len(tests.tested)] == for_fix
    return result.answer, one.session


def prepared(question: BisectQuestion, jobs: int | None = None) -> TritonBisect:
    return command.prepare(session.begin(replace(question, env="debug")), (), jobs=jobs, silent=True)


def test_two_releases_of_a_kernel_are_tested_at_once_and_a_command_alone() -> None:
    two = min(2, machine.read().cores)
    program = replace(QUESTION, kernel="", when=(), command=("x",), folder="/")
    assert prepared(QUESTION).releases == prepared(QUESTION).search.releases == two
    assert (prepared(QUESTION).jobs, prepared(QUESTION, 3).jobs, prepared(QUESTION, 3).releases) == (1, 3, 3)
    assert [prepared(program, jobs).releases for jobs in (None, 3)] == [1, 3]


def test_what_is_slower_beside_another_is_tested_alone() -> None:
    timed = replace(QUESTION, when=("spills>0", "time>+15%"))
    assert [prepared(timed, jobs).releases for jobs in (None, 2)] == [1, 2]
    assert prepared(replace(QUESTION, when=("compile_seconds>9",))).releases == 1
    wrong = replace(QUESTION, when=("wrong",))
    assert [prepared(wrong, jobs).releases for jobs in (None, 2)] == [1, 1]


@pytest.mark.parametrize(
    ("when", "reads"),
    [
        (("spills>0", "ptx contains bar.sync"), False),
        (("spills>0", "sass contains HMMA"), True),
        (("instructions>+5%",), True),
        ((), False),
    ],
)
def test_only_a_question_about_machine_code_disassembles(when: tuple[str, ...], *, reads: bool) -> None:
    tests = prepared(replace(QUESTION, when=when)).tests
    assert isinstance(tests, KernelTests)
    assert isinstance(tests.compiles, KernelCompiles)
    assert tests.compiles.disassemble is reads


RELEASES = history.releases_between("3.0.0", "3.9.0")


@pytest.mark.parametrize("culprit", RELEASES[1:])
@pytest.mark.parametrize("jobs", [1, 3])
def test_the_first_bad_release_is_found_and_nothing_is_tested_twice(culprit: str, jobs: int) -> None:
    tests = releases(culprit)
    answer, made = bisect(tests, jobs=jobs)
    step = answer.step
    assert (step.good, step.bad, step.decided) == (RELEASES[RELEASES.index(culprit) - 1], culprit, True)
    assert tests.tested[:2] == ["3.0.0", "3.9.0"]
    assert len(tests.tested) == len(set(tests.tested)) <= (7 if jobs == 1 else len(RELEASES))
    assert made.answer == f"first bad: {culprit}"
    assert report.headline(answer) == f"first bad release: {culprit}; last good: {step.good}"


@pytest.mark.parametrize("mended", RELEASES[1:])
def test_the_release_that_mended_it_is_found(mended: str) -> None:
    """The good end is the newer one: bad below `mended`."""
    tests = releases("0", dict.fromkeys(RELEASES[RELEASES.index(mended) :], GOOD))
    answer, made = bisect(tests, replace(QUESTION, good="3.9.0", bad="3.0.0"))
    last = RELEASES[RELEASES.index(mended) - 1]
    assert (answer.step.good, answer.step.bad, answer.step.fix) == (mended, last, True)
    assert answer.step.suspects == (mended,)
    assert report.headline(answer) == f"the fix is in release {mended}; last bad: {last}"
    assert made.answer == f"the fix: {mended}"
    assert any("release/" in note for note in answer.notes)
    assert len(tests.tested) <= 7


def test_patch_releases_stand_in_order() -> None:
    names = history.releases_between("3.3.0", "3.6.0")
    assert names == ("3.3.0", "3.3.1", "3.4.0", "3.5.0", "3.5.1", "3.6.0")


@pytest.mark.parametrize(
    ("culprit", "others", "what"),
    [
        ("9.0.0", {}, "does not reproduce at the bad end, 3.9.0"),
        ("3.0.0", {}, "reproduces at the good end, 3.0.0"),
        ("3.5.0", {"3.0.0": SKIP}, "the good end, 3.0.0, cannot be tested"),
        ("3.5.0", {"3.9.0": SKIP}, "the bad end, 3.9.0, cannot be tested"),
    ],
)
def test_an_end_that_is_not_what_it_was_said_to_be_is_an_answer(
    culprit: str, others: Mapping[str, Verdict], what: str
) -> None:
    tests = releases(culprit, others)
    with pytest.raises(NotReproducedError, match=what) as error:
        bisect(tests)
    assert error.value.exit_code == 4
    assert error.value.why
    assert "spills" in error.value.why
    assert tests.tested == ["3.0.0", "3.9.0"]
    assert session.find().answer == what


def test_where_only_skips_are_left_the_answer_is_a_set() -> None:
    answer, made = bisect(releases("3.4.0", {"3.4.0": SKIP, "3.3.1": SKIP}))
    assert answer.step.suspects == ("3.3.1", "3.4.0", "3.5.0")
    assert not answer.step.decided
    assert report.headline(answer) == "undecided: one of 3.3.1, 3.4.0, 3.5.0; all but 3.5.0 were skipped"
    assert "  skipped: 3.4.0: spills 1, broken" in report.lines(made, answer)
    assert made.answer == "one of: 3.3.1, 3.4.0, 3.5.0"


@pytest.mark.parametrize("lives", range(6))
def test_what_was_stopped_goes_on_and_tests_nothing_again(lives: int) -> None:
    first = releases("3.5.0", lives=lives)
    with pytest.raises(InterruptedRunError, match="bisect --resume"):
        bisect(first)
    again = releases("3.5.0")
    answer, made = bisect(again)
    whole = releases("3.5.0")
    bisect(whole)  # of a finished question: from the beginning
    assert first.tested + again.tested == whole.tested
    assert answer.step.bad == "3.5.0"
    assert session.read(made.folder).outcomes == made.outcomes


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), InterruptedRunError("a build"), SmithError("no disk")])
def test_what_stops_in_the_part_about_llvm_goes_on_there(
    monkeypatch: pytest.MonkeyPatch, stop: BaseException
) -> None:
    """Whole builds of LLVM take hours, after the last Triton was tested."""

    def stops(*_: object) -> None:
        raise stop

    with monkeypatch.context() as patch:
        patch.setattr(command, "_in_llvm", stops)
        with pytest.raises(SmithError) as error:
            bisect(releases("3.5.0"))
    found = session.find()
    if not isinstance(stop, SmithError) or isinstance(stop, InterruptedRunError):
        assert any(f"bisect --resume {found.folder.name}" in hint for hint in error.value.hints)
    assert found.answer == ""
    assert found.outcomes
    again = releases("3.5.0")
    answer, made = bisect(again)
    assert again.tested == []
    assert (answer.step.bad, made.answer) == ("3.5.0", "first bad: 3.5.0")
    assert session.read(made.folder).answer == made.answer


def test_a_skip_by_hand_after_an_answer_is_not_forgotten() -> None:
    bisect(releases("3.5.0", {"3.4.0": SKIP}))
    found = session.find()
    assert found.answer == "one of: 3.4.0, 3.5.0"
    with found.held():
        session.skip(found, "3.6.0")
    again = releases("3.6.0")
    answer, made = bisect(again)
    assert "3.6.0" not in again.tested
    assert again.tested[:2] == ["3.0.0", "3.9.0"]  # its outcomes are not those of the finished one
    assert answer.step.suspects == ("3.6.0", "3.7.0")
    assert made.outcomes["3.6.0"].why == "skipped by hand"


def test_a_skip_by_hand_counts_and_the_log_has_it() -> None:
    with pytest.raises(InterruptedRunError, match="bisect --resume"):
        bisect(releases("3.5.0", lives=2))
    found = session.find()
    assert list(found.outcomes) == ["3.0.0", "3.9.0"]
    with found.held():
        found.journal.skip(session.known_name(found, "3.5.0"))
        found.journal.add("ab" * 20, Observation(BAD, "x\ny"))
    answer, made = bisect(releases("3.5.0"))
    assert answer.step.suspects == ("3.5.0", "3.5.1")
    lines = list(report.git_log(made))
    assert "# skip: 3.5.0: skipped by hand" in lines
    assert [line for line in lines if not line.startswith("#")] == [
        "git bisect start", f"git bisect bad {'ab' * 20}",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["3.0.0", "3.9.0", "2.1.0", "4.0.0"])
def test_only_what_lies_between_the_ends_can_be_skipped(name: str) -> None:
    begun = session.begin(QUESTION)
    with begun.held(), pytest.raises(UsageError, match=f"cannot skip '{name}'"):
        session.skip(begun, name)
    with begun.held():
        assert session.skip(begun, "3.6.0") == "3.6.0"


def test_a_skip_after_the_answer_is_shown_beside_it() -> None:
    _, begun = bisect(releases("3.6.0"))
    assert (begun.answer, begun.journal.late) == ("first bad: 3.6.0", [])
    found = session.find()
    with found.held():
        session.skip(found, "3.5.0")
    assert (session.find().answer, session.find().journal.late) == ("first bad: 3.6.0", ["3.5.0"])


def test_sessions_are_found_by_the_beginning_of_their_names() -> None:
    with pytest.raises(UsageError, match="no bisect was started"):
        session.find()
    one = session.begin(QUESTION).saved()
    two = session.begin(BisectQuestion(good="pytorch:2.9", bad="3.9.0")).saved()
    assert session.find("3.0.0").folder == one.folder
    assert session.find("pytorch_2.9").question == two.question
    assert session.read(one.folder).question.when == ("spills>0",)
    assert session.read(one.folder).question == QUESTION
    with pytest.raises(UsageError, match="no bisect 'x'"):
        session.find("x")
    with pytest.raises(UsageError, match="cannot skip"):
        session.known_name(one, "abc")
    (one.folder / session.FILE).write_text('{"schema": 2}')
    with pytest.raises(FactError, match="cannot read this bisect"):
        session.find("3.0.0")


def test_ends_are_releases_or_what_pytorch_depends_on() -> None:
    assert tritons.parse_end("v3.4", "--good").version == "3.4.0"
    assert tritons.parse_end("pytorch:2.9", "--good").version == "3.5.1"
    for text in ("", "abc", "debug"):
        with pytest.raises(UsageError, match="--good"):
            tritons.parse_end(text, "--good")
    with pytest.raises(UsageError, match=r"the same release, 3.9.0"):
        history.releases_between("3.9.0", "3.9.0")
    upwards = history.releases_between("3.6.0", "3.9.0")
    assert history.releases_between("3.9.0", "3.6.0") == upwards[::-1]
    assert (upwards[0], upwards[-1]) == ("3.6.0", "3.9.0")


@pytest.mark.parametrize(
    ("verdicts", "expected"), [([BAD, BAD, BAD], BAD), ([GOOD, GOOD, GOOD], GOOD), ([BAD, GOOD, BAD], SKIP)]
)
def test_a_flaky_test_is_a_skip(verdicts: list[Verdict], expected: Verdict) -> None:
    tests = releases("3.5.1")
    tests.answers = {"3.5.0": iter([Observation(verdict, "exit code 1") for verdict in verdicts])}
    answer, made = bisect(tests, replace(QUESTION, confirm=3))
    outcome = made.outcomes["3.5.0"]
    assert outcome.verdict is expected
    assert {tests.tested.count(name) for name in made.outcomes} == {3}
    if expected is SKIP:
        assert outcome.why == "flaky: 2 bad, 1 good of 3 tests"
        assert answer.step.suspects == ("3.5.0", "3.5.1")


@pytest.mark.parametrize("lives", range(1, 9))
def test_a_kill_between_tests_that_confirm_each_other_loses_none(lives: int) -> None:
    question = replace(QUESTION, confirm=3)
    first, again, whole = releases("3.5.0", lives=lives), releases("3.5.0"), releases("3.5.0")
    with pytest.raises(InterruptedRunError, match="bisect --resume"):
        bisect(first, question)
    answer, _ = bisect(again, question)
    bisect(whole, question)
    assert answer.step.bad == "3.5.0"
    assert sorted(first.tested + again.tested) == sorted(whole.tested)


def old_session(question: BisectQuestion, tested: Sequence[Mapping[str, object]], answer: str = "") -> Path:
    """The file that tritonsmith 0.1 wrote, without the fields that are not given."""
    folder = session.root() / question.name
    folder.mkdir(parents=True, exist_ok=True)
    content = {"schema": 1, "question": asdict(question), "tested": tested, "answer": answer}
    (folder / "session.json").write_text(json.dumps(content, indent=2))
    return folder


def test_a_bisect_that_the_previous_version_began_goes_on() -> None:
    question, whole = replace(QUESTION, confirm=2), releases("3.5.0")
    bisect(whole, question)
    names = list(dict.fromkeys(whole.tested))
    verdicts = ["bad" if version_key(name) >= version_key("3.5.0") else "good" for name in names]
    rows = [
        {"triton": name, "verdict": verdict, "figures": "spills", "why": "", "seconds": 9.0}
        for name, verdict in zip(names[:4], verdicts, strict=False)
    ]
    rows.append({"triton": "3.4.0", "verdict": "skip", "why": "skipped by hand"})
    for file in session.find().folder.iterdir():
        if file.is_file():
            file.unlink()
    folder = old_session(question, rows)
    old = session.find()
    assert (old.folder, old.question, old.answer) == (folder, question, "")
    assert report.tested_json(old)[0] == rows[0]
    assert old.outcomes["3.4.0"].why == "skipped by hand"
    again = releases("3.5.0")
    answer, made = bisect(again, question)
    assert answer.step.suspects == ("3.4.0", "3.5.0")
    assert not {*names[:4], "3.4.0"} & {*again.tested}
    assert made.outcomes[names[0]].seconds == 9.0
    assert session.find("3.0.0").answer == "one of: 3.4.0, 3.5.0"


def test_an_old_answer_is_shown_and_can_be_skipped_in() -> None:
    rows = [{"triton": "3.0.0", "verdict": "good"}, {"triton": "3.9.0", "verdict": "bad"}]
    old_session(QUESTION, rows, "first bad: 3.9.0")
    found = session.find()
    assert found.answer == "first bad: 3.9.0"
    with found.held():
        found.journal.skip(session.known_name(found, "3.6.0"))
    again = session.find()
    assert again.answer == "first bad: 3.9.0"
    assert list(report.git_log(again))[-1] == "# skip: 3.6.0: skipped by hand"
    assert list(again.outcomes) == ["3.0.0", "3.9.0", "3.6.0"]


def test_the_block_for_upstream_has_the_table_and_the_command() -> None:
    answer, made = bisect(releases("3.5.0"))
    block = report.upstream(made, answer, "passes: they part at tritongpu-pipeline")
    assert block.startswith("**first bad release: 3.5.0; last good: 3.4.0**")
    assert "| 3.5.0 | bad | spills 1 |" in block
    assert "main between the branch points: 5389ed797..abce3c88f" in block
    assert re.search(r"LLVM moved as well: \S+/compare/[0-9a-f]+\.\.\.[0-9a-f]+; --source CLONE", block)
    assert "- passes: they part at tritongpu-pipeline" in block
    again = "invoke bisect --good 3.0.0 --bad 3.9.0 --kernel /k.py:k --sweep a --when 'spills>0'"
    assert block.endswith(f"To repeat: `{again.replace('/k.py', 'k.py')}`")
    content = report.as_json(made, answer)
    assert (content["decided"], content["release"]["bad"], content["repeat"]) == (True, "3.5.0", again)


def test_the_command_that_repeats_has_the_environment_and_the_time_limit() -> None:
    asked = replace(QUESTION, env="debug", timeout=20, source="/home/me/triton")
    assert report.repeat(asked).endswith("--source /home/me/triton --env debug --timeout 20")
    # Others have the environments of this project only, and that of the flag's default needs no mention.
    assert report.repeat(report.without_places(asked)).endswith("--source CLONE --env debug --timeout 20")
    mine = report.without_places(replace(asked, env="mine"))
    assert report.repeat(mine).endswith("--source CLONE --env ENV --timeout 20")
    assert "--env" not in report.repeat(report.without_places(replace(QUESTION, env="dev")))


def test_a_search_over_llvm_that_the_previous_version_began_is_read_and_skipped_in() -> None:
    pins, commit, other = f"{'a' * 12}-{'b' * 12}", "c" * 40, "d" * 40
    folder = old_session(replace(QUESTION, confirm=3), [])
    begun: dict[str, list[dict[str, object]]] = {
        f"good-{pins}": [{"triton": commit, "verdict": "bad", "seconds": 7.0}],
        f"opt-bad-{pins}": [{"triton": commit, "verdict": "skip", "why": "skipped by hand"}],
    }
    for name, rows in begun.items():
        part = old_session(replace(QUESTION, good="a" * 40, bad="b" * 40), rows)
        part.joinpath("session.json").rename(make_folder(folder / "llvm" / name) / "session.json")
        part.rmdir()
    found = session.find("3.0.0")
    with found.held():
        session.skip_in_llvm(found, other)
    kept = session.tested(session.llvm_journal(found, pins))
    assert {name: (seen.verdict, seen.seconds) for name, seen in kept.items()} == {
        f"llc good {commit}": (BAD, 7.0),
        f"opt and llc bad {commit}": (SKIP, 0.0),
        **{f"{kind} {other}": (SKIP, 0.0) for kind in LLVM_TESTS},
    }


LLVM_TESTS = ("llc good", "llc bad", "opt and llc good", "opt and llc bad")
PINS = f"{'a' * 12}-{'b' * 12}"


def test_a_commit_of_llvm_is_skipped_in_a_search_that_has_tested_nothing_yet() -> None:
    begun, commit = session.begin(QUESTION).saved(), "c" * 40
    session.llvm_journal(begun, PINS)
    session.skip_in_llvm(begun, commit)
    assert session.llvm_journal(begun, PINS).skipped == {f"{kind} {commit}" for kind in LLVM_TESTS}


def test_a_commit_of_llvm_is_built_again_where_a_program_was_missing() -> None:
    begun, name = session.begin(QUESTION).saved(), f"llc good {'c' * 40}"
    first = session.llvm_journal(begun, PINS)
    for number, lacks in enumerate((TOOLS, LLVM, NATIVE_TREE)):
        first.add(f"llc good {number:040}", Observation(SKIP, why="no", metrics={LACKS: lacks}))
    first.add(name, Observation(SKIP, why="no", metrics={LACKS: TOOLS}))
    first.add(name, Observation(BAD))
    known = session.llvm_journal(begun, PINS)
    assert session.tested(known).keys() == {f"llc good {2:040}", name}
    assert known.observations[name] == [Observation(BAD)]


def test_a_bisect_that_begins_anew_tests_llvm_anew_but_for_skips_by_hand() -> None:
    _, made = bisect(releases("3.5.0"))
    kept = session.llvm_journal(made, PINS)
    kept.add(f"llc good {'c' * 40}", Observation(BAD))
    session.skip_in_llvm(made, "d" * 40)
    with session.find().held():  # a resume: nothing is forgotten
        assert session.llvm_journal(made, PINS).observations
    bisect(releases("3.5.0"))
    again = session.llvm_journal(made, PINS)
    assert not again.observations
    assert again.skipped == {f"{kind} {'d' * 40}" for kind in LLVM_TESTS}


def make_folder(path: Path) -> Path:
    path.mkdir(parents=True)
    return path


def test_a_bisect_that_begins_anew_does_not_replace_one_that_began_meanwhile() -> None:
    bisect(releases("3.5.0"))
    first, second = session.begin(QUESTION), session.begin(QUESTION)
    with first.held():
        first.journal.add("3.0.0", Observation(GOOD))
    with second.held():
        assert list(second.outcomes) == ["3.0.0"]


def test_a_journal_whose_last_line_was_cut_off_goes_on() -> None:
    with pytest.raises(InterruptedRunError, match="bisect --resume"):
        bisect(releases("3.5.0", lives=3))
    file = session.find().folder / journal.FILE
    file.write_text(file.read_text()[:-20])
    assert len(session.find().outcomes) == 2
    again = releases("3.5.0")
    answer, _ = bisect(again)
    assert answer.step.bad == "3.5.0"
    assert not {"3.0.0", "3.9.0"} & {*again.tested}


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({"kernel": "/home/me/work/sub/k.py:k"}, {"kernel": "sub/k.py:k"}),
        ({"kernel": "/home/me/workshop/k.py:k"}, {"kernel": "k.py:k"}),
        ({"kernel": "package.module:k"}, {"kernel": "package.module:k"}),
        ({"test": "/home/me/t.py::test_a[x/y]"}, {"test": "t.py::test_a[x/y]"}),
        ({"test": "test/TritonGPU/loop.mlir"}, {"test": "test/TritonGPU/loop.mlir"}),
        (
            {"kernel": "/home/me/work/k.py", "source": "/home/me/triton"},
            {"kernel": "k.py", "source": "CLONE"},
        ),
    ],
)
def test_what_others_read_names_no_folder_of_the_user(given: dict[str, str], shown: dict[str, str]) -> None:
    asked = BisectQuestion(good="3.0.0", bad="3.9.0", folder="/home/me/work", **given)  # type: ignore[arg-type]
    assert report.without_places(asked) == replace(asked, **shown)  # type: ignore[arg-type]
    assert "/home" not in report.repeat(report.without_places(asked))


HOSTILE = ("../../x", "/etc/passwd", "--output=x", "a\nrm -rf x", "a\x1b]0;x\x07", "a\0b", "", 5, None, ["a"])


@pytest.mark.parametrize("value", HOSTILE)
def test_an_outcome_of_no_triton_is_refused(value: object) -> None:
    _refused({"tested": [{"triton": value, "verdict": "bad"}]})
    _refused_line({"change": value})
    _refused_line({"skip": value})


@pytest.mark.parametrize("key", ["good", "bad", "env", "nightlies"])
@pytest.mark.parametrize("value", ["--upload-pack=x", "a\nb", "a\x1b[2Jb", "a\0b", 5, None, ["a"]])
def test_values_of_a_question_are_checked_when_they_are_read(key: str, value: object) -> None:
    _refused({"question": {key: value}})


@pytest.mark.parametrize("key", ["kernel", "test", "folder", "source", "llvm_source"])
@pytest.mark.parametrize("value", ["-c core.pager=x", "a\0b", 5, None])
def test_paths_of_a_question_are_checked_when_they_are_read(key: str, value: object) -> None:
    _refused({"question": {key: value}})


@pytest.mark.parametrize(
    "change",
    [
        {"question": {"command": [5]}},
        {"question": {"command": ["a\0b"]}},
        {"question": {"confirm": "x"}},
        {"question": {"flags": 5}},
        {"question": {"unknown": 5}},
        {"answer": 5},
        {"tested": [{"triton": "3.6.0", "verdict": "bad", "seconds": "x"}]},
        {"tested": [{"triton": "3.6.0", "verdict": "bad", "figures": 5}]},
        {"tested": [{"triton": "3.6.0", "verdict": "another failure"}]},
        {"tested": [5]},
    ],
)
def test_a_session_of_another_shape_is_refused(change: dict[str, Any]) -> None:
    _refused(change)


@pytest.mark.parametrize(
    "change",
    [
        {"answer": 5},
        {"seconds": "x"},
        {"figures": 5},
        {"verdict": "another failure"},
        {"verdict": 5},
    ],
)
def test_a_journal_of_another_shape_is_refused(change: dict[str, Any]) -> None:
    _refused_line(change)


def _refused(change: dict[str, Any]) -> None:
    """A question or an old session with another value cannot be read, which is told in one error."""
    old_session(QUESTION, [])
    folder = session.root() / QUESTION.name
    new = "question" in change
    if new:
        session.begin(QUESTION).saved()
    for file in (folder / session.FILE, folder / "session.json") if new else (folder / "session.json",):
        content = json.loads(file.read_text())
        for key, value in change.items():
            content[key] = {**content[key], **value} if isinstance(value, dict) else value
        file.write_text(json.dumps(content))
        with pytest.raises(FactError, match="cannot read this bisect"):
            session.read(folder)
        if new:
            (folder / session.FILE).unlink(missing_ok=True)


def _refused_line(change: dict[str, Any]) -> None:
    """A journal with such a line cannot be read, either."""
    others = len(list(session.root().glob("*")))
    one = session.begin(replace(QUESTION, env=f"line-{others}")).saved()
    one.journal.add("3.6.0", Observation(BAD))
    path = one.folder / journal.FILE
    head, line = path.read_text().splitlines()
    alone = {"answer", "skip"} & change.keys()
    path.write_text(f"{head}\n{json.dumps(change if alone else {**json.loads(line), **change})}\n")
    with pytest.raises(FactError, match="cannot read this bisect"):
        session.read(one.folder)
