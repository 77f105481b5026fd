"""`debug-library`: two small libraries under a real LLVM, and MLIR's own where its sources are at hand."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.integration.harness import LLVM, capture
from tests.integration.mini_site import ANSWER, Site
from tests.support import require

LLVM_SOURCE = "TRITONSMITH_LLVM_SOURCE"
_PATIENCE = 600.0  # seconds for one file of MLIR; an idle machine takes ten


def test_the_program_works_before_anything_is_done(site: Site) -> None:
    assert capture(site.answer) == ANSWER
    assert site.shared_llvm()
    assert not site.has_lines("Twice.cpp")


def test_without_a_name_it_says_what_can_be_named(site: Site) -> None:
    assert "no library is named" in site.run(code=2)


def test_it_asks_for_the_sources_where_nobody_knows_them(site: Site) -> None:
    said = site.run("MLIRMini", code=1)
    assert "cannot locate the sources of LLVM 19.1.7" in said
    assert "--llvm-source" in said


@pytest.mark.slow
def test_a_library_of_mlir_comes_in_debug_and_goes_again(site: Site) -> None:
    before = site.answer.read_bytes()
    plan = site.run("MLIRMini", "--llvm-source", site.sources, "--dry-run")
    assert "-gen-enum-decls" in plan
    assert not site.folder.exists()

    said = site.run("MLIRMini", "--llvm-source", site.sources)
    assert "MLIRMini: 2 files, 2 generated headers" in said
    assert "links MLIRMini at -O0 -g" in said
    assert capture(site.answer) == ANSWER
    assert site.has_lines("Twice.cpp")
    assert site.has_lines("Quotient.cpp")
    assert site.shared_llvm(), "only a library of LLVM itself needs LLVM's static libraries"
    log = site.smith.log("debug-library")
    assert "Linking CXX executable" in log
    assert "Building CXX object" not in log
    assert "--fresh" not in log
    receipt = site.smith.receipt("debug-library")
    assert list(receipt["libraries"]) == ["MLIRMini"]
    assert receipt["sources"] == str(site.sources)

    site.run("MLIRMini")
    assert site.smith.log("debug-library").count("ninja: no work to do.") == 2

    site.smith("build-triton")
    assert site.has_lines("Twice.cpp"), "build-triton keeps what is in debug"

    site.run("--undo")
    assert site.answer.read_bytes() == before
    assert not (site.folder / "MLIRMini").exists()
    assert "Building CXX object" not in site.smith.log("debug-library")


def test_a_pass_alone_brings_its_file_and_one_program(site: Site) -> None:
    answer = ("--target", "mini-answer")
    said = site.run("--pass", "mini-twice", "--llvm-source", site.sources)
    assert "MLIRMini: only Twice.cpp, 2 generated headers" in said
    assert "triton-opt does not link MLIRMini" in said
    assert site.smith.log("debug-library").count("] compile ") == 1

    said = site.run("--file", "Twice.cpp", *answer)
    assert f"mini-answer in {site.smith.build()} links Twice.cpp of MLIRMini at -O0 -g" in said
    assert site.smith.log("debug-library").count("Linking CXX executable") == 1
    assert capture(site.answer) == ANSWER
    assert site.has_lines("Twice.cpp")
    assert not site.has_lines("Quotient.cpp")
    members = capture(LLVM / "bin" / "llvm-ar", "t", site.folder / "MLIRMini" / "libMLIRMini.a")
    assert members.split() == ["Twice.cpp.o", "Quotient.cpp.o"]

    assert "MLIRMini: only Quotient.cpp, Twice.cpp" in site.run("--file", "Quotient.cpp", *answer)
    assert site.has_lines("Quotient.cpp")
    assert "links Quotient.cpp of MLIRMini at -O0 -g" in site.run("--undo", "--pass", "mini-twice")
    assert site.has_lines("Quotient.cpp")
    assert not site.has_lines("Twice.cpp")
    assert capture(site.answer) == ANSWER
    assert "Twice.cpp is not in debug by itself" in site.run("--undo", "--file", "Twice.cpp", code=2)
    assert "LLVM's own libraries" in site.run("--undo", "--file", "Quotient.cpp")
    assert not (site.folder / "MLIRMini").exists()
    site.run("--file", "Quotient.cpp", *answer)
    assert not site.has_lines("Twice.cpp")
    assert "MLIRMini: 2 files" in site.run("--file", "Quotient.cpp", "--whole-library")
    assert site.has_lines("Twice.cpp")
    assert "MLIRMini: 2 files" in site.run("--file", "Quotient.cpp"), "the library is in debug already"
    site.run("--undo")


def test_an_env_file_names_libraries_for_every_build(site: Site, tmp_path: Path) -> None:
    env = tmp_path / "dev.toml"
    env.write_text(f'[llvm]\nsource = "{site.sources}"\ndebug-libraries = ["MLIRMini"]\n', encoding="utf-8")
    unmet = "the env file lists MLIRMini in debug-libraries"
    assert unmet in site.smith("install-triton", "--env", env, "--dry-run").err
    site.smith("build-triton", "--env", env)
    assert site.has_lines("Twice.cpp")
    assert unmet not in site.smith("install-triton", "--env", env, "--dry-run").err
    assert capture(site.answer) == ANSWER
    site.smith("build-triton", "--env", env)
    assert " -G Ninja -S " not in site.smith.log("build-triton")
    site.smith("build-triton", "--env", env, "--reconfigure")
    assert " -G Ninja -S " in site.smith.log("build-triton")
    site.run("--undo")
    assert not site.has_lines("Twice.cpp")


@pytest.mark.slow
def test_only_what_changed_is_compiled_again(site: Site) -> None:
    site.run("MLIRMini", "--llvm-source", site.sources)
    source = site.sources / "mlir" / "lib" / "Mini" / "Twice.cpp"
    text = source.read_text(encoding="utf-8")
    source.write_text(text.replace("number * 2", "number * 2 + 0"), encoding="utf-8")
    try:
        site.run("MLIRMini")
        assert "[1/2] compile" in site.smith.log("debug-library")
    finally:
        source.write_text(text, encoding="utf-8")
        site.run("--undo")


@pytest.mark.slow
def test_a_changed_header_of_the_library_s_own_is_told_where_other_files_include_it(site: Site) -> None:
    source = site.sources / "mlir" / "lib" / "Mini" / "Twice.cpp"
    header, text = source.with_name("Own.h"), source.read_text(encoding="utf-8")
    try:
        header.write_text("#define OWN 0\n", encoding="utf-8")
        source.write_text(f'{text}\n#include "Own.h"\n', encoding="utf-8")
        assert "Own.h changed" not in site.run("--file", "Twice.cpp", "--llvm-source", site.sources)
        header.write_text("#define OWN 1\n", encoding="utf-8")
        said = " ".join(site.run("--file", "Twice.cpp").split())
        assert "Own.h changed since the last run, and only Twice.cpp of MLIRMini is compiled" in said
    finally:
        header.unlink()
        source.write_text(text, encoding="utf-8")
        site.run("--undo")


@pytest.mark.slow
def test_many_files_share_a_precompiled_header_and_the_cache_knows_them_all(site: Site) -> None:
    said = site.run("MLIRMiniMany", "--llvm-source", site.sources)
    assert "Triton does not link MLIRMiniMany" in said
    made = site.folder / "MLIRMiniMany"
    archive = (made / "libMLIRMiniMany.a").read_bytes()
    assert b"c++-header" in (made / "build.ninja").read_bytes()
    before = site.smith.ccache()
    site.run("--undo")
    assert not made.exists()
    site.run("MLIRMiniMany", "--llvm-source", site.sources)
    after = site.smith.ccache()
    assert after["cache_miss"] == before["cache_miss"]
    hits = [after[name] - before[name] for name in ("direct_cache_hit", "preprocessed_cache_hit")]
    assert sum(hits) == 1 + 6, "the header, and each file"
    assert (made / "libMLIRMiniMany.a").read_bytes() == archive
    site.run("--undo")


def test_without_precompiled_headers_if_the_env_file_says_so(site: Site, tmp_path: Path) -> None:
    env = tmp_path / "dev.toml"
    env.write_text('[llvm]\nprecompiled-headers = "off"\n', encoding="utf-8")
    plan = site.run("MLIRMiniMany", "--llvm-source", site.sources, "--env", env, "--dry-run")
    assert "North.cpp" in plan
    assert "precompiled" not in plan


def test_a_library_of_llvm_itself_leaves_one_llvm_in_the_process(site: Site) -> None:
    said = site.run("LLVMMini", "--llvm-source", site.sources)
    try:
        assert "all of LLVM is linked statically" in said
        assert capture(site.answer) == ANSWER, "an LLVM that is there twice ends the program"
        assert not site.shared_llvm()
        assert site.has_lines("Metals.cpp")
        assert "Building CXX object" not in site.smith.log("debug-library")
        triton_opt = site.smith.build() / "bin" / "triton-opt"
        assert "%1 = tt.twice %0" in capture(triton_opt, site.smith.cwd / "test" / "twice.mlir")
    finally:
        site.run("LLVMMini", "--undo")
    assert site.shared_llvm()
    assert capture(site.answer) == ANSWER


def test_a_pass_or_a_file_names_its_library(site: Site) -> None:
    source = ("--llvm-source", site.sources, "--dry-run")
    assert "mini-twice: mlir/lib/Mini/Twice.cpp (def MiniTwice in Passes.td) is in MLIRMini" in site.run(
        "--pass", "mini-twice", *source
    )
    assert "is in LLVMMini" in site.run("--file", "Metals.cpp", *source)
    assert "did you mean 'mini-twice'?" in site.run("--pass", "mini-twic", *source, code=2)
    assert "did you mean 'Metals.cpp'?" in site.run("--file", "Metal.cpp", *source, code=2)
    assert "did you mean 'MLIRMini'" in site.run("MLIRMimi", *source, code=2)


def test_it_lists_what_can_be_named(site: Site) -> None:
    said = site.run("--list", "--llvm-source", site.sources, "--json")
    assert '"name": "MLIRMini"' in said
    assert "MLIRMiniBits" not in said, "the LLVM has no archive of it"


def test_a_library_that_the_llvm_does_not_have_is_refused(site: Site) -> None:
    said = site.run("MLIRMiniBits", "--llvm-source", site.sources, code=1)
    assert "this LLVM has no archive of MLIRMiniBits" in said


def test_sources_of_another_release_are_refused(site: Site, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(site.sources, other)
    version = other / "cmake" / "Modules" / "LLVMVersion.cmake"
    version.write_text(version.read_text(encoding="utf-8").replace("PATCH 7", "PATCH 6"), encoding="utf-8")
    said = site.run("MLIRMini", "--llvm-source", other, code=1)
    assert "release: the LLVM has 19.1.7, here 19.1.6" in said
    assert not (site.folder / "MLIRMini").exists()


def test_files_that_the_llvm_was_not_built_from_are_refused(site: Site, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(site.sources, other)
    lists = other / "mlir" / "lib" / "Mini" / "CMakeLists.txt"
    text = lists.read_text(encoding="utf-8")
    lists.write_text(text.replace("Twice.cpp", "Twice.cpp New.cpp"), encoding="utf-8")
    (lists.parent / "New.cpp").write_text("int mine() { return 1; }\n", encoding="utf-8")
    said = site.run("MLIRMini", "--llvm-source", other, code=1)
    assert "objects: the LLVM has 2 in its archive, here 1 not among them: New.cpp.o" in said


@pytest.mark.slow
def test_objects_that_lack_a_symbol_are_not_linked(site: Site, tmp_path: Path) -> None:
    site.run("MLIRMini", "--llvm-source", site.sources)
    before = site.answer.read_bytes()
    other = tmp_path / "other"
    shutil.copytree(site.sources, other)
    source = other / "mlir" / "lib" / "Mini" / "Twice.cpp"
    text = source.read_text(encoding="utf-8")
    renamed = text.replace(
        "mlir::mini::twice(int number) {", "thrice(int number) {\n  using namespace mlir::mini;"
    )
    assert renamed != text
    source.write_text(renamed, encoding="utf-8")
    said = site.run("MLIRMini", "--llvm-source", other, code=1)
    assert "the new objects cannot replace the LLVM's own" in said
    assert "1 missing: _ZN4mlir4mini5twice" in said
    site.smith("build-triton")
    assert site.answer.read_bytes() == before, "what was refused is in no archive that anybody links"
    site.run("--undo")


def test_undo_of_what_is_not_in_debug_is_refused(site: Site) -> None:
    assert "MLIRMini is not a debug library" in site.run("MLIRMini", "--undo", code=2)


@pytest.mark.parametrize("debugger", ["gdb", "lldb-19"])
def test_a_debugger_stops_in_the_library_with_its_locals(site: Site, debugger: str) -> None:
    require(debugger)
    site.run("MLIRMini", "--llvm-source", site.sources)
    try:
        lines = (site.sources / "mlir" / "lib" / "Mini" / "Twice.cpp").read_text("utf-8").splitlines()
        line = next(number for number, text in enumerate(lines, 1) if "symbolizeColor(" in text)
        said = _debug(debugger, f"Twice.cpp:{line}", "doubled", site.answer)
        assert "int doubled = number * 2;" in said, "the source is found"
        assert "mlir::mini::twice" in said
        assert "number=1" in said
        assert "= 2" in said, "the local, printed"
    finally:
        site.run("--undo")


@pytest.mark.parametrize("debugger", ["gdb", "lldb-19"])
def test_a_debugger_sees_inline_functions_of_the_only_file_in_debug(site: Site, debugger: str) -> None:
    require(debugger)
    site.run("--file", "Twice.cpp", "--llvm-source", site.sources, "--target", "mini-answer")
    try:
        header = (site.sources / "llvm" / "include" / "llvm" / "Mini" / "Metals.h").read_text("utf-8")
        line = next(number for number, text in enumerate(header.splitlines(), 1) if "return higher" in text)
        said = _debug(debugger, f"Metals.h:{line}", "higher", site.answer)
        assert "= 3" in said, "LLVMMini has an optimised copy of this function"
    finally:
        site.run("--undo")


def test_the_printed_gdb_command_stops_shows_locals_and_steps_into_llvm(site: Site, tmp_path: Path) -> None:
    """From another folder, where gdb alone finds no split debug information of the build."""
    require("gdb")
    said = site.run("MLIRMini,LLVMMini", "--llvm-source", site.sources)
    try:
        printed = shlex.split(next(line for line in said.splitlines() if line.startswith("next: gdb ")))[1:]
        assert printed[1:3] == ["-ix", str(site.smith.build() / "gdbinit")]
        assert printed[printed.index("--args") + 1] == str(site.smith.build() / "bin" / "triton-opt")
        lines = (site.sources / "mlir" / "lib" / "Mini" / "Twice.cpp").read_text("utf-8").splitlines()
        line = next(number for number, text in enumerate(lines, 1) if "llvm::mini::raised(" in text)
        here = next(number for number, word in enumerate(printed) if word.startswith("break "))
        assert printed[here].endswith(":LINE")
        printed[here] = f"break Twice.cpp:{line}"
        looks = ("run", "backtrace", "info locals", "step", "backtrace 1", "info args")
        more = [word for look in looks for word in ("-ex", look)]
        start = printed.index("--args")
        argv = (printed[0], "-q", "-nx", "-batch", *printed[1:start], *more, "--args", str(site.answer))
        done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
        seen = done.stdout + done.stderr
        assert "Dwarf Error" not in seen
        assert re.search(
            rf"Breakpoint 1, mlir::mini::twice.* \(number=1\) at {re.escape(str(site.sources))}", seen
        )
        assert re.search(r"#1 .* in main \(", seen), seen
        assert "doubled = 2" in seen
        assert re.search(r"#0 +llvm::mini::raised \(", seen), seen
        assert "Metals.h" in seen
    finally:
        site.run("--undo")


def _debug(debugger: str, place: str, variable: str, *program: str | Path) -> str:
    """Stop at a line, look around, print a variable."""
    if debugger == "gdb":
        commands = [
            *(
                "set debuginfod enabled off",
                f"break {place}",
                "run",
                "backtrace 1",
                "list",
                f"print {variable}",
            ),
        ]
        words = [word for command in commands for word in ("-ex", command)]
        argv = ("gdb", "-q", "-nx", "-batch", *words, "--args", *map(str, program))
    else:
        file, _, where = place.partition(":")
        exact = f"--line {where}" if where.isdecimal() else f"--name {where.rsplit(':', 1)[-1]}"
        commands = [
            *(f"breakpoint set --file {file} {exact}", "run", "thread backtrace -c 1", "source list"),
            f"frame variable {variable}",
        ]
        words = [word for command in commands for word in ("-o", command)]
        argv = (debugger, "--no-lldbinit", "--batch", *words, "--", *map(str, program))
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    return done.stdout + done.stderr


def test_mlirs_own_cse_in_debug_under_the_distributions_llvm(site: Site) -> None:
    require("gdb", "lldb-19")
    if not os.environ.get(LLVM_SOURCE):
        pytest.skip(f"missing: {LLVM_SOURCE}")
    flags = ("--pass", "cse", "--llvm-source", os.environ[LLVM_SOURCE], "--target", "mini-cse")
    with site.smith.running("debug-library", *flags) as process:
        said = "".join(process.communicate(timeout=_PATIENCE))
    assert process.returncode == 0, said
    assert "MLIRTransforms: only CSE.cpp" in said
    try:
        program = site.smith.build() / "bin" / "mini-cse"
        assert capture(program) == "module {\n}\n"
        for debugger in ("gdb", "lldb-19"):
            seen = _debug(debugger, "CSE.cpp:CSE::runOnOperation", "rewriter", program)
            assert "(anonymous namespace)::CSE::runOnOperation" in seen
            assert "IRRewriter rewriter(&getContext());" in seen
            assert "mlir::RewriterBase" in seen, "a local, with its type"
    finally:
        site.run("--undo")
