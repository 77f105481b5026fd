"""CLion: a preset in `CMakeUserPresets.json` that opens the existing build, and the debuggers' init files.

Both are documented by CMake and by JetBrains; CLion's own `.idea` is not.
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
    """Return its files, merged with those in the checkout."""
    name, build = f"tritonsmith-{project.env.name}", project.env.build
    cache = build / cmake.CACHE_FILE
    values = cmake_changes.variables(untrusted.read_text(cache)) if cache.is_file() else {}
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
