"""A real Triton under triage: one cause, no cause, nothing wrong, and what is refused."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.integration.harness import Smith
from tritonsmith import worker
from tritonsmith.facts import gpus
from tritonsmith.inspect.profilers import Profiler
from tritonsmith.lab.journal import Verdict
from tritonsmith.lab.triage.program import CommandSubject
from tritonsmith.lab.triage.variant import TriageChange
from tritonsmith.wheels import ptxas
from tritonsmith.worker import border
from tritonsmith.worker.messages import ProfileRequest

KERNELS = """
import triton
import triton.language as tl


@triton.jit
def dot(a, b, out):
    i = tl.arange(0, 32)
    at = i[:, None] * 32 + i[None, :]
    tl.store(out + at, tl.dot(tl.load(a + at), tl.load(b + at)))


@triton.jit
def refused(a, out):
    i = tl.arange(0, 32)
    tl.static_assert(False, "never compiles")
    tl.store(out + i, tl.load(a + i))
"""
DOT = ("kernels.py:dot", "--signature", "*fp32:16,*fp32:16,*fp32:16", "--target", "sm_90")
REFUSED = ("kernels.py:refused", "--signature", "*fp32,*fp32", "--target", "sm_90")


@pytest.fixture
def smith(with_wheel: Smith, tmp_path: Path) -> Smith:
    """Beside two kernels."""
    (tmp_path / "kernels.py").write_text(KERNELS, encoding="utf-8")
    return with_wheel.beside(tmp_path)


def judged(smith: Smith, *words: str, code: int = 0) -> dict[str, Any]:
    """The answer as JSON."""
    done = smith("triage", "--out", "evidence", "--json", *words, code=code)
    found: dict[str, Any] = json.loads(done.out)
    kept = json.loads((smith.cwd / "evidence" / "triage.json").read_text(encoding="utf-8"))
    assert found == {**kept, "folder": str(smith.cwd / "evidence")}
    return found


@pytest.mark.slow
def test_the_precision_of_a_dot(smith: Smith) -> None:
    found = judged(smith, *DOT, "--when", "ttgir contains tf32")
    assert found["answer"] == "decided"
    assert found["verdict"] == "tf32: the input precision of tl.dot, kernels.py:10"
    seen = {row["variant"]: row for row in found["tried"]}
    assert seen["float32 dots in full precision"]["symptom"] == "gone"
    assert seen["no tcgen05"]["figures"] == "ttgir contains tf32, the same machine code"
    assert {"newest", "AMD"}.isdisjoint(word for name in seen for word in name.split())


@pytest.mark.slow
def test_nothing_is_wrong(smith: Smith) -> None:
    done = smith("triage", *DOT)
    assert "verdict: nothing found: it compiles" in done.out


@pytest.mark.slow
def test_a_kernel_that_never_compiles(smith: Smith) -> None:
    found = judged(smith, *REFUSED, code=5)
    assert found["answer"] == "none"
    assert "never compiles" in found["baseline"]["figures"]
    assert len(found["tried"]) > 5


def test_a_command(smith: Smith) -> None:
    script = "import os; assert os.environ.get('TRITON_F32_DEFAULT') or os.environ.get('TRITON_INTERPRET')"
    found = judged(smith, "--env", "wheel", "--", "python", "-c", script)
    assert found["answer"] == "decided"
    assert found["verdict"] == "tf32: the input precision of tl.dot"
    assert found["triton"], "of the environment"


@pytest.mark.slow
def test_the_same_kernel_by_another_ptxas(smith: Smith, tmp_path: Path) -> None:
    """Its own ptxas is one that crashes; that of the registry assembles the same PTX."""
    nvidia = next((smith.env("wheel") / "venv").glob("lib/python3*/site-packages/triton/backends/nvidia/bin"))
    names = {"TRITON_PTXAS_PATH": "ptxas", "TRITON_PTXAS_BLACKWELL_PATH": "ptxas-blackwell"}
    for name in names.values():
        crashes = f'[ "$1" = -lineinfo ] && kill -SEGV $$\nexec "{nvidia / name}" "$@"\n'
        (tmp_path / name).write_text(f"#!/bin/sh\n{crashes}", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    broken = {variable: str(tmp_path / name) for variable, name in names.items()}
    found = judged(Smith(smith.cwd, cwd=smith.cwd, more=broken, shared=smith.home), *DOT)
    seen = {row["variant"]: row for row in found["tried"]}
    assert seen["a newer ptxas"]["symptom"] == "gone", seen["a newer ptxas"]["why"]
    assert seen["an older ptxas"]["symptom"] == "gone", seen["an older ptxas"]["why"]
    assert seen["num_warps=8"]["symptom"] == "shows"
    assert found["verdict"].startswith("ptxas, ")
    assert ptxas.known()[-1] in found["verdict"]


LAUNCH = """
import sys
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from kernels import dot

