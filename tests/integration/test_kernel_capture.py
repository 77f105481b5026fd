"""`kernel.capture` of programs that launch kernels, with the newest wheel and no torch."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.integration.harness import Smith

PROGRAM = """
import os
import subprocess
import sys
import triton
import triton.language as tl

class Array:
    dtype = "float32"
    def __init__(self, address):
        self.address = address
    def data_ptr(self):
        return self.address

@triton.autotune([triton.Config({"BLOCK": size}, num_warps=size // 64) for size in (256, 512)], key=["n"])
@triton.heuristics({"EVEN": lambda given: given["n"] % given["BLOCK"] == 0})
@triton.jit
def scale(x, y, n, one, nothing, factor, BLOCK: tl.constexpr, EVEN: tl.constexpr, KIND: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n)
    tl.store(y + at, (value * factor + one).to(KIND), mask=at < n)

def make(width):
    @triton.jit
    def fill(x, WIDTH: tl.constexpr):
        tl.store(x + tl.arange(0, WIDTH), 0.0)
    return fill

fill = make(16)

def launch(x, n):
    grid = lambda given: (triton.cdiv(n, given["BLOCK"]), 2)
    scale[grid](x, Array(512), n, 1, None, 0.5, KIND=tl.float32)

if __name__ == "__main__":
    assert triton.runtime.driver.active.get_current_target().arch == int(os.environ["ARCH"])
    for _ in range(3):
        launch(Array(256), 768)
    launch(Array(260), 512)
    if len(sys.argv) == 1:
        fill[(4,)](Array(0), WIDTH=16)
        fill.warmup(Array(0), WIDTH=32, grid=(1,))
        subprocess.run([sys.executable, __file__, "again"], check=True)
        raise SystemExit(3)
"""


@pytest.fixture(scope="module")
def smith(with_wheel: Smith, tmp_path_factory: pytest.TempPathFactory) -> Smith:
    """The tool beside a program, with the newest wheel in the environment `wheel`."""
    root = tmp_path_factory.mktemp("programs to capture")
    (root / "program.py").write_text(PROGRAM)
    (root / "site").mkdir()
    (root / "site" / "sitecustomize.py").write_text("import os\nos.environ['ARCH'] = '90'\n")
    more = {"PYTHONPATH": str(root / "site")}  # of the user's own
    return Smith(root, cwd=root, more=more, shared=with_wheel.home)


@pytest.fixture(scope="module")
def captured(smith: Smith) -> dict[str, Any]:
    """What the program launches, in its own process and in another."""
    done = smith("kernel.capture", "--env", "wheel", "--json", "--", "python", "program.py", code=3)
    content: dict[str, Any] = json.loads(done.out)
    return content


def test_each_specialisation_is_listed_once(captured: dict[str, Any], smith: Smith) -> None:
    rest = "one=i32:1,nothing=None,factor=fp32,BLOCK=256"
    found = {one["name"]: one for one in captured["kernels"]}
    assert [one["signature"] for one in found.values()] == [
        f"x=*fp32:16,y=*fp32:16,n=i32:16,{rest},EVEN=True,KIND=tl.float32",
        f"x=*fp32,y=*fp32:16,n=i32:16,{rest},EVEN=True,KIND=tl.float32",
        "x=*fp32:16,WIDTH=16",
    ]
    assert {name: one["count"] for name, one in found.items()} == {"scale": 6, "scale-2": 2, "fill": 1}
    assert {name: one["grid"] for name, one in found.items()} == {
        "scale": [[3, 2, 1]], "scale-2": [[2, 2, 1]], "fill": [[4, 1, 1]],
    }  # fmt: skip
    (line,) = [number for number, text in enumerate(PROGRAM.split("\n"), 1) if "scale[grid]" in text]
    assert found["scale"]["where"] == [f"program.py:{line}"]
    assert found["fill"]["kernel"] == "fill"
    assert found["scale"]["options"] == {"num_warps": 4, "num_stages": 3}
    assert captured["exit"] == 3
    listed = tomllib.loads((smith.cwd / "captured.toml").read_text(encoding="utf-8"))
    assert listed["kernel"] == captured["kernels"]
    assert listed["captured"]["target"] == "cuda:90:32"


def test_configs_have_what_heuristics_make_of_them(captured: dict[str, Any]) -> None:
    assert captured["kernels"][0]["configs"] == [
        {"EVEN": True, "BLOCK": 256, "num_warps": 4, "num_stages": 3},
        {"EVEN": False, "BLOCK": 512, "num_warps": 8, "num_stages": 3},
    ]


@pytest.mark.slow
def test_the_list_compiles_unchanged(captured: dict[str, Any], smith: Smith) -> None:
    assert len(captured["kernels"]) == 3
    done = smith("kernel.compile", "captured.toml", "--sweep", "autotune", "--json", "--out", "compiled")
    points = [point for one in json.loads(done.out)["kernels"] for point in one["points"]]
    assert len(points) == 5
    assert all(point["status"] == "ok" for point in points)


@pytest.mark.slow
def test_what_is_missing_is_named(smith: Smith, tmp_path: Path) -> None:
    # Without the traceback, which only a bug of the tool may print
    (tmp_path / "wants_torch.py").write_text(
        "import sys\ntry:\n    import torch\n"
        "except ImportError as error:\n    sys.exit(f'{type(error).__name__}: {error}')\n"
    )
    done = smith("kernel.capture", "--env", "wheel", "--", "python", tmp_path / "wants_torch.py", code=1)
    assert "an environment with torch for the CPU: " in done.error
    (tmp_path / "fails.py").write_text("import sys\nsys.exit('OSError: it broke')\n")
    done = smith("kernel.capture", "--env", "wheel", "--", "python", tmp_path / "fails.py", code=1)
    assert "exit code 1 before it launched a kernel that can be listed: OSError: it broke" in done.error
    assert "did not import" not in done.error
    (tmp_path / "quiet.py").write_text("print('done')\n")
    done = smith("kernel.capture", "--env", "wheel", "--", "python", tmp_path / "quiet.py", code=1)
    assert "the program did not import Triton" in done.error


# As flag_gems has them: an autotuner with a `run` of its own, and an entry that keeps what was compiled.
TUNERS = """
import triton

class Tuner(triton.runtime.Autotuner):
    def run(self, *args, **kwargs):
        self.nargs = dict(zip(self.arg_names, args))
        times = {one: self._bench(*args, config=one, **kwargs) for one in self.prune_configs(kwargs)}
        self.best_config = min(times, key=times.get)
        return self.fn.run(*args, **kwargs, **self.best_config.all_kwargs())

class Entry(triton.KernelInterface):
    def __init__(self, fn):
        self.fn, self.kernels = fn, {}

    def run(self, x, grid, warmup):
        if "kernel" in self.kernels:
            self.kernels["kernel"][grid](x)
        else:
            self.kernels["kernel"] = self.fn.run(x, grid=grid, warmup=warmup)
"""
TUNED = """
import triton
import triton.language as tl
from tuners import Entry, Tuner
from program import Array

def tuned(fn):
    configs = [triton.Config({"B": 16}), triton.Config({"B": 32}, num_warps=2)]
    return Tuner(fn, fn.arg_names, configs, [], None, None)

@Entry
@tuned
@triton.jit
def fill(x, B: tl.constexpr):
    tl.store(x + tl.arange(0, B), 0.0)

fill[(4,)](Array(0))
fill[(4,)](Array(0))
"""


def test_a_package_s_own_autotuner_has_configs_and_the_launch_is_the_users_line(smith: Smith) -> None:
    (smith.cwd / "tuners.py").write_text(TUNERS)
    (smith.cwd / "tuned.py").write_text(TUNED)
    argv = ("--env", "wheel", "--json", "--out", "tuned.toml", "--", "python", "tuned.py")
    (kernel,) = json.loads(smith("kernel.capture", *argv).out)["kernels"]
    assert kernel["configs"] == [
        {"B": 16, "num_warps": 4, "num_stages": 3},
        {"B": 32, "num_warps": 2, "num_stages": 3},
    ]
    lines = [number for number, text in enumerate(TUNED.split("\n"), 1) if text.startswith("fill[")]
    assert kernel["where"] == [f"tuned.py:{line}" for line in lines]
    assert kernel["count"] == 2


EXTENDED = """
import sys
from program import fill, Array

try:
    import fast_kernels_cuda as extension
    from fast_kernels_cuda.ops import attention
except ImportError as error:  # without the traceback, which only a bug of the tool may print
    sys.exit(f"{type(error).__name__}: {error}")
fill[(4,)](Array(0), WIDTH=16)
if __name__ == "__main__":
    try:
        extension.forward(1)
    except RuntimeError as error:
        sys.exit(f"{type(error).__name__}: {error}")
"""


@pytest.mark.slow
def test_a_program_goes_on_without_an_extension_that_is_named(smith: Smith) -> None:
    (smith.cwd / "extended.py").write_text(EXTENDED)
    argv = ("kernel.capture", "--env", "wheel", "--out", "extended.toml")
    done = smith(*argv, "--", "python", "extended.py", code=1)
    assert "the program needs fast_kernels_cuda" in done.error
    assert "--stand-in fast_kernels_cuda" in done.error

    # To import it is nothing; to call it ends the program as any error does, after what was launched before.
    without = (*argv, "--stand-in", "fast_kernels_cuda", "--json", "--")
    done = smith(*without, "python", "extended.py", code=1)
    assert "RuntimeError: fast_kernels_cuda.forward cannot run: its module is a stand-in" in done.err
    done = smith(*without, "-c", "import extended")
    answer = json.loads(done.out)
    assert [one["name"] for one in answer["kernels"]] == ["fill"]
    assert any("fast_kernels_cuda is a stand-in" in note for note in answer["notes"])

    done = smith("kernel.capture", "--stand-in", "a-b", "--", "python", "extended.py", code=2)
    assert "--stand-in 'a-b' is not the name of a module" in done.error
