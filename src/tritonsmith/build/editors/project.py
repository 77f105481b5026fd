"""The facts that an editor needs: a build, its language servers, and debuggers that stop in a pass.

`container`: a Dockerfile whose build is the plan of `build-triton`, made from the facts of a container.

Recipes are pure: the same facts with the container's paths give the same plan with its paths. This supports
only Debian's LLVM so far, which the container installs as this machine did.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import tritonsmith
from tritonsmith.build import cmake
from tritonsmith.build.cmake import CmakeTools
from tritonsmith.build.triton import commands, recipe, source
from tritonsmith.build.triton.recipe import Inputs
from tritonsmith.compiler.debugger_init import GDB, LLDB
from tritonsmith.compiler.replay import pass_chain
from tritonsmith.compiler.replay.pass_chain import PassSource
from tritonsmith.core import configs, untrusted
from tritonsmith.core.command_line import command
from tritonsmith.core.envs import receipts, settings
from tritonsmith.core.envs.workspace import EnvDir, Workspace
from tritonsmith.core.errors import FactError
from tritonsmith.core.plan import Plan, Write
from tritonsmith.facts import python_env, tools
from tritonsmith.facts.python_env import PythonEnv

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
        merged = self.env.path / cmake.NAME
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


_PHASE = "container"
_ROOT, _HOME = Path("/opt/triton"), Path("/opt/tritonsmith")  # editors mount things in /workspaces
_TOOLS, _FILES = Path("/opt/tools"), Path("/opt/tritonsmith-files")
_DEBIAN_LLVM = re.compile(r"/usr/lib/llvm-(\d+)")
_PYTHON = Path("/usr/bin/python3")
_PACKAGE = Path(tritonsmith.__file__).parent


def prepare(env: str, space: Workspace, cwd: Path, out: Path) -> tuple[Plan, str]:
    """Prepare the files of a container, and describe what in the checkout the container will lack.

    Args:
        env: name or file of an environment.
        space: the workspace.
        cwd: the current folder.
        out: the folder for the files.

    Raises:
        FactError: the build uses something that no Debian package provides, or this is not Debian.
    """
    chosen = settings.load(env, {"triton.precompiled-headers": "off"}, commands.last_build(env))
    inputs, _ = commands.gather(chosen, space, source.locate(chosen, space, cwd))
    dirty = "changes that are not committed" if inputs.checkout.dirty else ""
    return plan(inputs, python_env.interpreter(_PYTHON), _debian(), out), dirty


def plan(inputs: Inputs, python: PythonEnv | None, debian: str, out: Path) -> Plan:
    """Return the plan that writes the files.

    Args:
        inputs: inputs of the build on this machine.
        python: Debian's Python.
        debian: version of Debian; empty for another system.
        out: the folder for the files.

    Raises:
        FactError: the build uses something that no Debian package provides, or this is not Debian.
    """
    match = _DEBIAN_LLVM.fullmatch(str(inputs.llvm.prefix))
    # An image is only worth having if it builds what this machine builds: every program must
    # come from the same packages.
    if match is None or not debian or python is None or _foreign(inputs):
        raise FactError(
            "this environment cannot be put into a container yet",
            where=inputs.llvm.prefix,
            why="containers have what this Debian has: its LLVM, clang, lld, ccache and Python",
            hints=["use an environment whose LLVM is Debian's: [llvm] dir = '/usr/lib/llvm-19'"],
        )
    # The plan is the same object that a build here would run, with the container's paths.
    script = recipe.plan(_inside(inputs, python)).shell()
    copied = sorted(set(re.findall(rf"{re.escape(str(_PACKAGE))}/([\w./-]+)", script)))
    script = script.replace(str(_PACKAGE), str(_FILES))
    if left := [
        str(folder) for folder in (inputs.workspace.root, inputs.checkout.root) if f"{folder}/" in script
    ]:
        raise FactError("the plan names folders of this machine", why=", ".join(left))
    texts = {
        "Dockerfile": _dockerfile(inputs, debian, match[1]),
        "build.sh": script,
        "devcontainer.json": json.dumps(_devcontainer(inputs.env.name), indent=2) + "\n",
        **{f"files/{name}": (_PACKAGE / name).read_text(encoding="utf-8") for name in copied},
    }
    steps = tuple(Write(out / name, text, phase=_PHASE) for name, text in texts.items())
    return Plan(f"a container for {inputs.env.name}", steps)


def _inside(inputs: Inputs, python: PythonEnv) -> Inputs:
    """Return the same inputs with the container's paths."""
    home = Workspace(_HOME)
    return replace(
        inputs,
        checkout=replace(inputs.checkout, root=_ROOT),
        workspace=home,
        env=home.env(inputs.env.name),
        python=python,
        tools=CmakeTools(_TOOLS / "bin" / "cmake", _TOOLS / "bin" / "ninja", inputs.tools.cmake_version),
        precompiled={},
        llvm_sources=None,
        after_project=None,
    )


def _foreign(inputs: Inputs) -> bool:
    """Report whether the build uses programs that Debian's packages do not provide."""
    compilers = inputs.compilers
    folders = (inputs.llvm.bin, Path("/usr/bin"))
    return any(
        tool and tool.path.parent not in folders
        for tool in (compilers.cc, compilers.cxx, compilers.linker, compilers.launcher)
    )


def _debian() -> str:
    """Return the version of this Debian, as in 12.11; empty for another system."""
    path = Path("/etc/debian_version")
    text = untrusted.read_text(path).strip() if path.is_file() else ""
    return text if re.fullmatch(r"\d+\.\d+", text) else ""


def _dockerfile(inputs: Inputs, base: str, major: str) -> str:
    table = configs.load("system-packages")
    needs = ("build", "llvm", "debug")
    names = [name.replace("NN", major) for need in needs for name in table[need]["apt"]]
    packages = " ".join(dict.fromkeys(("ca-certificates", "python3-venv", *names)))
    config = f"/usr/lib/llvm-{major}/bin/llvm-config"
    ninja = tools.own("ninja")
    wheels = f"cmake=={inputs.tools.cmake_version}" + (f" ninja=={ninja.version}" if ninja else " ninja")
    url = configs.load("bisect")["upstream"]["page"]
    return f"""\
# Written by tritonsmith: {command("editor --container", env=inputs.env.name)}
FROM debian:{base}
RUN apt-get update && apt-get install -y --no-install-recommends {packages} && rm -rf /var/lib/apt/lists/*
RUN test "$({config} --version)" = {inputs.llvm.version}
RUN python3 -m venv {_TOOLS} && {_TOOLS}/bin/pip install --quiet --no-cache-dir {wheels}
RUN git clone --quiet {url} {_ROOT}
RUN git -C {_ROOT} checkout --quiet --detach {inputs.checkout.commit}
COPY files {_FILES}
COPY build.sh /opt/build.sh
RUN sh /opt/build.sh
WORKDIR {_ROOT}
"""


def _devcontainer(name: str) -> dict[str, object]:
    """Return an editor's settings: the container's own checkout, and the privileges that a debugger needs."""
    return {
        "name": f"triton-{name}",
        "build": {"dockerfile": "Dockerfile"},
        "workspaceFolder": str(_ROOT),
        "capAdd": ["SYS_PTRACE"],
        "securityOpt": ["seccomp=unconfined"],
    }
