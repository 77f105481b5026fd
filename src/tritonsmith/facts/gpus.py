"""Read the GPUs of this machine, their drivers, errors and libraries, without CUDA and ROCm.

NVIDIA's GPUs come from NVML and nvidia-smi, AMD's from sysfs, versions of libraries from files.
"""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from xml.etree import ElementTree as ET

from tritonsmith.core import process, untrusted
from tritonsmith.core.process import capture
from tritonsmith.core.untrusted import text_if_any
from tritonsmith.facts.package_owners import text_of_file

_GIB = float(1 << 30)
_NVIDIA_NODES = ("nvidiactl", "nvidia[0-9]*", "dxg")  # dxg: the Windows subsystem for Linux
_VRAM_HEAPS = ("1", "2")  # HSA_HEAPTYPE_FRAME_BUFFER_PUBLIC and _PRIVATE, kfd_topology.h
_RELEASE = b"Cuda compilation tools, release "


@dataclass(frozen=True)
class Gpu:
    """One GPU.

    Attributes:
        vendor: the vendor.
        name: as its driver gives it: `NVIDIA H200`.
        arch: compute capability (`9.0`), or gfx name (`gfx942`).
        memory: bytes; 0 if unknown.
    """

    vendor: Literal["nvidia", "amd"]
    name: str
    arch: str
    memory: int = 0

    @property
    def memory_gib(self) -> float:
        """The memory in GiB."""
        return self.memory / _GIB


@dataclass(frozen=True)
class Driver:
    """A driver with existing device files.

    Attributes:
        version: `570.124.06`; empty if unknown.
        cuda: newest CUDA that NVIDIA's driver supports, `12.8`; empty for AMD's.
        problem: why it does not respond or is not accessible; empty if it works.
    """

    version: str = ""
    cuda: str = ""
    problem: str = ""


@dataclass(frozen=True)
class Gpus:
    """The GPUs and drivers of a machine, which may have none.

    Attributes:
        all: every GPU.
        nvidia: NVIDIA's driver; None if there are none of its device files.
        amd: AMD's driver; None if there is no `/dev/kfd` and no GPU in its topology.
    """

    all: tuple[Gpu, ...] = ()
    nvidia: Driver | None = None
    amd: Driver | None = None

    def of(self, vendor: str) -> tuple[Gpu, ...]:
        """Return the GPUs of one vendor."""
        return tuple(gpu for gpu in self.all if gpu.vendor == vendor)


def read(dev: Path = Path("/dev"), sys: Path = Path("/sys"), proc: Path = Path("/proc")) -> Gpus:
    """Return the GPUs of this machine, from its device files, sysfs and procfs."""
    nvidia, nvidia_gpus = _nvidia(dev, proc)
    amd, amd_gpus = _amd(dev, sys)
    return Gpus((*nvidia_gpus, *amd_gpus), nvidia, amd)


def _nvidia(dev: Path, proc: Path) -> tuple[Driver | None, tuple[Gpu, ...]]:
    # Device files first: loading NVML where no driver is takes its time, and in some containers hangs.
    if not any(next(dev.glob(pattern), None) for pattern in _NVIDIA_NODES):
        return None, ()
    import pynvml  # noqa: PLC0415 - 25 ms, and most machines that build have no GPU

    # Known even where NVML fails: "Driver/library version mismatch" is the usual state after an update
    # without a reboot, and the version tells which of the two is old.
    loaded = _kernel_module(proc)
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return Driver(loaded, problem=f"NVML: {error}"), ()
    try:
        version = _text(_ask(pynvml, pynvml.nvmlSystemGetDriverVersion) or loaded)
        return Driver(version, cuda=_cuda_of_driver(pynvml)), tuple(_devices(pynvml))
    except pynvml.NVMLError as error:
        return Driver(loaded, problem=f"NVML: {error}"), ()
    finally:
        _ask(pynvml, pynvml.nvmlShutdown)


def _kernel_module(proc: Path) -> str:
    """Return the version of the loaded kernel module; other versions' libraries cannot use it."""
    text = text_if_any(proc / "driver" / "nvidia" / "version")
    match = re.search(r"Kernel Module(?: for \S+)?\s+(\d+\.\d+(?:\.\d+)?)", text)
    return match[1] if match else ""


