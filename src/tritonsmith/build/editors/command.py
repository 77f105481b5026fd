"""`editor`: write the files of an editor for a build: VS Code, Neovim, Emacs or CLion."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritonsmith.build import cmake
from tritonsmith.build.editors import merged_files, project
from tritonsmith.build.editors.merged_files import MergedFile
from tritonsmith.build.editors.project import DebugLaunch, EditorProject, EditorTask
from tritonsmith.compiler.debugger_init import GDB, LLDB
from tritonsmith.core import untrusted
from tritonsmith.core.command_line import command
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import UsageError, did_you_mean
from tritonsmith.core.plan import Plan

_UNITED = ("recommendations", "mlir.tablegen_compilation_databases")  # lists that both may add to
_FILE = "${file}"


def vscode_files(project: EditorProject, *, force: bool) -> tuple[MergedFile, ...]:
    """Return its files, merged with those in the checkout."""
    contents: dict[str, dict[str, Any]] = {
        ".vscode/settings.json": _settings(project),
        ".vscode/launch.json": {"version": "0.2.0", "configurations": _vscode_launches(project)},
        ".vscode/tasks.json": {"version": "2.0.0", "tasks": [_task(project, task) for task in project.tasks]},
        ".vscode/extensions.json": {"recommendations": _extensions(project)},
    }
    root = project.root
    return tuple(
        merged_files.settings(root, name, content, _UNITED, force=force) for name, content in contents.items()
    )


def _settings(project: EditorProject) -> dict[str, Any]:
    programs, database = project.found, project.tablegen_database
    rows = {
        "clangd.path": programs.get("clangd"),
        "mlir.server_path": project.mlir_server,
        "mlir.tablegen_server_path": programs.get("tblgen-lsp-server"),
        "lldb-dap.executable-path": programs.get("lldb-dap"),
        "python.defaultInterpreterPath": programs.get("python"),
    }
    values: dict[str, Any] = {name: str(path) for name, path in rows.items() if path}
    values["clangd.arguments"] = [project.clangd_argument]
    values["C_Cpp.intelliSenseEngine"] = "disabled"  # clangd answers; two of them contradict each other
    if database:
        values["mlir.tablegen_compilation_databases"] = [str(database)]
    return values


def _extensions(project: EditorProject) -> list[str]:
    programs = project.found
    return [
        "llvm-vs-code-extensions.vscode-clangd",
        "llvm-vs-code-extensions.vscode-mlir",
        "ms-python.python",
        *(["ms-vscode.cpptools"] if "gdb" in programs else []),
        *(["llvm-vs-code-extensions.lldb-dap"] if "lldb-dap" in programs else []),
    ]


def _vscode_launches(project: EditorProject) -> list[dict[str, Any]]:
    makers = {"gdb": _vscode_gdb, "lldb-dap": _lldb}
    return [
        make(project, launch)
        for launch in project.launches
        for name, make in makers.items()
        if name in project.found
    ]


def _common(project: EditorProject, launch: DebugLaunch, debugger: str) -> dict[str, Any]:
    return {
        "name": f"{launch.name} ({debugger})",
        "request": "launch",
        "program": str(launch.program),
        "args": [word.format(file=_FILE) for word in launch.args],
        "cwd": str(project.root),
    }


def _vscode_gdb(project: EditorProject, launch: DebugLaunch) -> dict[str, Any]:
    return {
        **_common(project, launch, "gdb"),
        "type": "cppdbg",
        "MIMode": "gdb",
        "miDebuggerPath": str(project.found["gdb"]),
        "environment": [{"name": name, "value": value} for name, value in launch.environ.items()],
        "setupCommands": [
            {"text": "-enable-pretty-printing"},
            *({"text": text} for text in (*project.gdb_start, *launch.gdb_stop)),
        ],
    }


def _lldb(project: EditorProject, launch: DebugLaunch) -> dict[str, Any]:
    return {
        **_common(project, launch, "lldb"),
        "type": "lldb-dap",
        "env": [f"{name}={value}" for name, value in launch.environ.items()],
        "initCommands": list(project.lldb_start),
        "preRunCommands": list(launch.lldb_stop),
    }


def _task(project: EditorProject, task: EditorTask) -> dict[str, Any]:
    program, *words = (word.format(file=_FILE) for word in task.argv)
    return {
        "label": f"tritonsmith: {task.name}",
        "type": "process",
        "command": program,
        "args": words,
        "options": {"cwd": str(project.root), "env": {"TRITONSMITH_HOME": str(project.env.root)}},
        # The C/C++ extension has this matcher, and VS Code reports one that it does not know.
        "problemMatcher": ["$gcc"] if task.compiles and "gdb" in project.found else [],
    }


# Neovim: `.nvim.lua`, which it reads with the option 'exrc'; Neovim's own LSP client, and nvim-dap.

_TEMPLATE = Path(__file__).with_name("templates") / "neovim.lua"
_GDB_WITH_DAP = (14,)


def neovim_files(project: EditorProject, *, force: bool) -> tuple[MergedFile, ...]:
    """Return its file, merged with the one in the checkout."""
    adapters = _adapters(project)
    about = {
        "root": str(project.root),
        "environ": {"TRITONSMITH_HOME": str(project.env.root)},
        "servers": project.servers,
        "tasks": {task.name: task.argv for task in project.tasks},
        "adapters": adapters,
        "launches": [
            _neovim_launch(project, launch, name) for launch in project.launches for name in adapters
        ],
    }
    data = json.dumps(about, indent=2).replace("]=]", "]\\u003d]")
    text = _TEMPLATE.read_text(encoding="utf-8").replace("@PROJECT@", data)
    return (merged_files.block(project.root, ".nvim.lua", text, "--", force=force),)


def _adapters(project: EditorProject) -> dict[str, list[str]]:
    """Return the debuggers that speak the debug adapter protocol, which gdb does since 14."""
    programs = project.found
    gdb = project.gdb_version >= _GDB_WITH_DAP and "gdb" in programs
    init = [word for text in project.gdb_start for word in ("-iex", text)]
    return {
        **({"lldb-dap": [str(programs["lldb-dap"])]} if "lldb-dap" in programs else {}),
        **({"gdb": [str(programs["gdb"]), "-i", "dap", *init]} if gdb else {}),
    }


def _neovim_launch(project: EditorProject, launch: DebugLaunch, adapter: str) -> dict[str, Any]:
    """Return a configuration of nvim-dap; gdb's adapter takes no commands, so it has no breakpoint."""
    lldb = adapter == "lldb-dap"
    more = {"initCommands": project.lldb_start, "preRunCommands": launch.lldb_stop} if lldb else {}
    return {
        "name": f"{launch.name} ({adapter})",
        "filetype": launch.input,
        "type": adapter,
        "request": "launch",
        "program": str(launch.program),
        "args": [word.format(file=_FILE) for word in launch.args],
        "cwd": str(project.root),
        "env": [f"{name}={value}" for name, value in launch.environ.items()] if lldb else launch.environ,
        **more,
    }


