"""Files of editors for a small checkout, with programs that only exist."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.unit.tasks.conftest import Smith
from tests.unit.tasks.conftest import smith as smith  # noqa: PLC0414 - a fixture
from tritonsmith.editors import jsonc
from tritonsmith.envs import receipts, workspace

TD = """def TritonGPUCoalesce : Pass<"tritongpu-coalesce", "mlir::ModuleOp"> {}\n"""
CPP = """#define GEN_PASS_DEF_TRITONGPUCOALESCE
struct CoalescePass : impl::TritonGPUCoalesceBase<CoalescePass> {
  void runOnOperation() override {
  }
};
"""
STOP = "lib/Coalesce.cpp:3"


@dataclass
class Built:
    """A checkout and its build."""

    root: Path
    build: Path
    env: str

    def program(self, name: str, says: str = "") -> Path:
        path = self.build / "bin" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\necho {says}\n")
        path.chmod(0o755)
        return path


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Built:
    monkeypatch.setenv("TRITONSMITH_HOME", str(tmp_path / "home"))
    root = tmp_path / "a checkout"
    (root / "lib").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    monkeypatch.setenv("PATH", "/nowhere")  # what this machine has is not the matter
    (root / "lib" / "Passes.td").write_text(TD)
    (root / "lib" / "Coalesce.cpp").write_text(CPP)
    space = workspace.default()
    space.claim()
    env = space.env("e")
    env.receipt("build-triton").parent.mkdir(parents=True)
    env.receipt("build-triton").write_text(
        receipts.render("build-triton", {"source": str(root), "llvm": str(tmp_path / "llvm")})
    )
    env.build.mkdir()
    (env.build / "gdbinit").write_text("directory x\n")
    (env.build / "tablegen_compile_commands.yml").write_text("--- {}\n")
    (tmp_path / "e.toml").write_text("")
    return Built(root, env.build, str(tmp_path / "e.toml"))


def _read(path: Path) -> Any:
    return jsonc.parse(path.read_text()).value


def test_vscode_names_only_what_is_there(built: Built, smith: Smith) -> None:
    opt, gdb = built.program("triton-opt"), built.program("gdb", "GNU gdb 13.1")
    answer = smith("editor", "vscode", "--env", built.env)
    assert answer.code == 0
    settings = _read(built.root / ".vscode" / "settings.json")
    assert settings["clangd.arguments"] == [f"--compile-commands-dir={built.build}"]
    assert settings["mlir.tablegen_compilation_databases"] == [
        str(built.build / "tablegen_compile_commands.yml")
    ]
    assert not {"clangd.path", "mlir.server_path", "lldb-dap.executable-path"} & set(settings)
    for name in ("clangd", "triton-lsp", "mlir-lsp-server", "tblgen-lsp-server", "lldb-dap"):
        assert f"no {name}: " in answer.err
    (launch,) = _read(built.root / ".vscode" / "launch.json")["configurations"]
    assert launch["program"] == str(opt)
    assert launch["miDebuggerPath"] == str(gdb)
    assert {"text": f"break {STOP}"} in launch["setupCommands"]
    assert {"text": f"source {built.build / 'gdbinit'}"} in launch["setupCommands"]


def test_its_files_are_hidden_from_git_and_written_once(built: Built, smith: Smith) -> None:
    plan = smith("editor", "vscode", "--env", built.env, "--dry-run")
    assert not (built.root / ".vscode").exists()
    smith("editor", "vscode", "--env", built.env)
    excluded = built.root / ".git" / "info" / "exclude"
    assert excluded.read_text().count("/.vscode/launch.json\n") == 1
    files = {path: path.stat().st_mtime_ns for path in (built.root / ".vscode").iterdir()}
    assert all(path.read_text() in plan.out for path in files)
    again = smith("editor", "vscode", "--env", built.env, "--dry-run")
    assert again.out.strip().endswith("set -eu")
    smith("editor", "vscode", "--env", built.env)
    assert {path: path.stat().st_mtime_ns for path in files} == files


def test_a_setting_of_the_user_stays_and_is_shown(built: Built, smith: Smith) -> None:
    mine = built.root / ".vscode" / "settings.json"
    mine.parent.mkdir()
    mine.write_text('{\n  // of mine\n  "C_Cpp.intelliSenseEngine": "default"\n}\n')
    answer = smith("editor", "vscode", "--env", built.env)
    assert "C_Cpp.intelliSenseEngine stays 'default'" in answer.err.replace("\n", " ")
    assert _read(mine)["C_Cpp.intelliSenseEngine"] == "default"
    assert "  // of mine\n" in mine.read_text()
    smith("editor", "vscode", "--env", built.env, "--force")
    assert _read(mine)["C_Cpp.intelliSenseEngine"] == "disabled"
    assert "  // of mine\n" in mine.read_text()


def _broken(root: Path) -> str:
    (root / ".vscode").mkdir()
    (root / ".vscode" / "tasks.json").write_text("{\n  what\n}")
    return "line 2"


def _linked(root: Path) -> str:
    (root / "elsewhere").mkdir()
    (root / ".vscode").symlink_to(root / "elsewhere")
    return "refusing to write through a link"


@pytest.mark.parametrize("spoil", [_broken, _linked])
def test_what_cannot_be_merged_is_left_alone(
    built: Built, smith: Smith, spoil: Callable[[Path], str]
) -> None:
    said = spoil(built.root)
    answer = smith("editor", "vscode", "--env", built.env)
    assert answer.code != 0
    assert said in answer.err
    assert not (built.root / ".vscode" / "settings.json").exists()


def test_an_editor_a_pass_and_a_build_must_be_known(built: Built, smith: Smith) -> None:
    assert "did you mean 'vscode'" in smith("editor", "vscod", "--env", built.env).err
    assert "no pass 'x'" in smith("editor", "vscode", "--env", built.env, "--pass", "x").err
    workspace.default().env("e").receipt("build-triton").unlink()
    answer = smith("editor", "vscode", "--env", built.env)
    assert "has no build of a checkout" in answer.err
    assert "build-triton" in answer.err
