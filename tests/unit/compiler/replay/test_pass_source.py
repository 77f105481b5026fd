"""From a pass's argument to its file and DEBUG_TYPE."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.compiler.replay.dumps import dump
from tritonsmith.compiler.replay import pass_chain, replayer
from tritonsmith.compiler.replay import replayer as tools
from tritonsmith.compiler.replay.pass_chain import PassLink
from tritonsmith.compiler.replay.replayer import Replayer
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.facts import libtriton

FILES = {
    "include/triton/Passes.td": """
def TritonGPUCoalesce: Pass<"tritongpu-coalesce", "mlir::ModuleOp"> {
  let summary = "coalesce";
}
def Older : Pass</*cli-arg*/"older", "mlir::ModuleOp"> {
  let constructor = "mlir::triton::createOlderPass()";
}
def Oldest : Pass<"oldest", "mlir::ModuleOp"> {
  let constructor = "mlir::createOldestPass(0)";
}
def Lost : Pass<"lost", "mlir::ModuleOp">;
""",
    "lib/Transforms/CoalesceUtils.cpp": '#define DEBUG_TYPE "tritongpu-coalesce-utils"\nvoid coalesce() {}\n',
    "lib/Transforms/Memory.cpp": """#define DEBUG_TYPE "memory-access"
#define GEN_PASS_DEF_TRITONGPUCOALESCE
struct Other : public Helper { void runOnOperation() override {} };
void runOnOperation();
struct Coalesce : public impl::TritonGPUCoalesceBase<Coalesce> {
  void
  help();
  void runOnOperation() override {
  }
};
""",
    "third_party/nvidia/lib/B.cpp": """
class B : public OlderBase<B> {
  void runOnOperation() override {}
};
""",
    "lib/C.cpp": """
