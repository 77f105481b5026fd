from __future__ import annotations

from pathlib import Path

import pytest

from tritonsmith.core.errors import FactError
from tritonsmith.facts import ninja_graph
from tritonsmith.facts.ninja_graph import Reason

# As CMake 3.31 writes them.
RULES = """\
rule CXX_COMPILER__triton_unscanned_Debug
  depfile = $DEP_FILE
  deps = gcc
  command = ${LAUNCHER}${CODE_CHECK}/usr/bin/clang++ $DEFINES $INCLUDES $FLAGS -MD -MF $DEP_FILE -c $in
  description = Building CXX object $out


rule CXX_EXECUTABLE_LINKER__triton-opt_Debug
  command = $PRE_LINK && /usr/bin/clang++ $FLAGS $LINK_FLAGS @$RSP_FILE -o $TARGET_FILE && $POST_BUILD
  rspfile = $RSP_FILE
  rspfile_content = $in $LINK_PATH $LINK_LIBRARIES

rule CUSTOM_COMMAND
  command = $COMMAND
  description = $DESC
"""
GRAPH = """\
include CMakeFiles/rules.ninja

build CMakeFiles/triton.dir/main.cc.o: CXX_COMPILER__triton_unscanned_Debug /my$ src/main.cc || order
  DEFINES = -DNAME=\\"a$ b\\"
  DEP_FILE = CMakeFiles/triton.dir/main.cc.o.d
  FLAGS = -g -std=gnu++17
  INCLUDES = -I/my$ src/include -isystem /usr/include
  LAUNCHER = /usr/bin/ccache$ $

build bin/triton-opt: CXX_EXECUTABLE_LINKER__triton-opt_Debug a.o b.o | libx.a
  FLAGS = -g
  LINK_FLAGS = -fuse-ld=lld
  LINK_LIBRARIES = -Wl,-rpath,$$ORIGIN  libx.a
  RSP_FILE = CMakeFiles/triton-opt.rsp
  TARGET_FILE = bin/triton-opt

build include/Ops.h.inc include/Ops.h.inc.d | ${cmake_ninja_workdir}include/Ops.h.inc: CUSTOM_COMMAND Ops.td $
    more.td
  COMMAND = cd /b && mlir-tblgen -gen-op-decls Ops.td
  DESC = Building Ops.h.inc...
  restat = 1

build c$:/odd: phony
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "CMakeFiles").mkdir()
    (tmp_path / "CMakeFiles" / "rules.ninja").write_text(RULES)
    (tmp_path / "build.ninja").write_text(GRAPH)
    return tmp_path


def test_a_compile(folder: Path) -> None:
    name = "CMakeFiles/triton.dir/main.cc.o"
    words = ninja_graph.commands(folder, {name, "no-such"})
    assert list(words) == [name]
    assert words[name][:2] == ["/usr/bin/ccache", "/usr/bin/clang++"]
    assert '-DNAME="a' in words[name]
    assert {"-g", "-std=gnu++17", "-isystem"} <= set(words[name])
    assert not any("main.cc" in word and not word.endswith(".d") for word in words[name])


def test_a_link_with_a_response_file(folder: Path) -> None:
    words = ninja_graph.commands(folder, {"bin/triton-opt"})["bin/triton-opt"]
    assert "-fuse-ld=lld" in words
    assert words[-2:] == ["-Wl,-rpath,$ORIGIN", "libx.a"]


def test_a_custom_command_by_any_of_its_outputs_and_by_its_description(folder: Path) -> None:
    words = ninja_graph.commands(folder, {"include/Ops.h.inc.d"})
    assert words == {"include/Ops.h.inc.d": ["cd", "/b", "&&", "mlir-tblgen", "-gen-op-decls", "Ops.td"]}
    assert ninja_graph.outputs_by_description(folder) == {"Building Ops.h.inc...": "include/Ops.h.inc"}


def test_no_graph(tmp_path: Path) -> None:
    assert ninja_graph.commands(tmp_path, {"a"}) == {}
    assert ninja_graph.outputs_by_description(tmp_path) == {}


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
    run = ninja_graph.parse_dry_run(OUT, ERR)
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
    assert ninja_graph.parse_dry_run("", f"ninja explain: {line}\n").reasons == (reason,)


def test_nothing_to_do() -> None:
    run = ninja_graph.parse_dry_run("ninja: Entering directory `x'\nninja: no work to do.\n", "")
    assert (run.reasons, run.steps, run.regeneration) == ((), (), ())


def test_a_folder_that_is_not_configured(tmp_path: Path) -> None:
    with pytest.raises(FactError, match="not configured"):
        ninja_graph.dry_run(Path("ninja"), tmp_path)


def test_durations(tmp_path: Path) -> None:
    assert ninja_graph.durations(tmp_path) == {}
    log = "# ninja log v7\n9\t28\t1795264213490809901\tDialect.h.inc\t4c2b\n28\t2028\t17\ta.o\td2\nhalf a li"
    (tmp_path / ".ninja_log").write_text(log)
    assert ninja_graph.durations(tmp_path) == {"Dialect.h.inc": 0.019, "a.o": 2.0}
