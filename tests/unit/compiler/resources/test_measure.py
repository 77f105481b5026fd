"""Rows of an output folder: what is in a cell, what is left empty, what is said."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tests.unit.compiler.resources import elf_maker
from tests.unit.compiler.resources.test_ptxas_report import PTX
from tests.unit.ir.test_instructions import AMD, SASS
from tritonsmith.compiler.manifest import Manifest, Point, Stage, record_triton
from tritonsmith.compiler.resources import measure
from tritonsmith.compiler.resources import measure as resources_table
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import FactError, SmithError, UsageError
from tritonsmith.core.plan import Plan
from tritonsmith.inspect import resources
from tritonsmith.inspect.resources import as_csv, as_json, tables_of

STORE = 0x387


def point(
    folder: Path, target: str, options: Mapping[str, Any], stages: Mapping[str, bytes | str], **more: Any
) -> Point:
    """A point with these files."""
    name = f"{target.replace(':', '-')},{options}"
    made = {}
    for stage, content in stages.items():
        data = content.encode() if isinstance(content, str) else content
        path = folder / name / f"kern.{stage}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        made[stage] = Stage(str(path.relative_to(folder)), len(data), "0" * 64)
    fields: dict[str, Any] = {"status": "ok", "metadata": {"shared": 4096}, **more}
    return Point(name, target, {}, {}, {}, options, seconds=1.0, stages=made, **fields)


def manifest(folder: Path, *points: Point) -> Manifest:
    """An output folder."""
    return Manifest(folder, "kern", "kern.py", "0" * 64, "3.9.0", str(folder / "triton"), "3.11", "", points)


@pytest.fixture
def mixed(tmp_path: Path) -> Manifest:
    """Both vendors, with a sweep of warps, a spill and a failure."""
    spilling = elf_maker.cubin(frame=64, code=elf_maker.access(STORE, 5), threads=128)
    plain = elf_maker.cubin(threads=256)
    hsaco = elf_maker.code_object()
    return manifest(
        tmp_path,
        point(
            tmp_path,
            "cuda:80:32",
            {"num_warps": 4},
            {"cubin": spilling, "sass": SASS, "ptx": ".target sm_80\n"},
        ),
        point(tmp_path, "cuda:80:32", {"num_warps": 8}, {"cubin": plain}),
        point(tmp_path, "cuda:80:32", {"num_warps": 16}, {}, status="failed", error="PTXASError: no\nmore"),
        point(
            tmp_path,
            "hip:gfx90a:64",
            {"num_warps": 4},
            {"hsaco": hsaco, "gcnasm": AMD, "amdgcn": "; Occupancy: 7\n"},
        ),
        point(tmp_path, "hip:gfx90a:64", {"num_warps": 8}, {"hsaco": hsaco}),
    )


def test_rows(mixed: Manifest) -> None:
    found = measure.of_manifest(mixed)
    first, second, failed, amd, _ = found.rows
    assert found.notes == ()
    assert first.options == "num_warps=4"
    assert (first.values["spill_store_bytes"], first.values["stack_bytes"], first.spilled) == (8, 64, 8)
    assert first.values["shared_dynamic_bytes"] == 4096
    assert first.instructions["tensor core"] == 1
    assert (second.values["blocks_per_sm"], second.values["limiter"]) == (6, "registers")
    assert not second.instructions
    assert (failed.error, failed.values) == ("failed: PTXASError: no", {})
    assert (amd.values["compiler_waves_per_simd"], amd.values["waves_per_simd"]) == (7, 8.0)
    assert (amd.values["lds_bytes"], amd.spilled) == (4096, 3)
    notes = list(measure.without_disassembly(mixed))
    assert [note.split(" for ")[0] for note in notes] == ["no sass", "no gcnasm"]
    assert "pip install nvidia-cuda-nvdisasm" in notes[0]


def test_arrays_in_local_memory_are_no_spills(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing tells them apart, and the cell stays empty: the program that a stranger names is not run."""
    monkeypatch.setenv("TRITONSMITH_HOME", str(tmp_path / "home"))
    program = tmp_path / "triton" / "backends" / "nvidia" / "bin" / "ptxas"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\ntouch '{tmp_path}/ran'\n", encoding="utf-8")
    program.chmod(0o755)
    code = elf_maker.access(STORE, 4)
    made = manifest(
        tmp_path,
        point(tmp_path, "cuda:90:32", {}, {"cubin": elf_maker.cubin(frame=32, code=code), "ptx": PTX}),
    )
    found = measure.of_manifest(made)
    assert found.rows[0].values["spill_store_bytes"] is None
    assert "it was not compiled here, so the ptxas that it names is not run" in found.notes[0]
    assert not (tmp_path / "ran").exists()
    assert found.rows[0].spilled == 32, "it may spill: --spills keeps it"
    space = workspace.default()
    space.claim()
    space.run(Plan("record", (record_triton(made, space),)), "test", quiet=True)
    with pytest.raises(FactError, match="has no kernel"):  # of a program that says nothing
        measure.of_manifest(made)
    assert (tmp_path / "ran").exists()


