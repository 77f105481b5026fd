"""The machine part of `doctor --report`: system, processor, GPUs and their libraries."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from pathlib import Path

from tritonsmith.doctor.context import DoctorContext
from tritonsmith.facts import cpu, gpu_runtimes, tools

_ALLOCATOR = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF")


def rows(subject: DoctorContext) -> Iterator[tuple[str, str]]:
    """Yield names and values, one row each."""
    yield from _system(subject)
    yield from _gpus(subject)
    yield from _libraries(subject)


def _system(subject: DoctorContext) -> Iterator[tuple[str, str]]:
    host = subject.host
    name = ""
    if host.system == "Linux":
        try:
            name = platform.freedesktop_os_release().get("PRETTY_NAME", "")
        except OSError:
            name = host.os_id
    yield "OS", f"{name or platform.platform()}, kernel {platform.release()}, {host.arch}"
    yield "Libc", f"glibc {host.glibc or 'none'}, GLIBCXX_{host.glibcxx or 'none'}"
    chip = cpu.read()
    yield "CPU", f"{chip.model}, {host.cores} cores usable, {host.memory_gib:.1f} GiB"
    if chip.sockets:
        shape = f"sockets: {chip.sockets}, cores per socket: {chip.cores}, threads per core: {chip.threads}"
        caches = f"L2 {chip.l2 or '?'}, L3 {chip.l3 or '?'}"
        yield "CPU topology", f"{shape}, caches: {caches}, NUMA nodes: {chip.numa_nodes or '?'}"
    yield "CPU vectors", " ".join(chip.vectors)


def _gpus(subject: DoctorContext) -> Iterator[tuple[str, str]]:
    descriptions = [f"{gpu.name} ({gpu.arch}, {gpu.memory_gib:.0f} GiB)" for gpu in subject.gpus.all]
    yield "GPU", "; ".join(descriptions) or "none"
    for vendor, driver in (("NVIDIA", subject.gpus.nvidia), ("AMD", subject.gpus.amd)):
        if driver:
            cuda = f", CUDA {driver.cuda}" if driver.cuda else ""
            yield f"{vendor} driver", f"{driver.version or '?'}{cuda} {driver.problem}".rstrip()


def _libraries(subject: DoctorContext) -> Iterator[tuple[str, str]]:
    dists = subject.packages.dists if subject.packages else ()
    nvcc = tools.find("nvcc")
    toolkit = f"nvcc {nvcc.version or '?'}" if nvcc else ""
    runtimes = (gpu_runtimes.wheels(dists, "cuda-runtime"), toolkit)
    yield "CUDA runtime", ", ".join(filter(None, runtimes)) or "none found"
    yield "cuDNN", gpu_runtimes.wheels(dists, "cudnn") or "no wheel of it (`--deep` queries torch)"
    rocm = gpu_runtimes.rocm(Path(subject.environ.get("ROCM_PATH") or "/opt/rocm"))
    yield "HIP runtime", f"{rocm.hip or 'none found'}{f', ROCm {rocm.version}' if rocm.version else ''}"
    yield "MIOpen", rocm.miopen or "none found"
    loading = subject.environ.get("CUDA_MODULE_LOADING")
    yield "CUDA_MODULE_LOADING", loading or "not set (LAZY is the default)"
    allocator = [f"{name}={subject.environ[name]}" for name in _ALLOCATOR if subject.environ.get(name)]
    yield "Caching allocator", ", ".join(allocator) or "not set"
