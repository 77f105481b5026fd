"""The same failure is the same whatever the addresses, values and paths; another one is not."""

from __future__ import annotations

import pytest

from tritonsmith.lab import failure
from tritonsmith.lab.failure import Failure

pytestmark = pytest.mark.unit

ASSERTION = (
    "python: /project/lib/Conversion/Utility.cpp:1743: Value mlir::LLVM::getSharedMemoryBase(Location, "
    'RewriterBase &): Assertion `op->hasAttr("allocation.offset")\' failed.\n'
)


def test_an_assertion_is_its_text_its_function_and_its_file() -> None:
    found = failure.of(f"{ASSERTION}/a.mlir:1:2: error: Failures have been detected\n", crashed="SIGABRT")
    text = 'op->hasAttr("allocation.offset") in mlir::LLVM::getSharedMemoryBase, Utility.cpp'
    assert found == Failure("assertion", text)
    assert found == failure.of(ASSERTION.replace("1743", "1755").replace("/project", "/build"))
    assert found != failure.of(ASSERTION.replace("hasAttr", "getAttr"))


def test_an_assertion_that_is_told_twice_is_itself_alone() -> None:
    twice = f"{ASSERTION}module {{ func @k }}\n{ASSERTION}"
    assert failure.of(twice) == failure.of(ASSERTION)


def test_the_pass_that_failed() -> None:
    note = "k.py:7:1: note: Pipeline failed while executing [`Membar` on 'builtin.module' operation]: x\n"
    assert failure.pass_of(f"{ASSERTION}{note}") == "Membar"
    assert failure.pass_of(ASSERTION) == ""


def test_the_function_of_a_template_has_a_name() -> None:
    log = (
        "opt: /x/Casting.h:650: decltype(auto) llvm::dyn_cast(const From &) [To = A]: Assertion `x' failed.\n"
    )
    assert failure.of(log).text == "x in llvm::dyn_cast, Casting.h"


def test_unreachable_and_fatal_errors() -> None:
    unreachable = failure.of(
        "unsupported layout\nUNREACHABLE executed at /x/Utility.cpp:12!\n", crashed="SIGABRT"
    )
    assert unreachable == Failure("assertion", "unreachable: unsupported layout in Utility.cpp")
    assert failure.of("LLVM ERROR: no warps\n") == Failure("fatal error", "no warps")


def test_an_error_is_the_first_one_without_values_locations_and_operands() -> None:
    one = '/a/1.mlir:3:5: error: failed to legalize %5: "cf.br"(%0, %1)[^bb1] : () -> ()\nx: error: 2\n'
    two = 'loc("/b/2.mlir":30:1): error: failed to legalize %arg7: "cf.br"(%0)[^bb2] : () -> ()\n'
    assert failure.of(one) == failure.of(two) == Failure("error", "failed to legalize %")
    assert failure.of(one) != failure.of("x: error: failed to parse\n")


def test_what_mlir_says_after_a_crash_is_no_error_of_its_own() -> None:
    log = (
        "a.mlir:1:1: error: Failures have been detected while processing an MLIR pass pipeline\n"
        "a.mlir:1:1: note: Pipeline failed while executing [`Epilogue` on 'builtin.module' operation]\n"
        "RuntimeError: PassManager::run failed\n"
    )
    assert failure.of(log) == Failure("failure", "`Epilogue` on 'builtin.module' operation")


def test_an_exception_that_is_not_the_pass_managers_own() -> None:
    assert failure.of("IndexError: map::at\n") == Failure("exception", "IndexError: map::at")
    assert failure.of("RuntimeError: PassManager::run failed\n") == Failure("failure", "")


