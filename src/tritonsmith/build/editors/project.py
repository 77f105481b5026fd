"""The facts that an editor needs: a build, its language servers, and debuggers that stop in a pass."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.build import compile_commands
from tritonsmith.compiler.debugger_init import GDB, LLDB
from tritonsmith.compiler.replay import pass_source
from tritonsmith.compiler.replay.pass_source import PassSource
from tritonsmith.core.command_line import command
from tritonsmith.core.envs import receipts, settings
from tritonsmith.core.envs.workspace import EnvDir, Workspace
from tritonsmith.core.errors import FactError
from tritonsmith.facts import tools

_TABLEGEN = "tablegen_compile_commands.yml"
_AS_TESTS = ("-split-input-file", "-mlir-disable-threading")  # their files hold several modules


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


@dataclass(frozen=True)
class EditorProject:
    """A checkout with a build.

    Attributes:
        root: the checkout.
        env: the environment that built it.
        env_word: the word that names it on a command line.
        found: programs that exist, by name.
        missing: programs that do not, with the way to get them.
        gdb_version: version of gdb.
        source: the pass to stop in; None for none.
    """

    root: Path
    env: EnvDir
    env_word: str
    found: dict[str, Path]
    missing: dict[str, str]
    gdb_version: tuple[int, ...]
    source: PassSource | None

    @property
    def clangd_argument(self) -> str:
        """The clangd option for compile_commands.json, with LLVM's if `link-compile-commands` merged them."""
        merged = self.env.path / compile_commands.NAME
        return f"--compile-commands-dir={merged.parent if merged.is_file() else self.env.build}"

    @property
    def mlir_server(self) -> Path | None:
        """The language server for MLIR: Triton's, which knows its dialects, before LLVM's."""
        return self.found.get("triton-lsp") or self.found.get("mlir-lsp-server")

    @property
    def servers(self) -> dict[str, tuple[str, ...]]:
        """The commands of the available language servers, by `cpp`, `mlir` and `tablegen`."""
        clangd, tablegen = self.found.get("clangd"), self.found.get("tblgen-lsp-server")
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
        if opt := self.found.get("triton-opt"):
            yield DebugLaunch(
                f"triton-opt {run}", opt, ("{file}", run, *_AS_TESTS, "-o", "/dev/null"), {}, stop, "mlir"
            )
        if python := self.found.get("python"):
            # A kernel from the cache runs no pass, and no breakpoint is hit.
            fresh = {"TRITON_ALWAYS_COMPILE": "1"}
            yield DebugLaunch("Python and the compiler", python, ("{file}",), fresh, stop, "python")

    @property
    def tasks(self) -> tuple[EditorTask, ...]:
        """The commands of this tool."""
        smith = str(Path(sys.executable).with_name("tritonsmith"))
        env = ("--env", self.env_word)
        dump = ("{file}", "--target", "h100", *env)
        return (
            EditorTask("build-triton", (smith, "build-triton", *env), compiles=True),
            EditorTask("lit tests", (smith, "test-triton", "--lit", *env)),
            EditorTask("passes.dump of this file", (smith, "passes.dump", *dump)),
        )


def read(env: str, space: Workspace, stop_in: str) -> EditorProject:
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
    where = pass_source.find(stop_in, root) if stop_in else None
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
    located = {name: tools.find(name, folders=beside, names=tools.versioned(name)) for name in remedies}
    programs = {name: tool.path for name, tool in located.items() if tool}
    if env_dir.python.exists():
        programs["python"] = env_dir.python
    missing = {name: how for name, how in remedies.items() if name not in programs}
    # Triton's server knows LLVM's dialects too, so LLVM's own is not missed.
    if "triton-lsp" in programs:
        missing.pop("mlir-lsp-server", None)
    word = env if not env.endswith(".toml") else str(settings.find(env))
    gdb = located["gdb"]
    version = tuple(map(int, gdb.version.split("."))) if gdb and gdb.version else ()
    return EditorProject(root, env_dir, word, programs, missing, version, where)
