from __future__ import annotations

from pathlib import Path

from tests.unit.facts.installs import put
from tritonsmith.facts import gpu_runtimes
from tritonsmith.facts.gpu_runtimes import Rocm


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
    assert gpu_runtimes.rocm(tmp_path) == Rocm("6.4.0-47", "6.4.43482", "3.4.0")
    assert gpu_runtimes.rocm(tmp_path / "none") == Rocm()


def test_wheels() -> None:
    dists = (
        ("nvidia-cuda-runtime", "13.0.96"),
        ("nvidia-cudnn-cu12", "9.10.2.21"),
        ("nvidia-cudnn-frontend", "1.0"),
    )
    assert gpu_runtimes.wheels(dists, "cudnn") == "nvidia-cudnn-cu12 9.10.2.21"
    assert gpu_runtimes.wheels(dists, "cuda-runtime") == "nvidia-cuda-runtime 13.0.96"
    assert gpu_runtimes.wheels(dists, "cublas") == ""


def test_conda(tmp_path: Path) -> None:
    put(tmp_path, {"conda-meta/cuda-nvcc-12.4.1-0.json": "no JSON", "conda-meta/history": ""})
    assert gpu_runtimes.conda(tmp_path) == (("cuda-nvcc", "12.4.1"),)
    assert gpu_runtimes.conda(tmp_path / "none") == ()
