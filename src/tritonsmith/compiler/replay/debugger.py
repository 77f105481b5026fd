"""Request debug output of a pass, and start a debugger in it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from tritonsmith.compiler.replay import pass_chain
from tritonsmith.compiler.replay.pass_chain import PassLink, PassSource
from tritonsmith.compiler.replay.replayer import Replayer, library
from tritonsmith.core import command_line, configs
from tritonsmith.core.errors import FactError, UsageError, did_you_mean
from tritonsmith.facts import build_folder, libtriton

_WITH_ASSERTIONS = ("Debug", "TritonRelBuildWithAsserts")  # build types that do not define NDEBUG
_SHOW = "set var *(bool*)&'llvm::DebugFlag' = 1"  # LLVM has this variable in every build


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


def of(
    links: Sequence[PassLink],
    tool: Replayer,
    mlir: Sequence[str] = (),
    *,
    wanted: bool = False,
    only: Sequence[str] = (),
    everything: bool = False,
) -> Debug:
    """Return the debug output to request.

    Args:
        links: passes.
        tool: the program that runs them.
        mlir: types of MLIR's infrastructure.
        wanted: add the types of the passes' files.
        only: any other types, of Triton, MLIR or LLVM.
        everything: all types.

    Raises:
        UsageError: MLIR has no such type.
        FactError: no sources, no assertions, or no such type in this Triton.
    """
    if not wanted and not mlir and not only and not everything:
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
    sources = tuple(dict.fromkeys(source(link, tool) for link in links)) if wanted else ()
    notes = [f"{place.argument}: {place.file} (by {place.found_by})" for place in sources]
    notes += [
        f"{place.argument}: its file does not define DEBUG_TYPE" for place in sources if not place.debug_type
    ]
    own = [place.debug_type for place in sources if place.debug_type]
    return Debug(tuple(dict.fromkeys([*own, *mlir, *only])), tuple(notes))


def _no_debug_output(tool: Replayer) -> FactError:
    """Return the error for missing debug output: Triton, or only its LLVM, was built without assertions."""
    setup, build = command_line.command("setup-mlir"), command_line.command("build-triton")
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


def source(link: PassLink, tool: Replayer) -> PassSource:
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


def pattern(name: str, opt: Path) -> str:
    """Return the function of a rewrite pattern, for a breakpoint.

    Raises:
        FactError: the program has no such pattern.
    """
    names = set(libtriton.classes_with(opt, "matchAndRewrite"))
    if name not in names:
        near = get_close_matches(name, names, n=5)  # all names would be about a thousand, most of them LLVM's
        hints = [f"did you mean {' or '.join(map(repr, near))}?"] if near else []
        hints.append("give the class that has matchAndRewrite, without its namespace")
        raise FactError(f"no rewrite pattern {name!r}", where=opt, hints=hints)
    return f"{name}::matchAndRewrite"


def command(name: str, tool: Replayer, argv: Sequence[str], place: str) -> tuple[str, ...]:
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
        stops = ("-ex", "set breakpoint pending on", "-ex", f"break {place}", "-ex", "run")
        return (name, *first, *stops, "--args", *argv)
    first = ("-S", str(init)) if init else ()  # -s comes after the program and its symbols
    file, _, line = place.rpartition(":")
    where = f"-f {Path(file).name} -l {line}" if file else f"-n {place}"
    return (name, *first, "-o", f"breakpoint set {where}", "-o", "run", "--", *argv)
