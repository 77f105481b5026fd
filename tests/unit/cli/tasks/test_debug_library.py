"""What `debug-library` says last: where to stop in the file that was asked for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.build import made
from tests.unit.cli.tasks.conftest import Smith
from tritonsmith.build.debug_library.command import PreparedDebugLibrary
from tritonsmith.build.debug_library.recipe import Operation
from tritonsmith.build.debug_library.relink import Replacement
from tritonsmith.build.debug_library.resolve import Library, LibrarySource
from tritonsmith.build.preflight import PreparedBuild
from tritonsmith.cli.tasks.build import next_words
from tritonsmith.core.envs.workspace import EnvDir
from tritonsmith.core.plan import Plan

LLVM = Path("/llvm")


def operation(name: str, *sources: str) -> Operation:
    library = Library(name, LLVM / name, tuple(LLVM / name / one for one in sources), (), (), False, ())
    return Operation(library, Replacement(Path(f"/lib{name}.a")), (), (), (), ())


@pytest.mark.parametrize(
    ("places", "fresh", "stops_in"),
    [
        (
            (LibrarySource(LLVM / "MLIRTransforms" / "CSE.cpp", "def CSE in Passes.td", "runOnOperation"),),
            ("MLIRTransforms",),
            "CSE.cpp:runOnOperation",
        ),  # --pass cse
        (
            (LibrarySource(LLVM / "MLIRTransforms" / "CSE.cpp", "named"),),
            ("MLIRTransforms",),
            "CSE.cpp:LINE",
        ),  # --file CSE.cpp
        ((), ("MLIRTransforms",), "Canonicalizer.cpp:LINE"),  # a library by its name
        ((), (), "Affine.cpp:LINE"),  # build-triton with those of the env file
    ],
)
def test_the_breakpoint_lies_in_what_was_asked_for(
    places: tuple[LibrarySource, ...], fresh: tuple[str, ...], stops_in: str
) -> None:
    said = next_words(outcome(places, fresh))
    assert f"-ex 'break {stops_in}' --args {made.inputs().env.build}/bin/triton-opt FILE.mlir" in said


def test_a_pass_of_llvm_is_reached_through_python() -> None:
    licm = LibrarySource(LLVM / "LICM.cpp", "LICMPass in PassRegistry.def", "LICMPass::run")
    said = next_words(outcome((licm,), ("LLVMScalarOpts",)))
    assert f"-ex 'break LICM.cpp:LICMPass::run' --args {made.inputs().env.python} KERNEL.py" in said


def test_gdb_is_told_where_the_build_has_its_debug_information(tmp_path: Path) -> None:
    found = outcome((), ("MLIRTransforms",))
    found = replace(found, inputs=replace(found.inputs, env=EnvDir(tmp_path / "my env", tmp_path)))
    assert next_words(found).startswith("gdb -ex 'set")
    build = tmp_path / "my env" / "triton"
    build.mkdir(parents=True)
    (build / "gdbinit").touch()
    said = next_words(found)
    assert said.startswith(f"gdb -ix '{build}/gdbinit' -ex 'set breakpoint pending on'")
    assert f"--args '{build}/bin/triton-opt' FILE.mlir" in said


def outcome(places: tuple[LibrarySource, ...], fresh: tuple[str, ...]) -> PreparedDebugLibrary:
    earlier = operation("MLIRAffine", "Affine.cpp")
    asked = operation("MLIRTransforms", "Canonicalizer.cpp", "CSE.cpp")
    prepared = PreparedBuild(Plan("p"), (), {})
    replaced = {one.library.name: one.replacement for one in (earlier, asked)}
    return PreparedDebugLibrary(prepared, (earlier, asked), fresh, (), replaced, made.inputs(), places)


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        ("--list --pass cse", "--list lists all"),
        ("--list MLIRIR", "--list lists all"),
        ("--list --undo", "--list lists all"),
        ("MLIRIR --whole-library", "--whole-library requires"),
    ],
)
def test_flags_that_would_have_no_effect_are_refused(argv: str, says: str, smith: Smith) -> None:
    done = smith("debug-library", *argv.split())
    assert done.code == 2
    assert says in done.err
