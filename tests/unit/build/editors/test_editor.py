"""Files of editors for a small checkout, with programs that only exist."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.tasks.conftest import Smith
from tests.unit.cli.tasks.conftest import smith as smith  # noqa: PLC0414 - a fixture
from tritonsmith.build.editors import merged_files
from tritonsmith.core.envs import receipts, workspace

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
    return merged_files.parse(path.read_text()).value


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


# What a launch may say: `contributes.debuggers` in lldb/tools/lldb-dap/package.json of llvm-project, and
# Extension/tools/OptionsSchema.json of microsoft/vscode-cpptools, both as of 2026-11.
ATTRIBUTES = {
    "lldb-dap": {
        "program": str,
        "args": list,
        "cwd": str,
        "env": list,
        "initCommands": list,
        "preRunCommands": list,
    },
    "cppdbg": {
        "program": str,
        "args": list,
        "cwd": str,
        "MIMode": str,
        "miDebuggerPath": str,
        "environment": list,
        "setupCommands": list,
    },
}


def test_launches_say_what_their_extensions_know(built: Built, smith: Smith) -> None:
    for name, says in (("triton-opt", ""), ("gdb", "GNU gdb 13.1"), ("lldb-dap", "")):
        built.program(name, says)
    smith("editor", "vscode", "--env", built.env)
    launches = _read(built.root / ".vscode" / "launch.json")["configurations"]
    assert {one["type"] for one in launches} == set(ATTRIBUTES)
    for one in launches:
        known = {"name": str, "type": str, "request": str, **ATTRIBUTES[one["type"]]}
        assert {name: type(value) for name, value in one.items()} == known
        assert all(isinstance(word, str) for word in (*one["args"], *one.get("initCommands", ())))
        assert all("=" in word for word in one.get("env", ()))
        assert all({*pair} == {"name", "value"} for pair in one.get("environment", ()))
        assert all({*row} == {"text"} for row in one.get("setupCommands", ()))


def test_a_problem_matcher_is_named_where_its_extension_is(built: Built, smith: Smith) -> None:
    def matchers() -> set[str]:
        tasks = _read(built.root / ".vscode" / "tasks.json")["tasks"]
        return {name for one in tasks for name in one["problemMatcher"]}

    smith("editor", "vscode", "--env", built.env)
    assert matchers() == set()
    built.program("gdb", "GNU gdb 13.1")
    smith("editor", "vscode", "--env", built.env, "--force")
    assert matchers() == {"$gcc"}
    assert "ms-vscode.cpptools" in _read(built.root / ".vscode" / "extensions.json")["recommendations"]


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


FILES = {
    "neovim": [".nvim.lua"],
    "emacs": [".dir-locals-2.el"],
    "clion": ["CMakeUserPresets.json", ".gdbinit"],
}


@pytest.mark.parametrize("editor", FILES)
def test_each_editor_has_its_files_and_only_once(built: Built, smith: Smith, editor: str) -> None:
    for name in ("triton-opt", "triton-lsp", "gdb", "lldb-dap"):
        built.program(name)
    (built.build / "tritonsmith-cache.cmake").write_text(
        '# LLVM: 19\nset(A [[${x};"y"]] CACHE STRING "" FORCE)\n'
    )
    answer = smith("editor", editor, "--env", built.env)
    assert answer.code == 0
    assert all(f"new  {name}" in answer.out for name in FILES[editor])
    again = smith("editor", editor, "--env", built.env)
    assert all(f"same  {name}" in again.out for name in FILES[editor])
    excluded = (built.root / ".git" / "info" / "exclude").read_text().splitlines()
    assert [line for line in excluded if line.startswith("/")] == [f"/{name}" for name in FILES[editor]]


def test_neovim_is_told_of_servers_and_of_a_debugger_that_speaks_its_protocol(
    built: Built, smith: Smith
) -> None:
    server, debugger = built.program("triton-lsp"), built.program("lldb-dap")
    built.program("triton-opt")
    built.program("gdb", "GNU gdb 13.1")
    smith("editor", "neovim", "--env", built.env)
    text = (built.root / ".nvim.lua").read_text()
    told = json.loads(text.partition("[=[")[2].partition("]=]")[0])
    assert told["servers"] == {"mlir": [str(server)]}
    assert told["adapters"] == {"lldb-dap": [str(debugger)]}
    (launch,) = told["launches"]
    assert launch["preRunCommands"] == ["breakpoint set -f Coalesce.cpp -l 3"]
    built.program("gdb", "GNU gdb 15.2")
    smith("editor", "neovim", "--env", built.env)
    text = (built.root / ".nvim.lua").read_text()
    assert set(json.loads(text.partition("[=[")[2].partition("]=]")[0])["adapters"]) == {"lldb-dap", "gdb"}


def test_lines_of_the_user_stay_around_its_own(built: Built, smith: Smith) -> None:
    path = built.root / ".nvim.lua"
    path.write_text("vim.o.number = true")
    smith("editor", "neovim", "--env", built.env)
    path.write_text(path.read_text() + "vim.o.wrap = false\n")
    built.program("triton-lsp")
    smith("editor", "neovim", "--env", built.env)
    lines = path.read_text().splitlines()
    assert (lines[0], lines[-1]) == ("vim.o.number = true", "vim.o.wrap = false")
    assert path.read_text().count("tritonsmith ends") == 1
    mine = path.read_text().replace("botright", "topleft")
    path.write_text(mine)
    answer = smith("editor", "neovim", "--env", built.env)
    assert ".nvim.lua: its text stays" in answer.err
    assert path.read_text() == mine
    smith("editor", "neovim", "--env", built.env, "--force")
    assert "topleft" not in path.read_text()
    assert path.read_text().endswith("vim.o.wrap = false\n")


def test_emacs_keeps_a_file_of_the_user(built: Built, smith: Smith) -> None:
    path = built.root / ".dir-locals-2.el"
    path.write_text("((nil . ((fill-column . 90))))\n")
    answer = smith("editor", "emacs", "--env", built.env)
    assert "its text stays" in answer.err
    assert "fill-column" in path.read_text()
    smith("editor", "emacs", "--env", built.env, "--force")
    assert "compile-command" in path.read_text()
    assert "fill-column" not in path.read_text()


def test_clion_opens_the_build_as_it_is(built: Built, smith: Smith) -> None:
    (built.build / "tritonsmith-cache.cmake").write_text(
        '# LLVM: 19\nset(A [[${x};"y"]] CACHE STRING "" FORCE)\n'
    )
    path = built.root / "CMakeUserPresets.json"
    path.write_text('{"version": 6, "configurePresets": [{"name": "mine"}]}')
    answer = smith("editor", "clion", "--env", built.env)
    assert "stays" not in answer.err
    told = json.loads(path.read_text())
    assert told["version"] == 6
    mine, ours = told["configurePresets"]
    assert mine == {"name": "mine"}
    assert (ours["name"], ours["binaryDir"]) == ("tritonsmith-e", str(built.build))
    assert ours["cacheVariables"] == {"A": '${dollar}{x};"y"'}
    assert (built.root / ".gdbinit").read_text().splitlines()[1] == f"source {built.build / 'gdbinit'}"
