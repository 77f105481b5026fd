"""What a dump keeps of the compiled kernels: each beside its own passes, and nothing that is run later."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.inspect.report.folders import folder
from tritonsmith.compiler.dump import binaries, import_log, index
from tritonsmith.compiler.dump.index import COMPILED, DumpedKernel, DumpIndex
from tritonsmith.compiler.manifest import Manifest, Point, Stage
from tritonsmith.core.errors import FactError

TEXT = 'module {{\n  tt.func @k() {{\n    "warps"() {{n = {0} : i32}} : () -> (){1}\n  }}\n}}\n'
SASS = "\t.target\tsm_90\nk:\n        /*0000*/                   EXIT ;\n"


def dumped(where: Path) -> DumpIndex:
    """A kernel that was compiled twice; the texts have locations, as those of a dump do."""
    places = ' loc("k.py":1:1)'
    passes = {
        f"k{suffix}": [("Coalesce", "tt.func @early"), ("ToLLVM", TEXT.format(warps, places))]
        for suffix, warps in (("", 4), ("-2", 8))
    }
    made = folder(where, passes)
    kernels = tuple(replace(one, function="k") for one in made.kernels)
    return replace(made, kernels=kernels, environ={"MLIR_ENABLE_DUMP": "1"})


def compiled(where: Path, *warps: int) -> Manifest:
    """Compiles of that kernel; the binary is no ELF file."""
    points = []
    for number in warps:
        files = {"ttgir": TEXT.format(number, ""), "cubin": "no ELF", "sass": SASS}
        (where / str(number)).mkdir(parents=True)
        for stage, text in files.items():
            (where / str(number) / f"k.{stage}").write_text(text)
        stages = {stage: Stage(f"{number}/k.{stage}", len(text), "") for stage, text in files.items()}
        points.append(Point(f"warps={number}", "cuda:90:32", {}, {}, {}, {}, "ok", 0.1, stages))
    return Manifest(where, "k", "k.py", "", "3.9.0", "/nonexistent", "3.11", "", tuple(points))


def test_each_compile_goes_with_the_passes_that_saw_its_ir(tmp_path: Path) -> None:
    made = dumped(tmp_path / "dump")
    binaries.keep(made, [compiled(tmp_path / "out", 8, 4, 16)])  # in another order, and one of no dump
    found = binaries.read(made)
    assert {name: one.point for name, one in found.items()} == {"k": "warps=4", "k-2": "warps=8"}
    assert (made.folder / found["k-2"].files["sass"]).read_text() == SASS
    assert set(found["k"].files) == {"cubin", "sass"}


def test_a_binary_that_cannot_be_read_is_told_and_the_dump_is_whole(tmp_path: Path) -> None:
    made = dumped(tmp_path / "dump")
    binaries.keep(made, [compiled(tmp_path / "out", 4)])
    found = binaries.read(made)["k"]
    assert (
        found.error
        == "this file is neither a cubin nor a code object: it does not start with the ELF magic number"
    )
    assert found.values == {}


def test_why_there_is_no_binary(tmp_path: Path) -> None:
    made = dumped(tmp_path / "dump")
    assert "run passes.dump again to keep it" in binaries.none_because(made, "k")
    assert "logs do not contain it; passes.dump compiles" in binaries.none_because(
        replace(made, environ={}), "k"
    )
    broken = replace(made, kernels=(DumpedKernel("k", "k", "", failed="CSE"),))
    assert "the compile failed (CSE)" in binaries.none_because(broken, "k")
    binaries.keep(made, [compiled(tmp_path / "out", 4)])
    assert "the compile produced none" in binaries.none_because(made, "k-2")


def test_a_dump_over_an_older_one_leaves_nothing_of_it(tmp_path: Path) -> None:
    made = dumped(tmp_path / "dump")
    (made.folder / index.FILE).write_text(made.render())
    binaries.keep(made, [compiled(tmp_path / "out", 4, 8)])
    shown = [path for path in made.folder.iterdir() if path.is_dir()]
    assert made.folder / COMPILED in shown
    import_log.empty(made.folder)
    assert not (made.folder / COMPILED).exists()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"schema": 2}',
        '{"schema": 1, "kernels": [1]}',
        '{"schema": 1, "kernels": {"k": {"point": "", "target": "", "values": []}}}',
        '{"schema": 1, "kernels": {"k": {"point": "", "target": "", "notes": "x"}}}',
        '{"schema": 1, "kernels": {"k": {"point": "", "target": "", "notes": [], "files": {"sass": 1}}}}',
    ],
)
def test_what_is_no_list_of_binaries_is_told(tmp_path: Path, text: str) -> None:
    made = dumped(tmp_path / "dump")
    (made.folder / COMPILED).mkdir()
    (made.folder / COMPILED / binaries.FILE).write_text(text)
    with pytest.raises(FactError, match="cannot read the compiled kernels of this dump"):
        binaries.read(made)


def test_the_list_says_nothing_that_is_run(tmp_path: Path) -> None:
    made = dumped(tmp_path / "dump")
    binaries.keep(made, [compiled(tmp_path / "out", 4)])
    content = json.loads((made.folder / COMPILED / binaries.FILE).read_text())
    assert "/nonexistent" not in json.dumps(content)
