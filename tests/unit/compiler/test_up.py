from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.lab.compare import compiler
from tritonsmith.compiler import targets, tritons, up
from tritonsmith.compiler.interpreter import HostPrograms
from tritonsmith.compiler.targets import Target
from tritonsmith.core.envs import receipts, settings, workspace
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import ConfigError, StepError
from tritonsmith.core.plan import Plan, Run, Write
from tritonsmith.core.plan.runner import Runner
from tritonsmith.core.ui.progress import PhaseProgress
from tritonsmith.wheels import venv
from tritonsmith.worker.border import text_of
from tritonsmith.worker.messages import CompiledRow, CompileHead, StageFile


@pytest.mark.parametrize(("wheel", "requirement"), [("newest", "triton"), ("3.5.0", "triton==3.5.0")])
def test_prepare(tmp_path: Path, wheel: str, requirement: str) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(f'[triton]\nwheel = "{wheel}"\n')
    env = workspace.default().env("mine")
    prepared = up.prepare(settings.load(str(file)), env, HostPrograms())
    assert prepared.plan.phases == (venv.PHASE, up.PHASE)
    assert any(line.endswith(f" {requirement}") for line in prepared.plan.shell().splitlines())
    assert prepared.targets == targets.default()
    assert not env.path.exists()


@pytest.mark.parametrize(("torch", "wanted"), [("cpu", "torch"), ("2.13.0+cpu", "torch==2.13.0+cpu")])
def test_torch_is_installed_before_triton(tmp_path: Path, torch: str, wanted: str) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(f'[triton]\nwheel = "3.5.0"\n[python]\ntorch = "{torch}"\n')
    plan = up.prepare(settings.load(str(file)), workspace.default().env("mine"), HostPrograms()).plan
    words = shlex.split(plan.shell(), comments=True)
    assert words.index(wanted) < words.index("triton==3.5.0")


def test_torch_for_a_gpu_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('[triton]\nwheel = "3.5.0"\n[python]\ntorch = "2.13.0"\n')
    with pytest.raises(ConfigError, match=r"python\.torch: '2\.13\.0' is not `none`, `cpu` or a version"):
        settings.load(str(file))


def test_act_leaves_the_answer_in_the_receipt() -> None:
    head = CompileHead("3.5.0", {}, "", "3.12.1", "")
    answer = {"triton": "3.5.0", "python": "3.12.1", "results": []}
    with receipts.open_session("up", "wheel") as running:
        write = Write(up.results_file(running.env.path), text_of(head), phase="p")
        assert up.execute(up.PreparedUp(Plan("x", (write,)), ()), running) == answer
    receipt = receipts.read(workspace.default().env("wheel").receipt("up"))
    assert receipt is not None
    assert (receipt["env"], receipt["answer"]) == ("wheel", answer)


@pytest.mark.parametrize(
    ("phase", "hint"), [(venv.PHASE, "apt install python3-venv"), (up.PHASE, "full log: ")]
)
def test_act_explains_a_failure(phase: str, hint: str) -> None:
    script = "for i in 1 2 3; do echo line $i; echo; done; exit 4"
    with receipts.open_session("up", "wheel") as running:
        step = Run(("/bin/sh", "-c", script), cwd=running.env.path, phase=phase)
        with pytest.raises(StepError, match=r"failed \(exit code 4\)") as caught:
            up.execute(up.PreparedUp(Plan("x", (step,)), ()), running)
        assert running.log.is_file()
    assert hint in caught.value.hints[0] + caught.value.hints[-1]
    assert caught.value.hints[-1] == f"full log: {running.log}"
    assert caught.value.why == "line 1\nline 2\nline 3"
    assert receipts.read(running.env.receipt("up")) is None


def test_why_there_is_no_pip_is_told(tmp_path: Path) -> None:
    """`venv` says that ensurepip failed, and not why."""
    (tmp_path / "bin").mkdir()
    python = tmp_path / "bin" / "python"
    python.write_text("#!/bin/sh\necho 'OSError: [Errno 28] No space left on device' >&2; exit 1\n")
    python.chmod(0o755)
    script = "echo \"Error: Command '[... -m, ensurepip]' returned non-zero exit status 1.\"; exit 1"
    with receipts.open_session("up", "wheel") as running:
        argv = ("/bin/sh", "-c", script, "-m", "venv", "--clear", str(tmp_path))
        step = Run(argv, cwd=running.env.path, phase=venv.PHASE)
        with pytest.raises(StepError) as caught:
            up.execute(up.PreparedUp(Plan("x", (step,)), ()), running)
    assert (caught.value.why or "").splitlines()[-1] == "OSError: [Errno 28] No space left on device"


