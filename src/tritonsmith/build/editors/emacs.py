"""Emacs: `.dir-locals-2.el`, the file for personal settings, which Emacs reads besides `.dir-locals.el`."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable

from tritonsmith.build.editors import merged_files
from tritonsmith.build.editors.merged_files import MergedFile
from tritonsmith.build.editors.project import EditorProject
from tritonsmith.compiler.debugger_init import GDB

_MODES = {"cpp": ("c++-mode", "c++-ts-mode"), "mlir": ("mlir-mode",), "tablegen": ("tablegen-mode",)}


def files(project: EditorProject, *, force: bool) -> tuple[MergedFile, ...]:
    """Return its file; a file of the user's is kept, as a conflict."""
    build = ("env", f"TRITONSMITH_HOME={project.env.root}", *project.tasks[0].argv)
    values = [f"(compile-command . {_text(shlex.join(build))})"]
    if debugger := _gdb(project):
        values.append(f"(gud-gdb-command-name . {_text(debugger)})")
    rows = [f"(nil . ({_lines(values, 9)}))"]
    rows += [
        f"({mode} . ((eglot-server-programs . (({mode} . ({' '.join(map(_text, command))}))))))"
        for name, command in project.servers.items()
        for mode in _MODES[name]
    ]
    text = f"({_lines(rows, 1)})\n"
    return (merged_files.block(project.root, ".dir-locals-2.el", text, ";;", alone=True, force=force),)


def _gdb(project: EditorProject) -> str:
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


def _lines(rows: Iterable[str], indent: int) -> str:
    return f"\n{' ' * indent}".join(rows)


def _text(word: str) -> str:
    """Return a Lisp string."""
    return json.dumps(word, ensure_ascii=False)
