"""`editor`: the files of VS Code, Neovim, Emacs or CLion for a build, with debuggers that stop in a pass."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritonsmith.build import cmake, compile_commands
from tritonsmith.build.editors import merged_files
from tritonsmith.build.editors.merged_files import MergedFile
from tritonsmith.compiler.debugger_init import GDB, LLDB
from tritonsmith.compiler.replay import pass_chain
from tritonsmith.compiler.replay.pass_chain import PassSource
from tritonsmith.core import untrusted
from tritonsmith.core.command_line import command
from tritonsmith.core.envs import receipts, settings
from tritonsmith.core.envs.workspace import EnvDir, Workspace
from tritonsmith.core.errors import FactError, UsageError, did_you_mean
from tritonsmith.core.plan import Plan
from tritonsmith.facts import tools

_TABLEGEN = "tablegen_compile_commands.yml"
# With threads, a step in the debugger may end in the same pass on another function.
_AS_TESTS = ("-split-input-file", "-mlir-disable-threading")  # their files hold several modules
_UNITED = ("recommendations", "mlir.tablegen_compilation_databases")  # lists that both may add to
_FILE = "${file}"
_TEMPLATE = Path(__file__).with_name("templates") / "neovim.lua"
_GDB_WITH_DAP = (14,)
_MODES = {"cpp": ("c++-mode", "c++-ts-mode"), "mlir": ("mlir-mode",), "tablegen": ("tablegen-mode",)}


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
    editor_project = read_project(env, space, stop_in)
    files = EDITORS[editor](editor_project, force=force)
    title = f"files of {editor} in {editor_project.root}"
    return PreparedEditor(editor_project, files, Plan(title, merged_files.steps(editor_project.root, files)))


@dataclass(frozen=True)
class EditorProject:
    """A checkout with a build.

    Attributes:
        root: the checkout.
        env: the environment that built it.
        env_word: the word that names it on a command line.
        programs: programs that exist, by name.
        missing: programs that do not, with the way to get them.
        gdb_version: version of gdb.
        source: the pass to stop in; None for none.
    """

    root: Path
    env: EnvDir
    env_word: str
    programs: dict[str, Path]
    missing: dict[str, str]
    gdb_version: tuple[int, ...]
    source: PassSource | None

    @property
    def clangd_argument(self) -> str:
        """The clangd option for compile_commands.json, with LLVM's if `link-compile-commands` merged them."""
        merged = self.env.path / compile_commands.COMPILE_COMMANDS
        return f"--compile-commands-dir={merged.parent if merged.is_file() else self.env.build}"

    @property
    def mlir_server(self) -> Path | None:
        """The language server for MLIR: Triton's, which knows its dialects, before LLVM's."""
        return self.programs.get("triton-lsp") or self.programs.get("mlir-lsp-server")

    @property
    def servers(self) -> dict[str, tuple[str, ...]]:
        """The commands of the available language servers, by `cpp`, `mlir` and `tablegen`."""
        clangd, tablegen = self.programs.get("clangd"), self.programs.get("tblgen-lsp-server")
        database = self.tablegen_database
        more = (f"--tablegen-compilation-database={database}",) if database else ()
        return {
            **({"cpp": (str(clangd), self.clangd_argument)} if clangd else {}),
            **({"mlir": (str(self.mlir_server),)} if self.mlir_server else {}),
            **({"tablegen": (str(tablegen), *more)} if tablegen else {}),
        }

    @property
    def tablegen_database(self) -> Path | None:
        """The build's database of include folders for .td files; None before LLVM 14."""
        path = self.env.build / _TABLEGEN
        return path if path.is_file() else None

    def debugger_file(self, name: str) -> Path | None:
        """Return the commands of `build-triton` for gdb or lldb: sources, and printers where LLVM's exist."""
        path = self.env.build / name
        return path if path.is_file() else None

    @property
    def gdb_start(self) -> tuple[str, ...]:
        """The commands for gdb before a program runs."""
        # libtriton.so is loaded when Python imports it. Without `pending`, gdb refuses a breakpoint in a
        # library that is not there yet.
        init = self.debugger_file(GDB)
        first = (f"source {init}",) if init else ()
        return (*first, "set breakpoint pending on")

    @property
    def lldb_start(self) -> tuple[str, ...]:
        """The commands for lldb before a program is loaded."""
        init = self.debugger_file(LLDB)
        return (f"command source {init}",) if init else ()

    @property
    def launches(self) -> tuple[DebugLaunch, ...]:
        """The debugger configurations for the programs that exist."""
        return tuple(self._launches())

    def _launches(self) -> Iterator[DebugLaunch]:
        stop = self.source.place if self.source else ""
        run = f"-{self.source.argument}" if self.source else "-canonicalize"
        if opt := self.programs.get("triton-opt"):
            yield DebugLaunch(
                f"triton-opt {run}", opt, ("{file}", run, *_AS_TESTS, "-o", "/dev/null"), {}, stop, "mlir"
            )
        if python := self.programs.get("python"):
            # A kernel from the cache runs no pass, and no breakpoint is hit.
            fresh = {"TRITON_ALWAYS_COMPILE": "1"}
            yield DebugLaunch("Python and the compiler", python, ("{file}",), fresh, stop, "python")

    @property
    def tasks(self) -> tuple[EditorTask, ...]:
        """The commands of this tool."""
        smith = str(Path(sys.executable).with_name("tritonsmith"))
        env = ("--env", self.env_word)
        # Without a GPU a target must be named, and any will do to look at IR.
        dump = ("{file}", "--target", "h100", *env)
        return (
            EditorTask("build-triton", (smith, "build-triton", *env), compiles=True),
            EditorTask("lit tests", (smith, "test-triton", "--lit", *env)),
            EditorTask("passes.dump of this file", (smith, "passes.dump", *dump)),
        )