def test_the_plan_of_the_proof(tmp_path: Path) -> None:
    env = Workspace(tmp_path).env("wheel")
    wanted = (Target("cuda", 90, 32), Target("hip", "gfx942", 64))
    _, write, run = up.smoke_test(
        env.path, env.python, wanted, HostPrograms(linker=(("TRITON_HIP_LLD_PATH", "/lld"),))
    ).steps
    assert isinstance(write, Write)
    assert isinstance(run, Run)
    assert ("TRITON_HIP_LLD_PATH", "/lld") in run.env
    request = json.loads(write.text)
    assert [point["target"] for point in request["points"]] == [["cuda", 90, 32], ["hip", "gfx942", 64]]
    assert request["strict"]
    assert request["points"][0]["signature"]["BLOCK"] == "constexpr"
    assert all(Path(request[name]).is_relative_to(env.path) for name in ("output", "scratch", "results"))
    assert run.argv[0] == str(env.python)
    assert (Path(run.argv[1]) / "__main__.py").is_file()
    assert run.argv[2:] == ("compile", str(write.path))
    assert ("TRITON_INTERPRET", None) in run.env


def test_the_response_is_in_the_order_of_up(tmp_path: Path) -> None:
    path = "hip-gfx942-64/vector_add.hsaco"
    empty = CompiledRow("a", "cuda:90:32", {}, {}, {}, {}, "ok", 0.25)
    stages = {"hsaco": StageFile(path, 12, "")}
    lines = [
        CompileHead("9.9.9", {}, "", "3.12.1", ""),
        replace(empty, id="b", target="hip:gfx942:64", stages=stages),
        empty,
    ]
    file = up.results_file(tmp_path)
    file.parent.mkdir()
    file.write_text("".join(f"{text_of(line)}\n" for line in lines))
    answer = up.read_response(tmp_path)
    assert (answer["triton"], answer["python"]) == ("9.9.9", "3.12.1")
    assert [result["target"] for result in answer["results"]] == ["cuda:90:32", "hip:gfx942:64"]
    made = tmp_path / "kernels" / "vector_add" / path
    assert answer["results"][1]["stages"] == {"hsaco": {"path": str(made), "bytes": 12}}


def test_an_installation_in_which_nothing_has_changed_is_not_tested_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = compiler.make(tmp_path / "venv")
    package = tritons.package(python)
    plan = up.smoke_test(tmp_path, python, targets.default(), HostPrograms(), unless_same=True)
    *before, last = plan.steps
    assert isinstance(last, up.CompileUnlessSame)
    counted = f"echo compiled >> {tmp_path}/compiles; echo done > {up.results_file(tmp_path)}"
    broken = tmp_path / "broken"
    quick = replace(last.compile, argv=("sh", "-c", f"{counted}; test ! -e {broken}"))

    def compiles() -> int:
        runner = Runner(tmp_path / "log", PhaseProgress(live=False, silent=True))
        runner.run(replace(plan, steps=(*before, replace(last, compile=quick))))
        return len((tmp_path / "compiles").read_text().splitlines())

    assert [compiles(), compiles()] == [1, 1]
    (package / "libtriton.so").touch()
    assert [compiles(), compiles()] == [2, 2]
    monkeypatch.setenv("LD_LIBRARY_PATH", "/elsewhere")
    assert [compiles(), compiles()] == [3, 3]
    up.results_file(tmp_path).unlink()
    assert [compiles(), compiles()] == [4, 4]
    (package / "libtriton.so").chmod(0o600)
    assert [compiles(), compiles()] == [5, 5]
    (package.parent / "breaks.pth").write_text("import sys; sys.modules['triton'] = None\n")
    assert [compiles(), compiles()] == [6, 6]
    output = tmp_path / "kernels" / up.KERNEL / "a.ptx"
    output.touch()
    assert [compiles(), compiles()] == [7, 7]
    output.unlink()
    assert [compiles(), compiles()] == [8, 8]
    # One that failed is tried again, also where it changed nothing.
    broken.touch()
    (package / "libtriton.so").unlink()
    for _ in range(2):
        with pytest.raises(StepError):
            compiles()
    broken.unlink()
    assert [compiles(), compiles()] == [11, 11]


def test_an_edit_during_the_test_is_tested_the_next_time(tmp_path: Path) -> None:
    python = compiler.make(tmp_path / "venv")
    *_, last = up.smoke_test(tmp_path, python, targets.default(), HostPrograms(), unless_same=True).steps
    assert isinstance(last, up.CompileUnlessSame)
    (tmp_path / "kernels").mkdir()
    edits = replace(last.compile, argv=("sh", "-c", f"echo '# x' >> {tritons.package(python)}/__init__.py"))
    Runner(tmp_path / "log", PhaseProgress(live=False, silent=True)).run(
        Plan("edits", (replace(last, compile=edits),))
    )
    assert not last.record.exists()


def test_where_no_file_of_triton_is_found_there_is_always_a_test(tmp_path: Path) -> None:
    python = tmp_path / "bin" / "python"
    assert tritons.state(python) == ""