# Emacs: `.dir-locals-2.el`, the file for personal settings, which Emacs reads besides `.dir-locals.el`.

_MODES = {"cpp": ("c++-mode", "c++-ts-mode"), "mlir": ("mlir-mode",), "tablegen": ("tablegen-mode",)}


def emacs_files(project: EditorProject, *, force: bool) -> tuple[MergedFile, ...]:
    """Return its file; a file of the user's is kept, as a conflict."""
    build = ("env", f"TRITONSMITH_HOME={project.env.root}", *project.tasks[0].argv)
    values = [f"(compile-command . {_lisp_text(shlex.join(build))})"]
    if debugger := _emacs_gdb(project):
        values.append(f"(gud-gdb-command-name . {_lisp_text(debugger)})")
    rows = [f"(nil . ({_lisp_lines(values, 9)}))"]
    rows += [
        f"({mode} . ((eglot-server-programs . (({mode} . ({' '.join(map(_lisp_text, command))}))))))"
        for name, command in project.servers.items()
        for mode in _MODES[name]
    ]
    text = f"({_lisp_lines(rows, 1)})\n"
    return (merged_files.block(project.root, ".dir-locals-2.el", text, ";;", alone=True, force=force),)


def _emacs_gdb(project: EditorProject) -> str:
    """Return the command that `M-x gdb` proposes: the pass on the file of one of upstream's tests."""
    if "gdb" not in project.found or "triton-opt" not in project.found:
        return ""
    launch, init = project.launches[0], project.debugger_file(GDB)
    start = ("-ix", str(init)) if init else ()
    stop = [word for text in launch.gdb_stop for word in ("-ex", text)]
    words = [word.format(file="FILE.mlir") for word in launch.args]
    return shlex.join(
        (str(project.found["gdb"]), "-i=mi", *start, *stop, "--args", str(launch.program), *words)
    )


