"""The history of an environment, and what differs from then to now."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tritonsmith.core import configs
from tritonsmith.core.errors import SmithError, UsageError
from tritonsmith.core.plan import locks
from tritonsmith.doctor import history, saved_report, snapshot
from tritonsmith.doctor.check import DoctorContext, Finding, error, note
from tritonsmith.doctor.history import HistoryEntry
from tritonsmith.facts.gpus import Driver, Gpu, Gpus

GOOD: tuple[Finding, ...] = (note("fine"),)
BAD: tuple[Finding, ...] = (error("broken"),)
ENTRY = HistoryEntry("2026-11-01T12:00:00+00:00", "0.1.0", "ok", False, {"triton": "3.4.0"})


def write(path: Path, *entries: HistoryEntry) -> None:
    rows = [vars(one) for one in entries]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"schema": 1, "entries": rows}))


# --- the snapshot


def test_a_snapshot_has_every_fact_and_no_secret(subject: DoctorContext, home: Path) -> None:
    subject.gpus = Gpus((Gpu("nvidia", "NVIDIA H200", "9.0"),), Driver("580.65.06", "13.0"))
    subject.environ = {
        "TRITON_CACHE_DIR": f"{home}/cache",
        "TRITON_HOME": "/data/somebody/triton",
        "TRITON_ALWAYS_COMPLIE": "a slip",
        "TRITON_REMOTE_CACHE_BACKEND": "redis://me:hunter2@host/1",
        "LD_LIBRARY_PATH": "/home/colleague/lib:/opt/cuda-12/lib64",
        "CC": "",
        "MY_TOKEN": "hunter3",
    }
    seen = snapshot.read(subject)
    assert configs.load("doctor-setup")["fact"].keys() <= seen.keys()
    assert (seen["driver"], seen["driver-cuda"], seen["gpu"]) == ("580.65.06", "13.0", "NVIDIA H200 (9.0)")
    assert (seen["triton"], seen["python"]) == ("", "")
    assert seen["$TRITON_CACHE_DIR"] == "~/cache"
    assert seen["$TRITON_HOME"] == "/data/somebody/triton"
    assert seen["$TRITON_ALWAYS_COMPLIE"] == "(set)"
    assert seen["$LD_LIBRARY_PATH"] == "/home/<user>/lib:/opt/cuda-12/lib64"
    assert seen["$CC"] == "(empty)"
    assert "$MY_TOKEN" not in seen
    assert "hunter" not in str(seen)


def test_a_long_value_is_cut_and_still_tells_two_apart(subject: DoctorContext) -> None:
    subject.environ = {"LD_LIBRARY_PATH": "/a" * 3000 + "/1"}
    one = snapshot.read(subject)["$LD_LIBRARY_PATH"]
    subject.environ = {"LD_LIBRARY_PATH": "/a" * 3000 + "/2"}
    two = snapshot.read(subject)["$LD_LIBRARY_PATH"]
    assert one != two
    assert len(one) < 1100


# --- the history


def test_only_a_change_is_kept(subject: DoctorContext) -> None:
    for setup in ({"triton": "3.4.0"}, {"triton": "3.4.0"}, {"triton": "3.5.0"}):
        assert history.keep(subject, GOOD, setup) == ""
    assert history.keep(subject, BAD, {"triton": "3.5.0"}) == ""
    found = history.read(subject.env.history)
    assert [(one.setup["triton"], one.good) for one in found] == [
        ("3.4.0", True),
        ("3.5.0", True),
        ("3.5.0", False),
    ]


def test_what_only_deep_finds_is_not_overturned(subject: DoctorContext) -> None:
    history.keep(subject, BAD, {"triton": "3.5.0"}, deep=True)
    history.keep(subject, GOOD, {"triton": "3.5.0"})
    assert [one.good for one in history.read(subject.env.history)] == [False]
    history.keep(subject, GOOD, {"triton": "3.5.0"}, deep=True)
    assert [one.good for one in history.read(subject.env.history)] == [False, True]


def test_it_is_bounded_and_keeps_the_last_good_entry(subject: DoctorContext) -> None:
    history.keep(subject, GOOD, {"triton": "good"})
    most = configs.load("doctor-setup")["history"]["entries"]
    write(subject.env.history, *history.read(subject.env.history), *[replace(ENTRY, worst="error")] * most)
    history.keep(subject, BAD, {"triton": "newest"})
    found = history.read(subject.env.history)
    assert len(found) == most
    assert [found[0].setup["triton"], found[-1].setup["triton"]] == ["good", "newest"]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"schema": 2, "entries": []}', '{"schema": 1, "entries": [{"when": 1}]}',
             '{"schema": 1, "entries": [7]}']
)  # fmt: skip
def test_a_damaged_history_is_left_alone(subject: DoctorContext, text: str) -> None:
    path = subject.env.history
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with pytest.raises(SmithError, match="damaged"):
        history.read(path)
    assert str(path) in history.keep(subject, GOOD, {"triton": "3.5.0"})
    assert path.read_text() == text


@pytest.mark.parametrize("when", ["yesterday", "2026-11-20T12:00:00"])
def test_a_time_that_is_none_or_has_no_zone_is_damage(subject: DoctorContext, when: str) -> None:
    write(subject.env.history, replace(ENTRY, when=when))
    with pytest.raises(SmithError, match="damaged"):
        history.read(subject.env.history)


def test_a_folder_that_cannot_be_written_is_told(subject: DoctorContext) -> None:
    subject.space.root.write_text("a file where the workspace should be")
    assert str(subject.space.root) in history.keep(subject, GOOD, {"triton": "3.5.0"})


def test_another_run_that_writes_is_no_trouble(subject: DoctorContext) -> None:
    path = subject.env.history
    subject.space.claim()
    path.parent.mkdir(parents=True)
    with locks.hold(path.with_suffix(".lock"), purpose="doctor"):
        assert history.keep(subject, GOOD, {"triton": "3.5.0"}) == ""
    assert history.read(path) == ()


# --- what a difference means


def test_a_ptxas_above_the_driver(subject: DoctorContext) -> None:
    then = {"ptxas": "12.8", "driver": "570.1", "driver-cuda": "12.8", "torch-cuda": "12.8"}
    (one,) = snapshot.changes_between(then, {**then, "ptxas": "13.4"})
    assert one.title == "ptxas"
    assert one.means.startswith("newer than the driver's CUDA 12.8")
    (two,) = snapshot.changes_between(
        {**then, "ptxas": "13.4", "driver-cuda": "13.0"}, {**then, "ptxas": "13.4"}
    )
    assert (two.what, two.means.partition(":")[0]) == ("driver-cuda", "ptxas 13.4")
    (three,) = snapshot.changes_between(then, {**then, "ptxas": "12.9"})
    assert "does not load" not in three.means
    assert subject.named == "dev"


def test_a_version_without_digits_is_not_above_another() -> None:
    found = snapshot.changes_between(
        {"ptxas": "12.8", "driver-cuda": "12.8"}, {"ptxas": "²", "driver-cuda": "12.8"}
    )
    assert "newer than" not in found[0].means


def test_facts_of_another_version_of_the_tool_are_no_difference() -> None:
    then, now = {"triton": "3.4.0", "phase-of-the-moon": "full"}, {"triton": "3.4.0", "ptxas": "12.8"}
    assert snapshot.changes_between(then, now) == ()
    assert snapshot.not_compared(then, now) == (
        "only one side knows, so not compared: phase-of-the-moon, ptxas",
    )
    assert snapshot.changes_between({"x": "1"}, {"x": "2"})[0].title == "x"


def test_variables_and_gone_facts() -> None:
    then = {"gpu": "H200", "$TRITON_ALWAYS_COMPILE": "1", "$TRITON_FOO": "(set)", "$CC": "gcc"}
    found = {one.what: one.means for one in snapshot.changes_between(then, {"gpu": ""})}
    assert "Xid 79" in found["gpu"]
    assert found["$TRITON_ALWAYS_COMPILE"] == "compiles in spite of what is stored"
    assert "no Triton knows" in found["$TRITON_FOO"]
    assert found["$CC"] == "it changes what programs load or see"


# --- --since


@pytest.mark.parametrize("asked", ["last-goo", "no-file.json", "2026-13-01", "", "9" * 40])
def test_what_since_cannot_mean(asked: str) -> None:
    with pytest.raises(UsageError, match="--since cannot be"):
        history.check_since(asked)


def test_the_last_good_setup_and_a_date(subject: DoctorContext) -> None:
    write(
        subject.env.history,
        ENTRY,
        replace(ENTRY, when="2026-11-10T12:00:00+00:00", worst="error", setup={"triton": "3.5.0"}),
    )
    answer = history.answer_since("last-good", subject, {"triton": "3.6.0"})
    assert answer.then.startswith("last good, 2026-11-01")
    assert [(one.then, one.now) for one in answer.changes] == [("3.4.0", "3.6.0")]
    later = history.answer_since("2026-11-11", subject, {"triton": "3.6.0"})
    assert [one.then for one in later.changes] == ["3.5.0"]
    early = history.answer_since("2026-10-01", subject, {"triton": "3.6.0"})
    assert ([one.then for one in early.changes], "the history begins on" in early.remarks[0]) == (
        ["3.4.0"],
        True,
    )
    same = history.answer_since("last-good", subject, {"triton": "3.4.0"})
    assert same.changes == ()
    assert "(error)" in same.remarks[0]


def test_an_environment_that_never_was_good(subject: DoctorContext) -> None:
    write(subject.env.history, replace(ENTRY, worst="crashed"))
    with pytest.raises(SmithError, match="never found environment dev without an error") as raised:
        history.answer_since("last-good", subject, {})
    assert "--since '2026-11-01" in raised.value.hints[0]


# --- reports


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("<details>", "it is not JSON"),
        ("[]", "it has no list `findings`"),
        ('{"findings": 1}', "it has no list `findings`"),
        ('{"schema": 2, "worst": "ok", "findings": []}', "no setup to compare"),
        ('{"findings": [], "setup": {"triton": 3}}', "not a table of texts"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_what_is_no_report(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "report.json"
    path.write_text(text)
    with pytest.raises(SmithError) as raised:
        saved_report.read(path)
    assert says in str(raised.value)
    assert "invoke doctor --json > report.json" in str(raised.value)
    with pytest.raises(UsageError, match="no such report"):
        saved_report.read(tmp_path / "missing.json")
