"""`kernel.time` on a driver that launches nothing: a library with its entry points, made from C.

It shows what a launch gets (arguments, grid, shared memory), and has a clock of its own. What a real GPU
says is in docs/kernel-time.md.
"""

from __future__ import annotations

import ctypes
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from tests.integration.harness import Smith
from tests.support import require_c
from tritonsmith.worker import time_binaries
from tritonsmith.worker.time_binaries import Buffer, Job, Method, Parameter, TimedBinary, TimedKernel

_DRIVER = Path(__file__).with_name("stand_in_driver.c")
_METHOD = Method(rounds=8, samples=4, seconds=1.0)
_PARAMETERS = (Parameter("x", "*fp16", 0), Parameter("y", "*fp32", 1), Parameter("n", "i32", value=-3))
_BUFFERS = (Buffer("x", "fp16", 100_000), Buffer("y", "fp32", 70_000))
_SIZES = "sizes=8,8,4,8,8"
_MATCH = re.compile(r"\.param \.[ubf](\d+)")


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library."""
    require_c()
    path = tmp_path_factory.mktemp("driver") / "libcuda.so"
    argv = ("cc", "-shared", "-fPIC", "-w", "-D_GNU_SOURCE", "-o", str(path), str(_DRIVER))
    subprocess.run(argv, check=True)
    return path


class Worker:
    """The worker as a script on another machine: alone in a folder, beside a job."""

    def __init__(self, folder: Path, driver: Path) -> None:
        self.folder, self.driver = folder, driver
        self.log = folder / "launches.jsonl"
        shutil.copy(time_binaries.__file__, folder / "worker.py")

    def run(
        self,
        images: Mapping[str, str],
        method: Method = _METHOD,
        more: Mapping[str, str] | None = None,
        **binary: Any,
    ) -> dict[str, Any]:
        """Time images, texts of the stand-in by their labels; return the kernel's row."""
        binaries = []
        for label, image in images.items():
            (self.folder / f"{label}.cubin").write_text(f"stand-in {image}")
            about = TimedBinary(label, f"{label}.cubin", "kernel", (0, 1, 2), (4, 2, 1), 128, scratch=(0, 0))
            binaries.append(replace(about, **binary))
        job = Job("cuda", (TimedKernel("kernel", _BUFFERS, _PARAMETERS, tuple(binaries)),), method)
        row: dict[str, Any]
        (row,) = self.of(job, more)["kernels"]
        return row

    def of(self, job: Job, more: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Run a job, and return the times."""
        content = {"schema": time_binaries.SCHEMA, **asdict(job)}
        (self.folder / "job.json").write_text(json.dumps(content))
        variables = {"TRITONSMITH_GPU_DRIVER": str(self.driver), "TRITONSMITH_NVML": str(self.driver)}
        argv = (sys.executable, "-I", "worker.py", "job.json", "times.json")
        environ = {**variables, "STAND_IN_LOG": str(self.log), **(more or {})}
        subprocess.run(argv, cwd=self.folder, env=environ, check=True, stdout=subprocess.DEVNULL)
        read: dict[str, Any] = json.loads((self.folder / "times.json").read_text())
        return read

    def launches(self) -> list[dict[str, Any]]:
        """What the driver saw of the first launches."""
        return [json.loads(line) for line in self.log.read_text().splitlines()]


@pytest.fixture
def worker(tmp_path: Path, driver: Path) -> Worker:
    return Worker(tmp_path, driver)


def test_a_launch_gets_what_the_job_says(worker: Worker) -> None:
    row = worker.run({"a": _SIZES}, shared=60_000)
    assert row["failed"] == {}
    launch = worker.launches()[0]
    assert (launch["grid"], launch["block"], launch["shared"]) == ([4, 2, 1], [128, 1, 1], 60_000)
    # As much as a block may have, as Triton's launcher allows.
    assert launch["most"] == 232_448
    x, y, n, *scratch = launch["parameters"]
    assert n == "fdffffff"
    assert scratch == ["0" * 16] * 2
    assert len({x, y, "0" * 16}) == 3
    assert launch["attributes"] == []


def test_a_cluster_is_launched_by_the_call_that_knows_clusters(worker: Worker) -> None:
    worker.run({"a": _SIZES}, ctas=2, cooperative=True)
    launch = worker.launches()[0]
    # The size of a cluster, how its blocks are spread, and that all blocks run at once (cuda.h).
    assert launch["attributes"] == [[4, 2], [5, 1], [2, 1]]
    assert launch["grid"] == [8, 2, 1]


def test_scratch_memory_is_there_if_the_kernel_needs_it(worker: Worker) -> None:
    worker.run({"a": _SIZES}, scratch=(512, 0))
    *_, first, second = worker.launches()[0]["parameters"]
    assert first != "0" * 16
    assert second == "0" * 16


def test_a_release_with_fewer_pointers_of_scratch_memory_is_launched_with_fewer(worker: Worker) -> None:
    row = worker.run({"old": "sizes=8,8,4,8", "new": _SIZES})
    assert row["failed"] == {}
    assert {len(launch["parameters"]) for launch in worker.launches()} == {4, 5}


def test_each_binary_has_its_turn_in_each_round_and_the_first_has_two(worker: Worker) -> None:
    row = worker.run({"a": f"{_SIZES} ms=0.1 noise=0.01", "b": f"{_SIZES} ms=0.2 noise=0.01"})
    rounds = row["result"]["rounds"]
    assert len(rounds) == _METHOD.rounds
    assert {len(samples) for each in rounds for samples in each.values()} == {_METHOD.samples}
    # In random order.
    assert len({tuple(each) for each in rounds}) > 1
    assert all(set(each) == {"a", "b", ""} for each in rounds)
    assert all(0.097 < value < 0.103 for each in rounds for value in (*each["a"], *each[""]))
    assert all(0.194 < value < 0.206 for each in rounds for value in each["b"])
    # Nothing between the two events but the launch.
    assert row["result"]["empty_ms"] == 0
    assert row["result"]["flushed"] == 2 << 20
    assert row["result"]["states"][0]["sm_mhz"] == 1980


def test_a_warm_cache_is_measured_by_graphs_of_many_launches(worker: Worker) -> None:
    row = worker.run({"a": f"{_SIZES} ms=0.01", "b": f"{_SIZES} ms=0.02"}, replace(_METHOD, warm=True))
    assert row["result"]["flushed"] == 0
    assert row["result"]["launches"] == 10
    assert row["result"]["rounds"][0]["a"] == pytest.approx([0.01] * 4, rel=1e-3)
    assert row["result"]["rounds"][0]["b"] == pytest.approx([0.02] * 4, rel=1e-3)


def test_outputs_are_compared_with_the_first_ones(worker: Worker) -> None:
    row = worker.run(
        {"a": f"{_SIZES} write=1:2.5", "b": f"{_SIZES} write=1:2.5", "c": f"{_SIZES} write=1:2.9"}
    )
    assert row["outputs"] == {"written": ["y"], "empty": [], "steady": True, "adds": False}
    assert row["compared"]["b"] == []
    (apart,) = row["compared"]["c"]
    assert (apart["buffer"], apart["elements"], apart["within"]) == ("y", 1, False)
    assert apart["largest"] == pytest.approx(0.4)


def test_a_kernel_that_adds_to_its_output_starts_from_the_same_each_time(worker: Worker) -> None:
    row = worker.run({"a": f"{_SIZES} write=1:2.5 add=1", "b": f"{_SIZES} write=1:2.5 add=1"})
    assert row["outputs"]["adds"]
    assert row["result"]["restored"]
    assert row["compared"] == {"b": []}


def test_a_fault_costs_only_the_binary_that_has_it(worker: Worker) -> None:
    row = worker.run({"a": _SIZES, "bad": f"{_SIZES} fault=1", "c": _SIZES})
    why = "first launch: cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS"
    assert row["failed"] == {"bad": why}
    assert set(row["result"]["rounds"][0]) == {"a", "c", ""}


def test_a_compile_that_failed_elsewhere_is_a_failure_of_the_result(worker: Worker) -> None:
    (worker.folder / "a.cubin").write_text(f"stand-in {_SIZES}")
    binary = TimedBinary("a", "a.cubin", "kernel", (0, 1, 2), (4, 2, 1), 128, scratch=(0, 0))
    kernel = TimedKernel("kernel", _BUFFERS, _PARAMETERS, (binary,), (("b", "no binary: no such layout"),))
    (row,) = worker.of(Job("cuda", (kernel,), _METHOD))["kernels"]
    assert row["failed"] == {"b": "no binary: no such layout"}
    assert row["result"]["first"] == "a"


def test_if_the_first_has_the_fault_the_second_is_the_first(worker: Worker) -> None:
    row = worker.run({"bad": f"{_SIZES} fault=1", "b": _SIZES, "c": _SIZES})
    assert row["result"]["first"] == "b"
    assert list(row["failed"]) == ["bad"]


@pytest.mark.parametrize(
    ("image", "why"),
    [
        ("sizes=8,8,8,8,8", "it takes parameters of [8, 8, 8, 8, 8] bytes, and the job has [8, 8, 4, 8, 8]"),
        ("sizes=8,8", "it takes parameters of [8, 8] bytes, and the job has [8, 8, 4, 8, 8]"),
        ("sizes=8,8,4,8,8,8", "it takes parameters of [8, 8, 4, 8, 8, 8] bytes"),
        (f"{_SIZES} symbol=other", "cuModuleGetFunction: CUDA_ERROR_INVALID_VALUE"),
    ],
)
def test_a_binary_with_other_parameters_is_not_launched(worker: Worker, image: str, why: str) -> None:
    row = worker.run({"a": _SIZES, "other": image})
    assert row["failed"]["other"].startswith(why)
    assert all(launch["parameters"][2] == "fdffffff" for launch in worker.launches())


def test_more_shared_memory_than_there_is_is_refused_before_the_launch(worker: Worker) -> None:
    row = worker.run({"a": _SIZES}, shared=300_000)
    assert row["failed"] == {"a": "it needs 300000 bytes of shared memory, and a block has 232448"}


def test_drift_is_in_each_round_alike(worker: Worker) -> None:
    images = {"a": f"{_SIZES} ms=0.1 noise=0.001", "b": f"{_SIZES} ms=0.1 noise=0.001"}
    row = worker.run(images, replace(_METHOD, rounds=30), {"STAND_IN_DRIFT": "0.0003"})
    rounds = row["result"]["rounds"]
    # A slow machine has time for fewer rounds, and so for less drift.
    assert sum(rounds[-1]["a"]) > 1.01 * sum(rounds[0]["a"])
    ratios = sorted(sum(each["b"]) / sum(each["a"]) for each in rounds)
    assert 0.995 < ratios[len(ratios) // 2] < 1.005


def test_without_a_driver_the_times_say_so(worker: Worker) -> None:
    worker.driver = Path("/nowhere/libcuda.so")
    times = worker.of(Job("cuda", (), _METHOD))
    assert times["error"].startswith("no driver: ")
    assert times["kernels"] == []


def test_numbers_and_structures_are_those_of_the_headers(with_wheel: Smith, tmp_path: Path) -> None:
    """A wheel has the headers of both drivers, with which its launchers are compiled."""
    require_c()
    (backends,) = with_wheel.home.glob("envs/wheel/venv/lib/python3*/site-packages/triton/backends")
    worker = time_binaries
    cuda = {
        "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES": worker._SHARED_MOST,
        "CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES": worker._SHARED_STATIC,
        "CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES": worker._LOCAL,
        "CU_FUNC_ATTRIBUTE_NUM_REGS": worker._REGISTERS,
        "CU_FUNC_CACHE_PREFER_SHARED": worker._PREFER_SHARED,
        "CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE": worker._L2,
        "CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": worker._OPTIN,
        "CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT": worker._PROCESSORS,
        "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR": worker._MAJOR,
        "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR": worker._MINOR,
        "CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION": worker._CLUSTER,
        "CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE": worker._SCHEDULING,
        "CU_LAUNCH_ATTRIBUTE_COOPERATIVE": worker._COOPERATIVE,
        "CU_CLUSTER_SCHEDULING_POLICY_SPREAD": worker._SPREAD,
        "CU_STREAM_CAPTURE_MODE_RELAXED": worker._RELAXED,
        "offsetof(CUlaunchConfig, sharedMemBytes)": worker._LaunchConfig.shared.offset,
        "offsetof(CUlaunchConfig, hStream)": worker._LaunchConfig.stream.offset,
        "offsetof(CUlaunchConfig, attrs)": worker._LaunchConfig.attributes.offset,
        "offsetof(CUlaunchConfig, numAttrs)": worker._LaunchConfig.count.offset,
        "sizeof(CUlaunchConfig)": ctypes.sizeof(worker._LaunchConfig),
        "offsetof(CUlaunchAttribute, value)": worker._LaunchAttribute.value.offset,
        "sizeof(CUlaunchAttribute)": ctypes.sizeof(worker._LaunchAttribute),
    }
    hip = {"hipStreamCaptureModeRelaxed": worker._RELAXED}
    for backend, header, known in (("nvidia", "cuda.h", cuda), ("amd", "hip/hip_runtime_api.h", hip)):
        # A name of the library is a macro or a prototype of the header; `_v2` is what the header means.
        names = worker._CALLS["cuda" if backend == "nvidia" else "hip"].values()
        lines = [f"#include <{header}>", "#include <stddef.h>"]
        lines += [f'_Static_assert({name} == {value}, "{name}");' for name, value in known.items()]
        lines += [f"void *p{number} = (void *){name};" for number, name in enumerate(names)]
        (tmp_path / "check.c").write_text("\n".join(lines) + "\n")
        defines = ("-D__HIP_PLATFORM_AMD__", "-w", "-fsyntax-only")
        include = f"-I{backends / backend / 'include'}"
        done = subprocess.run(
            ("cc", *defines, include, str(tmp_path / "check.c")), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr[:2000]


class TimedTool:
    """`kernel.time` in the environment with a Triton: without a GPU (`bare`), and on the stand-in."""

    def __init__(self, bare: Smith, smith: Smith, folder: Path) -> None:
        self.bare, self.smith, self.folder = bare, smith, folder

    def stand_in(self, noise: float = 0.005, **milliseconds: float) -> None:
        """Replace binaries by images that take so long, more or less by that part."""
        for path in sorted(self.folder.rglob("*.cubin")):
            ms = milliseconds[path.stem]
            path.write_text(f"stand-in ms={ms} noise={noise} sizes=8,8,8,4,8,8 write=2:1 symbol=vector_add")


_KERNEL = """\
import triton
import triton.language as tl

@triton.jit
def vector_add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)
"""
_LIST = """\
[[kernel]]
file = "add.py"
kernel = "vector_add"
signature = "*fp32:16,*fp32:16,*fp32:16,i32:16,1024"
targets = ["h100"]
[kernel.launch]
grid = [98]
arguments = {x = {elements = 100000}, y = {elements = 100000}, out = {elements = 100000}, n = 100000}
"""


@pytest.fixture(scope="module")
def timed(with_wheel: Smith, tmp_path_factory: pytest.TempPathFactory, driver: Path) -> TimedTool:
    """Two sides that were compiled, and their plan."""
    root = tmp_path_factory.mktemp("timed")
    smith = with_wheel.beside(root)
    (root / "add.py").write_text(_KERNEL)
    (root / "list.toml").write_text(_LIST)
    for side in ("four", "eight"):
        warps = {"four": "4", "eight": "8"}[side]
        smith("kernel.compile", "list.toml:vector_add", "--num-warps", warps, "--out", f"sides/{side}")
    # Without a GPU, the plan is written all the same, and the error says where to go with it.
    refused = smith("kernel.time", "sides", "--launches", "list.toml", "--out", "plan", code=1)
    assert "no GPU of these binaries is here" in refused.error
    assert "python time_binaries.py time.json times.json" in refused.error
    on_driver = {**smith.more, "TRITONSMITH_GPU_DRIVER": str(driver), "TRITONSMITH_NVML": str(driver)}
    return TimedTool(smith, replace(smith, more=on_driver), root / "plan")


def test_a_plan_fits_the_parameters_of_the_entry(timed: TimedTool) -> None:
    job = time_binaries.read_job(json.loads((timed.folder / "time.json").read_text()))
    (kernel,) = job.kernels
    assert [binary.label for binary in kernel.binaries] == ["eight", "four"]
    assert [binary.threads for binary in kernel.binaries] == [256, 128]
    (ptx,) = (timed.folder.parent / "sides" / "four").rglob("*.ptx")
    head, _, rest = ptx.read_text().partition(".entry vector_add(")
    assert head
    entry = [int(bits) // 8 for bits in _MATCH.findall(rest.partition(")")[0])]
    assert entry == _job_sizes(kernel.parameters, kernel.binaries[1])


def _job_sizes(parameters: Sequence[Parameter], binary: TimedBinary) -> list[int]:
    kinds = [parameters[number].kind for number in binary.parameters]
    own = [8 if kind.startswith("*") else time_binaries.element_size(kind) for kind in kinds]
    return own + [8] * len(binary.scratch)


def test_a_table_and_a_limit(timed: TimedTool) -> None:
    timed.stand_in(four=0.11, eight=0.1)
    done = timed.smith("kernel.time", "plan", "--fail-on", "time>+5%", "--seconds", "2", code=1)
    assert "slower" in done.out
    assert "1 time over the limit" in done.error
    done = timed.smith("kernel.time", "plan", "--fail-on", "time>+20%", "--seconds", "2")
    assert done.out.endswith("within the limits: time>+20%\n")
    timed.stand_in(noise=0, four=0.1, eight=0.1)  # of equal ones with noise, an interval of 95 % misses some
    assert "cannot be told apart" in timed.smith("kernel.time", "plan", "--seconds", "2").out


def test_times_of_another_machine_are_read(timed: TimedTool) -> None:
    timed.stand_in(four=0.11, eight=0.1)
    timed.smith("kernel.time", "plan", "--seconds", "2")
    done = timed.bare("kernel.time", "plan", "--times", "plan/times.json", "--json", "--plot", "times.svg")
    (kernel,) = json.loads(done.out)["kernels"]
    assert [row["standing"] for row in kernel["binaries"]] == ["first", "slower"]
    assert (timed.folder.parent / "times.svg").read_text().startswith("<?xml")


def test_a_throttled_gpu_is_not_decided(timed: TimedTool) -> None:
    timed.stand_in(four=0.11, eight=0.1)
    hot = replace(timed.smith, more={**timed.smith.more, "STAND_IN_REASONS": "0x40"})
    done = hot("kernel.time", "plan", "--seconds", "1", code=5)
    assert "the GPU slowed down: hardware thermal slowdown" in done.error


def test_flags_that_would_have_no_effect_are_refused(timed: TimedTool) -> None:
    assert "already compiled" in timed.smith("kernel.time", "sides", "--triton", "3.9.0", code=2).error
    assert "its arguments already" in timed.smith("kernel.time", "plan", "--grid", "1", code=2).error
    swept = ("--triton", "3.9.0", "--sweep", "BLOCK=1,2")
    error = timed.smith("kernel.time", "list.toml", *swept, code=2).error
    assert "no sweep but the configs of an autotuner" in error