def _lisp_lines(rows: Iterable[str], indent: int) -> str:
    return f"\n{' ' * indent}".join(rows)


def _lisp_text(word: str) -> str:
    """Return a Lisp string."""
    return json.dumps(word, ensure_ascii=False)


# CLion: a preset in `CMakeUserPresets.json` that opens the existing build, and the debuggers' init files.
#
# Both are documented by CMake and by JetBrains; CLion's own `.idea` is not.


def clion_files(project: EditorProject, *, force: bool) -> tuple[MergedFile, ...]:
    """Return its files, merged with those in the checkout."""
    name, build = f"tritonsmith-{project.env.name}", project.env.build
    cache = build / cmake.CACHE_FILE
    values = cmake.changed_variables(untrusted.read_text(cache)) if cache.is_file() else {}
    variables = {key: value.replace("$", "${dollar}") for key, value in values.items()}
    configure = {
        "name": name,
        "displayName": command("build-triton", env=project.env_word),
        "generator": "Ninja",
        "binaryDir": str(build),
        "cacheVariables": variables,
    }
    presets = {
        "version": 2,
        "configurePresets": [configure],
        "buildPresets": [{"name": name, "configurePreset": name}],
    }
    root = project.root
    merged = [merged_files.settings(root, "CMakeUserPresets.json", presets, force=force)]
    for debugger, own, reading in ((GDB, ".gdbinit", "source"), (LLDB, ".lldbinit", "command source")):
        if init := project.debugger_file(debugger):
            merged.append(merged_files.block(root, own, f"{reading} {init}\n", "#", force=force))
    return tuple(merged)


# `editor`: write the files of an editor for a build.

EDITORS = {"vscode": vscode_files, "neovim": neovim_files, "emacs": emacs_files, "clion": clion_files}


@dataclass(frozen=True)
class PreparedEditor:
    """The files of an editor and the plan that writes them.

    Attributes:
        project: the build that they describe.
        files: files of the editor.
        plan: plan that writes them.
    """

    project: EditorProject
    files: tuple[MergedFile, ...]
    plan: Plan


def prepare(editor: str, env: str, space: Workspace, stop_in: str, *, force: bool) -> PreparedEditor:
    """Prepare the files of an editor.

    Args:
        editor: one of `EDITORS`.
        env: name or file of an environment.
        space: the workspace.
        stop_in: pass in which debuggers stop; empty for none.
        force: replace settings that have other values.

    Raises:
        UsageError: the editor is unknown.
        FactError: nothing was built, or a file of the editor cannot be read.
        OwnershipError: a file of the editor is a link.
    """
    if editor not in EDITORS:
        raise UsageError(f"unknown editor: {editor!r}", hints=did_you_mean(editor, EDITORS))
    editor_project = project.read(env, space, stop_in)
    files = EDITORS[editor](editor_project, force=force)
    title = f"files of {editor} in {editor_project.root}"
    return PreparedEditor(editor_project, files, Plan(title, merged_files.steps(editor_project.root, files)))
