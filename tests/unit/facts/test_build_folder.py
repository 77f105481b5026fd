from __future__ import annotations

from pathlib import Path

import pytest

from tritonsmith.facts import build_folder

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
    words = build_folder.commands(folder, {name, "no-such"})
    assert list(words) == [name]
    assert words[name][:2] == ["/usr/bin/ccache", "/usr/bin/clang++"]
    assert '-DNAME="a' in words[name]
    assert {"-g", "-std=gnu++17", "-isystem"} <= set(words[name])
    assert not any("main.cc" in word and not word.endswith(".d") for word in words[name])


def test_a_link_with_a_response_file(folder: Path) -> None:
    words = build_folder.commands(folder, {"bin/triton-opt"})["bin/triton-opt"]
    assert "-fuse-ld=lld" in words
    assert words[-2:] == ["-Wl,-rpath,$ORIGIN", "libx.a"]


def test_a_custom_command_by_any_of_its_outputs_and_by_its_description(folder: Path) -> None:
    words = build_folder.commands(folder, {"include/Ops.h.inc.d"})
    assert words == {"include/Ops.h.inc.d": ["cd", "/b", "&&", "mlir-tblgen", "-gen-op-decls", "Ops.td"]}
    assert build_folder.outputs_by_description(folder) == {"Building Ops.h.inc...": "include/Ops.h.inc"}


def test_no_graph(tmp_path: Path) -> None:
    assert build_folder.commands(tmp_path, {"a"}) == {}
    assert build_folder.outputs_by_description(tmp_path) == {}


def test_durations(tmp_path: Path) -> None:
    assert build_folder.durations(tmp_path) == {}
    log = "# ninja log v7\n9\t28\t1795264213490809901\tDialect.h.inc\t4c2b\n28\t2028\t17\ta.o\td2\nhalf a li"
    (tmp_path / ".ninja_log").write_text(log)
    assert build_folder.durations(tmp_path) == {"Dialect.h.inc": 0.019, "a.o": 2.0}