def test_a_broken_binary_is_named(tmp_path: Path) -> None:
    made = manifest(tmp_path, point(tmp_path, "cuda:90:32", {}, {"cubin": b"ELF"}))
    with pytest.raises(FactError, match="neither a cubin nor a code object") as caught:
        measure.of_manifest(made)
    assert "kern.cubin" in str(caught.value)


def test_a_cubin_in_the_place_of_an_hsaco(tmp_path: Path) -> None:
    made = manifest(
        tmp_path, point(tmp_path, "hip:gfx942:64", {}, {"hsaco": elf_maker.elf(elf_maker.CUDA, [])})
    )
    with pytest.raises(FactError, match="found 0") as caught:
        measure.of_manifest(made)
    assert "kern.hsaco" in str(caught.value)


def test_spilling_comes_worst_first(mixed: Manifest) -> None:
    found = resources_table.spilling(measure.of_manifest(mixed).rows)
    assert [row.spilled for row in found] == [8, 3, 3]


def test_tables_have_units_and_lose_no_column(mixed: Manifest) -> None:
    stream = io.StringIO()
    screen = Console(file=stream, width=40, soft_wrap=True)
    for table in tables_of(measure.of_manifest(mixed).rows, cached=False):
        screen.print(table)
    text = stream.getvalue()
    for word in (
        "B/thread",
        "lane",
        "SIMD",
        "limited",
        "failed:",
        "PTXASError",
        "tensor core",
        "scratch load 32",
    ):
        assert word in text
    assert "LLVM" in text


def test_kernels_of_one_table_are_told_apart(mixed: Manifest) -> None:
    one = replace(measure.of_manifest(mixed), notes=("no sass",))
    both = measure.of_all({"a": one, "b": one})
    assert {row.kernel for row in both.rows} == {"a", "b"}
    assert both.rows[0].point == f"a/{one.rows[0].point}"
    assert both.notes == ("a, b: no sass",)
    resources = next(tables_of(both.rows, cached=False))
    assert str(resources.columns[0].head) == "kernel"
    assert measure.of_all({"": one}) is one


def test_csv_and_json(mixed: Manifest) -> None:
    found = measure.of_manifest(mixed)
    lines = list(csv.DictReader(io.StringIO(as_csv(found.rows))))
    assert len(lines) == 5
    assert (lines[0]["spill_store_bytes"], lines[0]["sgpr_spills"]) == ("8", "")
    assert lines[0]["instructions tensor core"] == "1"
    assert list(lines[0])[7:10] == ["registers_per_thread", "sgprs_per_wave", "vgprs_per_lane"]
    content = json.loads(json.dumps(as_json(found)))
    assert content["schema"] == 1
    assert content["rows"][3]["values"]["vgprs_per_lane"] == 64


