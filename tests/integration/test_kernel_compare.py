"""`kernel.compare` with the newest wheel: options, targets, output folders, and checks that fail and pass."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.integration.harness import DEAD, LLVM, Smith, oldest_triton
from tests.support import require

MATMUL = """
import triton
import triton.language as tl


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
SIGNATURE = "*fp16:16,*fp16:16,*fp16:16,i32:16,i32:16,i32:16,64,64,BLOCK_K=32"
KERNEL = ("mat mul.py:matmul", "--signature", SIGNATURE)
OLD = oldest_triton("3.4")
OFFLINE = {"PIP_INDEX_URL": f"{DEAD}/simple", "PIP_RETRIES": "0", "PIP_CONFIG_FILE": "/dev/null"}


@pytest.fixture(scope="module")
def smith(with_wheel: Smith, tmp_path_factory: pytest.TempPathFactory) -> Smith:
    """The tool beside a kernel, with the newest wheel in the environment `wheel`."""
    root = tmp_path_factory.mktemp("com pare")
    (root / "mat mul.py").write_text(MATMUL, encoding="utf-8")
    return with_wheel.beside(root)


@pytest.fixture(scope="module")
def compared(smith: Smith) -> dict[str, Any]:
    """Four warps against eight, for two targets, in the folder `o u t`."""
    sides = ("wheel,num_warps=4", "num_warps=8")  # no Triton is that of --env, which is `wheel`
    done = smith("kernel.compare", *sides, *KERNEL, "--target", "h100,mi300x", "--out", "o u t", "--json")
    content: dict[str, Any] = json.loads(done.out)
    return content


def test_options_against_options(smith: Smith, compared: dict[str, Any]) -> None:
    assert [(pair["a"]["point"], pair["b"]["point"]) for pair in compared["pairs"]] == [
        ("cuda-90-32,num_warps=4", "cuda-90-32,num_warps=8"),
        ("hip-gfx942-64,num_warps=4", "hip-gfx942-64,num_warps=8"),
    ]
    assert compared["unpaired"] == []
    assert compared["violations"] == []
    nvidia, amd = compared["pairs"]
    assert nvidia["differs"] == ["num_warps 4 -> 8"]
    changes = {change["metric"]: change for change in nvidia["changes"]}
    assert (changes["threads_per_block"]["a"], changes["threads_per_block"]["change"]) == (128, 128)
    assert changes["registers_per_thread"]["verdict"] == "better"
    assert changes["instructions all"]["percent"] < 0
    assert nvidia["stages"]["ttir"] == {"added": 0, "removed": 0, "diff": None}
    assert nvidia["stages"]["ttgir"]["added"] > 0
    assert "vgprs_per_lane" in amd["a"]["metrics"]
    saved = json.loads((smith.cwd / "o u t" / "compare.json").read_text(encoding="utf-8"))
    assert saved == compared


def test_both_sides_and_the_diffs_are_kept(smith: Smith, compared: dict[str, Any]) -> None:
    out = smith.cwd / "o u t"
    for pair, side in ((pair, side) for pair in compared["pairs"] for side in "ab"):
        assert pair[side]["folder"] == str(out / side / "matmul")
        assert (out / side / "matmul" / pair[side]["point"] / "matmul.ttgir").is_file()
    stages = compared["pairs"][0]["stages"]
    text = (out / stages["ttgir"]["diff"]).read_text(encoding="utf-8")
    assert '-module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32' in text
    assert '+module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32' in text
    assert "loc(" not in text
    assert (
        sum(line.startswith("+") for line in text.splitlines()) == stages["ttgir"]["added"] + 1
    )  # and its head


def test_output_folders_are_compared_as_they_are(
    smith: Smith, compared: dict[str, Any], tmp_path: Path
) -> None:
    empty = Smith(tmp_path, cwd=smith.cwd)  # a workspace without an environment: nothing can be compiled
    limits = ("--fail-on", "spills>0,time>+900%")
    done = empty("kernel.compare", "o u t/a", "o u t/b", "--stage", "ttgir", *limits)
    again = json.loads(smith("kernel.compare", "o u t/a", "o u t/b", "--json").out)
    assert again["pairs"] == compared["pairs"]
    assert "matmul cuda-90-32\n  num_warps 4 -> 8\n" in done.out
    assert (
        "--- a/matmul/cuda-90-32,num_warps=4/ttgir\n+++ b/matmul/cuda-90-32,num_warps=8/ttgir\n@@ "
        in done.out
    )
    assert "/ptx\n@@" not in done.out
    assert "--fail-on spills>0,time>+900%: passed" in done.out
    head = done.out[: done.out.index("--- a/")]
    assert max(map(len, head.splitlines())) <= 80


def test_the_same_is_no_change(smith: Smith, compared: dict[str, Any]) -> None:
    assert compared
    done = smith("kernel.compare", "o u t/a", "o u t/a", "--fail-on", "registers>+0%,code!=+0")
    assert "no changes: 2 pairs compile to the same" in done.out


def test_a_check_that_fails_names_what_it_found(smith: Smith, compared: dict[str, Any]) -> None:
    assert compared
    folders = ("o u t/b", "o u t/a")  # backwards: fewer warps take more registers
    error = smith("kernel.compare", *folders, "--fail-on", "registers>+5%,spills>0", code=1).error
    assert "--fail-on registers>+5%,spills>0: " in error
    b, a = (compared["pairs"][0][side]["metrics"]["registers_per_thread"] for side in "ab")
    assert f"matmul cuda-90-32: registers: A {a}, B {b}; limit registers>+5%" in error
    assert "spills: A" not in error


