from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from tritonsmith.envs.workspace import Workspace
from tritonsmith.errors import FactError
from tritonsmith.kernels import example
from tritonsmith.kernels.example import Target
from tritonsmith.plan import Run, Write


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("cuda:90", Target("cuda", 90, 32)),
        ("cuda:90:32", Target("cuda", 90, 32)),
        ("h100", Target("cuda", 90, 32)),
        ("B200", Target("cuda", 100, 32)),
        ("hip:gfx942", Target("hip", "gfx942", 64)),
        ("hip:gfx90a", Target("hip", "gfx90a", 64)),
        ("hip:gfx1100", Target("hip", "gfx1100", 32)),
        ("hip:gfx942:32", Target("hip", "gfx942", 32)),
        ("mi300x", Target("hip", "gfx942", 64)),
    ],
)
def test_targets(text: str, target: Target) -> None:
    assert example.parse_target(text) == target
    assert example.parse_target(str(target)) == target


@pytest.mark.parametrize(
    "text",
    [
        "",
        "cuda",
        "cuda:",
        "cuda:sm_90",
        "cuda:90:x",
        "cuda:\N{SUPERSCRIPT TWO}",
        "hip:942",
        "hip:gfx942:x",
        "metal:1",
        "mi300",
    ],
)
def test_what_is_no_target(text: str) -> None:
    with pytest.raises(FactError, match="is no target") as caught:
        example.parse_target(text)
    assert caught.value.hints[0] == "write cuda:90 or hip:gfx942"
    assert "mi300x" in str(caught.value)


def test_the_default_targets_are_of_two_vendors() -> None:
    assert [target.backend for target in example.default_targets()] == ["cuda", "hip"]


def test_the_plan(tmp_path: Path) -> None:
    env = Workspace(tmp_path).env("wheel")
    _, write, run = example.plan(env, (Target("cuda", 90, 32), Target("hip", "gfx942", 64))).steps
    assert isinstance(write, Write)
    assert isinstance(run, Run)
    request = json.loads(write.text)
    assert request["targets"] == [["cuda", 90, 32], ["hip", "gfx942", 64]]
    assert Path(request["output"]).is_relative_to(env.path)
    assert run.argv[0] == str(env.python)
    assert Path(run.argv[1]).is_file()
    assert run.argv[2:] == (str(write.path), str(example.response_file(env.path)))
    assert ("PYTHONPATH", None) in run.env
    assert ("TRITON_CACHE_DIR", str(env.path / "triton-cache")) in run.env


def test_the_request_fits_the_kernel(tmp_path: Path) -> None:
    write = example.plan(Workspace(tmp_path).env("x"), ()).steps[1]
    assert isinstance(write, Write)
    request = json.loads(write.text)
    source = ast.parse(Path(request["file"]).read_text())
    (kernel,) = [node for node in source.body if isinstance(node, ast.FunctionDef)]
    assert kernel.name == request["kernel"]
    assert [arg.arg for arg in kernel.args.args] == [*request["signature"], *request["constexprs"]]


@pytest.mark.parametrize(
    ("backends", "targets"),
    [
        (("nvidia", "amd"), ["cuda:80:32"]),
        (("amd", "nvidia"), ["cuda:80:32"]),
        (("amd",), ["hip:gfx942:64"]),
        (("mine",), []),
    ],
)
def test_what_proves_a_build(backends: tuple[str, ...], targets: list[str]) -> None:
    assert [str(target) for target in example.proof_targets(backends)] == targets
