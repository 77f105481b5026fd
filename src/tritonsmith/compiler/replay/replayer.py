"""The program that replays passes, the debug output that it can print, and a debugger in it.

It is the libtriton of an interpreter, or the `triton-opt` of a build.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from tritonsmith.compiler.debugger_init import GDB, LLDB
from tritonsmith.compiler.dump.index import DumpIndex, no_interpreter, own_interpreter
from tritonsmith.compiler.replay import pass_chain
from tritonsmith.compiler.replay.pass_chain import PassLink, PassSource
from tritonsmith.core import command_line, configs, process
from tritonsmith.core.envs import receipts, settings
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, UsageError, did_you_mean
from tritonsmith.core.process import capture
from tritonsmith.facts import build_folder, libtriton, tools

# Build types of Triton's CMakeLists.txt that do not define NDEBUG.
_WITH_ASSERTIONS = ("Debug", "TritonRelBuildWithAsserts")
# LLVM has this variable in every build; only the option that sets it is compiled out.
_SHOW = "set var *(bool*)&'llvm::DebugFlag' = 1"


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
        # triton-opt takes any pass with its options; bindings exist only for what a backend calls.
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
    # A link that `build-triton` makes.
    if checkout is None and build and (build / "source").is_dir():
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


@dataclass(frozen=True)
class Debug:
    """The debug output that is requested with a replay.

    Attributes:
        types: DEBUG_TYPEs.
        notes: messages for the user.
        everything: all types.
    """

    types: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    everything: bool = False

    def __bool__(self) -> bool:
        """Report whether any debug output is requested."""
        return self.everything or bool(self.types)

    def environ(self) -> tuple[tuple[str, str | None], ...]:
        """Return the variables that make libtriton print it."""
        only = None if self.everything else ",".join(self.types)
        return (("TRITON_ENABLE_LLVM_DEBUG", "1"), ("TRITON_LLVM_DEBUG_ONLY", only)) if self else ()

    def flags(self) -> tuple[str, ...]:
        """Return the flags that make `triton-opt` print it."""
        return ("-debug" if self.everything else f"-debug-only={','.join(self.types)}",) if self else ()


def debug_output(
    links: Sequence[PassLink],
    tool: Replayer,
    mlir: Sequence[str] = (),
    *,
    of_passes: bool = False,
    only: Sequence[str] = (),
    everything: bool = False,
) -> Debug:
    """Return the debug output to request.

    Args:
        links: passes.
        tool: the program that runs them.
        mlir: types of MLIR's infrastructure.
        of_passes: add the types of the passes' files.
        only: any other types, of Triton, MLIR or LLVM.
        everything: all types.

    Raises:
        UsageError: MLIR has no such type.
        FactError: no sources, no assertions, or no such type in this Triton.
    """
    if not of_passes and not mlir and not only and not everything:
        return Debug()
    known = configs.load("passes-replay")["debug-types"]
    for name in mlir:
        if name not in known:
            raise UsageError(f"MLIR has no debug type {name!r}", hints=did_you_mean(name, known))
    if not tool.asserts():
        raise _no_debug_output(tool)
    _check(tool, only, known)
    if everything:
        return Debug(everything=True)
    sources = tuple(dict.fromkeys(source_of(link, tool) for link in links)) if of_passes else ()
    notes = [f"{place.argument}: {place.file} (by {place.found_by})" for place in sources]
    notes += [
        f"{place.argument}: its file does not define DEBUG_TYPE" for place in sources if not place.debug_type
    ]
    own = [place.debug_type for place in sources if place.debug_type]
    return Debug(tuple(dict.fromkeys([*own, *mlir, *only])), tuple(notes))


def _no_debug_output(tool: Replayer) -> FactError:
    """Return the error for missing debug output: Triton, or only its LLVM, was built without assertions."""
    setup, build = command_line.command("setup-mlir"), command_line.command("build-triton")
    # Triton may have assertions where its LLVM has none, as with the LLVM that upstream's setup.py downloads.
    cache = build_folder.read_cmake_cache(tool.build) if tool.build else None
    llvm = cache.get("LLVM_DIR").partition("/lib/cmake")[0] if cache else ""
    if cache and llvm and cache.get("CMAKE_BUILD_TYPE") in _WITH_ASSERTIONS:
        return FactError(
            "this Triton has debug output, and no option that shows it",
            where=tool.opt,
            why=f"-debug-only is an option of LLVM, and {llvm} was built without assertions",
            hints=[
                f"a debugger shows all of it: --gdb instead of --debug; where it stops, {_SHOW}, continue",
                f"or take an LLVM with assertions: {setup}, then {build}",
            ],
        )
    return FactError(
        "this Triton has no debug output: it was built without assertions",
        where=tool.opt or tool.python,
        why="LLVM_DEBUG is compiled out with NDEBUG",
        hints=[f"build one with assertions: {build} (its default build type keeps them)"],
    )


def _check(tool: Replayer, only: Sequence[str], known: Iterable[str]) -> None:
    """Check that the program has each of these types.

    Raises:
        FactError: a type is missing.
    """
    # LLVM prints nothing at all for an unknown type, without a message.
    program = tool.opt or (library(tool.python) if tool.python else None)
    for name in only:
        if program and not libtriton.has_text(program, name):
            every = {*known, *(pass_chain.debug_types(tool.source) if tool.source else ())}
            raise FactError(
                f"this Triton has no debug type {name!r}", where=program, hints=did_you_mean(name, every)
            )


def source_of(link: PassLink, tool: Replayer) -> PassSource:
    """Find the source of a pass.

    Raises:
        FactError: the checkout is unknown, or does not contain the pass.
    """
    argument = link.dump.argument
    if tool.source is None:
        hints = ["give the checkout that Triton was built from: --source PATH"]
        raise FactError(f"the sources of {argument} are required", hints=hints)
    place = pass_chain.find(argument, tool.source)
    if place is None:
        raise FactError(
            f"{argument} is not in this checkout",
            where=tool.source,
            why="no *.td file defines it, or no file implements it: MLIR's own passes are in LLVM's sources",
            hints=["for a pass of MLIR, such as canonicalize: --source with LLVM's sources"],
        )
    return place


def pattern_breakpoint(name: str, opt: Path) -> str:
    """Return the function of a rewrite pattern, for a breakpoint.

    Raises:
        FactError: the program has no such pattern.
    """
    names = set(libtriton.classes_with(opt, "matchAndRewrite"))
    if name not in names:
        # Not all names: they are about a thousand, most of them LLVM's.
        near = get_close_matches(name, names, n=5)
        hints = [f"did you mean {' or '.join(map(repr, near))}?"] if near else []
        hints.append("give the class that has matchAndRewrite, without its namespace")
        raise FactError(f"no rewrite pattern {name!r}", where=opt, hints=hints)
    return f"{name}::matchAndRewrite"


def debugger_path(name: str) -> str:
    """Return the path of a debugger.

    Raises:
        FactError: it is not installed.
    """
    # Distributions have `lldb-18` without an `lldb`.
    path = next(filter(None, map(process.which, (name, *tools.versioned(name)))), None)
    if path is None:
        hints = [f"install {name}", "or run the output of --dry-run elsewhere"]
        raise FactError(f"{name} is not installed", hints=hints)
    return path


def debugger_command(name: str, tool: Replayer, argv: Sequence[str], place: str) -> tuple[str, ...]:
    """Return the command that starts a debugger with a breakpoint at a pass.

    Args:
        name: `gdb` or `lldb`.
        tool: the replayer whose program is debugged.
        argv: the command of `triton-opt`.
        place: the breakpoint: FILE:LINE, or a function.
    """
    init: Path | None = tool.debugger_file(name)
    if name == "gdb":
        first = ("-ix", str(init)) if init else ()
        # Pending, because the library that has the pass may be loaded only when the program runs.
        stops = ("-ex", "set breakpoint pending on", "-ex", f"break {place}", "-ex", "run")
        return (name, *first, *stops, "--args", *argv)
    # -S runs before lldb loads the program, -s after it; printers and source maps are needed while it loads.
    first = ("-S", str(init)) if init else ()
    file, _, line = place.rpartition(":")
    where = f"-f {Path(file).name} -l {line}" if file else f"-n {place}"
    return (name, *first, "-o", f"breakpoint set {where}", "-o", "run", "--", *argv)
