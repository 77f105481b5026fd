"""The exit codes of a rehearsal and of a farm."""

from __future__ import annotations

import pytest

from tests.unit.lab.compare.test_assessment import SAME, one, other, verdict
from tests.unit.lab.compare.test_thresholds import NVIDIA
from tritonsmith.cli.tasks import compare
from tritonsmith.core.errors import EXIT_UNDECIDED, SmithError
from tritonsmith.lab.compare.rehearsal import Assessment

pytestmark = pytest.mark.unit

WORSE = one("worse", NVIDIA, {**NVIDIA, "spill_store_bytes": 64})
UNKNOWN = one("unknown", NVIDIA, {**NVIDIA, "spill_store_bytes": None})
NEITHER = other("neither", "failed", "failed")


@pytest.mark.parametrize(
    ("made", "of_rehearsal", "of_farm"),
    [
        (verdict(SAME), 0, 0),
        (verdict(SAME, WORSE), 1, 1),
        (verdict(SAME, WORSE, UNKNOWN), 1, 1),
        # Neither is an error of `compare`, which has always warned.
        (verdict(SAME, NEITHER), 0, 0),
        (verdict(SAME, UNKNOWN), 0, EXIT_UNDECIDED),
    ],
    ids=["same", "worse", "worse and unknown", "neither", "unknown"],
)
def test_exit_codes(made: Assessment, of_rehearsal: int, of_farm: int) -> None:
    for strict, expected in ((False, of_rehearsal), (True, of_farm)):
        code = 0
        try:
            compare._print_verdict(made, json=True, strict=strict)
        except SmithError as error:
            code = error.exit_code
        assert code == expected
