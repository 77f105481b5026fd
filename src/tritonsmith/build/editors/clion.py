"""CLion: a preset in `CMakeUserPresets.json` that opens the build as it is, and what debuggers read.

Both are documented by CMake and by JetBrains; its own `.idea` is not.
"""

from __future__ import annotations

from tritonsmith.build import cmake
from tritonsmith.build.editors import merged_files
from tritonsmith.build.editors.merged_files import MergedFile
from tritonsmith.build.editors.project import EditorProject
from tritonsmith.build.explain import cmake_changes
from tritonsmith.compiler.debugger_init import GDB, LLDB
from tritonsmith.core import untrusted
from tritonsmith.core.command_line import command


def files(project: EditorProject, *, force: bool) -> tuple[MergedFile, ...]:
    """Its files, merged with what is there."""
    name, build = f"tritonsmith-{project.env.name}", project.env.build
    cache = build / cmake.CACHE_FILE
    given = cmake_changes.variables(untrusted.read_text(cache)) if cache.is_file() else {}
    variables = {key: value.replace("$", "${dollar}") for key, value in given.items()}
    configure = {
        "name": name,
        "displayName": command("build-triton", env=project.env_word),
        "generator": "Ninja",
        "binaryDir": str(build),
        "cacheVariables": variables,
    }
    wanted = {
        "version": 2,
        "configurePresets": [configure],
        "buildPresets": [{"name": name, "configurePreset": name}],
    }
    root = project.root
    made = [merged_files.settings(root, "CMakeUserPresets.json", wanted, force=force)]
    for debugger, own, reading in ((GDB, ".gdbinit", "source"), (LLDB, ".lldbinit", "command source")):
        if init := project.debugger_file(debugger):
            made.append(merged_files.block(root, own, f"{reading} {init}\n", "#", force=force))
    return tuple(made)