std::unique_ptr<Pass> mlir::createOldestPass(int n) {
  return std::make_unique<C>();
}
void C::runOnOperation() {}
""",
    "lib/Caller.cpp": "void f(PassManager &pm) { pm.addPass(mlir::createOldestPass(0)); }\n",
}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "my triton" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "my triton"


def test_the_file_that_asks_tablegen_for_it_and_not_one_of_its_name(checkout: Path) -> None:
    found = pass_chain.find("tritongpu-coalesce", checkout)
    assert found is not None
    assert found.file == checkout / "lib/Transforms/Memory.cpp"
    assert found.found_by == "GEN_PASS_DEF_TRITONGPUCOALESCE"
    assert found.debug_type == "memory-access"
    assert found.place == "lib/Transforms/Memory.cpp:8"


def test_the_file_that_has_the_class_or_the_constructor(checkout: Path) -> None:
    older, oldest = pass_chain.find("older", checkout), pass_chain.find("oldest", checkout)
    assert older is not None
    assert older.file.name == "B.cpp"
    assert older.debug_type == ""
    assert oldest is not None
    assert oldest.file.name == "C.cpp"
    assert oldest.place == "lib/C.cpp:5"


def test_what_no_file_implements_or_no_tablegen_defines(checkout: Path) -> None:
    assert pass_chain.find("lost", checkout) is None
    assert pass_chain.find("cse", checkout) is None


def tool(tmp_path: Path, checkout: Path | None, *, asserts: bool = True) -> Replayer:
    build = tmp_path / "build"
    (build / "bin").mkdir(parents=True)
    opt = build / "bin" / "triton-opt"
    opt.write_text(f"#!/bin/sh\necho 'DEBUG build{' with assertions' if asserts else ''}.'\n")
    opt.chmod(0o755)
    (build / "gdbinit").write_text("")
    return Replayer(None, opt, build, checkout)


LINK = PassLink(dump(3, "tritongpu-coalesce"), None)


def test_types_of_the_pass_and_of_mlir(tmp_path: Path, checkout: Path) -> None:
    made = replayer.debug_output([LINK], tool(tmp_path, checkout), ["greedy-rewriter"], of_passes=True)
    assert made.types == ("memory-access", "greedy-rewriter")
    assert dict(made.environ())["TRITON_LLVM_DEBUG_ONLY"] == "memory-access,greedy-rewriter"
    assert "Memory.cpp" in made.notes[0]


def test_debug_output_that_cannot_be_had(tmp_path: Path, checkout: Path) -> None:
    good = tool(tmp_path / "a", checkout)
    with pytest.raises(UsageError, match="greedy") as caught:
        replayer.debug_output([LINK], good, ["greedy"], of_passes=False)
    assert caught.value.hints[0] == "did you mean 'greedy-rewriter'?"
    with pytest.raises(FactError, match="without assertions"):
        replayer.debug_output([LINK], tool(tmp_path / "b", checkout, asserts=False), [], of_passes=True)
    (tmp_path / "b" / "build" / "CMakeCache.txt").write_text(
        "CMAKE_BUILD_TYPE:STRING=Debug\nLLVM_DIR:STRING=/llvm/lib/cmake/llvm\n"
    )
    of_llvm = Replayer(None, tmp_path / "b/build/bin/triton-opt", tmp_path / "b/build", checkout)
    with pytest.raises(FactError, match="no option that shows it") as lacks:
        replayer.debug_output([LINK], of_llvm, [], of_passes=True)
    assert lacks.value.why == "-debug-only is an option of LLVM, and /llvm was built without assertions"
    assert "llvm::DebugFlag" in lacks.value.hints[0]
    with pytest.raises(FactError, match="sources of tritongpu-coalesce are required"):
        replayer.debug_output([LINK], tool(tmp_path / "c", None), [], of_passes=True)
    with pytest.raises(FactError, match="cse is not in this checkout"):
        replayer.debug_output([PassLink(dump(0, "cse"), None)], good, [], of_passes=True)


def test_any_type_that_the_program_has(tmp_path: Path, checkout: Path) -> None:
    mine = tool(tmp_path, checkout)
    assert mine.opt
    with mine.opt.open("a") as program:
        program.write("# \0isel\0 prefix-licm\0\n")
    made = replayer.debug_output([LINK], mine, only=["isel", "licm"])
    assert made.flags() == ("-debug-only=isel,licm",)
    assert not made.notes
    with pytest.raises(FactError, match="no debug type 'memory-acces'") as caught:
        replayer.debug_output([LINK], mine, only=["memory-acces"])
    assert caught.value.hints[0] == "did you mean 'memory-access'?"
    everything = replayer.debug_output([LINK], mine, everything=True)
    assert everything.flags() == ("-debug",)
    assert dict(everything.environ()) == {"TRITON_ENABLE_LLVM_DEBUG": "1", "TRITON_LLVM_DEBUG_ONLY": None}


def test_a_breakpoint_in_a_pattern_of_the_program(tmp_path: Path) -> None:
    opt = tmp_path / "triton-opt"
    opt.write_bytes(
        b"_ZNK12_GLOBAL__N_124CombineBroadcastConstant15matchAndRewriteEPN4mlir9OperationE\0"
        b"_ZNK4mlir6triton9OpPatternINS_5arith6AddFOpEE15matchAndRewriteES3_\0"
        b"_ZNK4mlir6triton7OtherOp6verifyEv\0_Z0IE15matchAndRewriteE\0"
    )
    assert list(libtriton.classes_with(opt, "matchAndRewrite")) == ["CombineBroadcastConstant", "OpPattern"]
    assert replayer.pattern_breakpoint("OpPattern", opt) == "OpPattern::matchAndRewrite"
    with pytest.raises(FactError, match="no rewrite pattern 'CombineBroadcast'") as caught:
        replayer.pattern_breakpoint("CombineBroadcast", opt)
    assert caught.value.hints[0] == "did you mean 'CombineBroadcastConstant'?"
    assert "OpPattern" not in "".join(caught.value.hints)


def test_nothing_asked_for_asks_for_nothing(tmp_path: Path) -> None:
    assert (
        replayer.debug_output(
            [LINK], Replayer(None, tmp_path / "gone", None, None), [], of_passes=False
        ).types
        == ()
    )


def test_the_commands_of_the_debuggers(tmp_path: Path, checkout: Path) -> None:
    mine = tool(tmp_path, checkout)
    gdb = replayer.debugger_command("gdb", mine, ("opt", "in.mlir"), "lib/a/B.cpp:7")
    assert gdb[:3] == ("gdb", "-ix", str(mine.build and mine.build / "gdbinit"))
    assert gdb[-3:] == ("--args", "opt", "in.mlir")
    assert "break lib/a/B.cpp:7" in gdb
    lldb = replayer.debugger_command("lldb", mine, ("opt", "in.mlir"), "lib/a/B.cpp:7")
    assert lldb == ("lldb", "-o", "breakpoint set -f B.cpp -l 7", "-o", "run", "--", "opt", "in.mlir")


def test_a_debugger_under_a_distributions_name_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "lldb-19"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert tools.debugger_path("lldb") == str(program)
    with pytest.raises(FactError, match="gdb is not installed"):
        tools.debugger_path("gdb")
