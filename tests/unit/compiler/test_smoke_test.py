from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from tritonsmith.compiler import up
from tritonsmith.compiler.interpreter import HostPrograms
from tritonsmith.compiler.targets import Target
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.plan import Run, Write
from tritonsmith.worker.border import text_of
from tritonsmith.worker.messages import CompiledRow, CompileHead, StageFile


def test_the_plan(tmp_path: Path) -> None:
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
