"""Theoretical occupancy, against what NVIDIA's cuda_occupancy.h (runtime 13.5) and LLVM 19 say."""

from __future__ import annotations

import pytest

from tritonsmith import configs
from tritonsmith.kernels.resources import occupancy

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


def test_every_family_is_there() -> None:
    table = configs.load("gpu-limits")["amd"]
    assert {name for _, name in table["families"]} == set(table["family"])
