"""What is asked of a compile: mistakes are told first, and a manifest's command asks for the same again."""

from __future__ import annotations

import re
import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.tasks.conftest import Smith
from tritonsmith.cli.tasks.kernel import compile_
from tritonsmith.cli.tasks.kernel_export import _as_upstream, _target_here
from tritonsmith.cli.tasks.kernel_options import BackendOptions
from tritonsmith.cli.tasks.option_fields import from_argv
from tritonsmith.compiler import targets, tritons
from tritonsmith.compiler.request import CompileRequest, Sweep
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import UsageError
from tritonsmith.wheels import venv

GRID = ("--grid", "1")
TASKS = (
    ("kernel.compile",),
    ("kernel.show",),
    ("kernel.resources",),
    ("kernel.aot", *GRID),
    ("kernel.inline-ptx",),
)
_MORE = (
    ("passes.dump",),
    ("kernel.lint",),
    ("knockout",),
    ("triage", "--when", "spills>0"),
    ("reduce", "--when", "spills>0"),
    ("passes.check",),
)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a kernel, and a workspace without environments."""
    (tmp_path / "add.py").write_text("import triton\n@triton.jit\ndef add(x, n):\n    pass\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRITONSMITH_HOME", str(tmp_path / "home"))
    return tmp_path


@pytest.mark.parametrize("argv", [*TASKS, *_MORE], ids=lambda argv: argv[0])
@pytest.mark.parametrize(
    ("triton", "words"),
    [
        (("debug", "--env", "dev"), "--triton contradicts --env and --python"),
        (("debug", "--python", "/x/python"), "--triton contradicts --env and --python"),
        (("h100",), "--triton cannot be 'h100'"),
        (("num_warps=4",), "--triton cannot be 'num_warps=4'"),
        (("debug,num_warps=4",), "--triton cannot be 'debug,num_warps=4'"),
        (("3.4.0,3.6.0",), "names two Tritons"),
        (("debgu",), "did you mean 'debug'?"),
        (("debug",), "no Python interpreter with Triton yet"),
    ],
)
def test_one_flag_names_the_triton_of_every_compile(
    smith: Smith, argv: tuple[str, ...], triton: tuple[str, ...], words: str
) -> None:
    name, *rest = argv
    answer = smith(name, "add.py", "--signature", "*fp32,i32", *rest, "--triton", *triton)
    assert answer.code in (1, 2, 5)
    assert words in answer.err


def test_a_dry_run_installs_no_triton(smith: Smith, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tritons, "query", lambda *_, **__: None)  # an index that does not answer
    argv = ("kernel.compile", "add.py", "--signature", "*fp32,i32", "--triton", "3.4", "--dry-run")
    answer = smith(*argv)
    assert answer.code == 0
    assert "triton==3.4.0" in answer.out
    assert "the rest depends on this Triton" in answer.err
    assert not (here / "home").exists()


@pytest.mark.parametrize("task", ["kernel.compile", "kernel.lint", "passes.dump"])
def test_the_first_command_may_be_a_compile(smith: Smith, here: Path, task: str) -> None:
    answer = smith(task, "add.py", "--signature", "*fp32,i32", "--dry-run")
    assert answer.code == 0
    assert f"-m venv --clear {here}/home/envs/wheel/venv" in answer.out
    # By pip alone, in a line in parentheses, or with uv.
    assert re.search(r"pip .*install .*--disable-pip-version-check triton\)?$", answer.out, re.MULTILINE)
    assert "the rest depends on this Triton" in answer.err
    assert not (here / "home").exists()


def test_only_an_environment_without_triton_gets_the_newest() -> None:
    env = workspace.default().env("wheel")
    assert tritons.missing_wheel("wheel").steps
    env.python.parent.mkdir(parents=True)
    env.python.touch()
    # Whoever makes the environment by hand may have a Triton there that no file tells of.
    assert not tritons.missing_wheel("wheel").steps
    # `pip install` was stopped.
    (env.path / venv.MADE).touch()
    assert tritons.missing_wheel("wheel").steps
    (env.venv / venv.STAMP).touch()
    assert not tritons.missing_wheel("wheel").steps
    # It builds Triton, and so has no wheel to install.
    assert not tritons.missing_wheel("dev").steps


@pytest.mark.parametrize("argv", TASKS, ids=lambda argv: argv[0])
@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("gone.py",), "no such file"),
        (("add.py:ad",), "did you mean 'add'?"),
        (("add.py", "--signature", "*fp32"), "does not set n"),
        (("add.py", "--signature", "*fp33,i32"), "did you mean 'fp32'?"),
        (("add.py", "--signature", "*fp32:2,i32"), "the hint of x cannot be '2'"),
        (("add.py", "--signature", "*fp32,i32", "--num-warps", "four"), "--num-warps cannot be 'four'"),
        (("add.py", "--signature", "*fp32,i32", "--env", "debug"), "no Python interpreter with Triton yet"),
    ],
)
def test_mistakes_come_before_a_missing_triton(
    smith: Smith, argv: tuple[str, ...], more: tuple[str, ...], words: str
) -> None:
    name, *rest = argv
    answer = smith(name, *more, *rest)
    assert answer.code in (1, 2)
    assert words in answer.err


def test_a_folder_is_no_interpreter(smith: Smith, here: Path) -> None:
    answer = smith("kernel.compile", "add.py", "--signature", "*fp32,i32", "--python", str(here))
    assert (answer.code, "no Python interpreter" in answer.err) == (1, True)


@pytest.mark.parametrize(
    "argv", [("kernel.show",), ("kernel.aot", *GRID), ("kernel.inline-ptx",)], ids=lambda argv: argv[0]
)
def test_flags_of_a_compile_are_not_passed_over_where_nothing_is_compiled(
    smith: Smith, here: Path, argv: tuple[str, ...]
) -> None:
    (here / "out").mkdir()
    name, *rest = argv
    answer = smith(name, "out", *rest, "--signature", "i32", "--num-warps", "8")
    assert (answer.code, "--num-warps, --signature: this kernel is already compiled" in answer.err) == (
        2,
        True,
    )


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"kernel": ""},
        {"signature": "*fp32:16, i32, WHAT='a b', NAME=\"it's\""},
        {"targets": "h200,hip:gfx942:64,cuda:75"},
        {"options": {"num_warps": 8, "enable_fp_fusion": False, "ptx_options": "-v --x", "name": "a,b"}},
        {"sweeps": (Sweep("BLOCK", ("64", "128")), Sweep("num_warps", ("4",))), "autotune": True},
        {"stages": ("ttgir", "ptx")},
        {"file": Path("/a folder/-k.py")},
    ],
    ids=str,
)
def test_the_command_of_a_manifest_asks_for_the_same(more: dict[str, Any]) -> None:
    named = {"file": Path("/k.py"), "kernel": "add", "signature": "*fp32,i32", "targets": "cuda:90", **more}
    asked = CompileRequest(**{**named, "targets": targets.parse_all(named["targets"].split(","))})
    words = shlex.split(asked.flags(env="wheel", out=Path("/out of/it")))
    given = from_argv(compile_, words)
    again = given["what"].request(given["kernel"], stages=given["stage"], by=given["by"])
    assert asdict(again) == asdict(asked)
    assert (given["by"].env, given["out"]) == ("wheel", Path("/out of/it"))


@pytest.mark.parametrize("argv", [*TASKS[:1], *TASKS[2:3]], ids=lambda argv: argv[0])
def test_a_kernels_file_is_taken_like_a_kernel(smith: Smith, here: Path, argv: tuple[str, ...]) -> None:
    (here / "list.toml").write_text('[[kernel]]\nfile = "add.py"\nsignature = "*fp32,i32"\n')
    for named in ("list.toml", "list.toml:add"):
        assert "no Python interpreter with Triton yet" in smith(*argv, named, "--env", "debug").err
    assert "did you mean 'add'?" in smith(*argv, "list.toml:ad").err


@pytest.mark.parametrize(
    "argv",
    [*TASKS[1:2], *TASKS[3:], ("passes.dump",), ("ir-override", "--edited", "add.py")],
    ids=lambda argv: argv[0],
)
def test_one_kernel_of_several_must_be_chosen(smith: Smith, here: Path, argv: tuple[str, ...]) -> None:
    entry = '[[kernel]]\nfile = "add.py"\nkernel = "add"\nsignature = "*fp32,i32"\n'
    (here / "list.toml").write_text(f'{entry}{entry}name = "other"\n')
    name, *rest = argv
    answer = smith(name, "list.toml", *rest)
    assert answer.code == 2
    assert "this file lists 2 kernels, and one must be chosen" in answer.err
    assert "list.toml:other" in answer.err
    assert (
        "no Python interpreter with Triton yet" in smith(name, "list.toml:other", *rest, "--env", "debug").err
    )


def test_a_picture_is_of_one_kernel(smith: Smith, here: Path) -> None:
    entry = '[[kernel]]\nfile = "add.py"\nkernel = "add"\nsignature = "*fp32,i32"\n'
    (here / "list.toml").write_text(f'{entry}{entry}name = "other"\n')
    answer = smith("kernel.resources", "list.toml", "--plot", "map.svg")
    assert (answer.code, "--plot draws one kernel" in answer.err) == (2, True)


def test_aot_is_for_one_warp_and_this_machine() -> None:
    """As upstream's tools/compile.py; a list of kernels and a folder say these themselves."""
    assert _as_upstream(BackendOptions(), ()).num_warps == 1
    assert _as_upstream(BackendOptions(num_warps=8), ()).num_warps == 8
    assert _as_upstream(BackendOptions(), ("num_warps=4,8",)).num_warps is None
    assert _as_upstream(BackendOptions(option=("num_warps=2",)), ()).num_warps is None
    with pytest.raises(UsageError, match="compiles for this machine's GPU, and there is none") as caught:
        _target_here()
    assert "--target h100" in caught.value.hints
