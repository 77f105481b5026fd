from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import as_plain_user
from tests.unit.facts.installs import put
from tritonsmith.facts import gpus
from tritonsmith.facts.gpus import Driver, Gpu, Gpus, Rocm

GIB = 1 << 30
NVRM = """NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.124.06  Release Build  (dvs@U16)
GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)
"""


def test_this_machine() -> None:
    """Whatever it has: no crash, and what is found is whole."""
    seen = gpus.read()
    assert all(gpu.name and gpu.vendor in ("nvidia", "amd") for gpu in seen.all)
    assert seen.nvidia is not None or seen.of("nvidia") == ()


def test_no_device_files(tmp_path: Path) -> None:
    assert gpus.read(tmp_path, tmp_path, tmp_path) == Gpus()


@pytest.mark.parametrize("node", ["nvidiactl", "nvidia0", "dxg"])
def test_nvidia_s_device_files(tmp_path: Path, node: str) -> None:
    """Made without a driver: NVML does not answer, and says why; where there is one, it does."""
    (tmp_path / "driver/nvidia").mkdir(parents=True)
    (tmp_path / "driver/nvidia/version").write_text(NVRM)
    (tmp_path / node).touch()
    seen = gpus.read(tmp_path, tmp_path, tmp_path)
    assert seen.nvidia is not None
    if seen.nvidia.problem:
        assert seen.nvidia.problem.startswith("NVML: ")
        assert seen.nvidia.version == "570.124.06"
        assert seen.all == ()
    else:
        assert seen.nvidia.cuda


@pytest.mark.parametrize(
    ("text", "version"),
    [
        (NVRM, "570.124.06"),
        (
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC 2024",
            "535.183.01",
        ),
        ("something else", ""),
    ],
)
def test_the_loaded_module(tmp_path: Path, text: str, version: str) -> None:
    (tmp_path / "driver/nvidia").mkdir(parents=True)
    (tmp_path / "driver/nvidia/version").write_text(text)
    assert gpus._kernel_module(tmp_path) == version


def node(sys: Path, number: int, name: str, properties: dict[str, int], banks: dict[int, int]) -> None:
    """A node of the kernel's topology: its properties, and memory banks, kind to bytes."""
    folder = sys / "class/kfd/kfd/topology/nodes" / str(number)
    folder.mkdir(parents=True)
    (folder / "name").write_text(f"{name}\n")
    (folder / "gpu_id").write_text("1\n")
    text = "".join(f"{key} {value}\n" for key, value in properties.items())
    (folder / "properties").write_text(text)
    for index, (kind, size) in enumerate(banks.items()):
        bank = folder / "mem_banks" / str(index)
        bank.mkdir(parents=True)
        (bank / "properties").write_text(f"heap_type {kind}\nsize_in_bytes {size}\nflags 0\nwidth 8192\n")


CPU = {"cpu_cores_count": 96, "simd_count": 0, "gfx_target_version": 0}
MI300X = {"cpu_cores_count": 0, "simd_count": 1216, "gfx_target_version": 90402, "vendor_id": 4098}


@pytest.fixture
def amd(tmp_path: Path) -> Path:
    """A processor and two MI300X, as the kernel shows them; its driver, and the device."""
    node(tmp_path, 0, "", CPU, {0: 512 * GIB})
    node(tmp_path, 1, "ip discovery", MI300X, {1: 192 * GIB})
    node(tmp_path, 10, "ip discovery", MI300X, {1: 128 * GIB, 2: 64 * GIB, 0: 7})
    (tmp_path / "module/amdgpu").mkdir(parents=True)
    (tmp_path / "module/amdgpu/version").write_text("6.12.12\n")
    (tmp_path / "kfd").touch()
    return tmp_path


def test_amd_s_topology(amd: Path) -> None:
    seen = gpus.read(amd, amd, amd)
    assert seen.all == (Gpu("amd", "ip discovery", "gfx942", 192 * GIB),) * 2
    assert seen.amd == Driver("6.12.12")
    assert seen.nvidia is None
    assert seen.of("amd")[0].memory_gib == 192.0


def test_a_node_that_this_container_may_not_read(amd: Path) -> None:
    properties = amd / "class/kfd/kfd/topology/nodes/10/properties"
    properties.unlink()
    properties.mkdir()
    assert len(gpus.read(amd, amd, amd).all) == 1


def test_the_kernel_s_own_driver_tells_no_version(amd: Path) -> None:
    (amd / "module/amdgpu/version").unlink()
    assert gpus.read(amd, amd, amd).amd == Driver()


def test_kfd_is_missing(amd: Path) -> None:
    (amd / "kfd").unlink()
    seen = gpus.read(amd, amd, amd).amd
    assert seen is not None
    assert seen.problem == f"no {amd / 'kfd'}"


def test_kfd_is_closed(amd: Path) -> None:
    (amd / "kfd").chmod(0)
    seen = as_plain_user(lambda: gpus.read(amd, amd, amd)).amd
    assert seen is not None
    assert "is not accessible to this user; it belongs to the group" in seen.problem


@pytest.mark.parametrize(
    ("number", "name"),
    [
        *((90006, "gfx906"), (90008, "gfx908"), (90010, "gfx90a"), (90402, "gfx942"), (90500, "gfx950")),
        *((100300, "gfx1030"), (110000, "gfx1100"), (110501, "gfx1151"), (120001, "gfx1201")),
        *((120500, "gfx1250"), (0, "")),
    ],
)
def test_names_of_architectures(number: int, name: str) -> None:
    assert gpus._gfx(number) == name


# --- libcuda