def _devices(nvml: Any) -> Iterator[Gpu]:
    for index in range(nvml.nvmlDeviceGetCount()):
        handle = _ask(nvml, nvml.nvmlDeviceGetHandleByIndex, index)
        if handle is None:  # lost, or not for this container
            continue
        name = _ask(nvml, nvml.nvmlDeviceGetName, handle) or "NVIDIA GPU"
        major, minor = _ask(nvml, nvml.nvmlDeviceGetCudaComputeCapability, handle) or (0, 0)
        # Not supported on a GB10, which shares the processor's memory.
        memory = _ask(nvml, nvml.nvmlDeviceGetMemoryInfo, handle)
        arch = f"{major}.{minor}" if major else ""
        yield Gpu("nvidia", _text(name), arch, int(memory.total) if memory else 0)


def _cuda_of_driver(nvml: Any) -> str:
    """Return the driver's CUDA: 12080 is 12.8."""
    # The first form asks libcuda.so.1, which a container may lack; the second is NVML's own number.
    number = _ask(nvml, nvml.nvmlSystemGetCudaDriverVersion_v2) or _ask(
        nvml, nvml.nvmlSystemGetCudaDriverVersion
    )
    return f"{number // 1000}.{number % 1000 // 10}" if number else ""


def _ask(nvml: Any, question: Callable[..., Any], *arguments: Any) -> Any:
    """Return an answer of NVML; None where this device or driver has none."""
    try:
        return question(*arguments)
    except nvml.NVMLError:
        return None


def _text(value: str | bytes) -> str:
    """Return an answer as text; older bindings answer in bytes."""
    return value.decode("utf-8", errors="replace") if isinstance(value, bytes) else value


def _amd(dev: Path, sys: Path) -> tuple[Driver | None, tuple[Gpu, ...]]:
    nodes = sorted((sys / "class/kfd/kfd/topology/nodes").glob("*"), key=lambda node: node.name.zfill(4))
    compute_gpus = tuple(gpu for gpu in map(_amd_gpu, nodes) if gpu)
    kfd = dev / "kfd"
    if not compute_gpus and not kfd.exists():
        return None, ()
    return Driver(text_if_any(sys / "module/amdgpu/version"), problem=_access(kfd)), compute_gpus


def _amd_gpu(node: Path) -> Gpu | None:
    """Return the GPU of a node of the topology; None for a processor."""
    properties = _properties(node / "properties")
    # The kernel's topology has the processors as nodes too; only GPUs have SIMD units.
    if not int(properties.get("simd_count", 0)):
        return None
    banks = map(_properties, node.glob("mem_banks/*/properties"))
    memory = sum(int(bank.get("size_in_bytes", 0)) for bank in banks if bank.get("heap_type") in _VRAM_HEAPS)
    arch = _gfx(int(properties.get("gfx_target_version", 0)))
    return Gpu("amd", text_if_any(node / "name") or "AMD GPU", arch, memory)


def _gfx(number: int) -> str:
    """Return the gfx name of a number: 90402 is gfx942, 90010 is gfx90a, 110000 is gfx1100."""
    return f"gfx{number // 10000}{number // 100 % 100:x}{number % 100:x}" if number else ""


def _properties(file: Path) -> dict[str, str]:
    """Return the lines of a name and a number; empty if the file may not be read."""
    pairs = (line.split() for line in text_if_any(file).splitlines())
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2 and pair[1].isdigit()}  # noqa: PLR2004


def _access(kfd: Path) -> str:
    if not kfd.exists():
        return f"no {kfd}"
    if os.access(kfd, os.R_OK | os.W_OK):
        return ""
    try:
        group = kfd.group()
    except KeyError:  # a container does not know the host's groups
        group = str(kfd.stat().st_gid)
    return f"{kfd} is not accessible to this user; it belongs to the group {group}"


