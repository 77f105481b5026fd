"""Time compiled kernels on the GPU that is there, by its driver alone.

    python time_binaries.py JOB TIMES           time all kernels of a job, a file; write another file
    python time_binaries.py JOB --probe         say which GPU is there
    python time_binaries.py JOB --kernel 2 [--without LABEL ...]    time one kernel, in this process

This file needs Python 3.8 and the driver's library, nothing else: neither Triton nor torch nor the rest of
this tool. It may be copied to the machine with the GPU, beside the job and its binaries. Each kernel runs in
a process of its own, because an illegal address makes all further calls of its process fail.

The calls are those of Triton's own launchers (third_party/nvidia/backend/driver.c, third_party/amd/backend/
driver.py), of triton.testing.do_bench, and of NVML. The HIP part has the same shape, and was never run.
"""

from __future__ import annotations

import array
import ctypes
import json
import math
import operator
import os
import random
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

SCHEMA = 1
CONTROL = ""  # the label of the first binary's second entry
# Elements of the pattern that fills a buffer again and again. A prime, so that no two rows of a matrix whose
# length is a power of two are the same.
PERIOD = 65521
_LIMIT = 600  # seconds for one kernel, its reruns not counted
_BLOCK = 4096  # elements that are compared at once
_FLOATS = {"fp16": "e", "fp32": "f", "fp64": "d"}
_INTEGERS = {"i1": "b", "i8": "b", "i16": "h", "i32": "i", "i64": "q"}
_SIZES = {"bf16": 2, "fp8e5": 1, "fp8e4nv": 1, "fp8e4b15": 1, "fp8e4b8": 1, "fp8e5b16": 1}
_TABLES = {2: 1 << 16, 1: 1 << 8}
# Of the largest number in the first's output, by the type of the output: other orders of sums, and products
# in tf32, stay below.
TOLERANCES = {"fp64": 1e-9, "fp32": 2e-3, "fp16": 1e-2, "bf16": 3e-2}
_ROUGH = 0.25  # types of eight bits
_FP8_INFINITE = 31  # the exponent of fp8e5's infinities and NaNs


@dataclass(frozen=True)
class Buffer:
    """Memory that a pointer of the kernel leads to.

    Attributes:
        name: the parameter's name.
        dtype: type of an element, as Triton spells it: `fp16`.
        elements: number of elements.
        fill: `random` (numbers from `low` to `high`), `zeros`, or `values`.
        low: the least random number.
        high: the largest.
        values: all elements, such as the ends of sequences.
    """

    name: str
    dtype: str
    elements: int
    fill: str = "random"
    low: float = -1.0
    high: float = 1.0
    values: tuple[float, ...] = ()


@dataclass(frozen=True)
class Parameter:
    """One parameter of the kernel's source that is no constant.

    Attributes:
        name: its name.
        kind: its type, as Triton spells it: `*fp16`, `i32`.
        buffer: number of its buffer; -1 for a scalar.
        value: its value, if it is a scalar.
    """

    name: str
    kind: str
    buffer: int = -1
    value: float = 0


@dataclass(frozen=True)
class TimedBinary:
    """A compiled kernel.

    Attributes:
        label: its name in tables: the Triton that compiled it.
        path: the cubin or hsaco; relative to the job's folder.
        symbol: name of the function in it.
        parameters: numbers of the kernel's parameters that it takes, in order.
        grid: number of programs along each axis.
        threads: threads of a block.
        shared: bytes of dynamic shared memory.
        ctas: blocks of a cluster.
        cooperative: True if all blocks must run at once.
        scratch: for each pointer that the compiler appended, bytes per program (0: the pointer is null).
        figures: what is known about the code: registers, spills; passed on to the result.
    """

    label: str
    path: str
    symbol: str
    parameters: tuple[int, ...]
    grid: tuple[int, int, int]
    threads: int
    shared: int = 0
    ctas: int = 1
    cooperative: bool = False
    scratch: tuple[int, ...] = ()
    figures: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TimedKernel:
    """A kernel, its arguments, and the binaries to compare; the first is what others are compared with.

    Attributes:
        name: its name in tables.
        buffers: the memory of all binaries.
        parameters: those that any of the binaries takes.
        binaries: in the order of tables.
        lost: labels and reasons of compiles that have no binary, and are failures of the result.
    """

    name: str
    buffers: tuple[Buffer, ...]
    parameters: tuple[Parameter, ...]
    binaries: tuple[TimedBinary, ...]
    lost: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Method:
    """A way to measure.

    Attributes:
        rounds: how often each binary has its turn; the order within a round is random.
        samples: measurements of a binary in its turn, after one launch that is not measured.
        seconds: about the time that a kernel's rounds may take: fewer samples, then fewer rounds, if slow.
        warm: leave the L2 cache as the launch before left it.
        flush: bytes that are written before each sample; 0 for twice the L2 cache that the driver reports.
        seed: of the contents and of the order.
        device: number of the GPU.
        tolerance: of outputs, of the largest number in the first's; 0 for that of the type.
    """

    rounds: int = 30
    samples: int = 8
    seconds: float = 10.0
    warm: bool = False
    flush: int = 0
    seed: int = 0
    device: int = 0
    tolerance: float = 0.0


@dataclass(frozen=True)
class Job:
    """The kernels to time, and by which driver: `cuda` or `hip`."""

    backend: str
    kernels: tuple[TimedKernel, ...]
    method: Method = Method()


