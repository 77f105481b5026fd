"""What the page says of a compiled kernel in one line."""

from __future__ import annotations

import pytest

from tritonsmith.compiler.dump.binaries import Binary
from tritonsmith.inspect.report import kernel_resources

NVIDIA = {
    "registers_per_thread": 255,
    "spill_store_bytes": 16,
    "spill_load_bytes": 20,
    "shared_static_bytes": 1024,
    "shared_dynamic_bytes": 32768,
    "occupancy_percent": 12.5,
    "limiter": "registers",
}
AMD = {
    "vgprs_per_lane": 128,
    "sgprs_per_wave": 40,
    "sgpr_spills": 0,
    "vgpr_spills": 3,
    "lds_bytes": 100,
    "occupancy_percent": None,
}


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            NVIDIA | {"occupancy_percent": None},
            "255 registers \u00b7 spills 16 B stored, 20 B loaded \u00b7 33 KiB shared",
        ),
        (
            NVIDIA | {"spill_store_bytes": 0, "spill_load_bytes": 0},
            "255 registers \u00b7 no spills \u00b7 33 KiB shared \u00b7 12.5 % occupancy",
        ),
        (
            NVIDIA | {"spill_store_bytes": None, "occupancy_percent": None},
            "255 registers \u00b7 spills unknown \u00b7 33 KiB shared",
        ),
        (AMD, "128 VGPRs, 40 SGPRs \u00b7 3 VGPRs, 0 SGPRs spilled \u00b7 100 B LDS"),
    ],
)
def test_a_gist_says_what_spills_and_never_guesses(values: dict[str, float | str | None], words: str) -> None:
    assert kernel_resources.gist(Binary("", "", values)) == words


def test_what_could_not_be_read_is_said() -> None:
    assert kernel_resources.gist(Binary("", "", error="no ELF")) == "resources unknown: no ELF"


def test_a_table_has_units_and_leaves_out_what_is_not_known() -> None:
    found = kernel_resources.table(Binary("", "", AMD))
    assert ("VGPRs", "128", "per lane") in found
    assert not any(what == "occupancy" for what, _, _ in found)
