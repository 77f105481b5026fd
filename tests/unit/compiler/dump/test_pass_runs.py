"""Which two texts show what a pass did, and what counts as a pass."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.inspect.report.folders import dump
from tritonsmith.compiler.dump import pass_runs
from tritonsmith.compiler.dump.index import Dump, DumpedKernel, DumpIndex
from tritonsmith.compiler.dump.pass_runs import PassRun, PassTotals


def index(*dumps: Dump) -> DumpIndex:
    return DumpIndex(Path("here"), "", "", "", 0, (DumpedKernel("k", "k", ""),), dumps)


def test_what_a_pass_left_is_what_the_next_one_was_given() -> None:
    first, last = dump("k", 0, "Inline", "a", against=1), dump("k", 1, "CSE", "b")
    assert list(pass_runs.of(index(first, last), "k")) == [
        PassRun(first, before=first, after=last),
        PassRun(last, before=last, after=None),
    ]


def test_llvm_prints_what_a_pass_left() -> None:
    first = dump("k", 0, "SROA", "a", when="after")
    last = dump("k", 1, "GVN", "b", when="after", against=0)
    assert list(pass_runs.of(index(first, last), "k")) == [
        PassRun(first, before=None, after=first),
        PassRun(last, before=first, after=last),
    ]


def test_a_pass_that_is_printed_before_and_after_is_one_row() -> None:
    before, after = dump("k", 0, "CSE", "a", against=1), dump("k", 1, "CSE", "b", when="after", against=0)
    failed = replace(after, when="failed")
    assert list(pass_runs.of(index(before, after), "k")) == [PassRun(before, before, after)]
    assert list(pass_runs.of(index(before, failed), "k")) == [PassRun(before, before, failed)]


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
    assert dump("k", 0, "X", "", path=path).language == language


def test_only_a_run_of_a_pass_counts_as_one() -> None:
    """Printed before and after: one pass; printed while it runs, and assembly: none; unknown is neither."""
    dumps = (
        dump("k", 0, "CSE", "a", against=1, changed=True),
        dump("k", 1, "CSE", "b", when="after", against=0, changed=True),
        dump("k", 2, "Pipeliner", "b", against=4, changed=True),
        dump("k", 3, "Pipeliner: LowerLoops", "c", when="after", inside=True, against=2, changed=True),
        dump("k", 4, "DCE", "d", against=5, changed=False),
        dump("k", 5, "LLVMDIScope", "d"),
        dump("k", 6, "ptx", "p", when="after", path="k/6.ptx"),
    )
    found = pass_runs.totals(index(*dumps), "k")
    assert found == PassTotals(passes=4, changed=2, unknown=1, dumps=7)
    assert str(found) == "4 passes, 2 changed something (1 may have); 7 dumps"