def read_job(content: Mapping[str, Any]) -> Job:
    """Return the job that a JSON object says.

    Raises:
        ValueError: it is of another version.
    """
    if content.get("schema") != SCHEMA:
        raise ValueError("this job was written by another version of tritonsmith")
    kernels = []
    for row in content["kernels"]:
        binaries = tuple(
            TimedBinary(
                **dict(
                    each,
                    parameters=tuple(each["parameters"]),
                    grid=tuple(each["grid"]),
                    scratch=tuple(each["scratch"]),
                )
            )
            for each in row["binaries"]
        )
        buffers = tuple(Buffer(**dict(each, values=tuple(each["values"]))) for each in row["buffers"])
        parameters = tuple(Parameter(**each) for each in row["parameters"])
        lost = tuple((label, why) for label, why in row.get("lost", ()))
        kernels.append(TimedKernel(row["name"], buffers, parameters, binaries, lost))
    return Job(content["backend"], tuple(kernels), Method(**content["method"]))


class GpuError(Exception):
    """A call of the driver that failed: its name, and the driver's word for the error."""


# Names of the calls. A library may have several versions of one; `_v2` of the first CUDA releases took other
# types (cuda.h).
_CALLS = {
    "cuda": {
        "init": "cuInit",
        "version": "cuDriverGetVersion",
        "device_name": "cuDeviceGetName",
        "total": "cuDeviceTotalMem_v2",
        "bus": "cuDeviceGetPCIBusId",
        "alloc": "cuMemAlloc_v2",
        "free": "cuMemFree_v2",
        "to_device": "cuMemcpyHtoD_v2",
        "to_host": "cuMemcpyDtoH_v2",
        "copy": "cuMemcpyDtoDAsync_v2",
        "fill": "cuMemsetD32Async",
        "load": "cuModuleLoadData",
        "function": "cuModuleGetFunction",
        "launch": "cuLaunchKernel",
        "stream": "cuStreamCreate",
        "synchronize": "cuStreamSynchronize",
        "event": "cuEventCreate",
        "record": "cuEventRecord",
        "elapsed": "cuEventElapsedTime",
        "begin": "cuStreamBeginCapture_v2",
        "end": "cuStreamEndCapture",
        "instantiate": "cuGraphInstantiateWithFlags",
        "launch_graph": "cuGraphLaunch",
    },
    "hip": {
        "init": "hipInit",
        "version": "hipDriverGetVersion",
        "device_name": "hipDeviceGetName",
        "total": "hipDeviceTotalMem",
        "bus": "hipDeviceGetPCIBusId",
        "alloc": "hipMalloc",
        "free": "hipFree",
        "to_device": "hipMemcpyHtoD",
        "to_host": "hipMemcpyDtoH",
        "copy": "hipMemcpyDtoDAsync",
        "fill": "hipMemsetD32Async",
        "load": "hipModuleLoadData",
        "function": "hipModuleGetFunction",
        "launch": "hipModuleLaunchKernel",
        "stream": "hipStreamCreateWithFlags",
        "synchronize": "hipStreamSynchronize",
        "event": "hipEventCreateWithFlags",
        "record": "hipEventRecord",
        "elapsed": "hipEventElapsedTime",
        "begin": "hipStreamBeginCapture",
        "end": "hipStreamEndCapture",
        "instantiate": "hipGraphInstantiateWithFlags",
        "launch_graph": "hipGraphLaunch",
    },
}
_LIBRARIES = {
    "cuda": ("libcuda.so.1", "libcuda.so"),
    "hip": ("libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6"),
}
# Numbers of enumerations in cuda.h.
_SHARED_MOST, _SHARED_STATIC, _LOCAL = 8, 1, 3  # CUfunction_attribute
_REGISTERS = 4
_PREFER_SHARED = 1  # CUfunc_cache; with 2, more L1 cache, fewer blocks fit: attention took a third longer
_L2, _OPTIN, _PROCESSORS, _MAJOR, _MINOR = 38, 97, 16, 75, 76  # CUdevice_attribute
_CLUSTER, _SCHEDULING, _COOPERATIVE = 4, 5, 2  # CUlaunchAttributeID
_SPREAD = 1  # CUclusterSchedulingPolicy
_RELAXED = 2  # CUstreamCaptureMode
_DEFAULT_SHARED = 48 << 10
# Twice the Infinity Cache of an MI300X; HIP's numbers of attributes differ between releases.
_HIP_FLUSH = 512 << 20


class _LaunchAttribute(ctypes.Structure):
    """CUlaunchAttribute: a number, and a value of 64 bytes at offset 8."""

    _fields_ = (("id", ctypes.c_uint), ("pad", ctypes.c_uint), ("value", ctypes.c_uint * 16))


class _LaunchConfig(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(_LaunchAttribute)),
        ("count", ctypes.c_uint),
    )


