"""From folders of compiled points to the plan of the C files and their check."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.compiler.resources import elf_maker
from tritonsmith.compiler import manifest
from tritonsmith.compiler.manifest import Manifest, Point, Stage
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.core.plan import MakeDir, Remove, Run, Write
from tritonsmith.inspect import export_c as emit


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace of its own."""
    monkeypatch.setenv("TRITONSMITH_HOME", str(tmp_path / "space"))
    return tmp_path / "space"


def point(target: str, block: int) -> Point:
    """A compiled point of a kernel with one parameter and one constant."""
    return Point(
        id=f"{target.replace(':', '-')},BLOCK={block}",
        target=target,
        signature={"p": "*fp32", "n": "i32", "BLOCK": "constexpr"},
        constexprs={"BLOCK": block},
        hints={"p": 16},
        options={},
        status="ok",
        seconds=0.0,
        stages={("hsaco" if "hip" in target else "cubin"): Stage("binary", 3, "0" * 64)},
        metadata={"name": "kernel", "num_warps": 4, "num_stages": 3, "shared": 0},
    )


@pytest.fixture
def found(tmp_path: Path) -> Manifest:
    """A folder with two points for each of two targets."""
    points = tuple(point(target, block) for target in ("cuda:90:32", "hip:gfx942:64") for block in (64, 128))
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "binary").write_bytes(b"\x7fEL")
    origin = tmp_path / "triton"
    for name in ("nvidia", "amd"):
        (origin / "backends" / name / "include").mkdir(parents=True)
    made = Manifest(folder, "kernel", "/k.py", "", "3.9.0", str(origin), "3.11", "", points)
    (folder / manifest.FILE).write_text(made.render(), encoding="utf-8")
    return manifest.read(folder)


def test_a_folder_for_each_target(found: Manifest, tmp_path: Path) -> None:
    made = emit.prepare([found], "(n+BLOCK-1)/BLOCK")
    assert made.folder == tmp_path / "out.aot"
    assert [group.folder.name for group in made.groups] == ["cuda-90-32", "hip-gfx942-64"]
    written = [step for step in made.plan.steps if isinstance(step, Write)]
    assert len(written) == len(made.plan.steps) == 12
    assert sum("gX = (n+64-1)/64;" in step.text for step in written) == 2
    assert not made.folder.exists()


def test_one_target_has_no_folder_of_its_own(found: Manifest, tmp_path: Path) -> None:
    ids = [one.id for one in found.points[:2]]
    made = emit.prepare([found], "n", tmp_path / "c", points=ids, out_name="other")
    (group,) = made.groups
    assert group.sources[0].name == "other.c"
    assert {path.parent for path in group.sources} == {tmp_path / "c"}


def test_a_folder_of_the_tools_own_is_emptied_first(found: Manifest, home: Path) -> None:
    inside = Manifest(**{**found.__dict__, "folder": home / "kernels" / "k"})
    (home / "kernels" / "k").mkdir(parents=True)
    (home / "kernels" / "k" / "binary").write_bytes(b"abc")
    steps = emit.prepare([inside], "n").plan.steps
    assert isinstance(steps[0], Remove)
    assert steps[0].paths == (home / "kernels" / "k.aot",)
    steps = emit.prepare([found], "n").plan.steps
    assert not any(isinstance(step, Remove) for step in steps)


def test_written_files_are_what_the_plan_says(found: Manifest, tmp_path: Path) -> None:
    made = emit.prepare([found], "n", tmp_path / "c")
    emit.execute(made)
    told = emit.as_json(made, checked=False)
    assert json.loads(json.dumps(told))["schema"] == 1
    paths = [Path(path) for one in told["targets"] for path in one["sources"]]
    assert len(paths) == 6
    assert all(path.is_file() and path.with_suffix(".h").is_file() for path in paths)
    assert told["targets"][0]["algorithms"] == ["kernel_64_warps4xstages3", "kernel_128_warps4xstages3"]


def test_the_check_compiles_every_file_and_links_all(
    found: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = tmp_path / "my cc"
    compiler.write_text("#!/bin/sh\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", f"'{compiler}' -m64")
    steps = emit.prepare([found], "n", tmp_path / "c", check=True).plan.steps
    runs = [step for step in steps if isinstance(step, Run)]
    assert sum(isinstance(step, MakeDir) for step in steps) == 2
    assert len(runs) == 2 * (3 + 1)
    assert all(run.argv[:2] == (str(compiler), "-m64") for run in runs)
    assert "-Werror" in runs[0].argv
    assert runs[3].argv[2] == "-r"


def test_no_compiler_and_no_headers(found: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FactError, match="needs a C compiler"):
        emit.prepare([found], "n", check=True)
    monkeypatch.setenv("CC", "/bin/sh")
    gone = Manifest(**{**found.__dict__, "origin": str(tmp_path / "gone")})
    with pytest.raises(FactError, match="headers of the driver API"):
        emit.prepare([gone], "n", check=True)


def test_points_that_are_not_there(found: Manifest) -> None:
    with pytest.raises(UsageError, match="no point 'cuda'"):
        emit.prepare([found], "n", points=["cuda"])
    with pytest.raises(FactError, match="no compiled points"):
        emit.prepare([Manifest(**{**found.__dict__, "points": ()})], "n")


def test_a_variant_that_cannot_be_launched_is_told(found: Manifest) -> None:
    (found.folder / "binary").write_bytes(elf_maker.cubin(threads=128))
    one = point("cuda:90:32", 64)
    wide = replace(
        point("cuda:90:32", 128), metadata={**one.metadata, "shared": 262144}, remarks=["(C7510) Lost"]
    )
    made = emit.prepare([replace(found, points=(one, wide))], "1")
    first, second = made.groups[0].variants
    refused = f"{second.name}: cannot launch: shared 262144 > 232448 B"
    assert emit.warnings(made) == (refused, f"{second.name}: ptxas: (C7510) Lost")
    told = emit.as_json(made, checked=False)
    assert told["warnings"] == list(emit.warnings(made))
    variants = told["targets"][0]["variants"]
    assert [(one["launch"], one["remarks"]) for one in variants] == [
        ("yes", None),
        ("no: shared 262144 > 232448 B", ["(C7510) Lost"]),
    ]
    assert emit.resources(first).values["launch"] == "yes"
