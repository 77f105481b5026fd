"""What is measured of a compile, and the names that it goes by."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tests.unit.lab.compare.making import SASS, TTIR, point, written
from tritonsmith.compiler.resources import measure
from tritonsmith.compiler.resources.measure import COLUMNS
from tritonsmith.core import configs
from tritonsmith.lab import metrics


def measured(folder: Path, *, text: bool = True) -> metrics.Measured:
    texts = {"ttir": TTIR, **({"sass": SASS} if text else {})}
    made = written(folder, [point(seconds=1.5)], texts=texts, registers=40, shared=2048)
    (row,) = measure.of_manifest(made).rows
    return metrics.measure(made, made.points[0], row)


def test_a_compile_is_measured(tmp_path: Path) -> None:
    found = measured(tmp_path)
    assert found["registers_per_thread"] == 40
    assert found["instructions all"] == 2
    assert found["instructions branch"] == 1
    assert found["instructions tensor core"] == 0  # it has a disassembly, and none in it
    assert found["ttir_bytes"] == len(TTIR)
    assert found["ttir_operations"] == 3
    assert found["compile_seconds"] == 1.5
    assert "vgprs_per_lane" not in found
    assert "instructions matrix core" not in found
    assert "cubin_operations" not in found
    assert list(found)[-1] == "compile_seconds"


def test_without_a_disassembly_instructions_are_not_known(tmp_path: Path) -> None:
    found = measured(tmp_path, text=False)
    assert found["instructions all"] is None
    assert metrics.value_of("tensor core", found, "cuda") == (True, None)


@pytest.mark.parametrize(
    ("name", "backend", "keys"),
    [
        ("registers", "cuda", ("registers_per_thread",)),
        ("registers", "hip", ("vgprs_per_lane",)),
        ("spills", "cuda", ("spill_store_bytes", "spill_load_bytes")),
        ("ptx", "cuda", ("ptx_bytes",)),
        ("instructions", "hip", ("instructions all",)),
        ("tensor core", "cuda", ("instructions tensor core",)),
        ("tensor core", "hip", ()),
        ("instructions tensor core", "hip", ()),
        ("global load 128", "cuda", ("instructions global load 128",)),
        (
            "global load",
            "cuda",
            tuple(f"instructions global load {bits}" for bits in (8, 16, 32, 64, 96, 128)),
        ),
        ("sgpr_spills", "cuda", ("sgpr_spills",)),
        ("ttgir_operations", "cuda", ("ttgir_operations",)),
    ],
)
def test_names(name: str, backend: str, keys: tuple[str, ...]) -> None:
    assert metrics.keys_of(name, backend) == keys
    assert name in metrics.known_names()


def test_parts_are_added_up(tmp_path: Path) -> None:
    found = measured(tmp_path)
    assert metrics.value_of("shared", found, "cuda") == (True, 2048)
    assert metrics.value_of("sgpr_spills", found, "cuda") == (False, None)
    assert metrics.value_of("spills", {**found, "spill_load_bytes": None}, "cuda") == (True, None)


def test_every_key_of_the_configuration_is_one(tmp_path: Path) -> None:
    table = configs.load("kernel-metrics")
    known = {column.key for column in COLUMNS} | set(metrics.known_names())
    better = [*table["better"]["lower"], *table["better"]["higher"]]
    assert set(better) <= known
    assert len(set(better)) == len(better)
    assert set(metrics.summary()) <= set(table["short"])
    for short in table["short"].values():
        assert set(short) == {"title", "cuda", "hip"}
        assert {*short["cuda"], *short["hip"]} <= known
    assert set(measured(tmp_path)) - {"limiter"} <= known


def test_what_is_shown_side_by_side() -> None:
    assert metrics.side_by_side() == ("registers", "spills", "stack", "shared")


def test_titles_name_units() -> None:
    assert metrics.metric("registers_per_thread").title == "registers, per thread"
    assert metrics.metric("occupancy_percent") == metrics.Metric(
        "occupancy_percent", "occupancy, %", "higher"
    )
    assert metrics.metric("instructions all").title == "instructions"
    assert metrics.metric("instructions tensor core").title == "tensor core, instructions"
    assert metrics.metric("ttgir_operations").title == "ttgir, operations"
    assert metrics.metric("ptx_bytes").title == "ptx, B"


def test_stages_are_in_the_order_of_the_pipeline() -> None:
    names = metrics.stage_names()
    assert names.index("ttir") < names.index("ttgir") < names.index("ptx") < names.index("cubin")
    assert not {"source", "sass", "gcnasm"} & set(names)


@pytest.mark.parametrize(
    ("a", "b", "percent"),
    [(0, 0, 0), (0, 1, math.inf), (100, 105, 5), (60, 63, 5), (8, 0, -100), (1000, 1051, 5.1)],
)
def test_growth(a: int, b: int, percent: float) -> None:
    assert metrics.growth(a, b) == percent
