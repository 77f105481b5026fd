"""Names of libraries, passes and files; misspelt ones get the nearest."""

from __future__ import annotations

from pathlib import Path

import pytest

from tritonsmith.build.debug_library import resolve
from tritonsmith.core.errors import UsageError

_REGISTRY = """\
FUNCTION_PASS("early-mini", EarlyMiniPass())
FUNCTION_PASS_WITH_PARAMS(
    "late-mini", "LateMiniPass", [](bool x) { return LateMiniPass(x); }, parse, "x")
"""
_SOURCES = {
    "llvm/lib/Passes/PassRegistry.def": _REGISTRY,
    "llvm/lib/Mini/EarlyMini.cpp": "PreservedAnalyses EarlyMiniPass::run(Function &F) {}\n",
    "llvm/lib/Mini/LateMini.cpp": "PreservedAnalyses\nLateMiniPass::run(Function &F) {}\n",
    "llvm/lib/Mini/Old.cpp": '#define DEBUG_TYPE "old-mini"\nINITIALIZE_PASS(Old, DEBUG_TYPE, "Old", 0, 0)\n',
    "llvm/lib/Mini/Older.cpp": 'INITIALIZE_PASS_BEGIN(Older, "older-mini", "Older", false, false)\n',
    "llvm/lib/Mini/Both.cpp": '#define DEBUG_TYPE "mini-twice"\n',
}


@pytest.fixture
def with_passes(project: Path) -> Path:
    for name, text in _SOURCES.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text, encoding="utf-8")
    return project


@pytest.mark.parametrize(
    ("argument", "file"),
    [
        ("mini-twice", "mlir/lib/Mini/Twice.cpp"),
        ("early-mini", "llvm/lib/Mini/EarlyMini.cpp"),
        ("late-mini", "llvm/lib/Mini/LateMini.cpp"),
        ("old-mini", "llvm/lib/Mini/Old.cpp"),
        ("older-mini", "llvm/lib/Mini/Older.cpp"),
    ],
)
def test_a_pass_is_found_where_it_runs(with_passes: Path, argument: str, file: str) -> None:
    assert resolve.by_pass(argument, with_passes).file == with_passes / file


def test_an_argument_that_is_the_end_of_another_finds_its_own_file(with_passes: Path) -> None:
    """As LLVM 19 has them: `AffineLoopInvariantCodeMotionBase<` ends in the other's base class."""
    files = {
        "mlir/include/mlir/Transforms/Passes.td": (
            'def LoopInvariantCodeMotion : Pass<"loop-invariant-code-motion"> {}\n'
        ),
        "mlir/include/mlir/Dialect/Affine/Passes.td": (
            "def AffineLoopInvariantCodeMotion\n"
            '    : Pass<"affine-loop-invariant-code-motion", "func::FuncOp"> {}\n'
        ),
        "mlir/lib/Transforms/LoopInvariantCodeMotion.cpp": (
            "#define GEN_PASS_DEF_LOOPINVARIANTCODEMOTION\n"
            "struct LoopInvariantCodeMotion : public impl::LoopInvariantCodeMotionBase<X> {};\n"
        ),
        "mlir/lib/Dialect/Affine/Transforms/AffineLoopInvariantCodeMotion.cpp": (
            "#define GEN_PASS_DEF_AFFINELOOPINVARIANTCODEMOTION\n"
            "struct X : public affine::impl::AffineLoopInvariantCodeMotionBase<X> {};\n"
        ),
    }
    for name, text in files.items():
        (with_passes / name).parent.mkdir(parents=True, exist_ok=True)
        (with_passes / name).write_text(text, encoding="utf-8")
    for argument, name in (("", "LoopInv"), ("affine-", "AffineLoopInv")):
        found = resolve.by_pass(f"{argument}loop-invariant-code-motion", with_passes)
        assert found.file.name == f"{name}ariantCodeMotion.cpp"


def test_a_misspelt_pass_gets_the_nearest(with_passes: Path) -> None:
    with pytest.raises(UsageError, match="neither MLIR nor LLVM has a pass 'early-mimi'") as caught:
        resolve.by_pass("early-mimi", with_passes)
    assert "did you mean 'early-mini'?" in str(caught.value)
    assert "build-triton --debug" in str(caught.value)


def test_a_pass_of_both_asks_which(with_passes: Path) -> None:
    registry = with_passes / "llvm/lib/Passes/PassRegistry.def"
    registry.write_text('FUNCTION_PASS("mini-twice", EarlyMiniPass())\n', encoding="utf-8")
    with pytest.raises(UsageError, match="more than one file implements 'mini-twice'") as caught:
        resolve.by_pass("mini-twice", with_passes)
    assert "--file llvm/lib/Mini/EarlyMini.cpp" in str(caught.value)
    assert "--file mlir/lib/Mini/Twice.cpp" in str(caught.value)


def test_a_file_is_found_by_its_name_its_end_or_its_path(project: Path) -> None:
    whole = project / "mlir/lib/Mini/Twice.cpp"
    for name in ("Twice.cpp", "Mini/Twice.cpp", "mlir/lib/Mini/Twice.cpp", str(whole)):
        assert resolve.by_file(name, project).file == whole


def test_a_file_of_many_folders_asks_which(project: Path) -> None:
    (project / "llvm/lib/Mini/Twice.cpp").touch()
    with pytest.raises(UsageError, match="more than one file is named") as caught:
        resolve.by_file("Twice.cpp", project)
    assert "llvm/lib/Mini/Twice.cpp" in str(caught.value)
    assert resolve.by_file("mlir/lib/Mini/Twice.cpp", project).file.is_file()


def test_a_misspelt_file_gets_the_nearest(project: Path) -> None:
    with pytest.raises(UsageError) as caught:
        resolve.by_file("Twise.cpp", project)
    assert "did you mean 'Twice.cpp'" in str(caught.value)


def test_a_misspelt_library_gets_the_nearest_and_what_holds_the_word() -> None:
    known = ("LLVMCore", "LLVMTransformUtils", "MLIRTransforms")
    resolve.check(("LLVMCore",), known)
    with pytest.raises(UsageError) as caught:
        resolve.check(("MLIRTransform",), known)
    assert "did you mean 'MLIRTransforms'" in str(caught.value)
    with pytest.raises(UsageError) as caught:
        resolve.check(("utils",), known)
    assert "did you mean 'LLVMTransformUtils'" in str(caught.value)


def test_a_file_belongs_to_a_library_of_its_folder_or_of_one_above(project: Path) -> None:
    folders = resolve.index(project)
    deep = project / "mlir/lib/Mini/Detail/Deep.cpp"
    assert resolve.candidates(deep, folders) == ("MLIRMini",)
    assert resolve.candidates(project / "mlir/lib/Mini/Bits/Bits.cpp", folders)[0] == "MLIRMiniBits"
