"""Which two texts show what a pass did."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.passes.report.folders import dump
from tritonsmith.passes.index import Dump, Index, Kernel
from tritonsmith.passes.report import rows


def index(*dumps: Dump) -> Index:
    return Index(Path("here"), "", "", "", 0, (Kernel("k", "k", ""),), dumps)


def test_what_a_pass_left_is_what_the_next_one_was_given() -> None:
    first, last = dump("k", 0, "Inline", "a", against=1), dump("k", 1, "CSE", "b")
    assert list(rows.of(index(first, last), "k")) == [
        rows.Row(first, before=first, after=last),
        rows.Row(last, before=last, after=None),
    ]


def test_llvm_prints_what_a_pass_left() -> None:
    first = dump("k", 0, "SROA", "a", when="after")
    last = dump("k", 1, "GVN", "b", when="after", against=0)
    assert list(rows.of(index(first, last), "k")) == [
        rows.Row(first, before=None, after=first),
        rows.Row(last, before=first, after=last),
    ]


def test_a_pass_that_is_printed_before_and_after_is_one_row() -> None:
    before, after = dump("k", 0, "CSE", "a", against=1), dump("k", 1, "CSE", "b", when="after", against=0)
    failed = replace(after, when="failed")
    assert list(rows.of(index(before, after), "k")) == [rows.Row(before, before, after)]
    assert list(rows.of(index(before, failed), "k")) == [rows.Row(before, before, failed)]


@pytest.mark.parametrize(
    ("path", "language"),
    [
        ("k/1-x.mlir", "mlir"),
        ("k/2-x.ll", "llvm"),
        ("k/3-x.mir", "mir"),
        ("k/4.ptx", "ptx"),
        ("k/5.amdgcn", "amdgcn"),
    ],
)
def test_the_suffix_says_the_language(path: str, language: str) -> None:
    assert rows.language(dump("k", 0, "X", "", path=path)) == language
