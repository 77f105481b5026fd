"""`kernel.lint` by the newest released Triton: a kernel for each fault, and one without."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.integration.harness import Smith

HALF = "*fp16:16,*fp16:16,*fp16:16"
NVIDIA, ALL = "sm_80,sm_90", "sm_80,sm_90,gfx942"
# What is found on a line stands there as a comment.
KERNELS = """
import triton
import triton.language as tl


@triton.jit
def healthy(a_ptr, b_ptr, c_ptr, k, row, BLOCK: tl.constexpr, DEPTH: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    depth = tl.arange(0, DEPTH)
    total = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(0, k, DEPTH):
        left = tl.load(a_ptr + rows[:, None] * row + (start + depth)[None, :])
        right = tl.load(b_ptr + (start + depth)[:, None] * row + columns[None, :])
        total = tl.dot(left, right, total)
    tl.store(c_ptr + rows[:, None] * row + columns[None, :], total.to(tl.float16))


@triton.jit
def strided(a_ptr, b_ptr, c_ptr, k, row, column, BLOCK: tl.constexpr, DEPTH: tl.constexpr):
    rows = tl.arange(0, BLOCK)
    depth = tl.arange(0, DEPTH)
    total = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(0, k, DEPTH):
        at = a_ptr + rows[:, None] * row + (start + depth)[None, :] * column
        left = tl.load(at)  # uncoalesced-access, no-async-copy
        right = tl.load(b_ptr + (start + depth)[:, None] * row + rows[None, :])
        total = tl.dot(left, right, total)
    tl.store(c_ptr + rows[:, None] * row + rows[None, :], total.to(tl.float16))


@triton.jit
def unaligned(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    value = tl.load(x_ptr + offsets, mask=mask)  # scalar-access
    tl.store(y_ptr + offsets, value, mask=mask)  # scalar-access


@triton.jit
def precise(a_ptr, b_ptr, c_ptr, BLOCK: tl.constexpr):
    rows = tl.arange(0, BLOCK)
    at = rows[:, None] * BLOCK + rows[None, :]
    left, right = tl.load(a_ptr + at), tl.load(b_ptr + at)
    product = tl.dot(left, right, input_precision="ieee")  # dot-without-tensor-core
    tl.store(c_ptr + at, product)


@triton.jit
def serial(a_ptr, b_ptr, c_ptr, k, BLOCK: tl.constexpr, DEPTH: tl.constexpr):
    rows = tl.arange(0, BLOCK)
    depth = tl.arange(0, DEPTH)
    total = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(0, k, DEPTH):
        left = tl.load(a_ptr + rows[:, None] * k + (start + depth)[None, :])
        right = tl.load(b_ptr + (start + depth)[:, None] * BLOCK + rows[None, :])
        total = tl.dot(left, right, tl.dot(left, right, total) * 1.5)  # wgmma-serialized
    tl.store(c_ptr + rows[:, None] * BLOCK + rows[None, :], total)
"""


@pytest.fixture(scope="module")
def smith(with_wheel: Smith, tmp_path_factory: pytest.TempPathFactory) -> Smith:
    """The tool, with an environment that has the newest Triton, and a file of kernels."""
    root = tmp_path_factory.mktemp("lin t")
    (root / "planted.py").write_text(KERNELS, encoding="utf-8")
    return with_wheel.beside(root)


def lint(smith: Smith, kernel: str, signature: str, target: str, *flags: str) -> dict[str, Any]:
    """The findings as JSON; each is proven by lines that the stages really have."""
    out = smith.root / f"{kernel}{len(flags)}"
    words: list[str | Path] = ["--signature", signature, "--target", target, "--out", out, "--json", *flags]
    found: dict[str, Any] = json.loads(smith("kernel.lint", f"planted.py:{kernel}", *words).out)
    for one in found["findings"]:
        assert one["evidence"]
        for line in one["evidence"]:
            if line["stage"] != "ptxas":
                path = out / one["point"] / f"{kernel}.{line['stage']}"
                assert path.read_text(encoding="utf-8").splitlines()[line["line"] - 1].strip() == line["text"]
    return found


def places(found: dict[str, Any]) -> set[tuple[str, str]]:
    """Targets and what the comment of the Python line says is there."""
    lines = KERNELS.splitlines()
    named = [one for one in found["findings"] if one["code"] in lines[one["line"] - 1]]
    return {(one["target"], one["code"]) for one in named}


def codes(found: dict[str, Any]) -> set[tuple[str, str]]:
    return {(one["target"], one["code"]) for one in found["findings"]}


@pytest.mark.slow
def test_nothing_is_found_in_a_healthy_kernel(smith: Smith) -> None:
    found = lint(smith, "healthy", f"{HALF},i32:16,i32:16,128,32", ALL, "--num-warps", "8")
    assert (found["points"], found["findings"], found["unchecked"]) == (3, [], [])
    assert found["verdict"] == "nothing found in 3 compiles"


def test_a_stride_that_nobody_knows(smith: Smith) -> None:
    found = lint(smith, "strided", f"{HALF},i32:16,i32:16,i32,128,32", "sm_80,gfx942", "--num-warps", "8")
    copies = ("cuda:80:32", "no-async-copy")
    uncoalesced = {(target, "uncoalesced-access") for target in ("cuda:80:32", "hip:gfx942:64")}
    assert codes(found) == places(found) == {copies, *uncoalesced}


@pytest.mark.slow
def test_pointers_and_a_mask_without_alignment(smith: Smith) -> None:
    found = lint(smith, "unaligned", "*fp16,*fp16,i32,1024", ALL)
    assert (
        codes(found)
        == places(found)
        == {(target, "scalar-access") for target in ("cuda:80:32", "cuda:90:32", "hip:gfx942:64")}
    )
    assert len(found["findings"]) == 6
    assert (
        lint(smith, "unaligned", "*fp16:16,*fp16:16,i32:16,1024", ALL, "--num-warps", "4")["findings"] == []
    )


def test_a_dot_of_fp32_as_ieee_asks(smith: Smith) -> None:
    """MFMA takes fp32, tensor cores do not."""
    found = lint(smith, "precise", "*fp32:16,*fp32:16,*fp32:16,32", ALL)
    assert (
        codes(found)
        == places(found)
        == {(target, "dot-without-tensor-core") for target in ("cuda:80:32", "cuda:90:32")}
    )


@pytest.mark.slow
def test_wgmma_that_ptxas_serializes(smith: Smith) -> None:
    """An accumulator that is multiplied between two products."""
    signature = "*fp16:16,*fp16:16,*fp32:16,i32:16,256,64"
    found = lint(smith, "serial", signature, "sm_90", "--num-warps", "8")
    assert ("cuda:90:32", "wgmma-serialized") in places(found)
    (one,) = [one for one in found["findings"] if one["code"] == "wgmma-serialized"]
    assert "wgmma.mma_async instructions are serialized due to" in one["what"]
    assert one["evidence"][0]["text"].startswith("wgmma.mma_async")
    words = ("--signature", signature, "--target", "sm_90", "--num-warps", "8")
    done = smith("kernel.lint", "planted.py:serial", *words, "--fail-on", "wgmma-serialized", code=1)
    assert "--fail-on: 1 finding" in done.error
    smith("kernel.lint", smith.root / "serial2", "--fail-on", "scalar-access")


@pytest.mark.slow
def test_spills_in_a_loop_of_both_vendors(smith: Smith) -> None:
    found = lint(
        smith,
        "healthy",
        f"{HALF},i32:16,i32:16,128,32",
        "sm_80,gfx90a",
        "--num-warps",
        "1",
        "--timeout",
        "900",
    )
    spills = {one["target"]: one for one in found["findings"] if one["code"] == "spill-in-loop"}
    assert set(spills) == {"cuda:80:32", "hip:gfx90a:64"}
    assert "STL" in str(spills["cuda:80:32"]["evidence"]) or "LDL" in str(spills["cuda:80:32"]["evidence"])
    assert "Folded" in str(spills["hip:gfx90a:64"]["evidence"])


def test_registers_that_one_more_block_lacks(smith: Smith) -> None:
    found = lint(
        smith,
        "healthy",
        f"{HALF},i32:16,i32:16,64,32",
        "sm_80",
        "--num-warps",
        "4",
        "--option",
        "maxnreg=104",
    )
    (one,) = found["findings"]
    assert one["code"] == "registers-near-block"
    assert "blocks instead of" in one["what"]


def test_an_unknown_code(smith: Smith) -> None:
    done = smith("kernel.lint", "planted.py:healthy", "--fail-on", "scalar-acess", code=2)
    assert "did you mean 'scalar-access'" in done.err


def test_the_screen(smith: Smith) -> None:
    smith("kernel.compile", "planted.py:unaligned", "--signature", "*fp16,*fp16,i32,1024",
          "--target", "sm_80", "--out", smith.root / "screen")  # fmt: skip
    text = smith("kernel.lint", smith.root / "screen").out
    for part in (
        "planted.py:",
        "scalar-access",
        "ptx:",
        "ttgir:",
        "why:",
        "try:",
        "2 findings of 1 rule in 1 compile",
    ):
        assert part in text


def test_stages_without_lines_are_not_checked_and_no_silent_pass(smith: Smith, tmp_path: Path) -> None:
    out = tmp_path / "bare"
    bare = Smith(smith.root, cwd=smith.cwd, more={"TRITON_DISABLE_LINE_INFO": "1"}, shared=smith.home)
    words = ("--signature", "*fp16,*fp16,i32,1024", "--target", "sm_80", "--out", out)
    found = json.loads(bare("kernel.lint", "planted.py:unaligned", *words, "--json").out)
    assert found["findings"] == []
    assert found["verdict"] == "nothing found in 1 compile, as far as it was checked"
    done = bare("kernel.lint", out, "--fail-on", "any", code=1)
    assert "rules that were not checked" in done.error