NAMED = """\
 #0 0x00007f1 llvm::sys::PrintStackTrace(llvm::raw_ostream&, int) (/lib/libtriton.so+0x11)
 #1 0x00007f2 SignalHandler(int) Signals.cpp:0:0
 #2 0x00007f3 (/lib/x86_64/libc.so.6+0x3c050)
 #3 0x00007f4 mlir::first(int) (/lib/libtriton.so+0x44)
 #4 0x00007f5 mlir::second() (/lib/libtriton.so+0x55)
 #5 0x00007f6 (/lib/libtriton.so+0x66)
 #6 0x00007f7 main (/lib/libtriton.so+0x77)
"""
BARE = """\
Stack dump without symbol names (ensure you have llvm-symbolizer in your PATH):
0  libtriton.so 0x00007fe4b3ab44c7
1  libc.so.6    0x00007fe4b705a050
2  libc.so.6    0x00007fe4b705a051 abort + 12
3  libtriton.so 0x00007fe4afa0b2ea
4  libtriton.so 0x00007fe4b1bc079b
5  libtriton.so 0x00007fe4b1bbd35f
6  libc.so.6    0x00007fe4b704524a
"""


def test_a_signal_is_the_functions_above_the_handler() -> None:
    text = "SIGSEGV: mlir::first, mlir::second, libtriton.so ...066"
    assert failure.of(NAMED, crashed="SIGSEGV") == Failure("signal", text)
    assert failure.of("", crashed="SIGSEGV") == Failure("signal", "SIGSEGV")


def test_a_pass_in_an_anonymous_namespace_has_a_name() -> None:
    log = NAMED.replace("mlir::first(int)", "(anonymous namespace)::Prefetcher::initialize()")
    assert failure.top_frames(log)[:2] == ["Prefetcher::initialize", "mlir::second"]


def test_frames_without_names_are_the_same_wherever_the_library_lies() -> None:
    found = failure.of(BARE, crashed="SIGABRT")
    assert found.text == "SIGABRT: libtriton.so ...2ea, libtriton.so ...79b, libtriton.so ...35f"
    assert failure.of(BARE.replace("0x00007fe4", "0x0000123a"), crashed="SIGABRT") == found
    assert failure.of(BARE.replace("b2ea", "b2eb"), crashed="SIGABRT") != found


def test_time_and_exit_codes() -> None:
    assert failure.of(ASSERTION, timeout=True) == Failure("timeout", "")
    assert failure.of("", code=7) == Failure("exit code", "7")


def test_no_folder_stays_in_a_text() -> None:
    text = failure.anonymous('File "/home/jane/x/python/a.py", line 3; ./b and /opt/lib.so+0x1, a/b')
    assert text == 'File "a.py", line 3; ./b and lib.so+0x1, a/b'
    assert failure.anonymous("see https://x.org/a/b/c") == "see https://x.org/a/b/c"
    text = failure.anonymous('/home/jane doe/k.py:3:1: error: x\nFile "/home/jane doe/a.py", 3 / 4 and a/b/c')
    assert text == 'k.py:3:1: error: x\nFile "a.py", 3 / 4 and a/b/c'


def test_an_error_of_ptxas_is_its_own_and_not_that_around_it() -> None:
    def log(*lines: str) -> str:
        around = "PTXASError: PTXAS error: Internal Triton PTX codegen error\n`ptxas` stderr:"
        return "\n".join([around, *lines, "", "Repro command: /x/ptxas --gpu-name=sm_90a /tmp/a.ptx"])

    aborted = "ptxas fatal   : Ptx assembly aborted due to errors"
    mismatch = "line 42; error   : Arguments mismatch for instruction 'mov'"
    same = [
        failure.of(log(f"ptxas /tmp/1.ptx, {mismatch}", aborted)),
        failure.of(log(f"ptxas-blackwell /tmp/2.ptx, {mismatch.replace('42', '7')}", aborted)),
    ]
    assert same == [Failure("error", "ptxas: Arguments mismatch for instruction 'mov'")] * 2
    assert failure.is_shown(same[0], log(f"ptxas /tmp/3.ptx, {mismatch}", aborted), 1)
    other = failure.of(
        log("ptxas /tmp/1.ptx, line 6; fatal   : Parsing error near 'x': syntax error", aborted)
    )
    assert other == Failure("error", "ptxas: Parsing error near 'x': syntax error")
    assert failure.of(log(aborted)).text == "Internal Triton PTX codegen error"
    extern = failure.of(log("ptxas fatal   : Unresolved extern function 'f'"))
    assert extern == Failure("error", "ptxas: Unresolved extern function 'f'")
