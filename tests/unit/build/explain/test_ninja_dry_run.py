from __future__ import annotations

from pathlib import Path

import pytest

from tritonsmith.build import explain
from tritonsmith.build.explain import Reason
from tritonsmith.core.errors import FactError

# Ninja 1.13.2 in the build folder of Triton 46550ab1, after a source and the top CMakeLists.txt were changed.
OBJECT = "lib/Dialect/TritonGPU/Transforms/CMakeFiles/TritonGPUTransforms.dir/ReduceDataDuplication.cpp.o"
SOURCE = "/src/triton/lib/Dialect/TritonGPU/Transforms/ReduceDataDuplication.cpp"
OUT = f"""\
ninja: Entering directory `/work space/triton'
[0/9] Re-running CMake...
[1/9] Building CXX object {OBJECT}
[3/9] Linking CXX executable bin/triton-llvm-opt
[6/9] Linking CXX shared library /src/triton/python/triton/_C/libtriton.so
"""
ERR = f"""\
ninja explain: output build.ninja older than most recent input /src/triton/CMakeLists.txt (17 vs 18)
ninja explain: output {OBJECT} older than most recent input {SOURCE} (1795276621 vs 1795277353)
ninja explain: {OBJECT} is dirty
ninja explain: {OBJECT} is dirty
ninja explain: test/lib/Analysis/libTritonTestAnalysis.a is dirty
"""


def test_what_follows_from_another_is_no_reason_and_cmake_is_apart() -> None:
    run = explain.parse_dry_run(OUT, ERR)
    assert run.reasons == (Reason("newer", OBJECT, SOURCE),)
    assert run.regeneration == (Reason("newer", "build.ninja", "/src/triton/CMakeLists.txt"),)
    assert run.steps == (
        f"Building CXX object {OBJECT}",
        "Linking CXX executable bin/triton-llvm-opt",
        "Linking CXX shared library /src/triton/python/triton/_C/libtriton.so",
    )


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("output bin/triton-opt doesn't exist", Reason("missing", "bin/triton-opt")),
        ("output x of phony edge with no inputs doesn't exist", Reason("missing", "x")),
        ("command line changed for a b.o", Reason("command", "a b.o")),
        ("command line not found in log for a.o", Reason("unrecorded", "a.o")),
        ("deps for 'a.o' are missing", Reason("headers", "a.o")),
        ("stored deps info out of date for 'a.o' (1 vs 2)", Reason("headers", "a.o")),
        ("depfile 'a.o.d' is missing", Reason("headers", "a.o.d")),
        (
            "recorded mtime of Ops.h.inc older than most recent input Ops.td (1 vs 2)",
            Reason("newer", "Ops.h.inc", "Ops.td"),
        ),
        ("restat of output a older than most recent input b (1 vs 2)", Reason("newer", "a", "b")),
        ("something that a later Ninja says", Reason("other", "something that a later Ninja says")),
    ],
)
def test_each_reason(line: str, reason: Reason) -> None:
    assert explain.parse_dry_run("", f"ninja explain: {line}\n").reasons == (reason,)


def test_nothing_to_do() -> None:
    run = explain.parse_dry_run("ninja: Entering directory `x'\nninja: no work to do.\n", "")
    assert (run.reasons, run.steps, run.regeneration) == ((), (), ())


def test_a_folder_that_is_not_configured(tmp_path: Path) -> None:
    with pytest.raises(FactError, match="not configured"):
        explain.dry_run(Path("ninja"), tmp_path)
