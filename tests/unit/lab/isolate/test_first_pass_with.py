"""The first pass after which a text is there."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tests.unit.compiler.replay.dumps import dump
from tests.unit.lab.compare.making import point, written
from tests.unit.lab.fake_subject import quiet
from tritonsmith.compiler.dump.index import DumpIndex
from tritonsmith.compiler.manifest import Manifest
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, InterruptedRunError, UsageError
from tritonsmith.core.ui import console
from tritonsmith.lab import experiment
from tritonsmith.lab.isolate import first_pass_with
from tritonsmith.lab.journal import Journal

pytestmark = pytest.mark.unit


@pytest.fixture
def index(tmp_path: Path) -> DumpIndex:
    return dumped(tmp_path, "a\n", 'a b b loc("c")\n', "a b\n")


def dumped(tmp_path: Path, *texts: str) -> DumpIndex:
    """Write a dump whose passes have these texts before them."""
    made = []
    for number, text in enumerate(texts):
        against = number + 1 if number + 1 < len(texts) else None
        digest = hashlib.sha256(text.encode()).hexdigest()
        one = replace(dump(number, f"pass{number}"), size=len(text), sha256=digest, against=against)
        (tmp_path / "k").mkdir(exist_ok=True)
        (tmp_path / one.path).write_text(text)
        made.append(one)
    return DumpIndex(tmp_path, "", "", "", 0, (), tuple(made))


def said(index: DumpIndex, text: str, *stages: tuple[str, str], skip: tuple[str, ...] = ()) -> str:
    """Search, and return the answer."""
    pattern = first_pass_with.compiled_pattern(text, regex=False)
    texts = {name: partial(str, content) for name, content in stages}
    search = first_pass_with.search(index, "k", texts)
    counted = partial(first_pass_with.counted, pattern)
    notes = Journal(skipped=set(skip))
    answer = experiment.run(search, counted, notes, quiet)
    return first_pass_with.sentence(answer, text)


def test_the_pass_that_brought_it_in(index: DumpIndex) -> None:
    assert said(index, "b") == "b: pass 0 pass0 of ttgir: 0 before, 2 after"
    assert said(index, "a") == "a occurs before the first pass: 1 times"


def test_locations_are_not_searched(index: DumpIndex) -> None:
    assert "does not occur" in said(index, "c")


def test_steps_after_the_passes(index: DumpIndex) -> None:
    stages = (("ptx", "ld x"), ("sass", "LDG x x"))
    assert said(index, "ld", *stages) == "ld: LLVM's backend, from llir to ptx: 0 before, 1 after"
    assert said(index, "LDG", *stages) == "LDG: ptxas, from ptx to machine code: 0 before, 1 after"
    assert "does not occur" in said(index, "ST", *stages)


def test_a_text_that_was_not_searched_may_have_it_too(tmp_path: Path) -> None:
    """It does not count as a text without the pattern, nor does the next pass with the same text."""
    index = dumped(tmp_path, "a\n", "b b\n", "b b\n", "b b b\n")
    assert said(index, "b") == "b: pass 0 pass0 of ttgir: 0 before, 2 after"
    # Pass 2 has the very text of pass 1, so that the skip withholds nothing.
    assert said(index, "b", skip=("1 pass1 of ttgir",)) == "b: pass 0 pass0 of ttgir: 0 before, 2 after"
    both = said(index, "b", skip=("1 pass1 of ttgir", "2 pass2 of ttgir"))
    assert both == (
        "b: one of 1 pass1 of ttgir, 2 pass2 of ttgir, 3 pass3 of ttgir: "
        "3 after the last, the others not searched"
    )
    stage = said(index, "LDG", ("ptx", "ld"), ("sass", "LDG"), skip=("3 pass3 of ttgir", "stage ptx"))
    assert stage == (
        "LDG: one of 3 pass3 of ttgir, stage ptx, stage sass: 1 after the last, the others not searched"
    )
    nowhere = said(index, "c", skip=("0 pass0 of ttgir",))
    assert nowhere == "c does not occur in any text that was searched; not searched: 0 pass0 of ttgir"


def test_a_search_that_was_stopped_does_not_go_on_with_another_triton(
    index: DumpIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stages after the passes are of a compile, which depends on more than the dump."""
    notes: list[str] = []
    monkeypatch.setattr(console, "note", notes.append)
    pattern = first_pass_with.compiled_pattern("ld", regex=False)

    def stopped(compile_inputs: object) -> None:
        def compiled() -> Manifest:
            raise InterruptedRunError("^C")

        with pytest.raises(InterruptedRunError):
            first_pass_with.run(index, "k", pattern, compiled, compile_inputs, Workspace(tmp_path / "home"))

    stopped("triton 3.6")
    stopped("triton 3.6")
    assert "of a run that was stopped are known" in notes.pop()
    stopped("triton 3.9")
    assert notes.pop().startswith("it starts over: the stopped run had other inputs")


def test_an_open_answer_is_none_in_json() -> None:
    answer = first_pass_with.FirstOccurrence(None, "", 0, 3, name="4 d", unsearched=("2 b", "3 c"))
    data = first_pass_with.as_json(answer, "x")
    assert (data["found"], data["one_of"]) == (False, ["2 b", "3 c", "4 d"])


def test_patterns_that_are_none() -> None:
    assert first_pass_with.compiled_pattern("a.b", regex=False).pattern == "a\\.b"
    for text, regex in (("", False), ("(", True)):
        with pytest.raises(UsageError):
            first_pass_with.compiled_pattern(text, regex=regex)


def test_limits_of_the_binary(tmp_path: Path) -> None:
    compiled = written(tmp_path / "k", [point()], registers=64)
    assert first_pass_with.limit("registers>40,registers>64", compiled) == (
        ("registers>40", 64, True),
        ("registers>64", 64, False),
    )
    for text in ("registers>+10%", "ptx contains ld"):
        with pytest.raises(UsageError):
            first_pass_with.limit(text, compiled)
    amd = written(tmp_path / "amd", [point("hip:gfx942:64")])
    with pytest.raises(FactError, match="barriers of this kernel is unknown"):
        first_pass_with.limit("barriers>1", amd)
