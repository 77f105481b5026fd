"""What `debug-library` says last: where to stop in the file that was asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tritonsmith.builder.debug_library.cmake_lists import Library
from tritonsmith.builder.debug_library.command import DebugLibraryOutcome
from tritonsmith.builder.debug_library.plan import Operation
from tritonsmith.builder.prepared_build import PreparedBuild
from tritonsmith.plan import Plan
from tritonsmith.tasks.debug_library import next_words

LLVM = Path("/llvm")


def operation(name: str, *sources: str) -> Operation:
    library = Library(name, LLVM / name, tuple(LLVM / name / one for one in sources), (), (), False, ())
    return Operation(library, Path(f"/lib{name}.a"), (), (), (), ())


@pytest.mark.parametrize(
    ("files", "fresh", "stops_in"),
    [
        (
            (LLVM / "MLIRTransforms" / "CSE.cpp",),
            ("MLIRTransforms",),
            "CSE.cpp",
        ),  # --pass cse, --file CSE.cpp
        ((), ("MLIRTransforms",), "Canonicalizer.cpp"),  # a library by its name
        ((), (), "Affine.cpp"),  # build-triton with those of the env file
    ],
)
def test_the_breakpoint_lies_in_what_was_asked_for(
    files: tuple[Path, ...], fresh: tuple[str, ...], stops_in: str
) -> None:
    earlier = operation("MLIRAffine", "Affine.cpp")
    asked = operation("MLIRTransforms", "Canonicalizer.cpp", "CSE.cpp")
    prepared = PreparedBuild(Plan("p"), (), {})
    outcome = DebugLibraryOutcome(prepared, (earlier, asked), fresh, (), {}, Path("/triton"), files)
    assert next_words(outcome).endswith(f"(gdb) break {stops_in}:LINE")