@dataclass(frozen=True)
class LibCuda:
    """The place where Triton would find the driver's library.

    Attributes:
        library: libcuda.so.1; None if there is none.
        by: its origin: `TRITON_LIBCUDA_PATH`, `ldconfig`, `LD_LIBRARY_PATH`.
        problem: why there is none, in words.
    """

    library: Path | None
    by: str = ""
    problem: str = ""


def libcuda(environ: Mapping[str, str], ldconfig: Path = Path("/sbin/ldconfig")) -> LibCuda:
    """Search as Triton does (`libcuda_dirs`, third_party/nvidia/backend/driver.py, 3.0 and later)."""
    if named := environ.get("TRITON_LIBCUDA_PATH"):
        library = Path(named) / "libcuda.so.1"
        problem = "" if library.exists() else f"no libcuda.so.1 in TRITON_LIBCUDA_PATH={named}"
        return LibCuda(None if problem else library, "TRITON_LIBCUDA_PATH", problem)
    # Triton calls exactly `/sbin/ldconfig`: on NixOS there is none, and the import fails although the
    # driver is fine (triton#2110, #1981).
    listing = capture((str(ldconfig), "-p"))
    if listing is None:
        return LibCuda(None, "ldconfig", f"no {ldconfig}, which Triton runs")
    # LD_LIBRARY_PATH counts only if the cache has no entry at all, existing or not.
    listed = [line.split()[-1] for line in listing.splitlines() if "libcuda.so.1" in line]
    by = "ldconfig" if listed else "LD_LIBRARY_PATH"
    folders = environ.get("LD_LIBRARY_PATH", "").split(":")
    candidates: Iterable[str] = listed or [f"{folder}/libcuda.so.1" for folder in folders if folder]
    library_there = next((Path(path) for path in candidates if Path(path).exists()), None)
    problem = "" if library_there else f"{ldconfig} lists no existing libcuda.so.1"
    return LibCuda(library_there, by, problem)


def cuda_release(program: Path) -> str:
    """Return the CUDA release of ptxas, cuobjdump or nvdisasm, `12.8`, from the text of its `--version`.

    The program is read and not run: it may be another machine's.

    Returns:
        Empty if it is none of them, or a script around one.
    """
    try:
        with (
            untrusted.opened(program) as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
        ):
            # The text is near the end of some 35 MB, so the search begins there (20 ms).
            at = len(content)
            while (at := content.rfind(_RELEASE, 0, at)) >= 0:
                text = content[at + len(_RELEASE) : at + len(_RELEASE) + 8]
                if match := re.match(rb"\d+\.\d+", text):  # a format string begins alike: "%d.%d,"
                    return match[0].decode()
    # An empty file cannot be mapped (ValueError).
    except (OSError, ValueError):
        pass
    return ""


_SMI_PATIENCE = 20.0  # seconds; a GPU that hangs makes it wait
_UNTOLD = re.compile(
    r"\[?(N/A|Not Supported|Unknown Error|Not Found|Requested functionality .*)?\]?", re.IGNORECASE
)


class SmiError(Exception):
    """An unreadable answer of nvidia-smi; the text says why."""


@dataclass(frozen=True)
class SmiGpu:
    """One GPU.

    Attributes:
        name: the product, and its place on the bus.
        element: the GPU's part of the answer.
    """

    name: str
    element: ET.Element

    def value(self, *paths: str) -> str:
        """Return the text of the first of these elements that has one; empty if none does."""
        # Drivers rename elements, and fill in `N/A` for what this GPU does not report.
        texts = ((self.element.findtext(path) or "").strip() for path in paths)
        return next((text for text in texts if not _UNTOLD.fullmatch(text)), "")

    def anywhere(self, texts: list[str]) -> str:
        """Return the first text of any of its elements that holds one of these; empty if there is none."""
        contents = (" ".join((element.text or "").split()) for element in self.element.iter())
        return next((content for content in contents if any(text in content for text in texts)), "")


