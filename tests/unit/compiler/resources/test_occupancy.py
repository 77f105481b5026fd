"""Theoretical occupancy, against what NVIDIA's cuda_occupancy.h (runtime 13.5) and LLVM 19 say."""

from __future__ import annotations

import pytest

from tritonsmith.compiler.resources import occupancy
from tritonsmith.core import configs

# compute capability, registers, threads, static, dynamic, barriers: blocks, limiter of cuda_occupancy.h
CALCULATED = [
    ("70", 45, 32, 0, 0, 1, 32, "blocks"),
    ("70", 147, 128, 1024, 24480, 8, 3, "registers"),
    ("70", 49, 128, 0, 47104, 8, 2, "shared memory"),
    ("75", 101, 256, 0, 43008, 16, 1, "shared memory"),
    ("75", 50, 512, 1024, 0, 16, 2, "warps"),
    ("80", 205, 128, 0, 0, 2, 2, "registers"),
    ("80", 235, 64, 1024, 80704, 8, 2, "shared memory"),
    ("80", 21, 512, 0, 0, 1, 4, "warps"),
    ("86", 75, 64, 1024, 0, 0, 12, "registers"),
    ("86", 69, 64, 0, 7168, 1, 12, "shared memory"),
    ("87", 30, 256, 0, 0, 1, 6, "warps"),
    ("89", 62, 256, 1024, 23952, 0, 3, "shared memory"),
    ("89", 41, 1024, 1024, 0, 1, 1, "warps"),
    ("90", 61, 32, 0, 0, 16, 4, "barriers"),
    ("90", 25, 32, 0, 0, 1, 32, "blocks"),
    ("90", 85, 128, 0, 0, 8, 5, "registers"),
    ("90", 72, 64, 0, 214512, 8, 1, "shared memory"),
    ("100", 18, 32, 0, 0, 2, 32, "blocks"),
    ("100", 28, 256, 0, 0, 0, 8, "warps"),
    ("103", 16, 32, 0, 0, 2, 16, "barriers"),
    ("110", 145, 256, 0, 217248, 0, 1, "registers"),
    ("120", 47, 64, 0, 0, 2, 12, "barriers"),
    ("121", 20, 64, 0, 0, 1, 24, "warps"),
]


@pytest.mark.parametrize("row", CALCULATED)
def test_nvidia(row: tuple[str, int, int, int, int, int, int, str]) -> None:
    arch, registers, threads, static, dynamic, barriers, blocks, limiter = row
    found = occupancy.nvidia(
        arch, registers=registers, threads=threads, static=static, dynamic=dynamic, barriers=barriers
    )
    assert found is not None
    assert (found.blocks, found.limiter) == (blocks, limiter)


def test_from_hopper_on_the_cubin_s_static_memory_holds_what_the_driver_reserves() -> None:
    def blocks(arch: str, static: int) -> int:
        found = occupancy.nvidia(arch, registers=32, threads=128, static=static, dynamic=49152, barriers=1)
        assert found is not None
        return found.blocks

    assert blocks("90", 0) == blocks("90", 1024) == 228 // 49
    assert blocks("80", 0) == 164 // 49
    assert blocks("80", 1024) == 164 // 50


# Triton's kernels by LLVM 19 to 22; `; Occupancy:` of the assembly
@pytest.mark.parametrize(
    ("arch", "wave", "vgprs", "threads", "waves"),
    [
        ("gfx906", 64, 168, 256, 1),
        ("gfx908", 64, 41, 256, 5),
        ("gfx90a", 64, 144, 256, 3),
        ("gfx90a", 64, 512, 64, 1),
        ("gfx942", 64, 140, 256, 3),
        ("gfx950", 64, 60, 256, 8),
        ("gfx1100", 32, 256, 128, 5),
        ("gfx1101", 32, 139, 128, 10),
        ("gfx1102", 32, 139, 128, 7),
        ("gfx1151", 32, 139, 128, 10),
        ("gfx1201", 32, 106, 128, 12),
    ],
)
def test_amd(arch: str, wave: int, vgprs: int, threads: int, waves: int) -> None:
    found = occupancy.amd(arch, wave=wave, vgprs=vgprs, sgprs=32, threads=threads, lds=0)
    assert found is not None
    assert found.warps == waves * occupancy.simds(arch)


def test_amd_is_limited_by_lds_and_by_work_groups() -> None:
    lds = occupancy.amd("gfx942", wave=64, vgprs=32, sgprs=32, threads=256, lds=33000)
    assert lds
    assert (lds.blocks, lds.limiter, lds.percent) == (1, "LDS", 12.5)
    groups = occupancy.amd("gfx90a", wave=64, vgprs=32, sgprs=32, threads=65, lds=0)
    assert groups
    assert (groups.blocks, groups.warps) == (16, 32)


