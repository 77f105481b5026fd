"""Real kernels of the newest Triton: the table against what ptxas, cuobjdump, nvdisasm and LLVM say."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.integration.harness import LLVM, Smith, capture
from tests.support import require
from tritonsmith.ir import gpu_binary

POINTERS = "*fp16:16,*fp16:16,*fp16:16,i32:16,i32:16,i32:16"
MATMUL = f"{POINTERS},64,128,16"
WIDE = f"{POINTERS},128,128,16"  # ptxas takes half a minute for one warp of it
KERNELS = """
import triton
import triton.language as tl


@triton.jit
def vector_add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    total = tl.load(x_ptr + offsets, mask=mask) + tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, total, mask=mask)


@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        inner = start + depth
        left = tl.load(a_ptr + rows[:, None] * k + inner[None, :], mask=inner[None, :] < k, other=0.0)
        right = tl.load(b_ptr + inner[:, None] * n + columns[None, :], mask=inner[:, None] < k, other=0.0)
        total = tl.dot(left, right, total)
    out = c_ptr + rows[:, None] * n + columns[None, :]
    tl.store(out, total.to(tl.float16), mask=(rows[:, None] < m) & (columns[None, :] < n))
"""
SERIAL = """
import triton
import triton.language as tl


@triton.jit
def serial(a, b, c, K, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    rows, columns, depth = tl.arange(0, M), tl.arange(0, N), tl.arange(0, D)
    total = tl.zeros((M, N), dtype=tl.float32)
    for start in range(0, K, D):
        left = tl.load(a + rows[:, None] * K + (start + depth)[None, :])
        right = tl.load(b + (start + depth)[:, None] * N + columns[None, :])
        total = tl.dot(left, right, tl.dot(left, right, total) * 1.5)
    tl.store(c + rows[:, None] * N + columns[None, :], total)
"""
NVIDIA = ("cuda:80", "cuda:90")
AMD = ("gfx90a", "gfx942", "gfx1100")


@pytest.fixture(scope="module")
def smith(with_wheel: Smith, tmp_path_factory: pytest.TempPathFactory) -> Smith:
    """The tool, with an environment that has the newest Triton, and a file of kernels."""
    require(str(LLVM / "bin" / "llvm-readobj"))
    root = tmp_path_factory.mktemp("re sources")
    (root / "kernels.py").write_text(KERNELS, encoding="utf-8")
    return with_wheel.beside(root)


@pytest.fixture(scope="module")
def swept(smith: Smith) -> tuple[Path, list[dict[str, Any]]]:
    """A matmul whose one warp spills and whose four do not: its output folder, and the rows."""
    out = smith.root / "matmul"
    targets = [word for target in (*NVIDIA, *AMD) for word in ("--target", target)]
    flags = ["--signature", MATMUL, *targets, "--sweep", "num_warps=1,4", "--out", str(out)]
    rows = json.loads(smith("kernel.resources", "kernels.py:matmul", *flags, "--json").out)["rows"]
    assert len(rows) == 10
    return out, rows


@pytest.fixture(scope="module")
def wide(smith: Smith) -> tuple[Path, list[dict[str, Any]]]:
    """A matmul whose one wave takes AGPRs too, and spills: the same of it."""
    out = smith.root / "wide"
    flags = ("--signature", WIDE, "--target", "gfx90a", "--num-warps", "1", "--out", out)
    return out, json.loads(smith("kernel.resources", "kernels.py:matmul", *flags, "--json").out)["rows"]


def tools(smith: Smith) -> Path:
    """Folder of the wheel's programs."""
    packages = next((smith.env("wheel") / "venv" / "lib").glob("python*/site-packages"))
    return packages / "triton" / "backends" / "nvidia" / "bin"


def test_cuobjdump_says_the_same(smith: Smith, swept: tuple[Path, list[dict[str, Any]]]) -> None:
    out, rows = swept
    for row in (row for row in rows if row["target"].startswith("cuda")):
        text = capture(
            tools(smith) / "cuobjdump", "--dump-resource-usage", out / row["point"] / "matmul.cubin"
        )
        found = dict(re.findall(r"(REG|STACK|SHARED|CONSTANT\[0\]):(\d+)", text))
        keys = ("registers_per_thread", "stack_bytes", "shared_static_bytes", "constant_bytes")
        assert [str(row["values"][key]) for key in keys] == list(found.values()), row["point"]


def test_ptxas_says_the_same_of_spills(smith: Smith, swept: tuple[Path, list[dict[str, Any]]]) -> None:
    """One of Triton's calls of ptxas makes the same registers and stack; its spills are the table's."""
    out, rows = swept
    spilled = [row for row in rows if row["target"].startswith("cuda") and row["values"]["stack_bytes"]]
    assert spilled, "one warp is too few for this tile"
    for row in spilled:
        values = row["values"]
        ptx = out / row["point"] / "matmul.ptx"
        target = re.search(r"\.target (\w+)", ptx.read_text(encoding="utf-8"))
        assert target
        ours = tuple(values[key] for key in ("stack_bytes", "spill_store_bytes", "spill_load_bytes"))
        assert ours in set(_ptxas(tools(smith), ptx, target[1], smith)), row["point"]


def _ptxas(folder: Path, ptx: Path, target: str, smith: Smith) -> list[tuple[int, ...]]:
    pattern = r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads"
    found = []
    for program in sorted(folder.glob("ptxas*")):
        for flag in ("", "--regAllocOptLevel=2"):
            call = f'"{program}" -v -lineinfo {flag} --gpu-name={target} "{ptx}" -o /dev/null 2>&1 || true'
            text = capture("sh", "-c", call, env=smith.environ)
            found += [tuple(map(int, numbers)) for numbers in re.findall(pattern, text)]
    return found


def test_nvdisasm_sees_the_same_accesses_to_local_memory(swept: tuple[Path, list[dict[str, Any]]]) -> None:
    out, rows = swept
    for row in (row for row in rows if row["target"].startswith("cuda")):
        kernel = gpu_binary.read_cubin(gpu_binary.load(out / row["point"] / "matmul.cubin"))
        counted = row["instructions"]
        for kind, read in (("store", kernel.local_stores), ("load", kernel.local_loads)):
            width = len(f"local {kind} ")
            names = [name for name in counted if name.startswith(f"local {kind} ")]
            assert sum(int(name[width:]) // 8 * counted[name] for name in names) == read


@pytest.mark.slow
@pytest.mark.parametrize("tile", ["swept", "wide"])
def test_llvm_says_the_same_of_code_objects(tile: str, request: pytest.FixtureRequest) -> None:
    out, rows = request.getfixturevalue(tile)
    names = {
        "sgprs_per_wave": "sgpr_count",
        "vgprs_per_lane": "vgpr_count",
        "agprs_per_lane": "agpr_count",
        "scratch_bytes": "private_segment_fixed_size",
        "sgpr_spills": "sgpr_spill_count",
        "vgpr_spills": "vgpr_spill_count",
        "wave_size": "wavefront_size",
    }
    for row in (row for row in rows if row["target"].startswith("hip")):
        text = capture(LLVM / "bin" / "llvm-readobj", "--notes", out / row["point"] / "matmul.hsaco")
        found = {name: int(value) for name, value in re.findall(r"\.(\w+): +(\d+)\n", text)}
        for key, name in names.items():
            assert row["values"][key] == found.get(name, 0), (row["point"], name)
        assembly = (out / row["point"] / "matmul.amdgcn").read_text(encoding="utf-8")
        said = re.findall(r"^; (?:Total)?NumVgprs: (\d+)", assembly, re.MULTILINE)
        assert row["values"]["vgprs_per_lane"] == int(said[-1])  # the total comes after the VGPRs alone
        if row["values"]["limiter"] != "LDS":  # which comes with the launch: LLVM does not know of it
            assert row["values"]["waves_per_simd"] == row["values"]["compiler_waves_per_simd"]


def test_agprs_spills_and_matrix_cores_are_seen(
    swept: tuple[Path, list[dict[str, Any]]], wide: tuple[Path, list[dict[str, Any]]]
) -> None:
    by_point = {row["point"]: row for row in swept[1]}
    (one,) = wide[1]
    assert one["values"]["agprs_per_lane"] > 0
    assert one["values"]["vgpr_spills"] > 0
    assert by_point["hip-gfx1100-32,num_warps=1"]["instructions"]["matrix core"] > 0
    assert by_point["cuda-90-32,num_warps=4"]["instructions"]["tensor core"] > 0
    assert by_point["cuda-90-32,num_warps=4"]["values"]["spill_store_bytes"] == 0


def test_the_folder_gives_the_same_table_again(
    smith: Smith, swept: tuple[Path, list[dict[str, Any]]]
) -> None:
    out, rows = swept
    assert json.loads(smith("kernel.resources", out, "--json").out)["rows"] == rows
    text = smith("kernel.resources", out, "--spills").out
    assert "spill" in text
    assert "num_warps=1" in text


def test_a_cache_and_an_entry_of_it(smith: Smith) -> None:
    cache = smith.root / "cache"
    script = """
import sys
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
sys.path.insert(0, sys.argv[1])
from kernels import vector_add
kinds = {"x_ptr": "*fp32", "y_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32", "BLOCK": "constexpr"}
source = ASTSource(fn=vector_add, signature=kinds, constexprs={"BLOCK": 1024})
for target in (GPUTarget("cuda", 80, 32), GPUTarget("hip", "gfx942", 64)):
    triton.compile(source, target=target)
"""
    python = smith.env("wheel") / "venv" / "bin" / "python"
    environ = smith.environ | {"TRITON_CACHE_DIR": str(cache), "TRITON_DEFAULT_FP_FUSION": "1"}
    capture(python, "-c", script, smith.root, env=environ)
    rows = json.loads(smith("kernel.resources", "--from-cache", cache, "--json").out)["rows"]
    assert [row["target"] for row in rows] == ["cuda:80:32", "hip:gfx942:64"]
    assert rows[0]["values"]["registers_per_thread"] > 0
    assert smith("kernel.resources", "--from-cache", cache, "--spills").out.strip() == "no kernel spills"
    entry = cache / rows[0]["point"]
    assert json.loads(smith("kernel.resources", "--from-cache", entry, "--json").out)["rows"] == rows[:1]


def test_a_file_that_is_not_there(smith: Smith) -> None:
    assert "nowhere.py" in smith("kernel.resources", "nowhere.py", code=1).error


def test_a_kernel_that_no_h100_can_launch_and_that_ptxas_serializes(smith: Smith) -> None:
    (smith.root / "serial.py").write_text(SERIAL, encoding="utf-8")
    done = smith(
        "kernel.resources", "serial.py", "--signature", "*fp16,*fp16,*fp32,i32,256,256,64",
        "--target", "cuda:90", "--num-warps", "8", "--num-stages", "3", "--json",
    )  # fmt: skip
    content = json.loads(done.out)
    (row,) = content["rows"]
    shared = row["values"]["shared_dynamic_bytes"]
    assert shared > 232448
    assert row["values"]["launch"] == f"no: shared {shared} > 232448 B"
    (lost,) = row["remarks"]
    assert re.match(r"\(C75\d\d\) Potential Performance Loss: wgmma", lost)
    launch, ptxas = content["warnings"]
    assert "cannot launch: shared" in launch
    assert "ptxas: (C75" in ptxas


def test_a_gpu_that_this_triton_does_not_make_code_for_is_told_before_llvm_aborts(smith: Smith) -> None:
    done = smith("kernel.compile", "kernels.py:vector_add", "--signature", "*fp32,*fp32,*fp32,i32,64",
                 "--target", "sm_77,sm_88", code=1)  # fmt: skip
    for arch in (77, 88):
        assert f"does not support sm_{arch}" in done.err
    assert "LLVM ERROR" not in done.err
