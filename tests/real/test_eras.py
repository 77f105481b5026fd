"""configs/triton-eras.toml against upstream's commits."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tritonsmith.core import configs
from tritonsmith.core.text import version_key
from tritonsmith.facts import checkout, llvm_tree

from .regenerate_checkouts import COMMITS

Tree = Callable[[str], Path]

# Release line to the checkout that stands for it: "3.9" is main's. 3.0 and 3.1 have the same base.
LINES: dict[str, str] = {name: name for name in COMMITS if re.fullmatch(r"\d\.\d", name)} | {
    "3.0": "3.1",
    "3.9": "main",
}
# Main at the version bump pins another LLVM than the release branch, which pins a commit of the fork.
FORK_PINS = {"3.5": "064f02dac0c8", "3.8": "62b7cf9623fc"}

LINES_IN_ORDER = sorted(LINES, key=version_key)

each_line = pytest.mark.parametrize("line", LINES_IN_ORDER)


@each_line
def test_features_follow_since_and_until(line: str, tree: Tree) -> None:
    assert checkout.read(tree(LINES[line])).features == checkout.features_of(line)


@each_line
def test_options_follow_since_and_until(line: str, tree: Tree) -> None:
    assert checkout.read(tree(LINES[line])).options == checkout.cmake_options_of(line)


def test_every_line_has_a_row() -> None:
    assert [row.version for row in checkout.triton_releases()] == LINES_IN_ORDER


@each_line
def test_build_requirements_of_a_release(line: str, tree: Tree) -> None:
    assert checkout.read(tree(LINES[line])).requires == checkout.triton_release(line).requires


@each_line
def test_commit_of_a_release(line: str, tree: Tree) -> None:
    row = checkout.triton_release(line)
    assert llvm_tree.same_commit(row.commit, checkout.read(tree(LINES[line])).commit)


@each_line
def test_llvm_pin_of_a_release(line: str, tree: Tree) -> None:
    row, pin = checkout.triton_release(line), checkout.read(tree(LINES[line])).pin
    assert pin is not None
    if line == "3.9":
        assert row.llvm == ""  # main moves
        return
    assert re.fullmatch(r"[0-9a-f]{40}", row.llvm)
    if line in FORK_PINS:
        assert llvm_tree.same_commit(pin.commit, FORK_PINS[line])
        notes = {entry["version"]: entry.get("note", "") for entry in configs.load("triton-eras")["release"]}
        assert FORK_PINS[line][:8] in notes[line]
        assert "fork" in notes[line]
    else:
        assert row.llvm == pin.commit


@each_line
def test_pythons_of_a_release(line: str, tree: Tree) -> None:
    """The range of RELEASE.md, from the oldest on that setup.py supports; setup.py's where no row is yet."""
    text = (tree("main") / "RELEASE.md").read_text(encoding="utf-8")
    row = re.search(rf"^\| {re.escape(line)}\.0 \| >=(3\.\d+), <=(3\.\d+) \|", text, re.MULTILINE)
    read = checkout.read(tree(LINES[line]))
    setup = (read.setup_dir / "setup.py").read_text(encoding="utf-8")
    classified = [int(minor) for minor in re.findall(r"Programming Language :: Python :: 3\.(\d+)", setup)]
    oldest, newest = (row[1], row[2]) if row else read.python
    if classified:
        oldest = f"3.{max(int(oldest[2:]), min(classified))}"
    assert checkout.triton_release(line).python == (oldest, newest)


def test_probes_tell_trees_apart(tree: Tree) -> None:
    """A probe that always or never matches proves nothing; the one for the future may never do."""
    seen = [checkout.read(tree(name)).features for name in COMMITS]
    for name in checkout.feature_probes():
        matches = sum(name in features for features in seen)
        expected = range(1, len(seen)) if name != "amd-llvm-pin" else range(1)
        assert matches in expected, name
