"""The passes of a backend, and which of them a target takes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from tritonsmith.compiler.replay.bindings import Binding, Call, TracedCall
from tritonsmith.compiler.replay.pass_chain import parse_form
from tritonsmith.inspect import pipeline_table
from tritonsmith.inspect.pipeline_table import BackendPass

BACKEND = """\
class Backend:
    @staticmethod
    def make_ttir(mod, metadata, opt):
        pm = ir.pass_manager(mod.context)
        passes.common.add_inliner(pm)
        for _ in range(2):
            passes.common.add_cse(pm)

    @staticmethod
    def make_ttgir(mod, metadata, opt, capability):
        pm = ir.pass_manager(mod.context)
        if capability >= 100:
            passes.ttgpuir.add_tmem(pm)
        else:
            passes.ttgpuir.add_pipeline(pm, opt.num_stages, False)
        getattr(passes, "add_last")(pm)

    @staticmethod
    def gluon_to_ttgir(mod):
        passes.common.add_inliner(pm)
"""
KNOWN = [
    Binding(path, (((), parse_form(f"any({name})")),))
    for path, name in (("passes.ttgpuir.add_tmem", "tmem"), ("passes.ttgpuir.add_pipeline", "pipeline"))
]


def calls(file: str, lines: Iterable[tuple[str, str, int, tuple[object, ...]]]) -> list[TracedCall]:
    return [TracedCall(Call(path, given), "", stage, (file, line)) for stage, path, line, given in lines]


@pytest.fixture
def hopper(tmp_path: Path) -> tuple[BackendPass, ...]:
    """What a target below 100 takes."""
    file = tmp_path / "compiler.py"
    file.write_text(BACKEND)
    made = [
        ("ttir", "passes.common.add_inliner", 5, ()),
        ("ttir", "passes.common.add_cse", 7, ()),
        ("ttir", "passes.common.add_cse", 7, ()),
        ("ttgir", "passes.ttgpuir.add_pipeline", 15, (3, False)),
        ("ttgir", "passes.add_last", 16, ()),
    ]
    return pipeline_table.target_passes(calls(str(file), made), KNOWN)


def test_what_is_taken_and_under_which_condition(hopper: tuple[BackendPass, ...]) -> None:
    assert [(one.stage, one.name, one.cell, one.place.line) for one in hopper] == [
        ("ttir", "passes.common.add_inliner", "yes", 5),
        ("ttir", "passes.common.add_cse", "2 times", 7),
        ("ttgir", "tmem", "no", 13),
        ("ttgir", "pipeline", "yes (3, False)", 15),
        ("ttgir", "passes.add_last", "yes", 16),  # the source does not name it: the call does
    ]
    assert [one.place.when for one in hopper if one.stage == "ttgir"][:2] == [
        ("capability >= 100",),
        ("not (capability >= 100)",),
    ]


def test_functions_that_did_not_run_are_not_in_it(hopper: tuple[BackendPass, ...]) -> None:
    assert 20 not in {one.place.line for one in hopper}


def test_side_by_side(hopper: tuple[BackendPass, ...]) -> None:
    other = [one for one in hopper if one.name != "tmem"]
    rows = pipeline_table.side_by_side([other, hopper])
    assert [tuple(one.cell if one else "" for one in row) for row in rows] == [
        ("yes", "yes"),
        ("2 times", "2 times"),
        ("", "no"),
        ("yes (3, False)", "yes (3, False)"),
        ("yes", "yes"),
    ]
    first = pipeline_table.target_as_json(rows, ["old", "new"])[2]
    assert first["sides"]["old"] is None
    assert (first["sides"]["new"]["calls"], first["sides"]["new"]["when"]) == ((), ("capability >= 100",))
