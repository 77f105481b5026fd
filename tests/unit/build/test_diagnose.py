"""From real-looking output of a failed command to its first error, cause and remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.build import made
from tritonsmith.build.diagnose import (
    MAX_LINES,
    FirstError,
    diagnose,
    evidence,
    explain,
    failing,
    first_error,
)
from tritonsmith.core import configs
from tritonsmith.core.errors import StepError
from tritonsmith.core.plan import MakeDir
from tritonsmith.core.plan.steps.base import CommandFailedError

LOGS = Path(__file__).parent / "logs"
OURS = "/home/dev/triton/"
NEAR = "22.1.8 in /opt/llvm, commit 0123456789ab"
CMAKE = "/opt/cmake/share/cmake-3.31/Modules/"
POPULATE = "googletest-subbuild/googletest-populate-prefix/tmp/googletest-populate-gitclone.cmake"
BUILTIN = f"{OURS}third_party/amd/lib/TritonAMDGPUToLLVM/BuiltinFuncToLLVM.cpp"
PYBIND11 = "/home/dev/venv/lib/python3.11/site-packages/pybind11/include/pybind11/"

# log, id, file, line, how the first error begins
SEEN = [
    ("oom-killed-clang", "oom-killed", "", 0, "clang++: error: unable to execute command: Killed"),
    ("oom-killed-link", "oom-killed", "", 0, "collect2: fatal error: ld terminated with signal 9"),
    ("oom-killed-llvm", "oom-killed", "", 0, "FAILED: lib/Target/AMDGPU/"),
    ("disk-full", "disk-full", "", 0, "error: unable to open output file"),
    (
        "llvm-dependency",
        "llvm-dependency",
        "/usr/lib/llvm-19/lib/cmake/llvm/LLVMExports.cmake",
        73,
        "CMake Error",
    ),
    ("two-llvms", "two-llvms", "", 0, "FAILED: test/CMakeFiles/check-triton-lit-tests"),
    ("could-not-find-lld", "could-not-find-lld", "third_party/amd/CMakeLists.txt", 8, "CMake Error"),
    ("could-not-find-mlir", "could-not-find-mlir", "CMakeLists.txt", 89, "CMake Error"),
    (
        "mlir-files-missing",
        "mlir-files-missing",
        "/usr/lib/llvm-19/lib/cmake/mlir/MLIRTargets.cmake",
        2547,
        "CMake Error",
    ),
    ("filecheck-missing", "filecheck-missing", "", 0, "CMake Error: File /opt/llvm/bin/FileCheck does not"),
    ("gsan-clang-missing", "gsan-clang-missing", "third_party/nvidia/CMakeLists.txt", 14, "CMake Error"),
    ("triton-cache-path", "triton-cache-path", "CMakeLists.txt", 42, "CMake Error at CMakeLists.txt:42"),
    (
        "cuda-headers",
        "cuda-headers",
        f"{OURS}third_party/nvidia/include/cublas_instance.h",
        6,
        f"{OURS}third_party/nvidia/include/cublas_instance.h:6:10: fatal error: ",
    ),
    (
        "python-headers-gcc",
        "python-headers",
        f"{PYBIND11}conduit/wrap_include_python_h.h",
        43,
        f"{PYBIND11}conduit/wrap_include_python_h.h:43:10: fatal error: Python.h",
    ),
    (
        "python-headers-cmake",
        "python-headers",
        f"{CMAKE}FindPackageHandleStandardArgs.cmake",
        233,
        "CMake Error",
    ),
    ("glibcxx", "glibcxx", "", 0, "FAILED: include/triton/Dialect/Triton/IR/TritonAttrDefs.h.inc"),
    ("cmake-4", "cmake-4", "third_party/proton/CMakeLists.txt", 1, "CMake Error"),
    ("compiler-crash-clang", "compiler-crash", "", 0, "clang++: error: clang frontend command failed"),
    ("compiler-crash-gcc", "compiler-crash", "", 0, "FAILED: lib/Analysis/"),
    ("llvm-near-pin", "llvm-near-pin", f"{OURS}lib/Dialect/TritonGPU/IR/Ops.cpp", 1057, f"{OURS}lib"),
    ("llvm-near-pin-override", "llvm-near-pin", f"{OURS}lib/Analysis/AxisInfo.cpp", 151, f"{OURS}lib"),
    (
        "llvm-near-pin-several",
        "llvm-near-pin",
        f"{OURS}include/triton/Analysis/Alias.h",
        89,
        f"{OURS}include",
    ),
    ("llvm-near-pin-gcc", "llvm-near-pin", f"{OURS}include/triton/Analysis/Alias.h", 89, f"{OURS}include"),
    ("llvm-near-pin-note", "llvm-near-pin", BUILTIN, 131, f"{BUILTIN}:131:48: error: no member named"),
    (
        "llvm-near-pin-named",
        "llvm-near-pin",
        BUILTIN,
        131,
        f"{BUILTIN}:131:48: error: \u2018class mlir::LLVM",
    ),
    ("werror-clang", "werror", f"{OURS}lib/Tools/LinearLayout.cpp", 88, f"{OURS}lib/Tools/LinearLayout.cpp"),
    ("werror-gcc", "werror", f"{OURS}bin/triton-opt.cpp", 7, f"{OURS}bin/triton-opt.cpp:7:37: error: "),
    ("abi-breaking-checks", "abi-breaking-checks", "", 0, "ld.lld: error: undefined symbol: llvm::Enable"),
    ("abi-breaking-checks-vtable", "abi-breaking-checks", "", 0, "ld.lld-19: error: undefined symbol: mlir"),
    ("host-target", "host-target", "", 0, "llvm.cc:(.text+0x5): undefined reference to `LLVMInitializeX86"),
    ("lit-too-new", "lit-too-new", "", 0, "ValueError: execute_external=True is deprected"),
    ("commit-not-in-clone", "commit-not-in-clone", "", 0, "fatal: invalid reference: a66376b0dc3b"),
    ("googletest", "googletest", POPULATE, 50, "CMake Error"),
    ("offline-pip", "offline", "", 0, "ERROR: Could not find a version that satisfies the requirement"),
    ("offline-setup-py", "offline", "", 0, "error: metadata-generation-failed"),
]


def read(log: str) -> tuple[str, ...]:
    return tuple((LOGS / f"{log}.txt").read_text(encoding="utf-8").splitlines())


def failure(output: tuple[str, ...], code: int = 1) -> CommandFailedError:
    step = MakeDir(Path("/build"), phase="build Triton")
    return CommandFailedError(step, code, output, Path("/logs/build.log"))


def explained(log: str) -> StepError:
    near = NEAR if log.startswith("llvm-near-pin") else ""
    return explain(failure(read(log)), llvm=near, pin=f"{made.PIN} (cmake/llvm-hash.txt)")


@pytest.mark.parametrize(("log", "name", "file", "line", "start"), SEEN, ids=[row[0] for row in SEEN])
def test_a_known_failure(log: str, name: str, file: str, line: int, start: str) -> None:
    found = first_error(read(log))
    assert found is not None
    assert (found.file, found.line) == (file, line)
    assert found.lines[0].startswith(start)
    assert found.lines[-1].strip()
    assert len(found.lines) <= MAX_LINES
    error = explained(log)
    assert error.why is not None
    assert f"[{name}]" in error.why.splitlines()[0]
    assert error.where == (f"{file}:{line}" if file else "/logs/build.log")
    row = next(row for row in configs.load("diagnoses")["diagnosis"] if row["id"] == name)
    assert error.hints == (*row["remedy"], "full log: /logs/build.log")


def test_every_known_failure_has_a_log_and_every_log_a_test() -> None:
    ids = [row["id"] for row in configs.load("diagnoses")["diagnosis"]]
    assert len(ids) == len(set(ids))
    assert {row[1] for row in SEEN} == set(ids)
    assert {path.stem for path in LOGS.glob("*.txt")} == {row[0] for row in SEEN} | {"unknown", "unknown-cpp"}


def test_near_the_pin_both_commits_stand_above_the_error() -> None:
    text = str(explained("llvm-near-pin"))
    ours, pin, error = (text.index(part) for part in ("0123456789ab", made.PIN, "no member named 'parent'"))
    assert ours < pin < error
    assert "this LLVM: 22.1.8 in /opt/llvm" in text
    assert "invoke setup-mlir --provider source" in text


def test_at_the_pin_a_changed_api_is_nobodys_fault_but_the_codes() -> None:
    error = explain(failure(read("llvm-near-pin")))
    assert error.why is not None
    assert error.why.splitlines()[0].startswith(f"{OURS}lib/Dialect/TritonGPU/IR/Ops.cpp:1057:26: error: ")
    assert diagnose(read("llvm-near-pin")) is None


@pytest.mark.parametrize(
    ("log", "sure"),
    [
        ("llvm-near-pin", True),  # a note: declared here
        ("llvm-near-pin-override", True),
        ("llvm-near-pin-several", True),  # 634158b11 on LLVM 19.1.7, clang 19
        ("llvm-near-pin-gcc", True),  # the same by GCC 12
        ("llvm-near-pin-note", True),  # 7d89248a9
        ("llvm-near-pin-named", False),  # the same by GCC 12, which points to nothing
    ],
)
def test_how_sure_it_is_that_the_llvm_is_the_reason(log: str, sure: bool) -> None:
    words = str(explained(log))
    assert ("uncertain" in words) is not sure
    assert f"this LLVM: {NEAR}" in words
    assert f"the pin:   {made.PIN}" in words
    mine = str(explain(failure(read(log)), llvm=NEAR, pin=made.PIN, dirty=True))
    assert "uncertain" in mine  # what one changes oneself may be the reason, too


MADE_UP = "/home/dev/build/include/triton/Dialect/Triton/IR/Ops.cpp.inc"


@pytest.mark.parametrize(
    ("line", "why", "sure"),
    [
        (
            "a.cpp:1:10: fatal error: 'mlir/Conversion/New.h' file not found",
            "has no mlir/Conversion/New.h",
            True,
        ),
        ("a.cpp:1:10: fatal error: llvm/ADT/New.h: No such file or directory", "has no llvm/ADT/New.h", True),
        ("T.td:3:9: error: Could not find include file 'mlir/IR/New.td'", "has no mlir/IR/New.td", True),
        ("ld.lld: error: unable to find library -lMLIRNewDialect", "has no MLIRNewDialect", True),
        ("/usr/bin/ld: error: cannot find -lMLIRNewDialect: No such file", "has no MLIRNewDialect", True),
        (
            "/l/include/mlir/IR/Value.h:3:4: error: static assertion failed",
            "points to /l/include/mlir/IR",
            True,
        ),
        (f"{MADE_UP}:9:1: error: redefinition of 'build'", "mlir-tblgen generated", False),
        ("a.cpp:1:2: error: no member named 'x' in 'mlir::LLVM::CallOp'", "names mlir::LLVM::CallOp", False),
        ("a.cpp:1:2: error: no type named 'X' in namespace 'mlir'", "names mlir ", False),
        (
            "a.cpp:1:2: error: unknown type 'llvm::SmallVector<mlir::triton::X>'",
            "names llvm::SmallVector",
            False,
        ),
    ],
)
def test_what_an_error_points_to(line: str, why: str, sure: bool) -> None:
    seen = evidence([line])
    assert seen is not None
    assert (why in seen.why, seen.sure) == (True, sure)


@pytest.mark.parametrize(
    "lines",
    [
        ["a.cpp:1:2: error: expected ';' after expression"],
        ["a.cpp:1:2: error: no member named 'x' in 'mlir::triton::gpu::ConvertLayoutOp'"],
        ["a.cpp:1:10: fatal error: 'triton/Analysis/New.h' file not found"],
        ["a.cpp:1:10: fatal error: 'amd/include/llvm/x.txt' file not found"],
        # how the compiler got there is no declaration
        [
            "a.cpp:1:2: error: invalid operands",
            "/l/include/llvm/ADT/STLExtras.h:9:9: note: in instantiation of function template",
            "/l/include/mlir/Support/LLVM.h:9:9: note: expanded from macro 'X'",
        ],
        [
            "a.cpp:1:2: error: 'f' is deprecated [-Werror,-Wdeprecated]",
            "/l/include/llvm/X.h:1:2: note: marked here",
        ],
        [],
    ],
)
def test_what_says_nothing_of_the_llvm(lines: list[str]) -> None:
    assert evidence(lines) is None


def test_upstreams_own_sources_against_another_llvm_may_fail_for_it_and_ones_own_for_anything() -> None:
    clean = explain(failure(read("unknown-cpp")), llvm=NEAR, pin=made.PIN)
    assert clean.why is not None
    assert "uncertain: the sources are unmodified" in clean.why.splitlines()[0]
    mine = explain(failure(read("unknown-cpp")), llvm=NEAR, pin=made.PIN, dirty=True)
    assert mine.why is not None
    assert mine.why.splitlines()[0].endswith("error: expected ';' after expression")


def test_all_that_failed_is_found_each_with_its_first_error() -> None:
    found = failing(read("llvm-near-pin-several"))
    assert [(Path(name).name, Path(error.file).name, error.line) for name, error in found] == [
        ("Alias.cpp.o", "Alias.h", 89),
        ("LLVMDIScope.cpp.o", "LLVMDIScope.cpp", 104),
    ]
    assert found[0][1].lines[-1].strip() == "|           ~~~~ ^"


def test_a_first_error_ends_where_the_next_begins() -> None:
    found = first_error(read("llvm-near-pin"))
    assert found is not None
    assert len([line for line in found.lines if " error: " in line]) == 1
    assert found.lines[-1].strip(" |") == "^"


def test_a_block_is_cut_at_the_limit() -> None:
    found = first_error([f"{OURS}a.cpp:1:2: error: too much", *(f"  note {number}" for number in range(50))])
    assert found is not None
    assert found.lines == (
        f"{OURS}a.cpp:1:2: error: too much",
        *(f"  note {n}" for n in range(MAX_LINES - 1)),
    )


def test_an_unknown_error_of_the_compiler_shows_itself_and_nothing_of_a_later_one() -> None:
    error = explained("unknown-cpp")
    assert error.where == f"{OURS}lib/Analysis/Alias.cpp:9"
    assert error.why is not None
    assert error.why.splitlines()[0].endswith("error: expected ';' after expression")
    assert "werror" not in error.why
    assert error.hints == ("full log: /logs/build.log",)


def test_without_any_error_the_last_lines_are_shown() -> None:
    assert first_error(read("unknown")) is None
    error = explain(failure(tuple(f"line {number}" for number in range(100)), 7))
    assert error.what == "build Triton failed (exit code 7)"
    assert error.why == "\n".join(f"line {number}" for number in range(80, 100))


def test_a_line_number_without_a_column_and_a_cmake_error_without_a_place() -> None:
    assert first_error(["Ops.td:12: error: unknown field"]) == FirstError(
        ("Ops.td:12: error: unknown field",), "Ops.td", 12
    )
    assert first_error(["CMake Error: The source directory does not exist."]) == FirstError(
        ("CMake Error: The source directory does not exist.",)
    )


@pytest.mark.parametrize(
    "line", ["note: a value isKilled() here", "Skilled.cpp.o", "killedRegs = regs;", "warning: unused"]
)
def test_innocent_lines_mean_nothing(line: str) -> None:
    assert diagnose([line]) is None