@dataclass(frozen=True)
class DebugLaunch:
    """A program for a debugger.

    Attributes:
        name: name in an editor's list.
        program: path of the program.
        args: its arguments; `{file}` is the open file.
        environ: environment variables.
        stop: the breakpoint, FILE:LINE or a function.
        input: kind of the open file: `mlir` or `python`.
    """

    name: str
    program: Path
    args: tuple[str, ...]
    environ: dict[str, str]
    stop: str
    input: str

    @property
    def gdb_stop(self) -> tuple[str, ...]:
        """The gdb command that sets the breakpoint."""
        return (f"break {self.stop}",) if self.stop else ()

    @property
    def lldb_stop(self) -> tuple[str, ...]:
        """The lldb command that sets the breakpoint."""
        # lldb finds the file by its name: a path would have to be the one that the compiler recorded.
        file, _, line = self.stop.rpartition(":")
        where = f"-f {file.rpartition('/')[2]} -l {line}" if file else f"-n {self.stop}"
        return (f"breakpoint set {where}",) if self.stop else ()


@dataclass(frozen=True)
class EditorTask:
    """A command of this tool for an editor's menu.

    Attributes:
        name: name in an editor's list.
        argv: the command; `{file}` is the open file.
        compiles: whether its output has errors of a C++ compiler.
    """

    name: str
    argv: tuple[str, ...]
    compiles: bool = False


def read_project(env: str, space: Workspace, stop_in: str) -> EditorProject:
    """Read the facts about a build.

    Args:
        env: name or file of the environment.
        space: the workspace.
        stop_in: pass in which debuggers stop; empty for none.

    Raises:
        FactError: nothing was built there, or its checkout has no such pass.
    """
    chosen = settings.load(env)
    env_dir = space.env(chosen.name)
    receipt = receipts.read(env_dir.receipt("build-triton"))
    if receipt is None or not Path(receipt["source"]).is_dir():
        hints = [command("build-triton", env=env, debug=True)]
        raise FactError(
            f"environment {chosen.name!r} has no build of a checkout", where=env_dir.path, hints=hints
        )
    root, beside = Path(receipt["source"]), [env_dir.build / "bin", Path(receipt["llvm"]) / "bin"]
    where = pass_chain.find(stop_in, root) if stop_in else None
    if stop_in and where is None:
        hints = [command("explain", list="passes")]
        raise FactError(f"no pass {stop_in!r} in this checkout", where=root, hints=hints)
    packages = f"install it: {command('doctor --packages', need='editor')} has its package"
    remedies = {
        "triton-opt": command("build-triton", env=env, target="triton-opt"),
        "triton-lsp": command("build-triton", env=env, target="triton-lsp"),
        "clangd": packages,
        "mlir-lsp-server": packages,
        "tblgen-lsp-server": packages,
        "gdb": packages,
        "lldb-dap": packages,
    }
    # Those beside the build first: a language server must know the dialects of this very LLVM.
    located = {name: tools.find(name, folders=beside, names=tools.versioned(name)) for name in remedies}
    programs = {name: tool.path for name, tool in located.items() if tool}
    if env_dir.python.exists():
        programs["python"] = env_dir.python
    missing = {name: how for name, how in remedies.items() if name not in programs}
    # Triton's server knows LLVM's dialects too, so LLVM's own is not missed.
    if "triton-lsp" in programs:
        missing.pop("mlir-lsp-server", None)
    # An editor runs the command in the checkout, where a path relative to today's folder would name another
    # file.
    word = env if not env.endswith(".toml") else str(settings.find(env))
    gdb = located["gdb"]
    version = tuple(map(int, gdb.version.split("."))) if gdb and gdb.version else ()
    return EditorProject(root, env_dir, word, programs, missing, version, where)


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
    programs, database = project.programs, project.tablegen_database
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
    programs = project.programs
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
        if name in project.programs
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
        "miDebuggerPath": str(project.programs["gdb"]),
        "environment": [{"name": name, "value": value} for name, value in launch.environ.items()],
        "setupCommands": [
            # The protocol that VS Code speaks with gdb applies printers to variables only on this request
            # (GDB manual, "GDB/MI Variable Objects").
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
        # lldb-dap runs the first list before it has a target; a breakpoint needs one.
        "preRunCommands": list(launch.lldb_stop),
    }


