"""What a changed file can affect, in a small Triton."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.atlas.planted import plant
from tests.unit.build.suites.test_results import UNITS
from tritonsmith.atlas.index import Index
from tritonsmith.atlas.source_files import SourceFiles
from tritonsmith.build.suites import selection
from tritonsmith.build.suites.results import SUITES
from tritonsmith.build.suites.selection import SuiteSelection, SuiteTree

pytestmark = pytest.mark.unit

SOURCE = "lib/Dialect/TritonGPU/Transforms/Pipeline.cpp"
FRONT = "python/test/unit/language/test_frontend.py"
ERRORS = "python/test/unit/language/test_compile_errors.py"
MARKED = "python/test/unit/language/test_random.py"
LIT, GPU_LESS, INTERPRETER = {"lit"}, {"gpu-less"}, {"interpreter"}


@pytest.fixture
def tree(tmp_path: Path) -> SuiteTree:
    more = {
        "test/lit.cfg.py": "",
        "unittest/Tools/CMakeLists.txt": UNITS,
        "unittest/Tools/LayoutTest.cpp": "",
        "unittest/Tools/More.cpp": "pm.addPass(createTritonGPUPipeline());",
        FRONT: "def test_a(): pass\n",
        ERRORS: "def test_c(): triton.compile(None)\n",
        MARKED: "@pytest.mark.interpreter\ndef test_b(): pass\n",
        "docs/index.md": "",
        "new/file.cpp": "",
    }
    root = plant(tmp_path / "triton")
    for name, text in more.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return SuiteTree(root, ("nvidia",))


def of(tree: SuiteTree, *files: str) -> SuiteSelection:
    found = selection.of_files(Index(SourceFiles(tree.root)), tree, files)
    assert [file for file, _ in found.reasons] == list(files)
    return found.selection(tree, SUITES)


def test_a_pass_affects_the_tests_that_run_it(tree: SuiteTree) -> None:
    found = of(tree, SOURCE)
    assert found.lit == ("test/TritonGPU/pipeline.mlir",)
    assert found.gpu_less == (ERRORS,)  # the other one parses kernels, and runs no pass
    assert found.interpreter == ()


def test_a_test_that_parses_in_one_version_and_compiles_in_another(tree: SuiteTree) -> None:
    (tree.root / FRONT).write_text("def test_a():\n    kernel.warmup(grid=(1, ))\n")
    assert of(tree, SOURCE).gpu_less == (FRONT, ERRORS)


def test_methods_of_the_sources_own_classes_are_nothing_that_others_call(tree: SuiteTree) -> None:
    """Prefetch.cpp of 63068fcc27 has `Prefetcher::initialize()`, and headers declare others of that name."""
    source = tree.root / SOURCE
    before = source.read_text()
    (tree.root / "include" / "Other.h").write_text("int initialize();\nbool isZero(int);\n")
    own = "class Prefetcher {\n  int initialize();\n};\nint Prefetcher::initialize() {\n}\n"
    hidden = "namespace {\nbool isZero(int) { return '{' == 1; }\n} // namespace\n"
    source.write_text(own + hidden + before)
    assert of(tree, SOURCE).lit == ("test/TritonGPU/pipeline.mlir",)
    source.write_text("int initialize() {\n}\n" + before)
    assert of(tree, SOURCE) == tree.whole(SUITES)


def test_a_pass_that_another_pass_runs_affects_the_tests_of_both(tree: SuiteTree) -> None:
    """OptimizePartitionWarps of 63068fcc27 runs coalescing, for one."""
    other = tree.root / "lib/Dialect/TritonGPU/Transforms/Other.cpp"
    add = "pm.addPass(createTritonGPUPipeline());"
    other.write_text(f"void helper(PassManager &pm) {{\n  {add}\n}}\n")
    (tree.root / "include" / "Helper.h").write_text("void helper(PassManager &pm);\n")
    assert of(tree, SOURCE) == tree.whole(SUITES)
    passes = tree.root / "include/triton/Dialect/TritonGPU/Transforms/Passes.td"
    passes.write_text(
        passes.read_text() + 'def TritonGPUOuter : Pass<"tritongpu-outer", "mlir::ModuleOp"> {}\n'
    )
    other.write_text(f"#define GEN_PASS_DEF_TRITONGPUOUTER\n// TritonGPUOuter\nvoid run() {{\n  {add}\n}}\n")
    run = "// RUN: triton-opt %s -split-input-file -tritongpu-outer --allocate | FileCheck %s\n"
    (tree.root / "test/TritonGPU/outer.mlir").write_text(run)
    assert of(tree, SOURCE).lit == ("test/TritonGPU/pipeline.mlir", "test/TritonGPU/outer.mlir")


def test_tests_of_fewer_passes_come_first(tree: SuiteTree) -> None:
    alone = "// RUN: triton-opt %s -tritongpu-pipeline\n"
    (tree.root / "test/TritonGPU/z.mlir").write_text(alone)
    (tree.root / "test/TritonGPU/a.mlir").write_text(alone.replace("\n", " -one --two -three\n"))
    found = of(tree, SOURCE).lit
    assert found[0] == "test/TritonGPU/z.mlir"
    assert found[-1] == "test/TritonGPU/a.mlir"


def test_a_unit_test_that_makes_the_pass_is_affected(tree: SuiteTree) -> None:
    assert [unit.name for unit in of(tree, SOURCE).cpp] == ["TestMore"]


def test_a_source_that_others_call_affects_all(tree: SuiteTree) -> None:
    source = tree.root / SOURCE
    source.write_text(source.read_text() + "int mlir::helpOthers(int n) {\n}\n")
    assert of(tree, SOURCE).lit == ("test/TritonGPU/pipeline.mlir",)  # as no header has it
    (tree.root / "include" / "Help.h").write_text("int helpOthers(int n);\n")
    assert of(tree, SOURCE) == tree.whole(SUITES)


@pytest.mark.parametrize(
    ("file", "suites"),
    [
        ("lib/Dialect/TritonGPU/IR/Dialect.cpp", set(SUITES)),
        ("include/triton/Dialect/TritonGPU/IR/Ops.td", set(SUITES)),
        ("CMakeLists.txt", set(SUITES)),
        ("new/file.cpp", set(SUITES)),
        ("python/src/passes.cc", GPU_LESS | INTERPRETER),
        ("python/triton/language/core.py", GPU_LESS | INTERPRETER),
        ("test/lit.cfg.py", LIT),
        ("unittest/Tools/CMakeLists.txt", {"cpp"}),
        ("docs/index.md", set()),
    ],
)
def test_whole_suites(tree: SuiteTree, file: str, suites: set[str]) -> None:
    found = of(tree, file)
    assert set(found.suites) == suites
    assert found.suites == tree.whole(found.suites).suites
    assert found.lit in ((), ("test",))


def test_tests_affect_themselves(tree: SuiteTree) -> None:
    assert of(tree, "test/TritonGPU/other.mlir").lit == ("test/TritonGPU/other.mlir",)
    assert [unit.name for unit in of(tree, "unittest/Tools/LayoutTest.cpp").cpp] == ["TestLayout"]
    assert of(tree, FRONT).suites == ("gpu-less",)
    assert of(tree, MARKED).suites == ("interpreter",)
    gpu = of(tree, "python/test/unit/test_core.py")
    assert gpu.suites == ()
    assert gpu.left_out == (("python/test/unit/test_core.py", "nothing here: its tests need a GPU"),)


def test_what_is_affected_and_not_asked_for_is_said(tree: SuiteTree) -> None:
    found = selection.of_files(Index(SourceFiles(tree.root)), tree, ["python/src/passes.cc"])
    asked = found.selection(tree, ["lit", "gpu-less"])
    assert asked.suites == ("gpu-less",)
    assert asked.left_out == (
        ("interpreter", "a changed file can affect it, and --interpreter is not given"),
    )


def test_a_deleted_source_affects_what_it_did(tree: SuiteTree) -> None:
    files = ["lib/Gone.cpp", "test/TritonGPU/gone.mlir"]
    found = selection.of_files(Index(SourceFiles(tree.root)), tree, [], files)
    assert found.whole == set(SUITES)
    only_test = selection.of_files(Index(SourceFiles(tree.root)), tree, [], files[1:])
    assert only_test.selection(tree, SUITES).suites == ()
