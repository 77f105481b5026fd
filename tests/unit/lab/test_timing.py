"""The plan of a timing: binaries of output folders, arguments of flags and of captured launches."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.unit.compiler.resources import elf_maker
from tests.unit.compiler.resources.test_measure import point as compiled_point
from tritonsmith.compiler import targets
from tritonsmith.compiler.kernels import kernel_list
from tritonsmith.compiler.manifest import Manifest
from tritonsmith.core.errors import ConfigError, FactError, UsageError
from tritonsmith.lab import timing
from tritonsmith.lab.timing import LaunchFlags, TensorContents
from tritonsmith.worker.time_binaries import Method, TimedBinary

SIGNATURE = {
    "x_ptr": "*fp16",
    "idx": "*ki32",
    "n": "i32",
    "stride": "i32",
    "eps": "fp32",
    "BLOCK": "constexpr",
}
LIST = """
[[kernel]]
file = "add.py"
kernel = "add"
signature = "*fp16,*ki32,i32,i32:1,fp32,64"
grid = [[7, 1, 1]]
largest = {n = 1000}
[kernel.launch]
grid = [9, 2]
arguments = {x_ptr = {elements = 4096}, idx = {elements = 64, low = 0, high = 31}, n = 500, eps = 1e-5}
"""


def _compiled(
    folder: Path, triton: str, *, target: str = "cuda:90:32", block: int = 64, **metadata: Any
) -> Manifest:
    known = {"name": "add_kernel", "num_warps": 4, "shared": 1024, "warp_size": 32, **metadata}
    point = compiled_point(
        folder,
        target,
        {},
        {"cubin": elf_maker.cubin(threads=128)} if target[:1] == "c" else {"hsaco": elf_maker.code_object()},
        metadata=known,
    )
    point = replace(point, signature=SIGNATURE, constexprs={"BLOCK": block}, hints={"x_ptr": 16, "stride": 1})
    made = Manifest(folder, "add", "add.py", "0" * 64, triton, str(folder / "triton"), "3.11", "", (point,))
    (folder / "manifest.json").write_text(made.render())
    return made


def _groups(root: Path, *tritons: str, **metadata: Any) -> dict[str, list[timing.TimedMember]]:
    for triton in tritons:
        _compiled(root / triton / "add", triton, **metadata)
    return timing.members(timing.manifests_below(root), root, ())


def _flags(**sizes: float) -> LaunchFlags:
    return LaunchFlags("cdiv(n, BLOCK)", {"x_ptr": 4096, "idx": 64, "n": 1000, "eps": 1e-5, **sizes})


def _job(
    root: Path, groups: Mapping[str, list[timing.TimedMember]], flags: LaunchFlags
) -> timing.PreparedTiming:
    arguments = {name: timing.arguments_of(None, flags) for name in groups}
    return timing.prepare(groups, arguments, root / "out", Method())


def test_releases_are_sides_in_their_order(tmp_path: Path) -> None:
    prepared = _job(tmp_path, _groups(tmp_path, "3.10.0", "3.4.0", "3.9.0"), _flags())
    (kernel,) = prepared.job.kernels
    assert kernel.name == "add"
    assert [binary.label for binary in kernel.binaries] == ["3.4.0", "3.9.0", "3.10.0"]
    old, new = kernel.binaries[:2]
    # 1 is a constant of the code; one pointer of scratch memory before 3.5, two since.
    assert (old.parameters, old.scratch) == ((0, 1, 2, 4), (0,))
    assert new.scratch == (0, 0)
    assert replace(old, scratch=()) == TimedBinary(
        "3.4.0",
        "binaries/add/3.4.0.cubin",
        "add_kernel",
        (0, 1, 2, 4),
        (16, 1, 1),
        128,
        1024,
        figures=old.figures,
    )
    assert old.figures["registers_per_thread"] > 0
    assert [buffer.fill for buffer in kernel.buffers] == ["random", "zeros"]
    assert [parameter.value for parameter in kernel.parameters[2:]] == [1000, 1, 1e-5]
    assert prepared.notes == (
        (
            "add: idx is all 0, as the integers that the kernel needs there are not known "
            "(launch = ... of a kernels file)"
        ),
    )


def test_scratch_memory_clusters_and_cooperative_launches_come_from_the_metadata(tmp_path: Path) -> None:
    groups = _groups(
        tmp_path, "3.9.0", global_scratch_size=512, num_ctas=2, launch_cooperative_grid=True, num_warps=12
    )
    ((binary,),) = [kernel.binaries for kernel in _job(tmp_path, groups, _flags()).job.kernels]
    assert (binary.scratch, binary.ctas, binary.cooperative, binary.threads) == ((512, 0), 2, True, 384)


def test_a_code_object_for_amd_is_planned_likewise(tmp_path: Path) -> None:
    groups = _groups(tmp_path, "3.9.0", target="hip:gfx942:64", warp_size=64)
    prepared = _job(tmp_path, groups, _flags())
    assert prepared.job.backend == "hip"
    ((binary,),) = [kernel.binaries for kernel in prepared.job.kernels]
    assert (binary.path, binary.threads) == ("binaries/add/3.9.0.hsaco", 256)


def test_two_builds_of_one_version_have_the_names_of_their_folders(tmp_path: Path) -> None:
    for side in ("before", "after"):
        _compiled(tmp_path / side / "add", "3.9.0")
    groups = timing.members(timing.manifests_below(tmp_path), tmp_path, ())
    assert [member.label for member in groups["add"]] == ["after", "before"]


def test_two_output_folders_of_one_kernel_are_its_sides(tmp_path: Path) -> None:
    _compiled(tmp_path / "warps-4", "3.9.0")
    _compiled(tmp_path / "warps-8", "3.9.0", num_warps=8)
    groups = timing.members(timing.manifests_below(tmp_path), tmp_path, ())
    assert [member.label for member in groups["add"]] == ["warps-4", "warps-8"]


def _swept(root: Path, triton: str) -> None:
    """An output folder with a point for each of two configs."""
    made = [_compiled(root / triton / "add" / str(block), triton, block=block) for block in (64, 128)]
    points = []
    for manifest, block in zip(made, (64, 128), strict=True):
        (point,) = manifest.points
        stages = {name: replace(stage, path=f"{block}/{stage.path}") for name, stage in point.stages.items()}
        points.append(replace(point, id=f"cuda-90-32,BLOCK={block},num_warps=4", stages=stages))
        (manifest.folder / "manifest.json").unlink()
    folder = root / triton / "add"
    text = replace(made[0], folder=folder, points=tuple(points)).render()
    (folder / "manifest.json").write_text(text)


def test_configs_of_an_autotuner_have_grids_of_their_own(tmp_path: Path) -> None:
    for triton in ("3.4.0", "3.9.0"):
        _swept(tmp_path, triton)
    groups = timing.members(timing.manifests_below(tmp_path), tmp_path, ())
    (kernel,) = _job(tmp_path, groups, _flags()).job.kernels
    assert [(binary.label, binary.grid) for binary in kernel.binaries] == [
        ("3.4.0 BLOCK=64,num_warps=4", (16, 1, 1)),
        ("3.4.0 BLOCK=128,num_warps=4", (8, 1, 1)),
        ("3.9.0 BLOCK=64,num_warps=4", (16, 1, 1)),
        ("3.9.0 BLOCK=128,num_warps=4", (8, 1, 1)),
    ]
    assert len({binary.path for binary in kernel.binaries}) == 4
    # A captured grid is of one config.
    (tmp_path / "list.toml").write_text(LIST)
    (entry,) = kernel_list.read(tmp_path / "list.toml")
    with pytest.raises(UsageError, match="the grid of each config is not known"):
        timing.prepare(groups, {"add": timing.arguments_of(entry, LaunchFlags())}, tmp_path / "out", Method())


def test_compiles_that_failed_are_notes_of_their_reasons(tmp_path: Path) -> None:
    groups = _groups(tmp_path, "3.4.0", "3.9.0")
    bad = replace(groups["add"][1].point, status="failed", stages={}, error="error: no such layout")
    groups["add"][1] = replace(groups["add"][1], point=bad)
    prepared = _job(tmp_path, groups, _flags())
    assert [binary.label for binary in prepared.job.kernels[0].binaries] == ["3.4.0"]
    assert prepared.notes[0] == "add: 1 compile failed (error: no such layout): 3.9.0"
    # The result of the command is a failure, which the job carries to the machine that measures.
    assert prepared.job.kernels[0].lost == (("3.9.0", "no binary: error: no such layout"),)
    groups["add"] = groups["add"][1:]
    with pytest.raises(FactError, match="no compile of add has a binary"):
        _job(tmp_path, groups, _flags())


def test_one_target_is_chosen(tmp_path: Path) -> None:
    _compiled(tmp_path / "3.9.0" / "add", "3.9.0")
    _compiled(tmp_path / "3.8.0" / "add", "3.8.0", target="cuda:100:32")
    read = timing.manifests_below(tmp_path)
    with pytest.raises(UsageError, match="several targets") as error:
        timing.members(read, tmp_path, ())
    assert error.value.hints == ("choose one: --target cuda:100:32",)
    groups = timing.members(read, tmp_path, (targets.parse("cuda:90"),))
    assert [member.label for member in groups["add"]] == ["3.9.0"]
    with pytest.raises(UsageError, match="not compiled for cuda:80"):
        timing.members(read, tmp_path, (targets.parse("cuda:80"),))


@pytest.mark.parametrize(
    ("flags", "what"),
    [
        (LaunchFlags("1", {"idx": 64, "n": 1, "eps": 1}), "the size of x_ptr"),
        (LaunchFlags("1", {"x_ptr": 64, "idx": 64, "n": 1}), "the value of eps"),
        (LaunchFlags("", {"x_ptr": 64, "idx": 64, "n": 1, "eps": 1}), "the grid is not known"),
        (LaunchFlags("0", {"x_ptr": 64, "idx": 64, "n": 1, "eps": 1}), "--grid cannot be"),
        (LaunchFlags("1, 1, 1, 1", {"x_ptr": 64, "idx": 64, "n": 1, "eps": 1}), "--grid cannot be"),
        (LaunchFlags("m", {"x_ptr": 64, "idx": 64, "n": 1, "eps": 1}), "--grid cannot be"),
        (LaunchFlags("1", {"x_ptr": 64, "idx": 64, "n": 1, "eps": 1, "other": 3}), "no parameter other"),
        (LaunchFlags("1", {"x_ptr": 64, "idx": 64, "n": 1, "eps": 1, "stride": 2}), "stride cannot be 2"),
        (LaunchFlags("1", {"x_ptr": 64, "idx": 64, "n": 1 << 40, "eps": 1}), "n cannot be"),
    ],
)
def test_an_argument_that_is_missing_or_makes_no_sense_is_named(
    tmp_path: Path, flags: LaunchFlags, what: str
) -> None:
    with pytest.raises(UsageError, match=what):
        _job(tmp_path, _groups(tmp_path, "3.9.0"), flags)


def test_a_captured_launch_gives_all_arguments_and_flags_win(tmp_path: Path) -> None:
    (tmp_path / "list.toml").write_text(LIST)
    (entry,) = kernel_list.read(tmp_path / "list.toml")
    arguments = timing.arguments_of(entry, LaunchFlags())
    assert arguments.grid == "9, 2"
    assert arguments.tensors == {"x_ptr": TensorContents(4096), "idx": TensorContents(64, 0, 31)}
    assert arguments.scalars == {"n": 500, "eps": 1e-5}
    groups = _groups(tmp_path, "3.9.0")
    assert timing.entry_of("add", groups["add"], [entry]) is entry
    prepared = timing.prepare(groups, {"add": arguments}, tmp_path / "out", Method())
    (kernel,) = prepared.job.kernels
    assert kernel.binaries[0].grid == (9, 2, 1)
    assert [(each.elements, each.fill, each.high) for each in kernel.buffers] == [
        (4096, "random", 1),
        (64, "random", 31),
    ]
    assert prepared.notes == ()
    larger = timing.arguments_of(entry, LaunchFlags("5", {"idx": 128, "n": 7}))
    assert larger.tensors["idx"] == TensorContents(128, 0, 31)
    assert (larger.grid, larger.scalars["n"]) == ("5", 7)


@pytest.mark.parametrize(
    "launch",
    [
        "{arguments = {x = '4096'}}",
        "{arguments = {x = {elements = '4096'}}}",
        "{arguments = {x = {size = 4096}}}",
        "{grid = ['x']}",
        "{blocks = [1]}",
    ],
)
def test_a_launch_that_makes_no_sense_is_refused(tmp_path: Path, launch: str) -> None:
    (tmp_path / "list.toml").write_text(f'[[kernel]]\nfile = "a.py"\nlaunch = {launch}\n')
    with pytest.raises(ConfigError):
        kernel_list.read(tmp_path / "list.toml")


def test_a_launch_stays_when_a_list_is_written_again(tmp_path: Path) -> None:
    (tmp_path / "list.toml").write_text(LIST)
    (entry,) = kernel_list.read(tmp_path / "list.toml")
    (tmp_path / "again.toml").write_text(kernel_list.render_kernels([kernel_list.row(entry)]))
    (again,) = kernel_list.read(tmp_path / "again.toml")
    assert again.launch == entry.launch


def test_a_folder_without_kernels_and_a_plan_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(FactError, match="no compiled kernel"):
        timing.manifests_below(tmp_path)
    (tmp_path / timing.JOB).write_text(json.dumps({"schema": 1, "kernels": [{"name": "x"}]}))
    assert timing.is_plan(tmp_path)
    with pytest.raises(FactError, match="cannot read this plan"):
        timing.reopen(tmp_path, LaunchFlags())
    (tmp_path / "times.json").write_text("{}")
    with pytest.raises(FactError, match="no times"):
        timing.read_times(tmp_path / "times.json")


@pytest.mark.parametrize(
    ("text", "sizes"),
    [("n=4096", 4096), ("x=64*64", 4096), ("eps=1e-5", 1e-5), ("n=4_096", 4096), ("n=-1", -1)],
)
def test_sizes_are_numbers_or_products(text: str, sizes: float) -> None:
    assert list(timing.parse_sizes([text]).values()) == [sizes]


@pytest.mark.parametrize("text", ["n", "n=", "=3", "n=x", "n=3;4", "1=2"])
def test_another_size_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--size cannot be"):
        timing.parse_sizes([text])
