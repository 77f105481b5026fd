"""The first pass that changes a result, in dumps of the newest wheel: none, and one that is planted."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from tests.integration.harness import Smith, interrupt, wait_for
from tritonsmith.compiler.dump import index as indexes

KERNELS = """
import triton
import triton.language as tl


@triton.jit
def normed(x, out, n, scale, SIZE: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, SIZE)
    values = tl.load(x + row * n + at, at < n, other=-float("inf"))
    raised = tl.exp((values - tl.max(values, axis=0)) * scale)
    tl.store(out + row * n + at, raised / tl.sum(raised, axis=0), at < n)


@triton.jit
def product(a, b, c, depth, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    sums = tl.zeros((SIZE, SIZE), dtype=tl.float32)
    for step in range(0, depth, SIZE):
        inside = (step + at) < depth
        left = tl.load(a + at[:, None] * depth + (step + at)[None, :], inside[None, :], other=0.0)
        right = tl.load(b + (step + at)[:, None] * SIZE + at[None, :], inside[:, None], other=0.0)
        sums = tl.dot(left, right, sums)
    tl.store(c + at[:, None] * SIZE + at[None, :], sums)
"""
UNDECIDED = """

@triton.jit
def printed(x, out, SIZE: tl.constexpr):
    tl.device_print("no result", tl.load(x + tl.arange(0, SIZE)))


@triton.jit
def unknown(x, out, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    code = "mov.b32 $0, $1;"
    value = tl.inline_asm_elementwise(code, "=r,r", [tl.load(x + at)], tl.float32, is_pure=True, pack=1)
    tl.store(out + at, value)
"""
SIGNATURES = {"normed": "*fp32:16,*fp32:16,i32,fp32,64", "product": "*fp16:16,*fp16:16,*fp32:16,i32,32"}
PLANTED = "tritongpu-coalesce"
CONVERSION = r"convert-triton-(amd)?gpu-to-llvm"


KERNELS_AND_TARGETS = [("normed", "cuda:90"), ("product", "cuda:80"), ("product", "hip:gfx942")]
ONE_KERNEL = pytest.mark.parametrize("dump", KERNELS_AND_TARGETS[:1], indirect=True)


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(each, marks=pytest.mark.slow if each[1] == "cuda:80" else ())
        for each in KERNELS_AND_TARGETS
    ],
)
def dump(request: pytest.FixtureRequest, with_wheel: Smith, tmp_path_factory: pytest.TempPathFactory) -> Path:
    name, target = request.param
    folder = tmp_path_factory.mktemp("check")
    (folder / "kernels.py").write_text(KERNELS, encoding="utf-8")
    out = folder / "the dump"
    asked = ("--signature", SIGNATURES[name], "--target", target, "--num-stages", "3")
    with_wheel("passes.dump", f"{folder / 'kernels.py'}:{name}", *asked, "--out", out)
    return out


@pytest.mark.slow
def test_no_pass_of_the_wheel_changes_the_result(with_wheel: Smith, dump: Path) -> None:
    told = json.loads(with_wheel("passes.check", dump, "--json").out)
    statuses = {one["status"] for one in told["passes"]}
    assert statuses <= {"reference", "same text", "equal", "close", "lowered"}
    assert "equal" in statuses
    assert told["passes"][-1]["status"] == "lowered"
    assert told["culprit"] is None
    assert told["elements"] > 100


def test_a_planted_miscompile_is_named_with_its_line(with_wheel: Smith, dump: Path, tmp_path: Path) -> None:
    """What the pass leaves, and all after it, compares otherwise than the kernel."""
    broken = _planted(dump, tmp_path / "broken", PLANTED)
    done = with_wheel("passes.check", broken, code=1)
    assert f"{PLANTED} changes the result" in done.error
    assert "kernels.py" in done.out


@pytest.mark.slow
@ONE_KERNEL  # whose texts take minutes by lines that are no kernel's
@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_ctrl_c_ends_the_check_and_the_process_that_checks(
    with_wheel: Smith, dump: Path, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    slow, scratch = tmp_path / "slow", tmp_path / "scratch"
    shutil.copytree(dump, slow)
    scratch.mkdir()
    for one in indexes.read(slow).dumps:
        if one.stage == "ttir" and one.operation == "builtin.module":
            head, end, body = (
                (slow / one.path).read_text(encoding="utf-8").partition("{noinline = false} {\n")
            )
            assert end
            (slow / one.path).write_text(f"{head}{end}{''.join(_minutes())}{body}", encoding="utf-8")
    smith = replace(with_wheel.beside(tmp_path), more={**with_wheel.more, "TMPDIR": str(scratch)})
    with smith.running("passes.check", "slow", *flags) as process:
        wait_for(lambda: any(scratch.glob("*/request.json")), process)
        tool = psutil.Process(process.pid)
        wait_for(lambda: len(tool.children(recursive=True)) > 1, process)  # the server, and its fork
        checking = tool.children(recursive=True)
        done = interrupt(process)
    assert done.code == 130
    assert done.out == ""
    psutil.wait_procs(checking, timeout=60)
    assert not [one for one in checking if one.is_running()]
    assert not list(scratch.iterdir())


def _minutes() -> Iterator[str]:
    """Lines of IR that take minutes to run."""
    yield "    %large0 = arith.constant dense<1> : tensor<4194304xi64>\n"
    for number in range(1000):
        yield f"    %large{number + 1} = arith.muli %large{number}, %large0 : tensor<4194304xi64>\n"


@pytest.mark.slow
def test_a_kernel_by_its_name(with_wheel: Smith, tmp_path: Path) -> None:
    (tmp_path / "kernels.py").write_text(KERNELS, encoding="utf-8")
    smith = with_wheel.beside(tmp_path)
    kernel = ("kernels.py:normed", "--signature", SIGNATURES["normed"], "--target", "cuda:90")
    done = smith("passes.check", *kernel, "--out", "dump")
    assert "passes changes the result" in done.out
    assert "none of" in done.out
    held = smith("passes.isolate", "dump", "--when", "wrong", code=1)
    assert "none of" in held.out
    judged = smith("triage", *kernel, "--when", "wrong")
    assert "verdict: nothing found: normed: none of" in judged.out
    assert "apply to a kernel, not to a dump" in smith("passes.check", "dump", "--target", "h100", code=2).err
    assert "contradict" in smith("triage", *kernel, "--when", "wrong", "--when", "spills>0", code=2).err
    assert "symptom is not there" in smith("kernel.reduce", *kernel, "--when", "wrong", code=1).err
    for task in (("passes.check",), ("triage", "--when", "wrong"), ("kernel.reduce", "--when", "wrong")):
        done = smith(task[0], *kernel, *task[1:], "--target", "cuda:80", code=2)
        assert "one target at a time" in done.err
        assert "--target cuda:90" in done.err


@pytest.mark.slow
def test_what_cannot_be_decided_is_no_verdict(with_wheel: Smith, tmp_path: Path) -> None:
    """Exit code 1 says that something differs: not that a file is missing, or that nothing compiles."""
    (tmp_path / "kernels.py").write_text(KERNELS + UNDECIDED, encoding="utf-8")
    smith = with_wheel.beside(tmp_path)
    asked = ("--signature", "*fp32,*fp32,64", "--target", "cuda:90")
    for kernel in ("kernels.py:printed", "kernels.py:unknown"):
        told = smith("passes.check", kernel, *asked, "--json", code=5)
        assert json.loads(told.out)["outcome"] == "undecided"
    assert (
        "could not be decided"
        in smith("kernel.reduce", "kernels.py:unknown", *asked, "--when", "wrong", code=5).err
    )
    (tmp_path / "empty").mkdir()
    assert smith("passes.check", "empty", code=5).out == ""
    assert (
        "--when cannot be 'wrnog'"
        in smith("triage", "kernels.py:unknown", *asked, "--when", "wrnog", code=2).err
    )
    assert "no such folder" in smith("passes.check", "--list", "--source", tmp_path / "nobody", code=1).err


@pytest.mark.slow
@ONE_KERNEL  # it is about the process that is started, whatever it would compile
def test_a_dump_of_somebody_else_names_nothing_that_is_run(
    with_wheel: Smith, dump: Path, tmp_path: Path
) -> None:
    own = tmp_path / "theirs"
    shutil.copytree(dump, own)
    index, script = own / "index.json", tmp_path / "python"
    content = json.loads(index.read_text(encoding="utf-8"))
    script.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n", encoding="utf-8")
    script.chmod(0o755)
    index.write_text(json.dumps({**content, "python": str(script)}), encoding="utf-8")
    for asked in (("passes.check",), ("passes.replay", PLANTED)):
        done = with_wheel(asked[0], own, *asked[1:], code=5 if asked[0] == "passes.check" else 1)
        assert "was not made here" in done.err
    assert "not made here" in with_wheel("passes.isolate", own, "--when", "spills>0", code=1).err
    assert not (tmp_path / "ran").exists()
    assert "none of" in with_wheel("passes.check", own, "--python", content["python"]).out


INTERPRETED = """
import os

import triton
import triton.language as tl
from triton.language.extra import libdevice

FACTOR = tl.constexpr(3.0 if os.environ.get("TRITON_INTERPRET") == "1" else 2.0)


@triton.jit
def scaled(x, out, n, SIZE: tl.constexpr):
    at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    tl.store(out + at, tl.load(x + at, at < n, other=0.0) * FACTOR, at < n)


@triton.jit
def counted(x, total, largest, n, scale, MORE, SIZE: tl.constexpr):
    at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    values = tl.load(x + at, at < n, other=0.0).to(tl.float32) * scale
    tl.atomic_add(total + at % 4, values, at < n)
    tl.atomic_max(largest + MORE, tl.max((values * 32).to(tl.int32), axis=0))


@triton.jit
def angled(x, out, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    tl.store(out + at, libdevice.asin(tl.load(x + at)))
"""


@pytest.mark.slow
def test_the_interpreter_computes_the_same(with_wheel: Smith, tmp_path: Path) -> None:
    (tmp_path / "kernels.py").write_text(KERNELS, encoding="utf-8")
    (tmp_path / "interpreted.py").write_text(INTERPRETED, encoding="utf-8")
    smith = with_wheel.beside(tmp_path)
    for kernel, signature in (
        ("kernels.py:product", SIGNATURES["product"]),
        ("kernels.py:normed", SIGNATURES["normed"]),
        ("interpreted.py:counted", "*bf16:16,*fp32:16,*i32:16,i32,fp32,i32:1,64"),
    ):
        asked = ("--signature", signature, "--target", "cuda:80", "--against", "interpreter")
        told = json.loads(smith("passes.check", kernel, *asked, "--json").out)
        assert told["interpreted"]["status"] in ("equal", "close"), told["interpreted"]
        assert told["culprit"] is None


@pytest.mark.slow
def test_an_interpreter_that_computes_something_else(with_wheel: Smith, tmp_path: Path) -> None:
    """The file itself makes the difference, by the variable."""
    (tmp_path / "interpreted.py").write_text(INTERPRETED, encoding="utf-8")
    smith = with_wheel.beside(tmp_path)
    asked = ("--target", "cuda:80", "--against", "interpreter")
    done = smith("passes.check", "interpreted.py:scaled", "--signature", "*fp32,*fp32,i32,64", *asked, code=1)
    assert "scaled: the front end and TRITON_INTERPRET=1 disagree: one of them is wrong" in done.error
    assert "none of" in done.out
    assert re.search(r"first: out\[0\]: \S+ by the first text, \S+ by the interpreter", done.out)


@pytest.mark.slow
def test_what_the_interpreter_lacks_is_not_decided(with_wheel: Smith, tmp_path: Path) -> None:
    """It has no functions of libdevice; the passes are checked all the same."""
    (tmp_path / "interpreted.py").write_text(INTERPRETED, encoding="utf-8")
    smith = with_wheel.beside(tmp_path)
    asked = ("--signature", "*fp32,*fp32,64", "--target", "cuda:80", "--out", "dump")
    done = smith("passes.check", "interpreted.py:angled", *asked, "--against", "interpreter", code=5)
    assert "none of" in done.out
    assert "TRITON_INTERPRET=1: not compared" in done.out
    assert "was not compared" in done.err
    assert "needs the source" in smith("passes.check", "dump", "--against", "interpreter", code=2).err
    assert "--against interpreter" in smith("passes.check", "dump", "--against", "torch", code=2).err


def _planted(dump: Path, broken: Path, name: str) -> Path:
    """The dump with other texts after the first pass of this name."""
    made = indexes.read(dump)
    passes = [one for one in made.dumps if one.language == "mlir" and one.operation == "builtin.module"]
    planted = next(number for number, one in enumerate(passes) if re.fullmatch(name, one.argument))
    broken.mkdir()
    for kept in ("index.json", "output.log"):
        (broken / kept).write_bytes((dump / kept).read_bytes())
    for number, one in enumerate(passes):
        text = made.text(one)
        file = broken / one.path
        file.parent.mkdir(exist_ok=True)
        file.write_text(text if number <= planted else _one_more(text), encoding="utf-8")
    return broken


def _one_more(text: str) -> str:
    """The kernel with other comparisons: one element more is loaded, and stored."""
    assert "arith.cmpi slt" in text or "llvm.icmp" in text
    return text.replace("arith.cmpi slt", "arith.cmpi sle").replace('llvm.icmp "slt"', 'llvm.icmp "sle"')


@pytest.mark.slow
def test_the_threads_of_a_block_compute_the_same(with_wheel: Smith, dump: Path) -> None:
    told = json.loads(with_wheel("passes.check", dump, "--through-llvm", "--json").out)
    assert {one["status"] for one in told["passes"]} <= {"reference", "same text", "equal", "close"}
    lowered = [one for one in told["passes"] if re.fullmatch(CONVERSION, one["name"])]
    assert lowered[0]["status"] in ("equal", "close")


@pytest.mark.slow
def test_a_miscompile_of_the_conversion_to_llvm_is_named(
    with_wheel: Smith, dump: Path, tmp_path: Path
) -> None:
    broken = _planted(dump, tmp_path / "broken", CONVERSION)
    done = with_wheel("passes.check", broken, "--through-llvm", code=1)
    assert re.search(rf": {CONVERSION} changes the result", done.error)
    assert "passes changes the result" in with_wheel("passes.check", broken, "--seeds", "1").out
