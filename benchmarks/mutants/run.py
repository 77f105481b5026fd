"""Run the mutants of a folder on this machine's GPU, and compare with what the check said of them.

    python run.py [FOLDER] [--workers 12] [--limit 30] [--first N]

It needs Triton, NumPy and libcuda, and no network. `benchmarks/passes_check.py --gpu FOLDER` makes the
folder: the texts of the kernels in ttgir, the mutants as one changed line each, and the verdicts. Each text
is compiled and launched in a process of its own; what the unchanged text leaves in memory is right. Tensors
lie at one end of memory that is mapped alone, with nothing behind it or before it: a read outside of them
ends the process.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import tomllib
from collections import Counter
from pathlib import Path

import numpy as np

_TOLERANCE = {"float32": 8e-6, "float16": 4e-3}  # as in configs/passes-check.toml
_PATTERN = 0x5A  # each byte that nothing is written to
_SIDES = ("end", "start")  # the place of a tensor in its mapped memory
_OUTCOMES = ("differs", "crashes", "same", "refused")


class Gpu:
    """The CUDA driver, by ctypes: Triton's own launcher would need a C compiler and PyTorch."""

    def __init__(self) -> None:
        self._cuda = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        self._property = (ctypes.c_ubyte * 64)()  # CUmemAllocationProp: pinned, on a device, of number 0
        ctypes.memmove(self._property, np.asarray([1, 0, 1, 0], np.int32).tobytes(), 16)
        size = ctypes.c_size_t()
        self.call("cuMemGetAllocationGranularity", ctypes.byref(size), self._property, 0)
        self.unit = size.value

    def call(self, name: str, *arguments: object) -> None:
        """Call a function of the driver.

        Raises:
            RuntimeError: it returns an error, whose number is the argument.
        """
        if code := getattr(self._cuda, name)(*arguments):
            raise RuntimeError(f"{name}: error {code}")

    def mapped(self, size: int) -> tuple[int, int]:
        """Map memory with as much unmapped memory on both sides; return its address and size."""
        size = -(-size // self.unit) * self.unit
        address, handle = ctypes.c_uint64(), ctypes.c_uint64()
        whole, none = ctypes.c_size_t(size + 2 * self.unit), ctypes.c_uint64(0)
        self.call("cuMemAddressReserve", ctypes.byref(address), whole, ctypes.c_size_t(0), none, none)
        self.call(
            "cuMemCreate", ctypes.byref(handle), ctypes.c_size_t(size), self._property, ctypes.c_uint64(0)
        )
        at = address.value + self.unit
        self.call(
            "cuMemMap",
            ctypes.c_uint64(at),
            ctypes.c_size_t(size),
            ctypes.c_size_t(0),
            handle,
            ctypes.c_uint64(0),
        )
        access = (ctypes.c_int * 3)(1, 0, 3)  # CUmemAccessDesc: the device 0, read and write
        self.call("cuMemSetAccess", ctypes.c_uint64(at), ctypes.c_size_t(size), access, ctypes.c_size_t(1))
        return at, size

    def write(self, at: int, data: np.ndarray) -> None:
        """Copy an array to the GPU."""
        self.call(
            "cuMemcpyHtoD_v2",
            ctypes.c_uint64(at),
            ctypes.c_void_p(data.ctypes.data),
            ctypes.c_size_t(data.nbytes),
        )

    def read(self, at: int, size: int) -> np.ndarray:
        """Return bytes of the GPU."""
        data = np.empty(size, np.uint8)
        self.call(
            "cuMemcpyDtoH_v2", ctypes.c_void_p(data.ctypes.data), ctypes.c_uint64(at), ctypes.c_size_t(size)
        )
        return data

    def function(self, cubin: bytes, name: str, shared: int) -> ctypes.c_void_p:
        """Load a kernel."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), cubin)
        self.call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        self.call("cuFuncSetAttribute", function, 8, shared)  # the largest dynamic shared memory
        return function

    def launch(
        self, function: ctypes.c_void_p, grid: list[int], threads: int, shared: int, values: list
    ) -> None:
        """Launch a kernel, and wait for its end."""
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        self.call("cuLaunchKernel", function, *grid, threads, 1, 1, shared, None, pointers, None)
        self.call("cuCtxSynchronize")


def filled(dtype: str, size: int, how: str, chance: np.random.Generator) -> np.ndarray:
    """Return the contents of a tensor; sums and products of fractions are exact in any order."""
    if how == "fractions":
        return (chance.integers(-64, 64, size) / 32).astype(dtype)
    if how == "bits":
        return chance.integers(-(1 << 31), 1 << 31, size).astype(dtype)
    if how == "small":
        return chance.integers(0, 100, size).astype(dtype)
    raw = np.full(size * np.dtype(dtype).itemsize, 0 if how == "zeros" else _PATTERN, np.uint8)
    return raw.view(dtype)


def compiled(text: str, folder: Path) -> tuple[bytes, str, int, int, int]:
    """Compile ttgir; return cubin, name, shared memory, threads and the number of parameters."""
    import triton  # noqa: PLC0415 - the parent has imported it
    from triton.backends.compiler import GPUTarget  # noqa: PLC0415

    path = folder / "kernel.ttgir"
    path.write_text(text, encoding="utf-8")
    kernel = triton.compile(str(path), target=GPUTarget("cuda", 90, 32))
    ptx = kernel.asm["ptx"]
    head = ptx[ptx.index(".entry") :]
    parameters = head[: head.index(")")].count(".param")
    made = kernel.metadata
    if getattr(made, "global_scratch_size", 0):
        raise RuntimeError("a kernel with scratch memory")
    return kernel.asm["cubin"], made.name, made.shared, made.num_warps * 32, parameters


def launched(gpu: Gpu, kernel: dict, binary: tuple, number: int, side: str) -> dict[str, np.ndarray]:
    """Launch once; return all memory afterwards, by the tensor's name."""
    sizes = kernel["launches"][number]
    cubin, name, shared, threads, parameters = binary
    chance = np.random.default_rng(number)
    places, pointers = {}, {}
    for tensor, (dtype, elements, how) in sorted(kernel["tensors"].items()):
        data = filled(dtype, eval(elements, {}, dict(sizes)), how, chance)  # noqa: S307 - of the folder's own table
        taken = -(-data.nbytes // 16) * 16
        at, size = gpu.mapped(taken)
        offset = size - taken if side == "end" else 0
        whole = np.full(size, _PATTERN, np.uint8)
        whole[offset : offset + data.nbytes] = data.view(np.uint8)
        gpu.write(at, whole)
        places[tensor], pointers[tensor] = (at, size), at + offset
    values = []
    for argument in kernel["arguments"]:
        if argument in pointers:
            values.append(ctypes.c_uint64(pointers[argument]))
        else:
            value = sizes.get(argument, argument) if isinstance(argument, str) else argument
            values.append(ctypes.c_float(value) if isinstance(value, float) else ctypes.c_int32(value))
    values += [ctypes.c_uint64(0)] * (parameters - len(values))  # scratch memory, of which it has none
    gpu.launch(gpu.function(cubin, name, shared), sizes["grid"], threads, shared, values)
    return {tensor: gpu.read(at, size) for tensor, (at, size) in places.items()}


def apart(before: np.ndarray, after: np.ndarray, dtype: str) -> str:
    """Return how two memories differ; empty if only within the tolerance."""
    if np.array_equal(before, after):
        return ""
    wide = before.view(dtype).astype(np.float64), after.view(dtype).astype(np.float64)
    unequal = before.view(f"u{np.dtype(dtype).itemsize}") != after.view(f"u{np.dtype(dtype).itemsize}")
    with np.errstate(all="ignore"):
        most = np.maximum(np.abs(wide[0]), np.abs(wide[1]))
        near = np.abs(wide[0] - wide[1]) <= _TOLERANCE.get(dtype, 0.0) * np.maximum(most, 1e-3)
    unequal &= ~near & ~(np.isnan(wide[0]) & np.isnan(wide[1]))
    if not unequal.any():
        return ""
    first = int(np.flatnonzero(unequal)[0])
    return f"[{first}] {wide[0][first]:g} {wide[1][first]:g}, {int(unequal.sum())} elements"


def child(kernel: dict, text: str, base: Path, mark: Path, *, first: bool) -> dict:
    """Compile and launch one text; save its memory, or compare it. The mark says that it was compiled."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRITON_CACHE_DIR"] = folder
        try:
            binary = compiled(text, Path(folder))
        except BaseException as error:  # noqa: BLE001 - the compiler refuses what is no valid ttgir
            return {"outcome": "refused", "why": f"{type(error).__name__}: {error}"[:300]}
    mark.touch()
    gpu = Gpu()
    for number in range(len(kernel["launches"])):
        for side in _SIDES:
            try:
                memory = launched(gpu, kernel, binary, number, side)
            except RuntimeError as error:
                return {"outcome": "crashes", "why": f"{error}, launch {number}, {side}"}
            file = base / f"{kernel['name']}-{number}-{side}.npz"
            if first and not file.exists():
                np.savez_compressed(file, **memory)
            right = np.load(file)
            for tensor, (dtype, *_) in kernel["tensors"].items():
                if why := apart(right[tensor], memory[tensor], dtype):
                    return {"outcome": "differs", "why": f"{tensor}{why}, launch {number}, {side}"}
    return {"outcome": "same", "why": ""}


def _ended(answer: Path, why: str) -> dict:
    """Return a process's answer, or how it has ended: in the compiler, or on the GPU."""
    try:
        result: dict = json.loads(answer.read_text())
    except (OSError, ValueError):
        result = {"outcome": "crashes" if answer.with_suffix(".mark").exists() else "refused", "why": why}
    return result


def run_all(jobs: list[tuple], workers: int, limit: float) -> list[dict]:
    """Run `child` for each of the jobs, some at a time; one that takes too long is ended."""
    results: list[dict] = [{}] * len(jobs)
    running: dict[int, tuple[int, float, Path]] = {}
    waiting = list(range(len(jobs)))[::-1]
    work = Path(tempfile.mkdtemp(prefix="mutants-"))
    while waiting or running:
        while waiting and len(running) < workers:
            number = waiting.pop()
            answer = work / f"{number}.json"
            sys.stdout.flush()
            if (pid := os.fork()) == 0:
                code = 1
                try:
                    os.dup2(os.open(work / f"{number}.log", os.O_WRONLY | os.O_CREAT), 2)
                    kernel, text, base, first = jobs[number]
                    answer.write_text(
                        json.dumps(child(kernel, text, base, answer.with_suffix(".mark"), first=first))
                    )
                    code = 0
                finally:
                    os._exit(code)
            running[pid] = number, time.monotonic() + limit, answer
        for pid, (number, until, answer) in list(running.items()):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                del running[pid]
                results[number] = _ended(answer, f"the process ends with {status}")
            elif time.monotonic() > until:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                del running[pid]
                results[number] = _ended(answer, f"it does not end within {limit:g} s")
        time.sleep(0.01)
    shutil.rmtree(work, ignore_errors=True)
    return results


def main() -> int:
    """Run, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parent)
    parser.add_argument("--workers", type=int, default=min(12, os.cpu_count() or 1))
    parser.add_argument("--limit", type=float, default=30.0, help="seconds for one mutant")
    parser.add_argument("--first", type=int, default=0, help="only so many mutants")
    parser.add_argument("--out", type=Path, help="the results (default: results.json in the current folder)")
    given = parser.parse_args()
    import triton  # noqa: PLC0415 - after the arguments; all children share it

    began = time.monotonic()
    kernels = {
        row["name"]: row for row in tomllib.loads((given.folder / "launches.toml").read_text())["kernel"]
    }
    texts = {name: (given.folder / f"{name}.ttgir").read_text() for name in kernels}
    mutants = json.loads((given.folder / "mutants.json").read_text())
    mutants = mutants[: given.first or None]
    base = Path(tempfile.mkdtemp(prefix="right-"))
    originals = [(kernel, texts[name], base, True) for name, kernel in kernels.items()]
    for _ in range(2):  # the second time, each has to leave the same
        for name, row in zip(kernels, run_all(originals, given.workers, 120.0), strict=True):
            print(f"unchanged {name}: {row['outcome']} {row['why']}", flush=True)
    jobs = []
    for mutant in mutants:
        lines = texts[mutant["kernel"]].splitlines()
        lines[mutant["line"] - 1] = mutant["changed"]
        jobs.append((kernels[mutant["kernel"]], "\n".join(lines) + "\n", base, False))
    rows = [
        {**mutant, **row}
        for mutant, row in zip(mutants, run_all(jobs, given.workers, given.limit), strict=True)
    ]
    out = given.out or Path("results.json")
    out.write_text(json.dumps(rows, indent=1))
    print(f"Triton {triton.__version__}, {len(rows)} mutants, {time.monotonic() - began:.0f} s; {out}")
    show(rows)
    shutil.rmtree(base, ignore_errors=True)
    return 0


def show(rows: list[dict]) -> None:
    """Print who agrees with whom, by kind, and those of which the check and the GPU say different things."""
    verdicts = ("found", "not decided", "survived")
    print(f"{'':14}" + "".join(f"{outcome:>10}" for outcome in _OUTCOMES))
    for verdict in verdicts:
        seen = Counter(row["outcome"] for row in rows if row["verdict"] == verdict)
        print(f"{verdict:14}" + "".join(f"{seen[outcome]:>10}" for outcome in _OUTCOMES))
    for kind in sorted({row["kind"] for row in rows}):
        seen = Counter((row["verdict"], row["outcome"]) for row in rows if row["kind"] == kind)
        print(
            f"  {kind}: " + ", ".join(f"{' / '.join(pair)} {count}" for pair, count in sorted(seen.items()))
        )
    for row in rows:
        wrong, found = row["outcome"] in ("differs", "crashes"), row["verdict"] == "found"
        if row["outcome"] != "refused" and wrong != found:
            print(f"{row['verdict']}, {row['outcome']}: {row['kernel']}:{row['line']}, {row['kind']}")
            print(f"  {row['about']} | {row['why']}\n  {row['before']}\n  {row['changed'].strip()}")


if __name__ == "__main__":
    sys.exit(main())
