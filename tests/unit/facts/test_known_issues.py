"""Ranges and patterns of known issues, and what configs/known-issues.toml and its page have to say."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from tritonsmith.facts import known_issues
from tritonsmith.facts.known_issues import CompiledText, IssueFacts, KnownIssue, find_lines

REPOSITORY = Path(__file__).parents[3]
ROWS = known_issues.table()
ROW = KnownIssue("x", "it breaks", "do this", "a thread", threads=("triton#1",))
LOOP = """\
  %sum = scf.for %k = %a to %b step %c iter_args(%acc_1 = %zero, %acc_12 = %one) -> (f32, f32) {
    %x_1 = tt.load %p
    %x_12 = tt.load %q
    %y = arith.addf %acc_12, %x_1
    tt.store %p, %acc_12
    scf.yield %acc_1, %y
"""


@pytest.mark.parametrize(
    ("ranges", "version", "inside"),
    [
        ((), "3.8.0", True),
        ((), "", True),
        ((">=3.4,<3.7.1",), "3.7.0", True),
        ((">=3.4,<3.7.1",), "3.7.1", False),
        ((">=3.4,<3.7.1",), "3.7.0+git0a1b2c3d", True),
        ((">=3.4,<3.7.1",), "3.7.0.dev20260101", True),
        (("==12.8.*", "==13.0.*"), "13.0.88", True),
        (("==12.8.*", "==13.0.*"), "12.9.86", False),
        (("==12.8.*",), "12.8", True),  # the doctor knows the release only
        ((">=3.4",), "", False),
        ((">=3.4",), "unknown", False),
    ],
)
def test_ranges(ranges: tuple[str, ...], version: str, inside: bool) -> None:
    assert replace(ROW, triton=ranges).applies(IssueFacts(version)) == inside
    assert replace(ROW, ptxas=ranges).applies(IssueFacts("3.8.0", ptxas=version)) == inside


def test_gpus_and_commits() -> None:
    assert replace(ROW, gpus=("gfx9*",)).applies(IssueFacts("3.8.0", "gfx950"))
    assert not replace(ROW, gpus=("sm_90",)).applies(IssueFacts("3.8.0", "sm_100"))
    assert not replace(ROW, gpus=("sm_90",)).applies(IssueFacts("3.8.0")), "the GPU is unknown"
    pinned = replace(ROW, llvm=("62b7cf9623fc310525f39ed69aaecc318a909731",))
    assert pinned.applies(IssueFacts("3.8.0", llvm="62b7cf9623fc"))
    assert not pinned.applies(IssueFacts("3.8.0", llvm="4611156032e1"))
    assert not pinned.applies(IssueFacts("3.8.0"))


def test_a_value_is_the_same_wherever_it_stands() -> None:
    acc = [r"$new = arith\.\w+ $acc, $x$", r"iter_args\(.*$acc = ", r"$x = tt\.load"]
    assert find_lines(acc, LOOP) == (1, 2, 4)
    assert find_lines([*acc, r"tt\.store .*$acc"], LOOP) == (1, 2, 4, 5)
    assert find_lines([*acc, "scf.yield .*$x"], LOOP) == ()
    assert find_lines([r"$x = tt\.load", r"$x = tt\.load"], LOOP) == (), "one line is not two"
    assert find_lines([r"(?P<op>\w+)f $a, ", r"$op"], LOOP) == ()
    assert find_lines([r"$x_1 = tt\.load %q"], LOOP) == (3,), "a prefix of a name is another value"


def test_a_text_that_matches_everywhere_ends() -> None:
    text = "%a = tt.load %a\n" * 2000
    assert find_lines([r"$a = tt\.load"] * 4 + ["never"], text) == ()


def test_a_kernel_is_what_its_row_says() -> None:
    row = replace(
        ROW, kernel="k", values={"BK": 64}, stage="ttir", lines=("tt.load",), beside={"ptx": "wgmma"}
    )
    texts = {"ttir": LOOP, "ptx": "wgmma.mma_async"}
    compiled = CompiledText("k", {"BK": 64}, tuple(texts), texts.__getitem__)
    matching = known_issues._matching
    assert matching(row, compiled) == (2,)
    assert not matching(row, replace(compiled, kernel="other"))
    assert not matching(row, replace(compiled, values={"BK": 32}))
    assert not matching(row, replace(compiled, stages=("ttir",)))
    assert not matching(replace(row, beside={"ptx": "tcgen05"}), compiled)


def test_a_sentence_names_the_thread() -> None:
    assert ROW.sentence == "triton#1: it breaks; do this"
    assert ROW.about_kernel == "may be affected by triton#1: it breaks; do this"
    assert replace(ROW, sure=True).about_kernel.startswith("affected by")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_each_row_is_whole(row: KnownIssue) -> None:
    assert row.symptom
    assert row.remedy
    assert row.source
    assert bool(row.threads) != bool(row.page)
    assert row.triton or row.ptxas or row.llvm, "a range is what makes it a known issue"
    for requirement in (*row.triton, *row.ptxas):
        SpecifierSet(requirement)
    assert all(re.fullmatch(r"(triton|fla|pytorch)#\d+", thread) for thread in row.threads)
    assert bool(row.stage) == bool(row.lines)
    assert row.recognizable == bool(row.lines), "a kernel is found with a line to show"
    assert find_lines(row.lines, "") == () or not row.lines
    assert not row.page or (REPOSITORY / row.page).is_file()


def test_ids_are_unique_and_the_page_has_every_row() -> None:
    ids = [row.id for row in ROWS]
    assert len(set(ids)) == len(ids)
    page = (REPOSITORY / "docs" / "lint.md").read_text(encoding="utf-8")
    _, _, section = page.partition("\n| id | reported in |")
    table = re.findall(r"^\| `([\w-]+)` \| (.*?) \|", section, re.MULTILINE)
    assert table == [(row.id, row.reference) for row in ROWS]
