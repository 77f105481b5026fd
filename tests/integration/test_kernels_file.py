"""Kernels files and notebooks with the newest wheel: what is compiled of them, and recorded configs."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from tests.integration.harness import Smith

KERNELS = """
import triton
import triton.language as tl
from somewhere_else import CONFIGS

@triton.autotune(configs=CONFIGS, key=["n"])
@triton.jit
def fill(p, n, BLOCK: tl.constexpr):
    tl.store(p + tl.arange(0, BLOCK), n)

@triton.jit
def copy(a, b, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(b + offsets, tl.load(a + offsets))

@triton.jit
def wrong(a):
    tl.store(a, nothing)
"""
MISSING = """
import triton
import gone

@triton.jit
def k(p):
    gone.x(p)
"""
CONFIGS = """
import triton

CONFIGS = [triton.Config({"BLOCK": 32}, num_warps=1)]
"""
CAPTURED = """
[captured]
command = "python script.py"
target = "cuda:80:32"

[[kernel]]
file = "kernels.py"
kernel = "fill"
signature = "*i32:16,i32,BLOCK=64"
targets = ["cuda:80:32"]
options = { num_warps = 2 }
sha256 = "0000"
count = 3
grid = [[1, 1, 1]]
where = ["script.py:9"]
configs = [{ BLOCK = 64, num_warps = 2 }, { BLOCK = 128, num_warps = 64 }]

[[kernel]]
file = "kernels.py"
kernel = "copy"
name = "copy 64"
signature = "*fp32:16,*fp32:16,BLOCK=64"
targets = ["cuda:80:32"]
"""
WRONG = """
[[kernel]]
file = "kernels.py"
kernel = "wrong"
signature = "*fp32"

[[kernel]]
file = "missing_import.py"
kernel = "k"
signature = "*fp32"
"""
CELLS = (
    """%load_ext tritonsmith
import triton
import triton.language as tl
from somewhere_else import CONFIGS""",
    "!exit 3\nraise SystemExit(3)",
    """SIZE = tl.constexpr(CONFIGS[0].kwargs["BLOCK"])
@triton.jit
def fill(p):
    tl.store(p + tl.arange(0, SIZE), 0)""",
    "@triton.jit\ndef bad(p):\n    tl.store(p, nothing)\nbad?",
)


@pytest.fixture(scope="module")
def smith(with_wheel: Smith, tmp_path_factory: pytest.TempPathFactory) -> Smith:
    """The tool beside a kernels file."""
    root = tmp_path_factory.mktemp("kernels file")
    (root / "kernels.py").write_text(KERNELS)
    (root / "somewhere_else.py").write_text(CONFIGS)
    (root / "missing_import.py").write_text(
        "import triton\nimport gone\n@triton.jit\ndef k(p):\n    gone.x(p)\n"
    )
    (root / "captured.toml").write_text(CAPTURED)
    (root / "more.toml").write_text(CAPTURED + WRONG)
    return with_wheel.beside(root)


def test_all_kernels_are_compiled(smith: Smith) -> None:
    done = smith("kernel.compile", "captured.toml", "--out", "out", "--json")
    assert "kernels.py has changed since it was captured" in done.err
    found: list[dict[str, Any]] = json.loads(done.out)["kernels"]
    assert [(one["kernel"], [point["status"] for point in one["points"]]) for one in found] == [
        ("fill", ["ok"]),
        ("copy", ["ok"]),
    ]
    assert (smith.cwd / "out" / "copy_64" / "manifest.json").is_file()
    assert found[0]["points"][0]["constexprs"] == {"BLOCK": 64}


def test_every_recorded_config_and_which_cannot_run(smith: Smith) -> None:
    done = smith("kernel.resources", "captured.toml", "--sweep", "autotune", "--json")
    content = json.loads(done.out)
    assert [row["point"] for row in content["rows"]] == [
        "fill/cuda-80-32,BLOCK=64,num_warps=2",
        "fill/cuda-80-32,BLOCK=128,num_warps=64",
        "copy 64/cuda-80-32",
    ]
    assert [row["values"]["launch"] for row in content["rows"]] == ["yes", "no: threads 2048 > 1024", "yes"]
    (warning,) = content["warnings"]
    assert warning.startswith("fill/cuda-80-32,BLOCK=128,num_warps=64: cannot launch")


@pytest.mark.slow
def test_the_manifest_s_command_makes_the_configs_again(smith: Smith) -> None:
    smith("kernel.compile", "captured.toml:fill", "--sweep", "autotune", "--out", "tuned")
    manifest = json.loads((smith.cwd / "tuned" / "manifest.json").read_text())
    _, *words = shlex.split(manifest["command"])
    again = json.loads(smith(*words, "--json").out)
    assert [one["id"] for one in again["points"]] == [one["id"] for one in manifest["points"]]
    assert len(again["points"]) == 2


@pytest.mark.slow
def test_what_is_wrong_with_one_does_not_stop_the_others(smith: Smith) -> None:
    done = smith("kernel.compile", "more.toml", "--target", "a100", code=1)
    assert "wrong/cuda-80-32: failed" in done.error
    assert "gone" in done.error
    assert "2 of 4 points did not compile" in done.error


@pytest.mark.slow
def test_one_kernel_for_the_other_tasks(smith: Smith) -> None:
    assert ".entry copy(" in smith("kernel.show", "captured.toml:copy 64", "--stage", "ptx").out
    dumped = smith("passes.dump", "captured.toml:copy", "--out", "dump", "--json")
    assert json.loads(dumped.out)["dumps"]
    compared = smith("kernel.compare", "a100", "h100", "captured.toml", "--json")
    assert {one["kernel"] for one in json.loads(compared.out)["pairs"]} == {"fill", "copy"}


@pytest.mark.slow
def test_a_trace_of_tritonparse(smith: Smith) -> None:
    """With the metadata and the ttir of a real compile; the file that it names is not on this machine."""
    smith("kernel.compile", "captured.toml:copy", "--out", "before")
    folder = smith.cwd / "before" / "cuda-80-32"
    metadata = json.loads((folder / "metadata.json").read_text())
    metadata |= {"target": {"backend": "cuda", "arch": 80, "warp_size": 32}, "hash": "a"}
    metadata |= {"src_constants": {"(2,)": 64}}
    metadata |= {"src_attrs": {f"({n},)": [["tt.divisibility", 16]] for n in (0, 1)}}
    code = KERNELS[KERNELS.index("@triton.jit\ndef copy") : KERNELS.index("@triton.jit\ndef wrong")]
    python = {"file_path": "/gone/kernels.py", "start_line": 12, "end_line": 16, "code": code}
    files = {"copy.ttir": (folder / "copy.ttir").read_text()}
    payload = {"metadata": metadata, "python_source": python, "file_content": files}
    event = {"event_type": "compilation", "payload": payload}
    (smith.cwd / "trace.ndjson").write_text(f"{json.dumps(event)}\n")
    done = smith("kernel.compile", "trace.ndjson", "--out", "after", "--json")
    assert "kernels.py is not on this machine" in done.err
    (point,) = json.loads(done.out)["points"]
    before = json.loads((smith.cwd / "before" / "manifest.json").read_text())["points"][0]
    same = ("id", "target", "signature", "constexprs", "hints", "status")
    assert [point[name] for name in same] == [before[name] for name in same]
    machine = [
        [line for line in smith("kernel.show", out, "--stage", "sass").out.splitlines() if "/*0" in line]
        for out in ("before", "after")
    ]
    assert machine[0] == machine[1]
    assert machine[0]


@pytest.mark.slow
def test_a_notebook(smith: Smith) -> None:
    """Its cells are not run, but for what the kernel needs; a module beside it is found."""
    code = [{"cell_type": "code", "source": cell} for cell in CELLS]
    (smith.cwd / "my.ipynb").write_text(json.dumps({"cells": code}))
    flags = ("--signature", "*i32:16", "--target", "a100")
    done = smith("kernel.show", "my.ipynb:fill", *flags, "--stage", "ttgir")
    assert "tensor<32xi32" in done.out
    done = smith("kernel.compile", "my.ipynb:bad", *flags, code=1)
    assert f"at {smith.cwd / 'my.ipynb'}, cell 4, line 3" in done.error
