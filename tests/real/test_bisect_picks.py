"""Ranges of commits between releases, in upstream's history with what a release branch has besides."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support import REAL_SOURCE
from tritonsmith.facts import checkout, triton_history
from tritonsmith.lab.bisect import history
from tritonsmith.lab.journal import Observation, Verdict

from .regenerate_checkouts import History

POINT = checkout.triton_release("3.7.0").branch_point


@pytest.fixture
def clone(history: History, tmp_path: Path) -> Path:
    """Upstream's main to the branch point of 3.7, and two releases cut there, of two commits each."""
    if not history.has(POINT):
        pytest.skip(f"{os.environ[REAL_SOURCE]} lacks {POINT}, where 3.7 branched")
    source = Path(os.environ[REAL_SOURCE]).expanduser().absolute()
    git("clone", "--quiet", "--shared", "--no-checkout", "--no-tags", str(source), str(tmp_path / "clone"))
    clone = tmp_path / "clone"
    git("-C", str(clone), "checkout", "--quiet", "-B", "main", POINT)
    git("-C", str(clone), "checkout", "--quiet", "-b", "release/3.7.x")
    for number in range(2):
        for subject in ("picked", "version"):
            who = ("-c", "user.name=Somebody", "-c", "user.email=somebody@example.invalid")
            git("-C", str(clone), *who, "commit", "--quiet", "--allow-empty", "-m", f"{subject} {number}")
        git("-C", str(clone), "tag", f"v3.7.{number}")
    for remote in ("upstream/release/3.7.x", "origin/release/3.7.x", "origin/main", "upstream/main"):
        git("-C", str(clone), "update-ref", "-d", f"refs/remotes/{remote}")
    return clone


def git(*argv: str) -> str:
    return subprocess.run(("git", *argv), check=True, capture_output=True, text=True).stdout.strip()


def test_main_is_searched_first_and_then_what_was_picked(clone: Path) -> None:
    main = history.commit_range("3.6.0", "3.7.1", clone, {})
    assert (main.first[:8], main.last[:8]) == (checkout.triton_release("3.6.0").branch_point[:8], POINT[:8])
    assert len(triton_history.read(clone, main.first, main.last)) == 658  # the first one included
    known = {main.last: Observation(Verdict.GOOD)}
    picked = history.commit_range("3.6.0", "3.7.1", clone, known)
    commits = triton_history.read(clone, picked.first, picked.last)
    assert [one.subject for one in commits[1:]] == ["picked 0", "version 0", "picked 1", "version 1"]
    assert picked.first == main.last
    patch = history.commit_range("3.7.0", "3.7.1", clone, {})
    assert [one.subject for one in triton_history.read(clone, patch.first, patch.last)] == [
        "version 0", "picked 1", "version 1",
    ]  # fmt: skip