@pytest.mark.slow
def test_one_target_against_another(smith: Smith) -> None:
    sides = ("wheel,h100", "wheel,mi300x")
    done = smith("kernel.compare", *sides, *KERNEL, "--fail-on", "spills>0", "--json", "--out", "two")
    (pair,) = json.loads(done.out)["pairs"]
    assert pair["differs"] == ["target cuda:90:32 -> hip:gfx942:64"]
    changes = {change["metric"]: change for change in pair["changes"]}
    assert changes["registers"]["change"] is None
    assert changes["registers"]["a"] > 0
    assert changes["registers"]["b"] > 0
    assert changes["code_bytes"]["change"] == changes["code_bytes"]["b"] - changes["code_bytes"]["a"]
    assert set(pair["stages"]) == {"ttir", "ttgir", "llir"}
    error = smith("kernel.compare", "two/a", "two/b", "--fail-on", "registers>+5%", code=1).error
    assert "no pair has registers" in error


@pytest.mark.slow
def test_a_kernel_that_b_does_not_compile_fails_any_check(smith: Smith) -> None:
    sides = ("wheel,BLOCK_K=32", "wheel,BLOCK_K=33")
    done = smith("kernel.compare", *sides, *KERNEL, "--target", "h100", "--out", "lost", code=1)
    assert "compiles in A but not in B: failed: arange's range must be a power of 2" in done.error
    assert "arange's range must be a power of 2" in done.out
    assert "mat mul.py:10" in done.out
    swapped = smith("kernel.compare", "lost/b", "lost/a", code=1)
    assert "nothing compiles on both sides" in swapped.error


@pytest.mark.slow
def test_a_list_of_kernels(smith: Smith) -> None:
    listed = f'[[kernel]]\nfile = "mat mul.py"\nsignature = "{SIGNATURE}"\ntargets = ["a100"]\n'
    (smith.cwd / "kernels.toml").write_text(listed, encoding="utf-8")
    done = smith("kernel.compare", "num_stages=2", "num_stages=3", "kernels.toml")
    assert "matmul cuda-80-32\n  num_stages 2 -> 3\n" in done.out
    assert "dynamic shared" in done.out


def test_a_dry_run_touches_nothing(smith: Smith) -> None:
    before = sorted((smith.home / "envs").iterdir())  # other tests compile in this workspace
    script = smith("kernel.compare", "3.6.0", "wheel", *KERNEL, "--out", "dry", "--dry-run").out
    assert "triton==3.6.0" in script
    assert not (smith.cwd / "dry").exists()
    assert sorted((smith.home / "envs").iterdir()) == before


@pytest.mark.parametrize(
    ("argv", "code", "what"),
    [
        (["wheel", "wheel"], 2, "no kernel is given"),
        (["o u t/a", "o u t/b", *KERNEL], 2, "a kernel cannot be given"),
        (["nothing-like-it", "wheel", *KERNEL], 2, "nothing-like-it"),
        (["wheel", "wheel", "mat mul.py:matmull", "--signature", SIGNATURE], 2, "did you mean 'matmul'?"),
        (["o u t/a", "o u t/b", "--fail-on", "registres>0"], 2, "did you mean 'registers'?"),
        (["o u t/a", "o u t/b", "--fail-on", "registers>5%"], 2, "registers>+5%"),
        (["o u t/a", "o u t/b", "--fail-on", ""], 2, "--fail-on cannot be ''"),
        (["o u t/a", "o u t/b", "--fail-on", "glir>0"], 1, "no pair has glir"),
        (["o u t/a", "o u t/b", "--stage", "ttgr"], 2, "did you mean 'ttgir'?"),
        (["o u t/a", "o u t/b", "--dif"], 2, "did you mean '--diff'?"),
        (["o u t/a"], 2, "compare needs SIDE-B"),
    ],
)
def test_wrong_input_is_one_clear_error(
    smith: Smith, compared: dict[str, Any], argv: list[str], code: int, what: str
) -> None:
    assert compared
    error = smith("kernel.compare", *argv, code=code).error
    assert what in error
    assert len(error.splitlines()) < 40


@pytest.mark.slow
def test_a_release_is_installed_on_demand_and_kept(smith: Smith) -> None:
    require(str(LLVM / "bin" / "ld.lld"))  # AMD's backend ran one up to 3.4
    flags = (OLD, "wheel", *KERNEL, "--target", "h100,mi300x", "--json")
    first = json.loads(smith("kernel.compare", *flags, "--out", "releases").out)
    assert (smith.env(f"triton-{OLD}") / "venv").is_dir()
    for pair in first["pairs"]:
        assert pair["a"]["triton"] == OLD != pair["b"]["triton"]
        assert pair["a"]["status"] == pair["b"]["status"] == "ok"
        assert pair["a"]["metrics"].keys() & {"registers_per_thread", "vgprs_per_lane"}
    assert len(first["pairs"]) == 2
    away = Smith(smith.root, cwd=smith.cwd, more={**smith.more, **OFFLINE}, shared=smith.home)
    again = json.loads(away("kernel.compare", *flags, "--out", "again").out)
    assert [pair["a"]["metrics"]["code_bytes"] for pair in again["pairs"]] == [
        pair["a"]["metrics"]["code_bytes"] for pair in first["pairs"]
    ]


@pytest.mark.slow
def test_without_a_network_a_release_that_is_not_here_is_one_clear_error(smith: Smith) -> None:
    away = Smith(smith.root, cwd=smith.cwd, more={**smith.more, **OFFLINE}, shared=smith.home)
    error = away("kernel.compare", "3.0.0", "wheel", *KERNEL, code=1).error
    assert "cannot install Triton 3.0.0" in error