def _task(project: EditorProject, task: EditorTask) -> dict[str, Any]:
    program, *words = (word.format(file=_FILE) for word in task.argv)
    return {
        "label": f"tritonsmith: {task.name}",
        # Without a shell no path needs quoting. The workspace is named, as an editor that was started from a
        # desktop has none of the shell's variables.
        "type": "process",
        "command": program,
        "args": words,
        "options": {"cwd": str(project.root), "env": {"TRITONSMITH_HOME": str(project.env.root)}},
        # The C/C++ extension has this matcher, and VS Code reports one that it does not know.
        "problemMatcher": ["$gcc"] if task.compiles and "gdb" in project.programs else [],
    }


def neovim_files(project: EditorProject, *, force: bool) -> tuple[MergedFile, ...]:
    """Return `.nvim.lua`, which Neovim reads with the option 'exrc', merged with the one in the checkout."""
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
    # The template has the data in a long string of Lua, which ends at `]=]`.
    data = json.dumps(about, indent=2).replace("]=]", "]\\u003d]")
    text = _TEMPLATE.read_text(encoding="utf-8").replace("@PROJECT@", data)
    return (merged_files.block(project.root, ".nvim.lua", text, "--", force=force),)


def _adapters(project: EditorProject) -> dict[str, list[str]]:
    """Return the debuggers that speak the debug adapter protocol, which gdb does since 14."""
    programs = project.programs
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


def emacs_files(project: EditorProject, *, force: bool) -> tuple[MergedFile, ...]:
    """Return `.dir-locals-2.el`; a file of the user's is kept, as a conflict."""
    # Emacs reads this file besides `.dir-locals.el`: the one is for personal settings, the other for a
    # project's.
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
    # Emacs reads one Lisp form from the file, so there is no place for a block beside the user's.
    return (merged_files.block(project.root, ".dir-locals-2.el", text, ";;", alone=True, force=force),)


def _emacs_gdb(project: EditorProject) -> str:
    """Return the command that `M-x gdb` proposes: the pass on the file of one of upstream's tests."""
    if "gdb" not in project.programs or "triton-opt" not in project.programs:
        return ""
    launch, init = project.launches[0], project.debugger_file(GDB)
    start = ("-ix", str(init)) if init else ()
    stop = [word for text in launch.gdb_stop for word in ("-ex", text)]
    words = [word.format(file="FILE.mlir") for word in launch.args]
    return shlex.join(
        (str(project.programs["gdb"]), "-i=mi", *start, *stop, "--args", str(launch.program), *words)
    )


def _lisp_lines(rows: Iterable[str], indent: int) -> str:
    return f"\n{' ' * indent}".join(rows)


def _lisp_text(word: str) -> str:
    """Return a Lisp string."""
    return json.dumps(word, ensure_ascii=False)


def clion_files(project: EditorProject, *, force: bool) -> tuple[MergedFile, ...]:
    """Return its files, merged with those in the checkout."""
    # CMake documents presets, and JetBrains that CLion reads them and the debuggers' init files; CLion's own
    # `.idea` is documented by nobody.
    name, build = f"tritonsmith-{project.env.name}", project.env.build
    cache = build / cmake.CACHE_FILE
    values = cmake.changed_variables(untrusted.read_text(cache)) if cache.is_file() else {}
    # CMake expands macros in presets, and this one is its `$`.
    variables = {key: value.replace("$", "${dollar}") for key, value in values.items()}
    configure = {
        "name": name,
        "displayName": command("build-triton", env=project.env_word),
        "generator": "Ninja",
        "binaryDir": str(build),
        "cacheVariables": variables,
    }
    # The lowest version that has build presets; CMake reads it from 3.20 on.
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


EDITORS = {"vscode": vscode_files, "neovim": neovim_files, "emacs": emacs_files, "clion": clion_files}