class GpuDriver:
    """The driver's library, and one GPU."""

    def __init__(self, backend: str, device: int) -> None:
        """Open the library, and make the GPU current.

        Raises:
            GpuError: there is no library, or no GPU.
        """
        self.backend = backend
        self._library = _open(_LIBRARIES[backend])
        self._names = _CALLS[backend]
        self.call("init", 0)
        if backend == "cuda":
            number, context = ctypes.c_int(), ctypes.c_void_p()
            self.raw("cuDeviceGet", ctypes.byref(number), device)
            self.device = number.value
            # The primary context is what every library shares; how to make another differs between releases.
            self.raw("cuDevicePrimaryCtxRetain", ctypes.byref(context), self.device)
            self.raw("cuCtxSetCurrent", context)
        else:
            self.device = device
            self.raw("hipSetDevice", device)
        self.stream = ctypes.c_void_p()
        self.call("stream", ctypes.byref(self.stream), 0)

    def call(self, what: str, *arguments: object) -> None:
        """Call a function by its short name.

        Raises:
            GpuError: it failed.
        """
        self.raw(self._names[what], *arguments)

    def raw(self, name: str, *arguments: object) -> None:
        """Call a function by its name in the library.

        Raises:
            GpuError: it failed, or the library lacks it.
        """
        function = getattr(self._library, name, None)
        if function is None:
            raise GpuError(f"the driver has no {name}")
        code = function(*arguments)
        if code:
            raise GpuError(f"{name}: {self._word(code)}")

    def has(self, name: str) -> bool:
        """Report whether the library has a function."""
        return hasattr(self._library, name)

    def _word(self, code: int) -> str:
        if self.backend == "cuda":
            text = ctypes.c_char_p()
            if not self._library.cuGetErrorName(code, ctypes.byref(text)) and text.value:
                return text.value.decode()
        else:
            named = self._library.hipGetErrorName
            named.restype = ctypes.c_char_p
            return str(named(code).decode())
        return f"error {code}"

    def attribute(self, number: int) -> int:
        """Return an attribute of the GPU."""
        value = ctypes.c_int()
        self.raw("cuDeviceGetAttribute", ctypes.byref(value), number, self.device)
        return value.value

    def text(self, what: str) -> str:
        """Return the GPU's name or bus."""
        space = ctypes.create_string_buffer(256)
        self.call(what, space, 256, self.device)
        return space.value.decode(errors="replace")

    def allocate(self, size: int) -> ctypes.c_uint64:
        """Return the address of new memory."""
        address = ctypes.c_uint64()
        self.call("alloc", ctypes.byref(address), ctypes.c_size_t(max(size, 16)))
        return address

    def wait(self) -> None:
        """Wait until all that was asked for is done."""
        self.call("synchronize", self.stream)

    def event(self) -> ctypes.c_void_p:
        """Return a new event."""
        event = ctypes.c_void_p()
        self.call("event", ctypes.byref(event), 0)
        return event

    def elapsed(self, begin: ctypes.c_void_p, end: ctypes.c_void_p) -> float:
        """Return the milliseconds between two events."""
        value = ctypes.c_float()
        self.call("elapsed", ctypes.byref(value), begin, end)
        return value.value


def _open(names: Sequence[str]) -> ctypes.CDLL:
    why = ""
    # Tests have a library of their own, which launches nothing.
    for name in filter(None, (os.environ.get("TRITONSMITH_GPU_DRIVER"), *names)):
        try:
            return ctypes.CDLL(name)
        except OSError as error:  # noqa: PERF203 - of three names
            why = why or str(error)
    raise GpuError(f"no driver: {why}")


class Monitor:
    """Clocks, temperature and throttling of the GPU, by NVML; nothing where there is no NVML."""

    # nvml.h: NVML_CLOCK_SM, NVML_CLOCK_MEM, and nvmlClocksEventReason*
    REASONS = (
        (0x4, "power cap"),
        (0x8, "hardware slowdown"),
        (0x20, "thermal slowdown"),
        (0x40, "hardware thermal slowdown"),
        (0x80, "power brake"),
    )

    def __init__(self, bus: str) -> None:
        """Find the GPU by its bus, as NVML numbers GPUs differently from the driver."""
        # Without NVML, as in some containers, times are still times: a note says that clocks are unknown.
        self._handle = ctypes.c_void_p()
        try:
            self._library = ctypes.CDLL(os.environ.get("TRITONSMITH_NVML") or "libnvidia-ml.so.1")
            there = not self._library.nvmlInit_v2() and not self._library.nvmlDeviceGetHandleByPciBusId_v2(
                bus.encode(), ctypes.byref(self._handle)
            )
        except (OSError, AttributeError):
            there = False
        self.there = there

    def look(self) -> dict[str, Any]:
        """Return the clocks in MHz, degrees, watts and reasons for lower clocks, as far as they are known."""
        if not self.there:
            return {}
        state: dict[str, Any] = {}
        value = ctypes.c_uint()
        for name, call, arguments, factor in (
            ("sm_mhz", "nvmlDeviceGetClockInfo", (1,), 1),
            ("memory_mhz", "nvmlDeviceGetClockInfo", (2,), 1),
            ("celsius", "nvmlDeviceGetTemperature", (0,), 1),
            ("watts", "nvmlDeviceGetPowerUsage", (), 1000),
        ):
            # A GPU or a permission may lack any of these: what cannot be read is left out.
            function = getattr(self._library, call, None)
            if function and not function(self._handle, *arguments, ctypes.byref(value)):
                state[name] = value.value / factor if factor > 1 else value.value
        bits = ctypes.c_ulonglong()
        # The second is the name before CUDA 12.2.
        for call in ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"):
            function = getattr(self._library, call, None)
            if function and not function(self._handle, ctypes.byref(bits)):
                state["reasons"] = [word for bit, word in self.REASONS if bits.value & bit]
                break
        return state


def element_size(dtype: str) -> int:
    """Return the bytes of an element.

    Raises:
        ValueError: no such type.
    """
    if dtype in _SIZES:
        return _SIZES[dtype]
    letter = _FLOATS.get(dtype) or _INTEGERS.get(_signed(dtype))
    if letter is None:
        raise ValueError(f"no type {dtype}")
    return struct.calcsize(f"<{letter}")


def _signed(dtype: str) -> str:
    return f"i{dtype[1:]}" if dtype.startswith("u") else dtype