source = ASTSource(fn=dot, signature=dict.fromkeys(("a", "b", "out"), "*fp32"), constexprs={})
made = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_stages": 4, "num_warps": 1})
sys.exit("wrong" if made.metadata.num_stages != 1 else 0)
"""


@pytest.mark.slow
def test_options_of_a_commands_kernels(smith: Smith) -> None:
    (smith.cwd / "launch.py").write_text(LAUNCH, encoding="utf-8")
    found = judged(smith, "--env", "wheel", "--", "python", "launch.py")
    assert found["verdict"] == "software pipelining"
    seen = {row["variant"]: row for row in found["tried"]}
    assert seen["num_stages=1"]["symptom"] == "gone"
    assert seen["num_warps=8"]["symptom"] == "shows"
    assert seen["num_warps=1"]["symptom"] == "not tested"
    assert "no launch has another value" in seen["num_warps=1"]["why"]


@pytest.mark.slow
def test_a_program_without_a_pass(smith: Smith) -> None:
    """The products are on tensor cores only with the pass that puts them there."""
    asserted = "assert 'wgmma' in made.asm['ptx'] or 'mma.sync' in made.asm['ptx']"
    text = LAUNCH.replace('sys.exit("wrong" if made.metadata.num_stages != 1 else 0)', asserted)
    (smith.cwd / "launch.py").write_text(text, encoding="utf-8")
    python = smith.env("wheel") / "venv" / "bin" / "python"
    subject = CommandSubject(("python", "launch.py"), python, smith.cwd, smith.cwd / "out")
    assert subject.baseline().verdict is Verdict.GOOD
    names = subject.passes(TriageChange("passes counted")).notes
    assert names.index("tritongpu-coalesce#1") < names.index("tritongpu-accelerate-matmul#1")
    for name, seen in (("tritongpu-accelerate-matmul#1", Verdict.OTHER), ("canonicalize#1", Verdict.GOOD)):
        variant = TriageChange(f"without {name}", skip=name)
        assert subject.observe(variant).verdict is seen, name
    absent = TriageChange("without nothing", skip="no-such-pass")
    assert subject.observe(absent).verdict is Verdict.SKIP


def test_a_profile_without_a_gpu(smith: Smith) -> None:
    if gpus.read().all:
        pytest.skip("this machine has a GPU")
    assert "needs a GPU" in smith("kernel.profile", "--", "python", "launch.py", code=1).err


def test_proton_is_started_with_triton(smith: Smith, tmp_path: Path) -> None:
    """Without a GPU it refuses, and says why; what it writes on one is in tests/unit/inspect/profile."""
    request, results = tmp_path / "request.json", tmp_path / "results"
    results.mkdir()
    sessions = Profiler("proton", "nvidia").sessions(times=False)
    asked = ProfileRequest(str(results), tuple(sessions))
    request.write_text(border.text_of(asked), encoding="utf-8")
    start = str(worker.FOLDER / "__main__.py")
    run = f"runpy.run_path({start!r})['run']('profile', {str(request)!r})"
    python = smith.env("wheel") / "venv" / "bin" / "python"
    subprocess.run([python, "-c", f"import runpy; {run}; import triton"], check=True, cwd=tmp_path)
    [said] = [json.loads(path.read_text(encoding="utf-8")) for path in results.glob("*.json")]
    assert said["session"] or len(said["refused"]) == 2, "of three sessions one is of another era"


def test_what_is_refused(smith: Smith) -> None:
    (smith.cwd / "full").mkdir()
    (smith.cwd / "full" / "file").touch()
    for words, said in (
        ((), "there is nothing to test"),
        ((*DOT, "--", "true"), "contradict each other"),
        (("--when", "spills>0", "--", "true"), "for a kernel"),
        ((*DOT, "--when", "spills>+10%"), "has nothing to compare with"),
        ((*DOT, "--out", "full"), "is not empty"),
    ):
        assert said in smith("triage", *words, code=2).err
    assert "no such file" in smith("triage", "nowhere.py:k", code=1).err