def read_smi() -> tuple[SmiGpu, ...]:
    """Ask nvidia-smi.

    Raises:
        SmiError: it is missing, fails, or does not answer in time.
    """
    program = process.which("nvidia-smi")
    if not program:
        raise SmiError("no nvidia-smi on PATH")
    answer = process.query((program, "-q", "-x"), timeout=_SMI_PATIENCE)
    if answer is None:
        raise SmiError(f"nvidia-smi -q -x did not answer within {_SMI_PATIENCE:.0f} s")
    if answer.code:
        lines = (answer.out or answer.err).splitlines()
        raise SmiError(f"nvidia-smi ends with {answer.code}: {lines[-1] if lines else 'no output'}")
    return parse_smi(answer.out)


def parse_smi(text: str) -> tuple[SmiGpu, ...]:
    """Return the GPUs of an answer.

    Raises:
        SmiError: the text is not such an answer.
    """
    # ElementTree expands entities, and nested ones fill the memory ("billion laughs").
    if "<!ENTITY" in text:
        raise SmiError("nvidia-smi -q -x defines entities: refused")
    try:
        root = ET.fromstring(text)  # noqa: S314 - without entities, whose expansion is what is dangerous
    except ET.ParseError as error:
        raise SmiError(f"nvidia-smi -q -x is not XML: {error}") from error
    return tuple(
        SmiGpu(f"{(gpu.findtext('product_name') or 'GPU').strip()} at {gpu.get('id', 'unknown')}", gpu)
        for gpu in root.findall("gpu")
    )


# `NVRM: Xid (PCI:0000:06:00): 79, pid=1234, name=python3, GPU has fallen off the bus.`; some leave out PCI:
_XID = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9A-Fa-f:.]+)\): (\d+)\b")
_SOURCES = (("dmesg",), ("journalctl", "--dmesg", "--boot", "--quiet", "--no-pager", "--output=cat"))
_LOG_PATIENCE = 10.0  # seconds


def read_kernel_log() -> str | None:
    """Return the kernel's log; None if this user may not read it."""
    for argv in _SOURCES:
        text = process.capture(argv, timeout=_LOG_PATIENCE)
        if text:
            return text
    return None


def xids(lines: Iterable[str]) -> tuple[tuple[int, str], ...]:
    """Return number and place on the bus of each Xid, an error that NVIDIA's driver logged, in order.

    Names of programs are left out.
    """
    matches = (_XID.search(line) for line in lines)
    return tuple((int(match[2]), match[1]) for match in matches if match)


@dataclass(frozen=True)
class Rocm:
    """A ROCm installation; texts are empty for missing parts.

    Attributes:
        version: version of ROCm as a whole.
        hip: version of HIP's runtime.
        miopen: version of MIOpen.
    """

    version: str = ""
    hip: str = ""
    miopen: str = ""


def rocm(root: Path) -> Rocm:
    """Return the ROCm in a folder, usually `/opt/rocm`, which may be missing."""
    return Rocm(
        version=text_of_file(root / ".info" / "version").strip(),
        hip=_defined(root / "include" / "hip" / "hip_version.h", "HIP_VERSION"),
        miopen=_defined(root / "include" / "miopen" / "version.h", "MIOPEN_VERSION"),
    )


def runtime_wheels(dists: Iterable[tuple[str, str]], library: str) -> str:
    """Return NVIDIA's wheels of a library: `nvidia-cudnn-cu12 9.10.2.21`; CUDA 13 drops some `-cuNN`."""
    pattern = re.compile(rf"nvidia-{library}(-cu\d+)?")
    return ", ".join(f"{name} {version}" for name, version in dists if pattern.fullmatch(name))


def conda_runtimes(prefix: Path) -> tuple[tuple[str, str], ...]:
    """Return name and version of every package of a Conda environment; nothing for another prefix.

    The names of its files tell both (`NAME-VERSION-BUILD.json`), so none is read.
    """
    stems = (path.stem.rsplit("-", 2) for path in sorted((prefix / "conda-meta").glob("*-*-*.json")))
    return tuple((name, version) for name, version, _ in stems)


def _defined(header: Path, prefix: str) -> str:
    parts = dict(
        re.findall(rf"^#define\s+{prefix}_(MAJOR|MINOR|PATCH)\s+(\d+)", text_of_file(header), re.MULTILINE)
    )
    return ".".join(parts[part] for part in ("MAJOR", "MINOR", "PATCH") if part in parts)