def encoded(kind: str, value: float) -> bytes:
    """Return a scalar as the kernel's parameter holds it, with zeros up to eight bytes.

    Raises:
        ValueError: no such type, or the value does not fit it.
    """
    # The driver copies as many bytes as the parameter has: what is behind them is never read.
    try:
        if kind in _FLOATS:
            text = struct.pack(f"<{_FLOATS[kind]}", value)
        elif kind == "bf16":
            text = _bf16(float(value))
        else:
            size = element_size(kind)
            bits = 8 * size
            number = int(value)
            # Signed and unsigned values of the width: Triton passes 0xffffffff as an i32, too.
            if not -(1 << (bits - 1)) <= number < 1 << bits:
                raise ValueError(f"{value} is no {kind}")
            text = (number % (1 << bits)).to_bytes(size, "little")
    except (struct.error, OverflowError) as error:
        raise ValueError(f"{value} is no {kind}: {error}") from error
    return text.ljust(8, b"\0")


def _bf16(value: float) -> bytes:
    return struct.pack("<f", value)[2:]


def pattern(buffer: Buffer, seed: int) -> bytes:
    """Return what a buffer is filled with, again and again: `PERIOD` elements, or all of a smaller one.

    The same buffer and seed give the same bytes on every machine.
    """
    size = element_size(buffer.dtype)
    count = min(buffer.elements, PERIOD)
    if buffer.fill == "zeros":
        return bytes(size * count)
    if buffer.fill == "values":
        return b"".join(encoded(buffer.dtype, value)[:size] for value in buffer.values)
    # A text: the hash of anything else differs from process to process.
    rule = random.Random(f"{seed} {buffer.name} {buffer.dtype}")  # noqa: S311 - no secret
    if buffer.dtype in _FLOATS or buffer.dtype == "bf16":
        return b"".join(
            encoded(buffer.dtype, rule.uniform(buffer.low, buffer.high))[:size] for _ in range(count)
        )
    if buffer.dtype.startswith("fp8"):
        # Sign, an exponent around 1, any mantissa: neither NaN nor infinity in any of the formats.
        mantissa = 2 if "e5" in buffer.dtype else 3
        middle = 1 << (6 - mantissa)
        return bytes(
            rule.getrandbits(1) << 7
            | (middle - 1 - rule.randrange(3)) << mantissa
            | rule.getrandbits(mantissa)
            for _ in range(count)
        )
    return b"".join(
        encoded(buffer.dtype, rule.randint(int(buffer.low), int(buffer.high)))[:size] for _ in range(count)
    )


