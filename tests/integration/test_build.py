"""`setup-mlir` with an installed LLVM and `build-triton`: real CMake, Ninja, ccache, clang and lld."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.integration.conftest import Interrupted
from tests.integration.harness import CMAKE, LLVM, Done, Smith, capture, ready, wait_for
from tests.support import require


def test_setup_mlir_takes_the_installed_llvm_and_tells_that_it_is_not_the_pin(
    smith: Smith, with_llvm: Done
) -> None:
    assert f"LLVM for 'dev': {LLVM}" in with_llvm.out
    assert "is not the pin" in with_llvm.err
    assert smith.receipt("setup-mlir")["prefix"] == str(LLVM)


def test_a_second_run_in_a_busy_environment_fails_at_once_and_names_the_first(
    interrupted: Interrupted,
) -> None:
    assert "another run is busy in this environment" in interrupted.second.error
    assert f"process {interrupted.pid} runs `build-triton --env dev`" in interrupted.second.error
    assert "[build Triton]" not in interrupted.second.err


def test_an_interrupted_build_exits_130_and_leaves_no_process(interrupted: Interrupted) -> None:
    assert interrupted.run.code == 130
    assert "interrupted; what was built so far is kept" in interrupted.run.error
    assert "Traceback" not in interrupted.run.err
    assert interrupted.left == []


def test_the_run_after_an_interruption_goes_on_from_there(
    built: Smith, interrupted: Interrupted, resumed: str
) -> None:
    assert (built.build() / "bin" / "triton-opt").is_file()
    assert "-m venv" not in resumed
    assert "## configure Triton: cmake" not in resumed
    assert interrupted.objects
    assert not any(f"object {name}\n" in resumed for name in interrupted.objects)
    assert "object " in resumed
    assert built.receipt("build-triton")["build_type"] == "Debug"


def test_the_tool_that_was_built_reads_an_operation_of_its_own(built: Smith) -> None:
    printed = capture(built.build() / "bin" / "triton-opt", built.cwd / "test" / "twice.mlir")
    assert "%1 = tt.twice %0" in printed


def test_lit_and_filecheck_pass_with_what_was_built(built: Smith, tmp_path: Path) -> None:
    lit = built.env("dev") / "venv" / "bin" / "lit"
    tools = os.pathsep.join((str(built.build() / "bin"), str(built.cwd / "python" / "triton")))
    params = ("--param", f"tools={tools}", "--param", f"output={tmp_path}")
    assert "Passed: 1" in capture(lit, "-v", *params, built.cwd / "test")


def test_debug_means_symbols_in_split_dwarf_and_lld(built: Smith) -> None:
    assert list(built.build().rglob("Dialect.cpp.dwo"))
    comment = capture(LLVM / "bin" / "llvm-readelf", "-p", ".comment", built.build() / "bin" / "triton-opt")
    assert "LLD" in comment


def test_only_one_llvm_is_linked_where_mlir_links_the_shared_one(built: Smith) -> None:
    program = built.build() / "bin" / "triton-opt"
    assert "libLLVM" in capture(LLVM / "bin" / "llvm-readelf", "--needed-libs", program)
    assert "_ZN4llvm4outsEv" not in capture(LLVM / "bin" / "llvm-nm", "--defined-only", program)


def test_a_second_build_does_nothing(built: Smith) -> None:
    before = _stamps(built.build())
    built("build-triton", "--debug")
    assert "ninja: no work to do." in built.log("build-triton")
    assert _stamps(built.build()) == before


def test_after_the_build_folder_is_deleted_every_compile_comes_from_the_cache(built: Smith) -> None:
    shutil.rmtree(built.build())
    before = built.ccache()
    built("build-triton", "--debug")
    after = built.ccache()
    assert after["cache_miss"] == before["cache_miss"]
    assert after["direct_cache_hit"] >= before["direct_cache_hit"] + 6
    assert (built.build() / "bin" / "triton-opt").is_file()


def test_the_run_after_one_that_was_killed_while_it_built_finishes(built: Smith) -> None:
    shutil.rmtree(built.build())
    with built.running("build-triton", "--debug") as process:
        wait_for((built.build() / ".ninja_log").is_file, process)
        process.send_signal(signal.SIGKILL)
        process.wait()
    built("build-triton", "--debug")
    assert "tt.twice" in capture(built.build() / "bin" / "triton-opt", built.cwd / "test" / "twice.mlir")


def test_a_compile_error_is_shown_in_short_with_its_place_and_the_log(built: Smith) -> None:
    broken = built.cwd / "third_party" / "amd" / "amd.c"
    whole = broken.read_text(encoding="utf-8")
    broken.write_text(f"{whole}\nint broken(void) {{ return undeclared_name; }}\n", encoding="utf-8")
    try:
        error = built("build-triton", "--debug", code=1).error
    finally:
        broken.write_text(whole, encoding="utf-8")
    assert f"{broken}:3" in error
    assert "undeclared_name" in error
    assert len(error.splitlines()) <= 20
    log = Path(error.rpartition("full log: ")[2].strip())
    assert "undeclared_name" in log.read_text(encoding="utf-8")
    built("build-triton", "--debug")


def test_the_configure_can_be_replayed_with_the_command_in_the_cache_file(built: Smith) -> None:
    build = built.build()
    header = (build / "tritonsmith-cache.cmake").read_text(encoding="utf-8").splitlines()[1]
    (build / "CMakeCache.txt").unlink()
    shutil.rmtree(build / "CMakeFiles")
    capture("sh", "-euc", header.removeprefix("#"), cwd=build, env=built.environ)
    capture(CMAKE, "--build", build, env=built.environ)
    built("build-triton", "--debug")
    assert "ninja: no work to do." in built.log("build-triton")


def test_target_builds_that_target_only(built: Smith) -> None:
    programs = [built.build() / "bin" / name for name in ("triton-opt", "mini-overflow")]
    for program in programs:
        program.unlink()
    built("build-triton", "--debug", "--target", "triton-opt")
    assert [program.exists() for program in programs] == [True, False]
    built("build-triton", "--debug")
    assert [program.exists() for program in programs] == [True, True]


def test_a_target_that_does_not_exist_is_told_with_ninjas_guess(built: Smith) -> None:
    error = built("build-triton", "--debug", "--target", "triton-otp", code=1).error
    assert "unknown target 'triton-otp', did you mean 'triton-opt'?" in error
    assert len(error.splitlines()) <= 20


def test_reconfigure_configures_though_nothing_changed(built: Smith) -> None:
    before = built.ccache()["cache_miss"]
    built("build-triton", "--debug", "--reconfigure")
    assert "## configure Triton: cmake" in built.log("build-triton")
    assert "[1/" not in built.log("build-triton")
    assert built.ccache()["cache_miss"] == before


def test_cmake_arg_reaches_the_cache_and_leaves_it_again(built: Smith) -> None:
    cache = built.build() / "CMakeCache.txt"
    wanted = "MINI_WISH:STRING=one;two words"
    built("build-triton", "--debug", "--cmake-arg=-DMINI_WISH:STRING=one;two words", "--target", "mini_amd")
    assert wanted in cache.read_text(encoding="utf-8")
    built("build-triton", "--debug")
    assert "MINI_WISH" not in cache.read_text(encoding="utf-8")


def test_backends_leave_one_out(built: Smith) -> None:
    built("build-triton", "--debug", "--backends", "amd", "--target", "mini_amd")
    assert not _ninja_knows(built, "mini_nvidia")
    built("build-triton", "--debug")
    assert _ninja_knows(built, "mini_nvidia")


@pytest.mark.slow
def test_the_address_sanitizer_is_really_in(built: Smith, tmp_path_factory: pytest.TempPathFactory) -> None:
    if not list((LLVM / "lib" / "clang").glob("*/lib/*/*asan*.a")):
        require("libclang-rt-19-dev")  # no program, but the package to name
    ready(built, tmp_path_factory, "asan")
    built("build-triton", "--env", "asan", "--llvm-dir", LLVM, "--target", "mini-overflow")
    program = built.build("asan") / "bin" / "mini-overflow"
    log = built.log("build-triton")
    assert "-m venv" not in log, "what is ready is made again"
    assert "-m pip" not in log, "what is ready is made again"
    assert "number 3 is 0" in capture(program, "3")
    done = subprocess.run((program, "4"), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert "AddressSanitizer: heap-buffer-overflow" in done.stderr


PLANTED = (
    "#include <stdlib.h>\nvoid overflow(void) { volatile char *p = malloc(8); p[8] = 1; free((void *)p); }\n"
)


def test_a_program_under_the_address_sanitizer(
    built: Smith, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    if not list((LLVM / "lib" / "clang").glob("*/lib/*/*asan*.so")):
        require("libclang-rt-19-dev")
    if not built.build("asan").parent.exists():
        ready(built, tmp_path_factory, "asan")
    under = ("run", "--sanitizer", "address", "--env")
    assert "has no address sanitizer" in built(*under, "dev", "--", "python", "-c", "", code=1).err
    built("build-triton", "--env", "asan", "--llvm-dir", LLVM, "--target", "mini-overflow")
    (tmp_path / "planted.c").write_text(PLANTED, encoding="utf-8")
    words = ("-g", "-fsanitize=address", "-fPIC", "-shared", "planted.c", "-o", "planted.so")
    subprocess.run((LLVM / "bin" / "clang", *words), cwd=tmp_path, check=True, timeout=120)
    load = f"import ctypes; library = ctypes.CDLL('{tmp_path / 'planted.so'}')"
    assert "found nothing" in built(*under, "asan", "--", "python", "-c", load).err
    found = built(*under, "asan", "--", "python", "-c", f"{load}; library.overflow()", code=1).err
    assert "error: AddressSanitizer: heap-buffer-overflow" in found
    assert f"in overflow {tmp_path / 'planted.c'}:2" in found, "symbolized"


def test_doctor_finds_the_build_to_match_its_sources(built: Smith) -> None:
    found = {row["id"]: row for row in json.loads(built("doctor", "--env", "dev", "--json").out)["findings"]}
    assert found["builds.triton"]["status"] == "ok"
    assert found["sources.pins"]["status"] == "warning"  # Debian's LLVM does not tell its commit
    assert found["sources.pins"]["where"] == str(LLVM)
    assert found["builds.cmake-llvm"]["status"] == "ok"


def _stamps(folder: Path) -> dict[Path, int]:
    """Modification times of everything that was built or configured."""
    bookkeeping = {".ninja_log", ".ninja_deps", ".ninja_lock", "tritonsmith-receipt.json"}
    paths = (path for path in folder.rglob("*") if path.is_file() and path.name not in bookkeeping)
    return {path: path.stat().st_mtime_ns for path in paths}


def _ninja_knows(smith: Smith, target: str) -> bool:
    return f"{target}:" in capture(
        CMAKE.with_name("ninja"), "-C", smith.build(), "-t", "targets", "all", env=smith.environ
    )
