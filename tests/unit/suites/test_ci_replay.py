"""Workflow files: which steps can run here, their real runs, and a log beside them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tritonsmith.envs import settings, workspace
from tritonsmith.errors import FactError, UsageError
from tritonsmith.suites import replay, workflow
from tritonsmith.suites.command import NothingRunError, TestedBuild
from tritonsmith.suites.workflow import WorkflowJob

pytestmark = pytest.mark.unit

WORKFLOW = """
on: [push]
env: {EVERY: "1"}
jobs:
  tests:
    runs-on: ${{ matrix.runner }}
    env: {OURS: true}
    steps:
      - uses: actions/checkout@v4
      - name: good
        run: |
          # not sudo
          echo "$EVERY $OURS $MINE in $(basename "$PWD")"
        env: {MINE: 3}
        working-directory: python
      - name: bad
        if: ${{ matrix.runner[0] == 'h100' }}
        run: |
          echo one
          false
          echo two
      - run: sudo apt-get install clang
      - run: python3 -m pip install .
      - run: git reset --hard
      - name: on a GPU
        run: pytest python/test/unit
      - name: interpreted
        run: echo pytest
        env: {TRITON_INTERPRET: "1"}
      - run: echo ${{ secrets.TOKEN }}
      - run: ./install.sh
      - name: later
        if: failure()
        run: echo failed
      - name: hidden
        run: sh -c 'su""do true'
      - name: empty
        run: echo 'No tests were found!!!'
      - name: elsewhere
        shell: pwsh
        run: echo x
  mac:
    runs-on: macos-latest
    steps: [{run: echo}]
  other:
    uses: ./.github/workflows/x.yml
"""
LEFT_OUT = {
    "actions/checkout@v4": "an action of GitHub's: actions/checkout@v4",
    "sudo apt-get install clang": "sudo changes the system",
    "python3 -m pip install .": "pip installs; what it builds is the environment's build here",
    "git reset --hard": "it changes the checkout or git's settings",
    "on a GPU": "tests that need a GPU",
    "echo ${{ secrets.TOKEN }}": "GitHub would fill in secrets.TOKEN",
    "./install.sh": "it runs a script, which may do anything of that",
    "later": "only if failure(): not known here",
    "elsewhere": "it is for another shell: pwsh",
}
RAW = """2026-08-01T10:00:00.0000000Z ##[group]Run echo one
2026-08-01T10:00:01.0000000Z one
2026-08-01T10:00:02.0000000Z \x1b[31m##[error]Process completed with exit code 1.
2026-08-01T10:00:03.0000000Z ##[group]Run echo pytest
"""
COLUMNS = """tests\tgood\t2026-08-01T10:00:00.0Z hello
tests\tbad\t2026-08-01T10:00:00.0Z ##[error]Process completed with exit code 1.
"""


@pytest.fixture
def tested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TestedBuild:
    monkeypatch.setenv("TRITONSMITH_HOME", str(tmp_path / "home"))
    root = tmp_path / "triton"
    (root / ".github" / "workflows").mkdir(parents=True)
    (root / "python").mkdir()
    (root / ".github" / "workflows" / "ci.yml").write_text(WORKFLOW)
    space = workspace.default()
    return TestedBuild(settings.load("dev"), space, space.env("dev"), root, "3.6.0")


def job(tested: TestedBuild) -> WorkflowJob:
    return workflow.find(workflow.read(tested.root), "tests")


def test_what_is_left_out_and_why(tested: TestedBuild) -> None:
    found = job(tested)
    assert {step.name: step.why for step in found.steps if step.why} == LEFT_OUT
    assert [step.name for step in found.runnable] == ["good", "bad", "interpreted", "hidden", "empty"]


def test_steps_run_as_they_stand(tested: TestedBuild) -> None:
    lines: list[str] = []
    change = replay.variables(tested, (), tested.folder / "ci")
    steps = replay.run(tested, job(tested), change, lines.append)
    assert {one.step.name: one.word for one in steps if one.word != "left out"} == {
        "good": "passed", "bad": "failed", "interpreted": "passed", "hidden": "failed", "empty": "failed",
    }  # fmt: skip
    logs = [Path(line.rpartition(": ")[2]).read_text() for line in lines]
    assert logs[0] == "1 true 3 in python\n"
    assert logs[1] == "one\n"
    assert "ci-replay changes nothing in the system" in logs[3]


@pytest.mark.parametrize(
    ("text", "there"),
    [(RAW, {"bad": "failed", "interpreted": "passed"}), (COLUMNS, {"good": "passed", "bad": "failed"})],
)
def test_a_log_beside_them(tested: TestedBuild, tmp_path: Path, text: str, there: dict[str, str]) -> None:
    (tmp_path / "log").write_text(text)
    steps = replay.compared(replay.planned(job(tested)), tmp_path / "log")
    assert {one.step.name: one.there for one in steps if one.there} == there


def test_steps_that_begin_with_the_same_line(tested: TestedBuild, tmp_path: Path) -> None:
    file = tested.root / ".github" / "workflows" / "ci.yml"
    file.write_text("jobs: {a: {steps: [{name: x, run: cd y}, {name: z, run: cd y}]}}")
    (found,) = workflow.read(tested.root)
    group, error = "##[group]Run cd y\n", "##[error]Process completed with exit code 8.\n"
    for text, there in ((group + group + error, ["passed", "failed"]), (f"{group}##[group]Run x\n", None)):
        (tmp_path / "log").write_text(text)
        if there:
            assert [one.there for one in replay.compared(replay.planned(found), tmp_path / "log")] == there
        else:
            with pytest.raises(FactError, match="no step of this job"):
                replay.compared(replay.planned(found), tmp_path / "log")


def test_a_log_of_another_job(tested: TestedBuild, tmp_path: Path) -> None:
    (tmp_path / "log").write_text("hello\n")
    with pytest.raises(FactError, match="no step of this job is in the log"):
        replay.compared(replay.planned(job(tested)), tmp_path / "log")


def test_jobs_of_which_nothing_runs_here(tested: TestedBuild) -> None:
    jobs = workflow.read(tested.root)
    assert {one.key: one.why for one in jobs if one.why} == {
        "mac": "it runs on macos-latest", "other": "it calls ./.github/workflows/x.yml",
    }  # fmt: skip
    with pytest.raises(NothingRunError, match=r"no step of ci\.yml:mac can run here"):
        replay.check(workflow.find(jobs, "ci.yml:mac"))
    with pytest.raises(UsageError, match="no job 'test'") as error:
        workflow.find(jobs, "test")
    assert "did you mean 'tests'?" in str(error.value)


@pytest.mark.parametrize("text", ["a: [", "{}: {", "[" * 5000])
def test_a_file_that_is_no_yaml(tested: TestedBuild, text: str) -> None:
    (tested.root / ".github" / "workflows" / "ci.yml").write_text(text)
    with pytest.raises(FactError, match="cannot read this workflow file"):
        workflow.read(tested.root)


@pytest.mark.parametrize(
    "text", ["", "- a", "jobs: 3", "jobs: {a: 1}", "jobs: {a: {steps: {b: 1}}}", "jobs: {a: {steps: [1]}}"]
)
def test_a_file_of_another_shape_has_no_steps_to_run(tested: TestedBuild, text: str) -> None:
    (tested.root / ".github" / "workflows" / "ci.yml").write_text(text)
    assert [one for job in workflow.read(tested.root) for one in job.runnable] == []
