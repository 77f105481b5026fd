"""Neovim: `.nvim.lua`, which it reads with the option 'exrc'; Neovim's own LSP client, and nvim-dap."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tritonsmith.build.editors import merged_files
from tritonsmith.build.editors.merged_files import MergedFile
from tritonsmith.build.editors.project import DebugLaunch, EditorProject

_TEMPLATE = Path(__file__).with_name("templates") / "neovim.lua"
_FILE = "${file}"
_GDB_WITH_DAP = (14,)


def files(project: EditorProject, *, force: bool) -> tuple[MergedFile, ...]:
    """Return its file, merged with the one in the checkout."""
    adapters = _adapters(project)
    about = {
        "root": str(project.root),
        "environ": {"TRITONSMITH_HOME": str(project.env.root)},
        "servers": project.servers,
        "tasks": {task.name: task.argv for task in project.tasks},
        "adapters": adapters,
        "launches": [_launch(project, launch, name) for launch in project.launches for name in adapters],
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


def _launch(project: EditorProject, launch: DebugLaunch, adapter: str) -> dict[str, Any]:
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
