"""The replayer: an interpreter's libtriton, or a build's `triton-opt`; and the sources of either.

Start-up files for gdb and lldb: where a build's sources are, and how to print LLVM's types.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.compiler.dump.index import DumpIndex, no_interpreter, own_interpreter
from tritonsmith.core import process
from tritonsmith.core.envs import receipts, settings
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError
from tritonsmith.core.process import capture
from tritonsmith.facts import libtriton, tools

GDB, LLDB = "gdbinit", "lldbinit"


@dataclass(frozen=True)
class Replayer:
    """The program that replays passes.

    Attributes:
        python: an interpreter that has Triton; None if unknown, which is fine with `opt`.
        opt: `triton-opt`; None if bindings are used.
        build: the build folder of `opt`; None if it is in no such folder.
        source: checkout of Triton; None if unknown.
    """

    python: Path | None
    opt: Path | None
    build: Path | None
    source: Path | None

    def asserts(self) -> bool:
        """Report whether it was built with assertions, and so can print debug output."""
        if self.opt:
            return "with assertions" in (capture((str(self.opt), "--version")) or "")
        return self.python is not None and libtriton.read(library(self.python)).asserts

    def debugger_file(self, debugger: str) -> Path | None:
        """Return the start-up file that `build-triton` wrote for a debugger; None if there is none."""
        path = self.build / {"gdb": GDB, "lldb": LLDB}[debugger] if self.build else None
        return path if path and path.is_file() else None


def choose(
    index: DumpIndex,
    space: Workspace,
    *,
    env: str,
    python: Path | None,
    triton_opt: Path | None,
    source: Path | None = None,
) -> Replayer:
    """Choose the replayer from flags, and from the dump, which knows the interpreter that printed it.

    An environment provides its `triton-opt` if that was built, or else its interpreter. Programs that a
    foreign dump names are never run.

    Raises:
        FactError: a program that they name does not exist, or may not be run.
    """
    opt, checkout = triton_opt, source
    chosen = python or own_interpreter(index, space)
    if env:
        environment = space.env(settings.load(env).name)
        built = environment.build / "bin" / "triton-opt"
        opt = opt or (built if built.is_file() else None)
        chosen = chosen if python else environment.python
        receipt = receipts.read(environment.receipt("build-triton")) or {}
        checkout = checkout or (Path(receipt["source"]) if "source" in receipt else None)
    if opt and not os.access(opt, os.X_OK):
        raise FactError("no such program", where=opt, hints=["invoke build-triton builds triton-opt"])
    if chosen and not os.access(chosen, os.X_OK):
        if not opt or python:
            hints = ["give an interpreter that has the Triton of the dump: --python PATH"]
            raise FactError("the interpreter does not exist", where=chosen, hints=hints)
        chosen = None
    if not opt and not chosen:
        raise no_interpreter(index)
    build = opt.resolve().parents[1] if opt else None
    if checkout is None and build and (build / "source").is_dir():  # a link that `build-triton` makes
        checkout = (build / "source").resolve()
    return Replayer(chosen, opt, build, checkout)


def require_python(chosen: Replayer) -> Path:
    """Return the interpreter of a replayer, for what triton-opt cannot do.

    Raises:
        FactError: it is a triton-opt.
    """
    if chosen.python is None:
        raise FactError("only an interpreter with Triton prints the generic form", hints=["--python PATH"])
    return chosen.python


def debugger(name: str) -> str:
    """Return the path of a debugger.

    Raises:
        FactError: it is not installed.
    """
    path = next(filter(None, map(process.which, (name, *tools.versioned(name)))), None)
    if path is None:
        hints = [f"install {name}", "or run the output of --dry-run elsewhere"]
        raise FactError(f"{name} is not installed", hints=hints)
    return path


def library(python: Path) -> Path:
    """Return the libtriton.so of an interpreter, found without importing it.

    Raises:
        FactError: it has none.
    """
    code = "import importlib.util as util; print(util.find_spec('triton').origin)"
    # In another folder, because files of the current one would shadow modules of the standard library.
    origin = capture((str(python), "-c", code), cwd=python.parent)
    libraries = libtriton.find(Path(origin).parent) if origin else ()
    if not libraries:
        raise FactError(
            "this interpreter has no Triton",
            where=python,
            hints=["give one that has Triton: --python PATH", "or use a build: --triton-opt PATH"],
        )
    return libraries[0].resolve()