def ldconfig(folder: Path, *libraries: Path) -> Path:
    """A program that lists these, and others, as /sbin/ldconfig does."""
    lines = [f"\t{path.name} (libc6,x86-64) => {path}" for path in libraries]
    text = "\n".join(
        ("2 libs found in cache `/etc/ld.so.cache'", "\tlibc.so.6 (libc6) => /lib/libc.so.6", *lines)
    )
    program = folder / "ldconfig"
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{text}\nEND\n")
    program.chmod(0o755)
    return program


@pytest.fixture
def library(tmp_path: Path) -> Path:
    (tmp_path / "lib").mkdir()
    path = tmp_path / "lib" / "libcuda.so.1"
    path.touch()
    return path


def test_ldconfig_lists_it(tmp_path: Path, library: Path) -> None:
    program = ldconfig(tmp_path, tmp_path / "gone" / "libcuda.so.1", library)
    found = gpus.libcuda({"LD_LIBRARY_PATH": "/elsewhere"}, program)
    assert (found.library, found.by, found.problem) == (library, "ldconfig", "")


def test_ld_library_path_counts_where_ldconfig_lists_none(tmp_path: Path, library: Path) -> None:
    program = ldconfig(tmp_path)
    found = gpus.libcuda({"LD_LIBRARY_PATH": f":/elsewhere:{library.parent}"}, program)
    assert (found.library, found.by) == (library, "LD_LIBRARY_PATH")
    lost = gpus.libcuda({}, program)
    assert lost.library is None
    assert lost.problem == f"{program} lists no existing libcuda.so.1"


def test_ldconfig_lists_one_that_is_gone(tmp_path: Path, library: Path) -> None:
    """LD_LIBRARY_PATH is only asked where nothing is listed."""
    program = ldconfig(tmp_path, tmp_path / "gone" / "libcuda.so.1")
    assert gpus.libcuda({"LD_LIBRARY_PATH": str(library.parent)}, program).library is None


def test_no_ldconfig(tmp_path: Path, library: Path) -> None:
    missing = tmp_path / "sbin" / "ldconfig"
    lost = gpus.libcuda({"LD_LIBRARY_PATH": str(library.parent)}, missing)
    assert lost.problem == f"no {missing}, which Triton runs"
    found = gpus.libcuda({"TRITON_LIBCUDA_PATH": str(library.parent)}, missing)
    assert (found.library, found.by) == (library, "TRITON_LIBCUDA_PATH")


def test_the_variable_names_a_folder_without_it(tmp_path: Path, library: Path) -> None:
    program = ldconfig(tmp_path, library)
    assert gpus.libcuda({"TRITON_LIBCUDA_PATH": ""}, program).library == library
    for wrong in (tmp_path, library):
        found = gpus.libcuda({"TRITON_LIBCUDA_PATH": str(wrong)}, program)
        assert found.library is None
        assert f"no libcuda.so.1 in TRITON_LIBCUDA_PATH={wrong}" in found.problem


# --- the release of ptxas


@pytest.mark.parametrize(
    ("content", "release"),
    [
        (b"\x7fELF\0Cuda compilation tools, release 12.8, V12.8.93\0Build\0", "12.8"),
        (
            b"\0Cuda compilation tools, release 13.4, V13.4.59\0Cuda compilation tools, release %d.%d,\0",
            "13.4",
        ),
        (b"\0Cuda compilation tools, release %d.%d,\0", ""),
        (b'#!/bin/sh\nexec /usr/local/cuda/bin/ptxas "$@"\n', ""),
        (b"Cuda compilation tools, release ", ""),
        (b"", ""),
    ],
)
def test_the_release_of_a_program(tmp_path: Path, content: bytes, release: str) -> None:
    (tmp_path / "ptxas").write_bytes(content)
    assert gpus.cuda_release(tmp_path / "ptxas") == release
    assert gpus.cuda_release(tmp_path / "none") == ""
    assert gpus.cuda_release(tmp_path) == ""


def test_rocm(tmp_path: Path) -> None:
    hip = "#define HIP_VERSION_MAJOR 6\n#define HIP_VERSION_MINOR 4\n#define HIP_VERSION_PATCH 43482\n"
    miopen = (
        "#define MIOPEN_VERSION_MAJOR 3\n#define MIOPEN_VERSION_MINOR 4\n#define MIOPEN_VERSION_PATCH 0\n"
    )
    put(
        tmp_path,
        {
            ".info/version": "6.4.0-47\n",
            "include/hip/hip_version.h": hip,
            "include/miopen/version.h": miopen,
        },
    )
    assert gpus.rocm(tmp_path) == Rocm("6.4.0-47", "6.4.43482", "3.4.0")
    assert gpus.rocm(tmp_path / "none") == Rocm()


def test_wheels() -> None:
    dists = (
        ("nvidia-cuda-runtime", "13.0.96"),
        ("nvidia-cudnn-cu12", "9.10.2.21"),
        ("nvidia-cudnn-frontend", "1.0"),
    )
    assert gpus.runtime_wheels(dists, "cudnn") == "nvidia-cudnn-cu12 9.10.2.21"
    assert gpus.runtime_wheels(dists, "cuda-runtime") == "nvidia-cuda-runtime 13.0.96"
    assert gpus.runtime_wheels(dists, "cublas") == ""


def test_conda(tmp_path: Path) -> None:
    put(tmp_path, {"conda-meta/cuda-nvcc-12.4.1-0.json": "no JSON", "conda-meta/history": ""})
    assert gpus.conda_runtimes(tmp_path) == (("cuda-nvcc", "12.4.1"),)
    assert gpus.conda_runtimes(tmp_path / "none") == ()