def whole(buffer: Buffer, part: bytes) -> bytes:
    """Return all bytes of a buffer."""
    size = buffer.elements * element_size(buffer.dtype)
    return (part * (size // max(len(part), 1) + 1))[:size]


def numbers(dtype: str, content: bytes) -> Sequence[float]:
    """Return the elements that some bytes hold."""
    if dtype in _FLOATS and dtype != "fp16":
        return array.array(_FLOATS[dtype], content)
    if dtype == "fp16":
        return struct.unpack(f"<{len(content) // 2}e", content)
    if dtype == "bf16":
        wide = bytearray(2 * len(content))
        wide[2::4], wide[3::4] = content[0::2], content[1::2]
        return array.array("f", bytes(wide))
    if dtype.startswith("fp8"):
        table = _eighths(dtype)
        return [table[byte] for byte in content]
    letter = _INTEGERS[_signed(dtype)]
    return array.array(letter.upper() if dtype.startswith("u") else letter, content)


def _eighths(dtype: str) -> Sequence[float]:
    mantissa = 2 if "e5" in dtype else 3
    bias = {"fp8e5": 15, "fp8e4nv": 7, "fp8e4b15": 15, "fp8e4b8": 8, "fp8e5b16": 16}[dtype]
    values = []
    for byte in range(256):
        exponent, part = (byte & 0x7F) >> mantissa, byte & ((1 << mantissa) - 1)
        fraction = part / (1 << mantissa)
        value = 2.0 ** (exponent - bias) * (1 + fraction) if exponent else 2.0 ** (1 - bias) * fraction
        # What the other formats have for NaN is a number here; its difference to any other is large anyhow.
        if (dtype, exponent) == ("fp8e5", _FP8_INFINITE) or (dtype, byte & 0x7F) == ("fp8e4nv", 0x7F):
            value = math.nan if part else math.inf
        values.append(-value if byte & 0x80 else value)
    return values


@dataclass(frozen=True)
class OutputDifference:
    """The difference of an output from the first's.

    Attributes:
        buffer: its name.
        elements: how many elements differ.
        largest: the largest difference; infinite where one is not a number, or infinite, and the other isn't.
        scale: the largest number in the first's output.
        within: True if the difference is within the tolerance.
    """

    buffer: str
    elements: int
    largest: float
    scale: float
    within: bool


def difference(buffer: Buffer, first: bytes, other: bytes, tolerance: float) -> OutputDifference | None:
    """Compare two outputs; return None if they are the same, bit for bit."""
    if first == other:
        return None
    size = element_size(buffer.dtype)
    count, largest, scale = 0, 0.0, 0.0
    for at in range(0, len(first), _BLOCK * size):
        a, b = first[at : at + _BLOCK * size], other[at : at + _BLOCK * size]
        ours = numbers(buffer.dtype, a)
        scale = max(scale, _largest(ours))
        if a != b:
            theirs = numbers(buffer.dtype, b)
            count += sum(map(operator.ne, ours, theirs))
            largest = max(largest, _apart(ours, theirs))
    limit = tolerance or TOLERANCES.get(buffer.dtype, _ROUGH if buffer.dtype.startswith("fp8") else 0.0)
    return OutputDifference(buffer.name, count, largest, scale, largest <= limit * scale)


def _largest(values: Sequence[float]) -> float:
    """Return the largest finite number, without its sign."""
    # Loops in C: an output may have a hundred million elements.
    total = sum(values)
    if math.isfinite(total):
        return float(max(map(abs, values), default=0.0))
    return max((abs(value) for value in values if math.isfinite(value)), default=0.0)


def _apart(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Return the largest difference; infinite where only one is NaN, or one is infinite."""
    if math.isfinite(sum(ours) + sum(theirs)):
        return float(max(map(abs, map(operator.sub, ours, theirs))))
    worst = 0.0
    for x, y in zip(ours, theirs):
        if x != y and not (math.isnan(x) and math.isnan(y)):
            apart = abs(x - y)
            worst = math.inf if math.isnan(apart) else max(worst, apart)
    return worst


class _Memory:
    """The buffers of a kernel on the GPU."""

    def __init__(self, driver: GpuDriver, kernel: TimedKernel, seed: int) -> None:
        self._driver = driver
        self._buffers = kernel.buffers
        self._patterns = [pattern(buffer, seed) for buffer in kernel.buffers]
        self._sizes = [buffer.elements * element_size(buffer.dtype) for buffer in kernel.buffers]
        self.addresses = [driver.allocate(size) for size in self._sizes]
        self._copies: dict[int, ctypes.c_uint64] = {}
        self.reset()

    def reset(self) -> None:
        """Fill all buffers as they were at first."""
        # Gigabytes of random numbers would take Python minutes, and the bus seconds.
        for address, part, size in zip(self.addresses, self._patterns, self._sizes):
            there = min(len(part), size)
            self._driver.call("to_device", address, part, ctypes.c_size_t(there))
            # What is there is copied behind itself: twice as much each time.
            while there < size:
                count = min(there, size - there)
                behind = ctypes.c_uint64(address.value + there)
                self._driver.call("copy", behind, address, ctypes.c_size_t(count), self._driver.stream)
                there += count
        self._driver.wait()

    def keep(self, changed: Sequence[int]) -> None:
        """Keep a copy of some buffers, which are as at first."""
        for number in changed:
            copy = self._driver.allocate(self._sizes[number])
            size = ctypes.c_size_t(self._sizes[number])
            self._driver.call("copy", copy, self.addresses[number], size, self._driver.stream)
            self._copies[number] = copy
        self._driver.wait()

    def restore(self) -> None:
        """Ask for the kept contents; the launch that follows waits for them."""
        # In the stream of the launches, so that nothing waits on this side.
        for number, copy in self._copies.items():
            size = ctypes.c_size_t(self._sizes[number])
            self._driver.call("copy", self.addresses[number], copy, size, self._driver.stream)

    def contents(self) -> list[bytes]:
        """Return what all buffers hold."""
        contents = []
        for address, size in zip(self.addresses, self._sizes):
            space = ctypes.create_string_buffer(max(size, 1))
            self._driver.call("to_host", space, address, ctypes.c_size_t(size))
            contents.append(space.raw[:size])
        return contents

    def at_first(self) -> Iterator[bytes]:
        """Yield what each buffer held at first."""
        for buffer, part in zip(self._buffers, self._patterns):
            yield whole(buffer, part)


class Loaded:
    """A binary on the GPU, ready to be launched."""

    def __init__(
        self, driver: GpuDriver, binary: TimedBinary, kernel: TimedKernel, memory: _Memory, folder: str
    ) -> None:
        """Load it, and pack its arguments.

        Raises:
            GpuError: the driver refuses it.
            OSError: the file cannot be read.
            ValueError: its parameters are others than those of the job.
        """
        self._driver, self.binary = driver, binary
        # A buffer of ctypes ends with a zero, which PTX in the place of a cubin would need.
        with open(os.path.join(folder, binary.path), "rb") as file:
            self._image = ctypes.create_string_buffer(file.read())
        module, self._function = ctypes.c_void_p(), ctypes.c_void_p()
        driver.call("load", ctypes.byref(module), self._image)
        driver.call("function", ctypes.byref(self._function), module, binary.symbol.encode())
        self.figures = self._prepared() if driver.backend == "cuda" else {}
        words = [_word(kernel.parameters[number], memory) for number in binary.parameters]
        kinds = [kernel.parameters[number].kind for number in binary.parameters]
        # The compiler appends these behind the parameters of the source.
        words += [self._scratch(size) for size in binary.scratch]
        kinds += ["*i8"] * len(binary.scratch)
        count = self._check(kinds)
        # The driver takes an array of pointers to values, which have to stay where they are.
        self._values = [ctypes.create_string_buffer(word, 8) for word in words[:count]]
        self._arguments = (ctypes.c_void_p * max(len(self._values), 1))(
            *(ctypes.addressof(value) for value in self._values)
        )
        self._config = self._clustered() if binary.ctas > 1 or binary.cooperative else None

    def _prepared(self) -> dict[str, int]:
        """Allow as much shared memory as Triton's launcher does; return what the driver says of the code."""
        driver = self._driver
        optin = driver.attribute(_OPTIN)
        # An autotuner drops such a config; the message says the same as its exception does.
        if self.binary.shared > optin:
            raise GpuError(f"it needs {self.binary.shared} bytes of shared memory, and a block has {optin}")
        if self.binary.shared > _DEFAULT_SHARED:
            driver.raw("cuFuncSetCacheConfig", self._function, _PREFER_SHARED)
            most = optin - self._attribute(_SHARED_STATIC)
            driver.raw("cuFuncSetAttribute", self._function, _SHARED_MOST, most)
        return {"registers": self._attribute(_REGISTERS), "local_bytes": self._attribute(_LOCAL)}

    def _attribute(self, number: int) -> int:
        value = ctypes.c_int()
        self._driver.raw("cuFuncGetAttribute", ctypes.byref(value), number, self._function)
        return value.value

    def _scratch(self, size: int) -> bytes:
        x, y, z = self.binary.grid
        # Tensor descriptors that a kernel makes for itself lie there, one part for each program.
        total = size * x * y * z * self.binary.ctas
        return struct.pack("<Q", self._driver.allocate(total).value if total else 0)

    def _check(self, kinds: Sequence[str]) -> int:
        """Compare with the parameters that the driver sees; return their number.

        Raises:
            ValueError: the binary has others.
        """
        # Since CUDA 12.4; a wrong argument would be read as another one, and nothing would say so.
        if not self._driver.has("cuFuncGetParamInfo"):
            return len(kinds)
        sizes: list[int] = []
        offset, size = ctypes.c_size_t(), ctypes.c_size_t()
        try:
            while len(sizes) <= len(kinds):
                self._driver.raw(
                    "cuFuncGetParamInfo",
                    self._function,
                    ctypes.c_size_t(len(sizes)),
                    ctypes.byref(offset),
                    ctypes.byref(size),
                )
                sizes.append(size.value)
        except GpuError:
            pass  # there are no more
        ours = [8 if kind.startswith("*") else element_size(kind) for kind in kinds]
        # Pointers of scratch memory that a release does not have come last, and are left out.
        own = len(self.binary.parameters)
        if not own <= len(sizes) <= len(ours) or sizes != ours[: len(sizes)]:
            raise ValueError(f"it takes parameters of {sizes} bytes, and the job has {ours}")
        return len(sizes)

    def _clustered(self) -> _LaunchConfig:
        x, y, z = self.binary.grid
        # As many as there may be at most: two of a cluster, and one of a cooperative grid.
        attributes = (_LaunchAttribute * 3)()
        count = 0
        if self.binary.ctas > 1:
            attributes[0].id = _CLUSTER
            attributes[0].value[:3] = [self.binary.ctas, 1, 1]
            attributes[1].id = _SCHEDULING
            attributes[1].value[0] = _SPREAD
            count = 2
        if self.binary.cooperative:
            attributes[count].id = _COOPERATIVE
            attributes[count].value[0] = 1
            count += 1
        return _LaunchConfig(
            grid=(x * self.binary.ctas, y, z),
            block=(self.binary.threads, 1, 1),
            shared=self.binary.shared,
            stream=self._driver.stream,
            attributes=attributes,
            count=count,
        )

    def launch(self) -> None:
        """Ask for one launch."""
        # `cuLaunchKernel` knows no clusters. Triton, too, uses it for all other kernels.
        if self._config is not None:
            self._driver.raw(
                "cuLaunchKernelEx", ctypes.byref(self._config), self._function, self._arguments, None
            )
            return
        x, y, z = self.binary.grid
        self._driver.call(
            "launch",
            self._function,
            *(x, y, z),
            *(self.binary.threads, 1, 1),
            self.binary.shared,
            self._driver.stream,
            self._arguments,
            None,
        )

    def graph(self, launches: int) -> ctypes.c_void_p:
        """Return a graph of some launches, one after the other."""
        graph, ready = ctypes.c_void_p(), ctypes.c_void_p()
        # A short kernel ends before the next launch is there: one after the other, launches measure the host.
        self._driver.call("begin", self._driver.stream, _RELAXED)
        for _ in range(launches):
            self.launch()
        self._driver.call("end", self._driver.stream, ctypes.byref(graph))
        self._driver.call("instantiate", ctypes.byref(ready), graph, ctypes.c_ulonglong(0))
        return ready


def _word(parameter: Parameter, memory: _Memory) -> bytes:
    if parameter.buffer >= 0:
        return struct.pack("<Q", memory.addresses[parameter.buffer].value)
    return encoded(parameter.kind, parameter.value)


_BATCH_MS = 0.2  # at least, of launches that are measured together where the cache stays warm


class Stopwatch:
    """Measures launches; with the L2 cache flushed before each, or many at once with a warm one."""

    def __init__(self, driver: GpuDriver, memory: _Memory, method: Method, *, restore: bool) -> None:
        """Take the memory that is written in order to flush the cache."""
        self._driver, self._memory, self._restore = driver, memory, restore
        # Twice the cache: what is written last may be in it, and nothing else.
        size = method.flush or (2 * driver.attribute(_L2) if driver.backend == "cuda" else _HIP_FLUSH)
        self.flushed = 0 if method.warm else size
        self._space = driver.allocate(self.flushed) if self.flushed else None
        self._events: list[tuple[ctypes.c_void_p, ctypes.c_void_p]] = []
        # Where the memory has to be restored before each launch, no two can be measured together.
        self._batched = method.warm and not restore
        self._graphs: dict[int, tuple[ctypes.c_void_p, int]] = {}

    def prepare(self, loaded: Sequence[Loaded], milliseconds: float) -> None:
        """Make the graphs of binaries of which the slowest takes about this long."""
        # As many launches for each: what a graph costs is then the same for all.
        count = math.ceil(_BATCH_MS / max(milliseconds, 1e-4))
        if self._batched and count > 1:
            self._graphs = {id(each): (each.graph(count), count) for each in loaded}

    def launches(self, loaded: Loaded) -> int:
        """Return how many launches a sample of a binary has."""
        return self._graphs.get(id(loaded), (None, 1))[1]

    def samples(self, loaded: Loaded | None, count: int) -> list[float]:
        """Return the milliseconds of some launches, after one that is not measured; None launches nothing."""
        # Events are made once: making one takes longer than recording it.
        while len(self._events) < count:
            self._events.append((self._driver.event(), self._driver.event()))
        graph, launches = self._graphs.get(id(loaded), (None, 1))
        if loaded:
            self._one(loaded, None)
        # All are asked for at once: while the GPU is busy with one, the next is already in its queue, and
        # no time between them is measured.
        for begin, end in self._events[:count]:
            if self._restore:
                self._memory.restore()
            if self._space is not None:
                words = ctypes.c_size_t(self.flushed // 4)
                self._driver.call("fill", self._space, 0, words, self._driver.stream)
            self._driver.call("record", begin, self._driver.stream)
            self._one(loaded, graph)
            self._driver.call("record", end, self._driver.stream)
        self._driver.wait()
        times = (self._driver.elapsed(begin, end) / launches for begin, end in self._events[:count])
        return [round(value, _DIGITS) for value in times]

    def _one(self, loaded: Loaded | None, graph: ctypes.c_void_p | None) -> None:
        if graph is not None:
            self._driver.call("launch_graph", graph, self._driver.stream)
        elif loaded is not None:
            loaded.launch()


def _say(**row: object) -> None:
    print(json.dumps(row), flush=True)


_DIGITS = 7  # of milliseconds
_WARM_UP = 0.5  # seconds of launches before anything is measured: clocks rise
_LEAST_ROUNDS = 6  # the least and the largest of six have their median with 97 %


def time_kernel(job: Job, number: int, without: Sequence[str], folder: str) -> None:
    """Time one kernel in this process: rows of JSON to stdout, the last has the result.

    Raises:
        GpuError: the driver fails; the row before says which binary ran.
    """
    kernel, method = job.kernels[number], job.method
    driver = GpuDriver(job.backend, method.device)
    memory = _Memory(driver, kernel, method.seed)
    loaded: list[Loaded] = []
    refused = {}
    for binary in kernel.binaries:
        if binary.label in without:
            continue
        try:
            loaded.append(Loaded(driver, binary, kernel, memory, folder))
        except (GpuError, ValueError, OSError) as error:
            refused[binary.label] = str(error)
    _say(row="loaded", refused=refused, binaries={each.binary.label: each.figures for each in loaded})
    if not loaded:
        _say(row="result", rounds=[])
        return
    # Before any time: a kernel with an illegal address ends the process here, and its name is known.
    restore = _compare_outputs(driver, kernel, memory, loaded, method)
    watch = Stopwatch(driver, memory, method, restore=restore)
    # The first twice: what its two entries differ by is noise.
    turns = {each.binary.label: each for each in loaded}
    turns[CONTROL] = Loaded(driver, loaded[0].binary, kernel, memory, folder)
    _warm_up(watch, turns)
    monitor = Monitor(driver.text("bus") if job.backend == "cuda" else "")
    rounds, states = _rounds(watch, turns, method, monitor)
    _say(
        row="result",
        first=loaded[0].binary.label,
        rounds=rounds,
        states=states,
        empty_ms=sorted(watch.samples(None, 5))[2],
        flushed=watch.flushed,
        restored=restore,
        launches=watch.launches(loaded[0]),
        device=_described(driver),
    )


def _warm_up(watch: Stopwatch, turns: Mapping[str, Loaded]) -> None:
    """Run all binaries until clocks have risen, and make graphs of short ones."""
    slowest = 0.0
    for each in turns.values():
        _say(row="at", label=each.binary.label, doing="timing")
        slowest = max(slowest, sorted(watch.samples(each, 5))[2])
    watch.prepare(tuple(turns.values()), slowest)
    until = time.monotonic() + _WARM_UP
    while time.monotonic() < until:
        for each in turns.values():
            watch.samples(each, 1)


def _rounds(
    watch: Stopwatch, turns: Mapping[str, Loaded], method: Method, monitor: Monitor
) -> tuple[list[dict[str, list[float]]], list[dict[str, Any]]]:
    """Measure each binary once a round, in random order; return the samples, and the GPU's states."""
    # One round to know how many there is time for; it also warms up what the launches before did not.
    began = time.monotonic()
    for each in turns.values():
        watch.samples(each, method.samples)
    once = time.monotonic() - began
    count = max(_LEAST_ROUNDS, min(method.rounds, int(method.seconds / max(once, 1e-6))))
    # A text, as for the contents: the same on every machine.
    rule = random.Random(f"{method.seed} order")  # noqa: S311 - no secret
    rounds, states = [], [monitor.look()]
    for _ in range(count):
        order = list(turns)
        rule.shuffle(order)
        # What drifts, drifts for all of a round alike.
        rounds.append({label: watch.samples(turns[label], method.samples) for label in order})
        # While it is busy: an idle GPU lowers its clocks at once.
        turns[CONTROL].launch()
        states.append(monitor.look())
    return rounds, states


def _described(driver: GpuDriver) -> dict[str, Any]:
    version = ctypes.c_int()
    driver.call("version", ctypes.byref(version))
    row: dict[str, Any] = {"name": driver.text("device_name"), "driver": version.value}
    if driver.backend == "cuda":
        row["capability"] = 10 * driver.attribute(_MAJOR) + driver.attribute(_MINOR)
        row["processors"] = driver.attribute(_PROCESSORS)
        row["l2_bytes"] = driver.attribute(_L2)
    return row


def _compare_outputs(
    driver: GpuDriver, kernel: TimedKernel, memory: _Memory, loaded: Sequence[Loaded], method: Method
) -> bool:
    """Run each binary once on the same memory, and say how its outputs differ from the first's.

    Returns:
        True if a second launch on the first's results writes others, as of a kernel that adds to its output:
        the memory is then restored before each launch.
    """
    first: list[bytes] = []
    restore = False
    for each in loaded:
        _say(row="at", label=each.binary.label, doing="first launch")
        # Each starts from the same memory, also what an earlier one has written past its outputs.
        memory.reset()
        each.launch()
        driver.wait()
        contents = memory.contents()
        if not first:
            first = contents
            changed = [
                number for number, before in enumerate(memory.at_first()) if before != contents[number]
            ]
            memory.reset()
            each.launch()
            driver.wait()
            # Once more from the start, and once more on top of that.
            again = memory.contents()
            each.launch()
            driver.wait()
            adds = memory.contents() != again
            steady = again == contents
            _say(
                row="outputs",
                written=[kernel.buffers[number].name for number in changed],
                empty=[
                    kernel.buffers[number].name
                    for number in changed
                    if _says_nothing(kernel, number, contents)
                ],
                steady=steady,
                adds=adds,
            )
            # Results that differ from run to run differ in their last bits: nothing grows.
            restore = adds and steady
            if restore:
                memory.reset()
                memory.keep(changed)
            continue
        differences = [
            apart
            for number, buffer in enumerate(kernel.buffers)
            if (apart := difference(buffer, first[number], contents[number], method.tolerance))
        ]
        _say(row="compared", label=each.binary.label, differences=[vars(apart) for apart in differences])
    memory.reset()
    return restore


def _says_nothing(kernel: TimedKernel, number: int, contents: Sequence[bytes]) -> bool:
    """Report whether an output has no number at all besides 0, so that comparing it says nothing."""
    values = numbers(kernel.buffers[number].dtype, contents[number][: _BLOCK * 8])
    return all(value == 0 or math.isnan(value) for value in values)


def run(path: str) -> dict[str, Any]:
    """Time all kernels of a job, each in a process of its own.

    Returns:
        The method, and a row for each kernel: which binaries were loaded or `failed`, how outputs differ,
        rounds of samples. Without a GPU, the `error`.
    """
    # Read here as well, so that a job of another version ends at once and not kernel by kernel.
    with open(path, encoding="utf-8") as file:
        job = read_job(json.load(file))
    rows: list[dict[str, Any]] = []
    times = {"schema": SCHEMA, "backend": job.backend, "method": vars(job.method), "kernels": rows}
    # In another process: one that is to start others with a GPU should not hold it itself.
    probe = subprocess.run(
        [sys.executable, os.path.abspath(__file__), path, "--probe"],
        capture_output=True,
        text=True,
        check=False,
    )
    if probe.returncode:
        times["error"] = (probe.stderr.strip().splitlines() or ["no GPU"])[-1]
        return times
    for number, kernel in enumerate(job.kernels):
        print(f"[{number}/{len(job.kernels)}] {kernel.name}", flush=True)
        rows.append(_timed(path, number, kernel))
    return times


def _timed(path: str, number: int, kernel: TimedKernel) -> dict[str, Any]:
    """Time one kernel in another process; again without a binary that ends it."""
    failed: dict[str, str] = {}
    row: dict[str, Any] = {"name": kernel.name}
    # Each turn loses one binary, or is the last.
    for _ in kernel.binaries:
        row = {"name": kernel.name, "compared": {}}
        without = [word for label in failed for word in ("--without", label)]
        command = [sys.executable, os.path.abspath(__file__), path, "--kernel", str(number), *without]
        at, error = {}, ""
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT, check=False)
            output, code, error = done.stdout, done.returncode, done.stderr
        except subprocess.TimeoutExpired as expired:
            raw = expired.stdout or b""
            output = raw.decode(errors="replace") if isinstance(raw, bytes) else raw
            code, error = -1, f"it did not end within {_LIMIT} s"
        # Rows are written as things happen, so that they say how far a process came that was killed.
        for line in output.splitlines():
            answer = json.loads(line)
            kind = answer.pop("row")
            if kind == "at":
                at = answer
            elif kind == "compared":
                row["compared"][answer["label"]] = answer["differences"]
            else:
                row[kind] = answer
        if code == 0:
            break
        last = error.strip().splitlines()[-1:] or [f"exit code {code}"]
        if not at:
            row["error"] = last[0]
            break
        failed[at["label"]] = f"{at['doing']}: {last[0]}"
    row["failed"] = {**dict(kernel.lost), **row.get("loaded", {}).get("refused", {}), **failed}
    return row


def main(arguments: Sequence[str]) -> int:
    """Time a job, or one kernel of it; return the exit code."""
    path, how = arguments[:2]
    if not how.startswith("--"):
        times = run(path)
        with open(how, "w", encoding="utf-8") as file:
            json.dump(times, file)
        print(times.get("error", how))
        return 0
    with open(path, encoding="utf-8") as file:
        job = read_job(json.load(file))
    try:
        if how == "--probe":
            _say(row="device", device=_described(GpuDriver(job.backend, job.method.device)))
        else:
            without = [word for before, word in zip(arguments, arguments[1:]) if before == "--without"]
            time_kernel(job, int(arguments[2]), without, os.path.dirname(os.path.abspath(path)))
    except GpuError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
