"""Many cubins are disassembled at once, by the nvdisasm of a Triton, to the same texts as one by one."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.integration.harness import Smith
from tritonsmith.compiler import interpreter
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.worker import file_context

pytestmark = pytest.mark.slow

# What the sections of a cubin depend on: a loop, labels of several branches, a call, a message of an assert,
# a slow division, tensor cores, and shared memory.
KERNELS = """\
import triton
import triton.language as tl


@triton.jit(noinline=True)
def ratio(a, b):
    return a // b


@triton.jit
def loop(p, q, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for step in range(0, n, BLOCK):
        total += tl.load(p + step + at, mask=step + at < n)
    tl.store(q + at, tl.sum(total))


@triton.jit
def largest(p, q, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for step in range(0, n, BLOCK):
        total = tl.maximum(total, tl.load(p + step + at, mask=step + at < n))
    tl.store(q + at, tl.max(total))


@triton.jit
def call(p, q, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(q + at, ratio(tl.load(p).to(tl.int64), n.to(tl.int64)))
    if n > 7:
        tl.store(q, tl.sqrt(tl.load(p)))


@triton.jit
def check(p, q, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.device_assert(at < n, "out of range")
    tl.store(q + at, tl.load(p + at) / n)


@triton.jit
def dot(p, q, n, BLOCK: tl.constexpr):
    row, column = tl.arange(0, BLOCK)[:, None], tl.arange(0, BLOCK)[None, :]
    a = tl.load(p + row * BLOCK + column).to(tl.float16)
    tl.store(q + row * BLOCK + column, tl.dot(a, tl.trans(a)))
"""
NAMES = ("loop", "largest", "call", "check", "dot")
TARGETS = ("a100", "h100", "b200")


def test_many_at_once_are_as_one_by_one(with_wheel: Smith, tmp_path: Path) -> None:
    smith = with_wheel.beside(tmp_path)
    (smith.cwd / "kernels.py").write_text(KERNELS, encoding="utf-8")
    for name in NAMES:
        words = ("--signature", "*fp32,*fp32,i32,64", "--option", "debug=True")
        targets = [word for target in TARGETS for word in ("--target", target)]
        smith("kernel.compile", f"kernels.py:{name}", *words, *targets, "--out", tmp_path / "out" / name)
    binaries = sorted((tmp_path / "out").rglob("*.cubin"))
    assert len(binaries) == len(NAMES) * len(TARGETS)
    space = Workspace(with_wheel.home)
    (tool,) = (row for row in interpreter.locate_programs(space).disassemblers if row.binary == "cubin")
    tool = replace(tool, kept=tmp_path / "kept")
    (package,) = space.env("wheel").venv.glob("lib/*/site-packages/triton")

    tool.read_ahead(binaries, [package])

    request = file_context.available(tool.request(), str(package))
    program = request.programs[0]
    merged = set()
    for binary in binaries:
        alone = subprocess.run((program, *tool.flags, binary), capture_output=True, check=True).stdout
        assert b"kernels.py" in alone, "with the line table"
        slot, key = file_context.text_slot(request, program, str(binary))
        if (text := file_context.read_slot(slot, key)) is not None:
            assert text == alone
            merged.add((binary.stem, binary.parent.name))
        assert tool.as_compiled(binary, [package]) == alone
    # What ptxas writes about compatibility differs between some kernels, and only the same is merged.
    assert {(name, f"cuda-{arch}-32") for name in ("loop", "largest") for arch in (80, 90)} <= merged
    assert "call" not in {name for name, _ in merged}, "it has several functions"
