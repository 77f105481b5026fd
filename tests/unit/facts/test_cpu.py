from __future__ import annotations

from pathlib import Path

from tests.unit.facts.installs import put
from tritonsmith.facts import cpu
from tritonsmith.facts.cpu import Cpu

FLAGS = "fpu sse2 sse4_2 avx avx2 avx512f amx_tile vaes smep"
X86 = f"processor\t: 0\nmodel name\t: AMD EPYC: 9654\nflags\t\t: {FLAGS}\n\nprocessor\t: 1\n"
ARM = "processor\t: 0\nFeatures\t: fp asimd sve sve2 sme\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\n"


def machine(root: Path, cpuinfo: str) -> tuple[Path, Path]:
    """Two sockets of two cores with two threads each, and a node for each socket."""
    files = {"cpuinfo": cpuinfo, "system/node/node0/x": "", "system/node/node1/x": ""}
    for number in range(8):
        topology = f"system/cpu/cpu{number}/topology"
        core = number % 4
        files[f"{topology}/physical_package_id"] = f"{core // 2}\n"
        files[f"{topology}/thread_siblings_list"] = f"{core},{core + 4}\n"
    for index, (level, size) in enumerate((("1", "32K"), ("1", "32K"), ("2", "1024K"), ("3", "32768K"))):
        files[f"system/cpu/cpu0/cache/index{index}/level"] = f"{level}\n"
        files[f"system/cpu/cpu0/cache/index{index}/size"] = f"{size}\n"
    put(root, files)
    return root / "cpuinfo", root / "system"


def test_x86(tmp_path: Path) -> None:
    vectors = ("amx_tile", "avx", "avx2", "avx512f", "sse4_2")
    assert cpu.read(*machine(tmp_path, X86)) == Cpu("AMD EPYC: 9654", 2, 2, 2, vectors, "1024K", "32768K", 2)


def test_arm_gives_numbers(tmp_path: Path) -> None:
    found = cpu.read(*machine(tmp_path, ARM))
    assert found.model.endswith("implementer 0x41 part 0xd4f")
    assert found.vectors == ("asimd", "sme", "sve", "sve2")


def test_where_the_kernel_tells_nothing(tmp_path: Path) -> None:
    found = cpu.read(tmp_path / "cpuinfo", tmp_path / "system")
    assert found == Cpu(found.model)
    assert found.model
