"""`ci-replay` of a checkout with a build: its question, its refusals, and steps that test what was built."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from pathlib import Path

import pytest

from tests.integration.harness import LLVM, SMITH, Smith, git, plant, ready, require_llvm

_TESTS = """
name: {name}
on: [push]
jobs:
  integration-tests:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - name: Install
        run: sudo apt-get install lit
      - name: Lit tests
        run: |
          LIT_TEST_DIR="build/$(ls build | grep -i cmake)/test"
          if [ ! -d "${{LIT_TEST_DIR}}" ]; then
            echo "Could not find '${{LIT_TEST_DIR}}'" ; exit 1
          fi
          lit -v "${{LIT_TEST_DIR}}"
  docs:
    runs-on: ubuntu-latest
    steps:
      - run: git reset --hard
"""
_OTHER = """
jobs:
  integration-tests:
    runs-on: ubuntu-latest
    steps:
      - name: What is there
        run: ls CMakeLists.txt
"""
_JOB = "tests.yml:integration-tests"


@pytest.fixture(scope="module")
def smith(tmp_path_factory: pytest.TempPathFactory) -> Smith:
    """Mini-Triton with two workflow files, built and not installed."""
    require_llvm()
    root = tmp_path_factory.mktemp("ci replay")
    texts = {"tests.yml": _TESTS.format(name="tests"), "other.yml": _OTHER}
    planted = plant(
        "mini_triton",
        root / "my checkout",
        {f".github/workflows/{name}": text for name, text in texts.items()},
    )
    smith = ready(Smith(root, cwd=planted), tmp_path_factory)
    smith("setup-mlir", "--provider", "system", "--llvm-dir", LLVM)
    smith("build-triton")
    return smith


@pytest.fixture
def unconfined(smith: Smith, tmp_path: Path) -> Smith:
    """The same on a machine whose bubblewrap may not make namespaces."""
    program = tmp_path / "bwrap"
    program.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    program.chmod(0o755)
    path = os.pathsep.join((str(tmp_path), smith.environ["PATH"]))
    return Smith(smith.root, cwd=smith.cwd, more={**smith.more, "PATH": path})


def steps_of(out: str) -> dict[str, dict[str, str]]:
    """Each step of `--json`."""
    return {step["step"]: step for step in json.loads(out)["steps"]}


def replayed_in(smith: Smith) -> Path:
    """The folder of the clone and its logs."""
    return smith.env("dev") / "tests" / "ci"


def on_a_terminal(smith: Smith, answer: str, *argv: str) -> subprocess.CompletedProcess[str]:
    """A run with a terminal to ask in, and what somebody types there."""
    mine, theirs = pty.openpty()
    os.write(mine, f"{answer}\n".encode())
    done = subprocess.run(
        (SMITH, *argv),
        cwd=smith.cwd,
        env=smith.environ,
        stdin=theirs,
        capture_output=True,
        text=True,
        timeout=smith.patience,
        check=False,
    )
    os.close(mine)
    os.close(theirs)
    return done


def test_a_job_tests_the_build(smith: Smith) -> None:
    before = git(smith.cwd, "status", "--porcelain", "--ignored")
    done = smith("ci-replay", _JOB, "--yes", "--json")
    steps = steps_of(done.out)
    assert steps["Lit tests"]["here"] == "passed", steps
    assert "mini-triton :: twice.mlir" in (replayed_in(smith) / "03" / "log").read_text(encoding="utf-8")
    assert git(smith.cwd, "status", "--porcelain", "--ignored") == before


def test_without_bubblewrap_it_warns_and_tests_the_build(unconfined: Smith) -> None:
    done = unconfined("ci-replay", _JOB, "--yes")
    assert "nothing confines the steps" in done.err
    assert "mini-triton :: twice.mlir" in (replayed_in(unconfined) / "03" / "log").read_text(encoding="utf-8")


def test_a_build_that_is_broken_fails_its_tests(smith: Smith) -> None:
    """The clone has this environment's build, not a copy of it, nor another one that pip made."""
    program = smith.build() / "bin" / "triton-opt"
    whole = program.read_bytes()
    program.write_text("#!/bin/sh\nexit 1\n")
    try:
        assert "Lit tests: exit code 1" in smith("ci-replay", _JOB, "--yes", code=1).err
    finally:
        program.write_bytes(whole)


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 1), ("", 1)])
def test_on_a_terminal_it_shows_the_steps_and_asks(smith: Smith, answer: str, code: int) -> None:
    smith("ci-replay", "other.yml:integration-tests", "--yes")
    (replayed_in(smith) / "checkout" / "older").touch()
    done = on_a_terminal(smith, answer, "ci-replay", "other.yml:integration-tests")
    assert done.returncode == code, done.stderr
    assert f"Run 1 step in a clone of {smith.cwd}, " in " ".join(done.stderr.split())
    assert "ls CMakeLists.txt" in done.stdout
    assert ("nothing was run" in done.stderr) == bool(code)
    assert (replayed_in(smith) / "checkout" / "older").exists() == bool(code)


def test_without_a_terminal_it_does_not_run(smith: Smith) -> None:
    done = smith("ci-replay", _JOB, code=1)
    assert "there is no terminal to ask in" in done.error
    assert "--yes to agree" in done.err


def test_a_job_of_several_files_needs_its_file(smith: Smith) -> None:
    done = smith("ci-replay", "integration-tests", "--yes", code=2)
    assert "integration-tests is a job of several files" in done.error
    assert all(f"{file}:integration-tests" in done.err for file in ("other.yml", "tests.yml"))


def test_a_job_of_which_nothing_may_run(smith: Smith) -> None:
    done = smith("ci-replay", "docs", "--yes", code=6)
    assert "no step of tests.yml:docs can run here" in done.error


def test_a_build_folder_that_leads_out_of_the_checkout(smith: Smith, tmp_path: Path) -> None:
    link = smith.cwd / "build"
    link.symlink_to(tmp_path)
    try:
        done = smith("ci-replay", _JOB, "--yes", code=1)
    finally:
        link.unlink()
    assert "the build folder of this checkout is a link" in done.error
    assert not list(tmp_path.iterdir())
