"""The rows of configs/known-issues.toml: a kernel by a Triton that has the bug, and by one that has not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.integration.harness import Smith
from tritonsmith.facts import known_issues

OLD = "3.6.0"
SUMS = "*fp32:16,*fp32:16,i32:16,16,64"
KERNELS = """
import triton
import triton.language as tl


@triton.jit
def running(x_ptr, out_ptr, n, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows, columns = tl.arange(0, ROWS), tl.arange(0, BLOCK)
    total = tl.zeros((ROWS,), tl.float32)
    for start in range(0, n, BLOCK):
        tl.store(out_ptr + start + rows, total)
        total += tl.sum(tl.load(x_ptr + rows[:, None] * n + (start + columns)[None, :]), axis=1)
    tl.store(out_ptr + n + rows, total)


@triton.jit
def last(x_ptr, out_ptr, n, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows, columns = tl.arange(0, ROWS), tl.arange(0, BLOCK)
    total = tl.zeros((ROWS,), tl.float32)
    for start in range(0, n, BLOCK):
        total += tl.sum(tl.load(x_ptr + rows[:, None] * n + (start + columns)[None, :]), axis=1)
    tl.store(out_ptr + n + rows, total)


@triton.jit
def product(x_ptr, out_ptr, n, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows, columns = tl.arange(0, ROWS), tl.arange(0, BLOCK)
    total = tl.full((ROWS,), 1.0, tl.float32)
    for start in range(0, n, BLOCK):
        total *= tl.sum(tl.load(x_ptr + rows[:, None] * n + (start + columns)[None, :]), axis=1)
    tl.store(out_ptr + n + rows, total)


@triton.jit
def scaled(a_ptr, left_ptr, b_ptr, right_ptr, c_ptr, KIND: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows, depth, scales = tl.arange(0, N), tl.arange(0, K), tl.arange(0, K // 32)
    at = rows[:, None] * (K // 32) + scales[None, :]
    a = tl.load(a_ptr + rows[:, None] * K + depth[None, :])
    b = tl.load(b_ptr + depth[:, None] * N + rows[None, :])
    c = tl.dot_scaled(a, tl.load(left_ptr + at), KIND, b, tl.load(right_ptr + at), "e4m3")
    tl.store(c_ptr + rows[:, None] * N + rows[None, :], c)


# Kernels that are known by their names: what they compute does not matter here.


@triton.jit
def chunk_bwd_kernel_dqkwg(k, BK: tl.constexpr, USE_G: tl.constexpr):
    tl.store(k + tl.arange(0, BK), 1.0)


@triton.jit
def prepare_wy_repr_bwd_kernel(k, BT: tl.constexpr):
    tl.store(k + tl.arange(0, BT), 1.0)


@triton.jit
def chunk_bwd_kernel_dh(k, scale, BT: tl.constexpr):
    tl.store(k + tl.arange(0, BT), scale)


@triton.jit
def chunk_gla_bwd_kernel_dv(k, BT: tl.constexpr):
    tl.store(k + tl.arange(0, BT), 1.0)
"""
LIST = """\
schema = 1
[[kernel]]
name = "running"
file = "known.py"
kernel = "running"
signature = "*fp32:16,*fp32:16,i32:16,16,64"
[[kernel]]
name = "last"
file = "known.py"
kernel = "last"
signature = "*fp32:16,*fp32:16,i32:16,16,64"
"""
SCALED = "*{0}:16,*i8:16,*fp8e4nv:16,*i8:16,*fp32:16,{1},64,128"
# Each row: the kernel, its signature and target, a Triton that has the bug, and one that has not.
CASES = [
    ("loop-sum-read", "running", SUMS, "sm_90", (OLD,), ("",)),
    ("dot-scaled-bf16", "scaled", SCALED.format("bf16", "'bf16'"), "gfx950", (OLD, ""), ()),
    ("loop-product", "product", SUMS, "sm_90", (OLD, ""), ()),
    ("fla-dqkwg", "chunk_bwd_kernel_dqkwg", "*fp32,64,True", "sm_90", (OLD,), ("",)),
    ("fla-delta-rule", "prepare_wy_repr_bwd_kernel", "*fp32,64", "sm_90", (OLD,), ("",)),
    (
        "fla-unit-scale",
        "chunk_bwd_kernel_dh",
        "*fp32,i32:1,64",
        "sm_90",
        ("3.7.1",),
        ("3.7.1,ptxas=13.1.80", ""),
    ),
    ("gla-dv-registers", "chunk_gla_bwd_kernel_dv", "*fp32,64", "sm_90", ("",), ("3.9.0,ptxas=13.1.115",)),
]
# The same kernels without what makes them wrong.
HEALTHY = [
    ("last", SUMS, "sm_90", OLD, ()),
    ("scaled", SCALED.format("fp8e4nv", "'e4m3'"), "gfx950", "", ()),
    ("scaled", SCALED.format("bf16", "'bf16'"), "sm_90", "", ()),
    ("chunk_bwd_kernel_dqkwg", "*fp32,32,True", "sm_90", OLD, ()),
    ("chunk_bwd_kernel_dqkwg", "*fp32,64,True", "sm_80", OLD, ()),
    ("prepare_wy_repr_bwd_kernel", "*fp32,64", "sm_90", OLD, ("--num-warps", "2")),
    ("chunk_bwd_kernel_dh", "*fp32,i32,64", "sm_90", "3.7.1", ()),
    ("chunk_gla_bwd_kernel_dv", "*fp32,64", "sm_90", "", ("--num-warps", "4")),
]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def smith(with_wheel: Smith, tmp_path_factory: pytest.TempPathFactory) -> Smith:
    """The tool, with an environment that has the newest Triton, and a file of kernels."""
    root = tmp_path_factory.mktemp("kno wn")
    (root / "known.py").write_text(KERNELS, encoding="utf-8")
    (root / "known.toml").write_text(LIST, encoding="utf-8")
    return with_wheel.beside(root)


def findings(smith: Smith, kernel: str, signature: str, target: str, triton: str, *flags: str) -> list[str]:
    """What `kernel.lint` says of known issues."""
    by = ("--triton", triton) if triton else ()
    words = ("--signature", signature, "--target", target, *by, *flags, "--json")
    content = json.loads(smith("kernel.lint", f"known.py:{kernel}", *words).out)
    return [row["what"] for row in content["findings"] if row["code"] == "known-issue"]


@pytest.mark.parametrize(("issue", "kernel", "signature", "target", "bad", "good"), CASES)
def test_each_row(
    smith: Smith,
    issue: str,
    kernel: str,
    signature: str,
    target: str,
    bad: tuple[str, ...],
    good: tuple[str, ...],
) -> None:
    row = next(row for row in known_issues.table() if row.id == issue)
    flags = ("--num-warps", "2") if issue == "gla-dv-registers" else ()
    for triton in bad:
        assert findings(smith, kernel, signature, target, triton, *flags) == [row.about_kernel], triton
    for triton in good:
        assert findings(smith, kernel, signature, target, triton, *flags) == [], triton


@pytest.mark.parametrize(("kernel", "signature", "target", "triton", "flags"), HEALTHY)
def test_no_false_alarm(
    smith: Smith, kernel: str, signature: str, target: str, triton: str, flags: tuple[str, ...]
) -> None:
    assert findings(smith, kernel, signature, target, triton, *flags) == []


def test_every_row_with_a_pattern_is_tested() -> None:
    assert {row.id for row in known_issues.table() if row.recognizable} == {case[0] for case in CASES}


def test_an_upgrade_and_a_triage_say_the_same(smith: Smith, tmp_path: Path) -> None:
    row = known_issues.table()[0]
    upgrade = ("--from", "wheel", "--to", OLD, "--target", "sm_90", "--fail-on", "spills>0", "--json")
    content = json.loads(smith("rehearse", "known.toml", *upgrade).out)
    assert content["issues"] == [{"issue": row.about_kernel, "kernels": ["running"], "before": []}]
    question = ("--signature", SUMS, "--target", "sm_90", "--triton", OLD, "--when", "wrong", "--json")
    answer = json.loads(smith("triage", "known.py:running", *question, "--out", tmp_path / "triage").out)
    assert row.about_kernel in answer["reasons"]
    assert "tritongpu-optimize-thread-locality" in answer["verdict"]