@pytest.mark.parametrize("name", ["map.png", "map.svg"])
def test_a_plot(mixed: Manifest, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    resources.check_plot(path)
    resources.plot(measure.of_manifest(mixed).rows, path)
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG" if name.endswith("png") else b"<?xml")


def test_plots_that_cannot_be(mixed: Manifest, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot write map"):
        resources.check_plot(tmp_path / "map.pdf")
    found = measure.of_manifest(mixed).rows
    with pytest.raises(SmithError, match="nothing to plot"):
        resources.plot(found[2:3], tmp_path / "map.png")
    with pytest.raises(SmithError, match="cannot write the plot"):
        resources.plot(found, tmp_path / "nowhere" / "map.png")


def test_a_plot_without_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.path", [])
    monkeypatch.delitem(__import__("sys").modules, "matplotlib", raising=False)
    with pytest.raises(FactError, match="--plot needs matplotlib") as caught:
        resources.check_plot(tmp_path / "map.png")
    assert any("pip install" in hint for hint in caught.value.hints)


LOST = "(C7511) Potential Performance Loss: wgmma.mma_async instructions are serialized"


def test_what_cannot_be_launched_and_what_ptxas_says_are_warnings(tmp_path: Path) -> None:
    cubin = elf_maker.cubin(threads=128)
    points = [
        point(tmp_path, "cuda:90:32", {"num_stages": 2}, {"cubin": cubin}, remarks=[]),
        *(
            point(
                tmp_path,
                "cuda:90:32",
                {"num_stages": stages},
                {"cubin": cubin},
                metadata={"shared": 262144},
                remarks=[f"{LOST} in line {stages}"],
            )
            for stages in (3, 4)
        ),
    ]
    found = measure.of_manifest(manifest(tmp_path, *points))
    fine, wide, _ = found.rows
    assert (fine.values["launch"], fine.warnings) == ("yes", ())
    assert wide.values["launch"] == "no: shared 262144 > 232448 B"
    assert (wide.values["blocks_per_sm"], wide.values["occupancy_percent"]) == (0, 0)
    both = f"{points[1].id}, {points[2].id}: "
    assert found.warnings == (f"{both}cannot launch: shared 262144 > 232448 B", f"{both}ptxas: {LOST}")
    content = as_json(found)
    assert content["warnings"] == list(found.warnings)
    assert content["rows"][1]["remarks"] == [f"{LOST} in line 3"]
    lines = list(csv.DictReader(io.StringIO(as_csv(found.rows))))
    assert [(line["launch"], line["remarks"]) for line in lines[:2]] == [
        ("yes", ""),
        ("no: shared 262144 > 232448 B", f"{LOST} in line 3"),
    ]
    assert list(measure.without_remarks(manifest(tmp_path, *points))) == []


def test_what_is_not_known_of_a_launch_is_said(tmp_path: Path) -> None:
    one = point(tmp_path, "cuda:150:32", {}, {"cubin": elf_maker.cubin(threads=128)})
    found = measure.of_manifest(manifest(tmp_path, one))
    assert found.rows[0].values["launch"] is None
    assert "launchability is not checked" in found.notes[0]
    (text,) = measure.without_remarks(manifest(tmp_path, one))
    assert text.startswith(f"{one.id}: the remarks of ptxas were not recorded")


def test_on_amd_the_launch_has_the_threads_of_the_metadata(tmp_path: Path) -> None:
    """A code object says 1024 at most, whatever `num_warps` asks for."""
    hsaco = elf_maker.code_object()
    metadata = {"shared": 0, "num_warps": 64}
    made = manifest(tmp_path, point(tmp_path, "hip:gfx942:64", {}, {"hsaco": hsaco}, metadata=metadata))
    (row,) = measure.of_manifest(made).rows
    assert (row.values["threads_per_block"], row.values["launch"]) == (4096, "no: threads 4096 > 1024")


def test_what_occupancy_does_not_look_at_is_said(tmp_path: Path) -> None:
    plain = elf_maker.cubin(threads=128)
    points = [
        point(
            tmp_path, "cuda:100:32", {"num_ctas": many}, {"cubin": plain}, metadata={"num_ctas": many, **more}
        )
        for many, more in ((1, {"tmem_size": 0}), (2, {}), (4, {"tmem_size": 128}))
    ]
    found = measure.of_manifest(manifest(tmp_path, *points))
    one, two, four = found.rows
    assert one.notes == ()
    assert [text.partition(";")[0] for text in two.notes] == ["its blocks are launched in clusters of 2"]
    assert "tensor memory" in four.notes[1]
    assert all(any(note.endswith(text) for note in found.notes) for text in (*two.notes, *four.notes))
    assert "tensor memory" in as_csv(found.rows)
    assert as_json(found)["rows"][1]["notes"] == two.notes
