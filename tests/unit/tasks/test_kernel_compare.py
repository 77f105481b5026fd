"""The words of `kernel.compare`: A B [FILE]."""

from __future__ import annotations

import sys

import pytest

from tritonsmith.tasks.kernel_compare import compare_


@pytest.mark.parametrize(
    ("argv", "positional"),
    [
        (["a", "b"], ["side_a", "side_b"]),
        (["a", "b", "k.py"], ["side_a", "side_b", "kernel"]),
        (["--json", "a", "b", "k.py"], ["side_a", "side_b", "kernel"]),
        (["a", "b", "--json"], ["side_a", "side_b"]),
        (["a", "b", "--dry-run", "k.py"], ["side_a", "side_b", "kernel"]),
        (["--target", "h100", "a", "--target=a100", "b"], ["side_a", "side_b"]),
        (["a", "b", "--fail-on", "spills>0", "--diff", "--stage", "ptx"], ["side_a", "side_b"]),
        (["a", "--fail-on", "spills>0", "b", "k.py"], ["side_a", "side_b", "kernel"]),
        (["a"], ["side_a", "side_b"]),
        ([], ["side_a", "side_b"]),
        (["--help"], []),
    ],
)
def test_the_file_is_a_word_only_if_it_is_there(
    argv: list[str], positional: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["tritonsmith", "kernel.compare", *argv])
    arguments = compare_.get_arguments()
    assert [one.name for one in arguments if one.positional] == positional


def test_another_task_pays_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["tritonsmith", "kernel.compile", "k.py"])
    assert not any(one.name == "kernel" and one.positional for one in compare_.get_arguments())