def test_sgprs_limit_until_gfx9() -> None:
    found = occupancy.amd("gfx906", wave=64, vgprs=16, sgprs=102, threads=64, lds=0)
    assert found
    assert (found.warps // 4, found.limiter) == (7, "SGPRs")


def test_what_is_not_known_has_no_occupancy() -> None:
    assert occupancy.nvidia("999", registers=1, threads=32, static=0, dynamic=0, barriers=0) is None
    assert occupancy.nvidia("90", registers=1, threads=0, static=0, dynamic=0, barriers=0) is None
    assert occupancy.amd("gfx1250", wave=32, vgprs=1, sgprs=1, threads=32, lds=0) is None
    assert occupancy.amd("gfx942", wave=32, vgprs=1, sgprs=1, threads=32, lds=0) is None
    assert occupancy.simds("gfx1250") == 0


@pytest.mark.parametrize(
    ("arch", "change", "launch"),
    [
        # 227 KiB of an H100, 163 of an A100, 99 of an L4: "Maximum amount of shared memory per thread block"
        ("90", {"dynamic": 232448}, "yes"),
        ("90", {"dynamic": 232448, "static": 1024}, "yes"),
        ("90", {"dynamic": 232449}, "no: shared 232449 > 232448 B"),
        ("90", {"dynamic": 262144}, "no: shared 262144 > 232448 B"),
        ("80", {"dynamic": 163 * 1024}, "yes"),
        ("80", {"dynamic": 163 * 1024, "static": 16}, "no: shared 166928 > 166912 B"),
        ("89", {"dynamic": 101377}, "no: shared 101377 > 101376 B"),
        ("75", {"dynamic": 65536}, "yes"),
        ("75", {"dynamic": 65537}, "no: shared 65537 > 65536 B"),
        ("90", {"threads": 1024}, "yes"),
        ("90", {"threads": 2048}, "no: threads 2048 > 1024"),
        ("90", {"threads": 1024, "registers": 64}, "yes"),
        ("90", {"threads": 1024, "registers": 65}, "no: registers 73728 > 65536"),
        ("90", {"threads": 672, "registers": 96}, "no: not one block fits: registers"),
        ("100", {"tensor_columns": 512}, "yes"),
        ("100", {"tensor_columns": 640}, "no: tensor memory 640 > 512 columns"),
        ("80", {"threads": 2048, "dynamic": 262144}, "no: threads 2048 > 1024, shared 262144 > 166912 B"),
    ],
)
def test_what_cannot_be_launched(arch: str, change: dict[str, int], launch: str) -> None:
    plain = {"registers": 32, "threads": 128, "static": 0, "dynamic": 0, "barriers": 1}
    found = occupancy.nvidia(arch, **{**plain, **change})
    assert found
    assert found.launch == launch
    assert (found.blocks == 0) == (launch != "yes")


@pytest.mark.parametrize(
    ("arch", "wave", "threads", "lds", "launch"),
    [
        ("gfx942", 64, 1024, 65536, "yes"),
        ("gfx942", 64, 256, 65537, "no: LDS 65537 > 65536 B"),
        ("gfx942", 64, 2048, 0, "no: threads 2048 > 1024"),
        ("gfx950", 64, 256, 163840, "yes"),
        ("gfx950", 64, 256, 163841, "no: LDS 163841 > 163840 B"),
        ("gfx1100", 32, 256, 65536, "yes"),
        ("gfx1100", 32, 256, 100000, "no: LDS 100000 > 65536 B"),  # though two of its units have 128 KiB
    ],
)
def test_what_cannot_be_launched_on_amd(arch: str, wave: int, threads: int, lds: int, launch: str) -> None:
    found = occupancy.amd(arch, wave=wave, vgprs=32, sgprs=32, threads=threads, lds=lds)
    assert found
    assert found.launch == launch
    assert (found.blocks == 0) == (launch != "yes")


def test_a_block_has_all_but_what_the_driver_reserves() -> None:
    rows = configs.load("gpu-limits")["nvidia"]["arch"].values()
    assert all(row["shared-block"] * 1024 == row["shared"] * 1024 - row["reserved"] for row in rows)


def test_every_family_is_there() -> None:
    table = configs.load("gpu-limits")["amd"]
    assert {name for _, name in table["families"]} == set(table["family"])
