"""VS Code: `.vscode/`, with the extensions that LLVM's and Microsoft's pages name for these files."""

from __future__ import annotations

from typing import Any

from tritonsmith.build.editors import merged_files
from tritonsmith.build.editors.merged_files import MergedFile
from tritonsmith.build.editors.project import DebugLaunch, EditorProject, EditorTask

_UNITED = ("recommendations", "mlir.tablegen_compilation_databases")  # lists that both may add to
_FILE = "${file}"


def files(project: EditorProject, *, force: bool) -> tuple[MergedFile, ...]:
    """Return its files, merged with those in the checkout."""
    contents: dict[str, dict[str, Any]] = {
        ".vscode/settings.json": _settings(project),
        ".vscode/launch.json": {"version": "0.2.0", "configurations": _launches(project)},
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


def _launches(project: EditorProject) -> list[dict[str, Any]]:
    makers = {"gdb": _gdb, "lldb-dap": _lldb}
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


def _gdb(project: EditorProject, launch: DebugLaunch) -> dict[str, Any]:
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
