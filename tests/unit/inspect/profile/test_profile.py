"""What profilers wrote on an H200, read: a matmul and a sum of rows by Triton 3.6.0."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from tritonsmith.core import configs
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.facts.gpus import Gpu, Gpus
from tritonsmith.inspect import profile as run
from tritonsmith.inspect import profilers
from tritonsmith.inspect.lint.finding import LintFinding, StageLine, known_rules
from tritonsmith.inspect.lint.run import LintResult
from tritonsmith.inspect.profile import KernelProfile
from tritonsmith.inspect.profilers import ProfiledKernel, Profiler, by_time
from tritonsmith.inspect.show import SourceLine
from tritonsmith.worker.messages import ProfileSession

DATA = Path(__file__).parent / "data"
LOAD = SourceLine("/home/user/mm.py", 9)
H200 = Gpus((Gpu("nvidia", "NVIDIA H200", "9.0"),))
MI300 = Gpus((Gpu("amd", "", "gfx942"),))


def by_name(kernels: list[ProfiledKernel], name: str) -> ProfiledKernel:
    """The kernel of that name."""
    [one] = [one for one in kernels if one.name == name]
    return one


def test_proton() -> None:
    found = profilers.read_proton([DATA / "h200.hatchet"])
    matmul = by_name(found, "matmul")
    assert (matmul.calls, matmul.nanoseconds) == (20, 4196111)
    assert matmul.lines[LOAD] == 379932
    assert matmul.stalls[LOAD].most_common(1) == [("barrier", 200861)]
    assert matmul.samples == sum(matmul.lines.values()) == 1156281
    softmax = next(one for one in found if "SoftMax" in one.name)
    assert (softmax.samples, softmax.lines) == (12958, {}), "torch's kernels have no lines"
    assert [one.name for one in by_time(found)][:2] == ["matmul", "rowsum"]


def test_proton_of_several_processes() -> None:
    twice = by_name(profilers.read_proton([DATA / "h200.hatchet"] * 2), "matmul")
    assert (twice.calls, twice.lines[LOAD]) == (40, 2 * 379932)


def test_scopes_and_old_lines(tmp_path: Path) -> None:
    line = {"frame": {"name": "/home/user/a b.py:kernel@12"}, "metrics": {"num_samples": 3}, "children": []}
    kernel = {"frame": {"name": "k"}, "metrics": {"count": 2, "time (ns)": 5}, "children": [line]}
    scope = {"frame": {"name": "phase"}, "metrics": {"count": 0}, "children": [kernel]}
    file = tmp_path / "1.hatchet"
    file.write_text(json.dumps([{"frame": {"name": "ROOT"}, "metrics": {}, "children": [scope]}, {}]))
    [found] = profilers.read_proton([file])
    assert (found.name, found.calls, dict(found.lines)) == ("k", 2, {SourceLine("/home/user/a b.py", 12): 3})


def test_not_of_proton(tmp_path: Path) -> None:
    file = tmp_path / "1.hatchet"
    file.write_text("[]")
    with pytest.raises(FactError, match="cannot read what Proton wrote"):
        profilers.read_proton([file])


def test_nsight_compute() -> None:
    times, lines = ((DATA / f"ncu-{name}.csv").read_text(encoding="utf-8") for name in ("raw", "source"))
    found = profilers.parse_nsight(times, lines)
    matmul = by_name(found, "matmul")
    assert (matmul.calls, matmul.nanoseconds) == (2, 210592 + 209856)
    assert matmul.stalls[LOAD].most_common(1)[0][0] == "barrier"
    assert 0.3 < matmul.lines[LOAD] / matmul.samples < 0.4
    sampled = by_name(profilers.read_proton([DATA / "h200.hatchet"]), "matmul")
    assert {line for line, _ in matmul.lines.most_common(5)} == {
        line for line, _ in sampled.lines.most_common(5)
    }


def test_nsight_compute_without_times() -> None:
    with pytest.raises(FactError, match="printed no times"):
        profilers.parse_nsight("==ERROR== no kernels", "")


def test_rocprofv3(tmp_path: Path) -> None:
    file = tmp_path / "1_kernel_trace.csv"
    head = '"Kind","Agent_Id","Kernel_Id","Kernel_Name","Correlation_Id","Start_Timestamp","End_Timestamp"'
    rows = ['"KERNEL_DISPATCH",1,9,"matmul",1,100,150', '"KERNEL_DISPATCH",1,9,"matmul",2,200,260']
    file.write_text("\n".join((head, *rows)) + "\n")
    [found] = profilers.read_rocprof([file])
    assert (found.name, found.calls, found.nanoseconds) == ("matmul", 2, 110)


def test_no_gpu() -> None:
    with pytest.raises(FactError, match="needs a GPU"):
        profilers.choose("", None, Gpus())


def test_no_such_profiler() -> None:
    with pytest.raises(UsageError, match="nsys"):
        profilers.choose("nsys", None, H200)


def test_what_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(profilers, "glob", lambda _place: [])
    with pytest.raises(FactError, match="ncu is not installed") as caught:
        profilers.choose("ncu", None, H200)
    assert any("Nsight Compute" in hint for hint in caught.value.hints)


def test_a_tool_on_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tool = tmp_path / "rocprofv3"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert profilers.choose("", None, MI300) == Profiler("rocprofv3", "amd", tool)


def test_sessions() -> None:
    assert [one.mode for one in Profiler("proton", "nvidia").sessions(times=False)] == [
        "pcsampling",
        "",
        "",
    ]
    assert Profiler("proton", "nvidia").sessions(times=True) == [ProfileSession("cupti", "")]
    assert Profiler("ncu", "nvidia", Path("ncu")).sessions(times=False) == []


def test_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "script.py").touch()
    monkeypatch.chdir(tmp_path)
    ncu = Profiler("ncu", "nvidia", Path("/opt/ncu"))
    made = run.prepare(["python3", "script.py"], ncu, None, Workspace(tmp_path / "home"), kernels="a,b")
    words = made.step.argv
    assert words[0] == "/opt/ncu"
    assert words[words.index("--kernel-name") + 1] == "regex:^(a|b)$"
    assert words[-1] == "script.py"
    quiet = run.prepare(["python3", "script.py"], ncu, None, Workspace(tmp_path / "home"), quiet=True)
    assert (made.step.both, quiet.step.both) == (False, True)
    assert "--kernel-name" not in quiet.step.argv


def test_screen() -> None:
    kernels = tuple(by_time(profilers.read_proton([DATA / "h200.hatchet"])))
    rule = next(iter(known_rules().values()))
    line = StageLine("ttgir", 58, "tt.load", LOAD)
    findings = LintResult(
        1, (LintFinding(rule, "spills 8 bytes", (line,), "matmul", "p", "cuda:90:32"),), (), {}
    )
    found = KernelProfile(kernels, {"backend": "cupti", "mode": "pcsampling"}, findings, (), 0)
    out = StringIO()
    console = Console(file=out, width=120)
    for block in run.blocks(found):
        console.print(block)
    text = out.getvalue()
    [row] = [one for one in text.splitlines() if one.startswith("mm.py:9 ")]
    assert "32.9" in row
    assert "barrier 76.9" in row
    assert rule.code in row
    assert "barrier: waits for other warps at a barrier" in text
    answer = run.as_json(found, "proton")
    top = answer["kernels"][0]["lines"][0]
    assert (top["line"], top["findings"]) == (9, [rule.code])
    assert run.as_json(replace(found, code=3), "proton")["exit_code"] == 3


def test_every_reason_has_a_meaning() -> None:
    known = {row["name"] for row in configs.load("profilers")["stall"]}
    times, lines = ((DATA / f"ncu-{name}.csv").read_text(encoding="utf-8") for name in ("raw", "source"))
    for kernel in [*profilers.read_proton([DATA / "h200.hatchet"]), *profilers.parse_nsight(times, lines)]:
        for stalls in kernel.stalls.values():
            assert {name for name, number in stalls.items() if number} <= known
