"""Surgery: what flags mean, and how it stands in points and commands."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tritonsmith.compiler import points, targets
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.compiler.surgery import Surgery
from tritonsmith.core.errors import UsageError
from tritonsmith.worker.messages import SurgeryRequest

ASKED = CompileRequest(Path("/k.ttir"), "k", "", targets.parse_all(["cuda:90", "hip:gfx942"]))


def test_a_name_is_all_runs_and_a_number_is_one() -> None:
    made = Surgery(skip=("cse", "canonicalize#2"), stop="add_cse#1", llvm=("disable-lsr",), ptxas=("-O1",))
    assert made.request() == SurgeryRequest(
        skip=(("cse", 0), ("canonicalize", 2)),
        stop=(("add_cse", 1),),
        repeat=(),
        llvm=("disable-lsr",),
        ptxas=("-O1",),
    )


@pytest.mark.parametrize("name", ["", "#2", "cse#0", "cse#", "cse #1", "a;b"])
def test_what_is_no_pass_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="--skip-pass cannot be"):
        Surgery(skip=(name,))


def test_what_is_no_option_of_llvm_is_refused() -> None:
    with pytest.raises(UsageError, match="--set-llvm cannot be 'a b'"):
        Surgery(llvm=("a b",))


def test_each_variant_is_a_point_of_each_target() -> None:
    cuts = (Surgery(skip=("cse#1",)), Surgery(skip=("cse#2",)))
    found = points.expand(replace(ASKED, variants=cuts), None)
    assert [(str(one.target), one.surgery) for one in found] == [
        (str(target), cut) for target in ASKED.targets for cut in cuts
    ]
    assert len({one.id for one in found}) == len(found)


def test_one_surgery_is_for_all_points_and_in_the_command() -> None:
    asked = replace(ASKED, surgery=Surgery(skip=("cse#1",), ptxas=("-O1",)))
    assert {one.surgery for one in points.expand(asked, None)} == {asked.surgery}
    assert "--skip-pass 'cse#1' --ptxas-option=-O1" in asked.flags()
