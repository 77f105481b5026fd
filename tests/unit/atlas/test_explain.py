"""A word, and what a checkout says of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.atlas.planted import plant
from tests.unit.repositories import Made
from tritonsmith.atlas import command
from tritonsmith.atlas.answer import AtlasFacts
from tritonsmith.atlas.index import Index
from tritonsmith.atlas.source_files import SourceFiles
from tritonsmith.core.errors import SmithError, UsageError


@pytest.fixture
def index(tmp_path: Path) -> Index:
    return command.index_of(plant(tmp_path / "my triton"), [])


def places(found: AtlasFacts, section: str) -> list[str]:
    return [f"{place} {place.what}".strip() for place in found.places[section]]


def test_a_pass_from_its_definition_to_its_tests(index: Index) -> None:
    found = command.explain(index, "tritongpu-pipeline")
    assert (found.kind, found.summary) == ("pass", "pipeline loops")
    assert places(found, "defined") == [
        "include/triton/Dialect/TritonGPU/Transforms/Passes.td:2 TritonGPUPipeline"
    ]
    assert places(found, "implemented") == ["lib/Dialect/TritonGPU/Transforms/Pipeline.cpp:4 runOnOperation"]
    assert found.facts["debug type"] == "tritongpu-loop-pipeline"
    assert places(found, "bound") == ["python/src/passes.cc:3 add_pipeline"]
    assert found.tables["options"] == [
        ("num-stages", "int32_t", "number of pipeline stages (default: 3)"),
        ("sizes", "list of int64_t", "sizes, in bytes"),
    ]
    assert found.tables["statistics"] == [("num-loops", "", "Number of loops")]
    assert places(found, "tests") == ["test/TritonGPU/pipeline.mlir:1"], "not of a pass whose name goes on"


def test_a_call_has_all_conditions_around_it_and_belongs_to_the_binding_of_its_module(index: Index) -> None:
    (call,) = command.explain(index, "tritongpu-pipeline").places["called"]
    assert call.when == ("capability // 10 >= 8", "opt.num_stages")
    assert call.what == "make_ttgir of nvidia: passes.ttgpuir.add_pipeline(pm, opt.num_stages)"
    (other,) = command.explain(index, "amd-pipeline").places["called"]
    assert other.when == ("not (capability // 10 >= 8)",)


def test_a_wrapper_in_the_same_file_is_looked_through(index: Index) -> None:
    assert places(command.explain(index, "amd-pipeline"), "bound") == [
        "third_party/amd/python/triton_amd.cc:6 add_pipeline"
    ]


def test_what_is_not_there_is_said(index: Index) -> None:
    found = command.explain(index, "tritongpu-unused")
    assert found.places["implemented"] == found.places["bound"] == found.places["tests"] == ()
    assert places(found, "called in C++") == ["lib/Dialect/TritonGPU/Transforms/Pipeline.cpp:5"]
    page = "\n".join(map(str, command.blocks(found)))
    assert "no test names it" in page
    assert "no binding to Python" in page


def test_an_op_through_a_class_of_the_tree(index: Index) -> None:
    found = command.explain(index, "ttg.convert_layout")
    assert found.summary == 'convert; "layout" { of a tensor'
    assert found.description == "Moves } elements.\n\n  as: code;"
    assert found.tables["arguments"] == [("src", "TT_Tensor", ""), ("fast", "OptionalAttr<UnitAttr>", "")]
    assert found.tables["results"] == [("result", "TT_Tensor", "")]
    assert found.facts["C++ adds"] == "canonicalizer"
    assert found.facts["traits"] == "SameOperandsAndResultShape, Pure, VerifyTensorLayoutsTrait"
    assert places(found, "implemented") == [
        "lib/Dialect/TritonGPU/IR/Dialect.cpp:2 ConvertLayoutOp::verify",
        "lib/Dialect/TritonGPU/IR/Dialect.cpp:5 ConvertLayoutOp::getCanonicalizationPatterns",
    ]
    assert places(found, "patterns") == [
        "lib/Dialect/TritonGPU/IR/Dialect.cpp:8 Canonicalize (OpRewritePattern)"
    ]
    assert places(found, "built") == ["python/src/ir.cc:3 create_convert_layout"]
    assert places(found, "language") == ["python/triton/language/core.py:3 tl.convert"]
    assert places(found, "tests") == ["test/TritonGPU/pipeline.mlir:2 2 times"]


def test_an_attribute_takes_from_its_class_what_it_does_not_say(index: Index) -> None:
    found = command.explain(index, "#ttg.blocked")
    assert found.description == "From the class."
    assert found.facts["C++ class"] == "BlockedEncodingAttr"
    assert (
        command.explain(index, "blocked").name == command.explain(index, "BlockedAttr").name == "#ttg.blocked"
    )


def test_a_dialect_lists_what_it_has(index: Index) -> None:
    found = command.explain(index, "ttg")
    assert [row[0] for row in found.tables["contains"]] == ["ttg.convert_layout", "#ttg.blocked"]


def test_a_function_down_to_the_op_through_what_its_semantics_call(index: Index) -> None:
    found = command.explain(index, "tl.convert")
    assert (found.summary, found.description) == ("Converts a tensor.", "More of it.")
    assert found.facts["signature"] == "tl.convert(x, fast=False)"
    assert found.facts["ops"] == "ttg.convert_layout"
    assert places(found, "implemented") == ["python/triton/language/semantic.py:3 convert"]
    assert places(found, "tests") == ["python/test/unit/test_core.py:2"]


def test_a_function_of_gluon_has_its_own_semantics_and_tests(tmp_path: Path) -> None:
    gluon = tmp_path / "python" / "triton" / "experimental" / "gluon" / "language"
    tests = tmp_path / "python" / "test"
    for folder in (gluon, tests):
        folder.mkdir(parents=True)
    (gluon / "__init__.py").write_text("from ._core import arange\n")
    (gluon / "_core.py").write_text(
        "def arange(start, end, _semantic=None):\n    return _semantic.arange(start)\n"
    )
    (gluon / "_semantic.py").write_text("class GluonSemantic:\n    def arange(self, start):\n        pass\n")
    (tests / "test_tl.py").write_text("triton.language.arange(0, 4)\n")
    (tests / "test_gl.py").write_text("triton.experimental.gluon.language.arange(0, 4)\n")
    answer = command.explain(Index(SourceFiles(tmp_path)), "gl.arange")
    assert places(answer, "implemented") == [
        "python/triton/experimental/gluon/language/_semantic.py:2 arange"
    ]
    assert places(answer, "tests") == ["python/test/test_gl.py:1"]


def test_what_is_set_from_outside(index: Index) -> None:
    option = command.explain(index, "num_stages")
    assert option.summary == "stages of the pipeline"
    assert option.tables["declared by"] == [
        ("CUDAOptions of nvidia", "int", "stages of the pipeline (default: 3)")
    ]
    assert [place.line for place in option.places["read"]] == [11, 12]
    assert command.explain(index, "CUDAOptions.maxnreg").summary == "registers"
    variable = command.explain(index, "TRITON_KERNEL_DUMP")
    assert places(variable, "read") == ["python/triton/knobs.py:1"]
    assert variable.summary
    cmake = command.explain(index, "TRITON_BUILD_UT")
    assert (cmake.kind, cmake.summary) == ("cmake", "Build the unit tests")
    assert command.explain(index, "TRITON_KINDS").tables["declared by"][0][1:] == (
        "STRING",
        "Which kinds (default: a;b)",
    )


def test_the_text_of_an_error_in_cpp_and_in_python(index: Index) -> None:
    found = command.explain(
        index, "error: 'ttg.convert_layout' op expected the source and the result to have one shape"
    )
    assert places(found, "printed")[0].startswith("lib/Dialect/TritonGPU/IR/Dialect.cpp:3")
    found = command.explain(index, "ValueError: cannot convert a tensor of 3 here")
    assert places(found, "printed")[0].startswith("python/triton/language/semantic.py:7")
    with pytest.raises(SmithError, match="nothing here is called"):
        command.explain(index, "this is printed by nobody at all")


def test_a_file_by_its_path_and_by_its_name(index: Index) -> None:
    found = command.explain(index, "lib/Dialect/TritonGPU/Transforms/Pipeline.cpp")
    assert found.tables["implements"] == [("tritongpu-pipeline", "pass", "pipeline loops")]
    assert command.explain(index, "Pipeline.cpp").name == found.name
    assert command.explain(index, "Ops.td").tables["defines"][0][0] == "ttg.convert_layout"
    with pytest.raises(SmithError, match="one of 2 files"):
        command.explain(index, "Passes.td")


def test_several_meanings_are_listed_and_a_kind_chooses(index: Index) -> None:
    with pytest.raises(SmithError, match="pipeline may be one of 2 things") as caught:
        command.explain(index, "pipeline")
    assert caught.value.exit_code == 1
    assert "invoke explain amd-pipeline" in caught.value.hints
    assert command.explain(index, "tritongpu-loop-pipeline").kind == "debug-type"
    with pytest.raises(SmithError, match="of kind op"):
        command.explain(index, "tritongpu-pipeline", "op")
    with pytest.raises(UsageError, match="unknown kind"):
        command.explain(index, "tritongpu-pipeline", "pas")


def test_a_slip_is_answered_by_the_name_that_was_meant(index: Index) -> None:
    with pytest.raises(SmithError) as caught:
        command.explain(index, "tritongpu-pipline")
    assert caught.value.hints[0] == "did you mean 'tritongpu-pipeline'?"


def test_lists_have_every_name_once(index: Index) -> None:
    passes = command.listing(index, "passes")
    assert [one.name for one in passes] == ["amd-pipeline", "cse", "tritongpu-pipeline", "tritongpu-unused"]
    assert [one.name for one in command.listing(index, "debug-types")] == ["tritongpu-loop-pipeline"]
    assert [one.name for one in command.listing(index, "variables")] == [
        "DISABLE_LLVM_OPT",
        "TRITON_KERNEL_DUMP",
        "TRITON_NEWEST_TOOL_PATH",
        "TRITON_PTXAS_PATH",
    ]
    with pytest.raises(UsageError, match="no list of 'pass'"):
        command.listing(index, "pass")


def test_classes_functions_patterns_and_traits_of_cpp(index: Index) -> None:
    layout = command.explain(index, "LinearLayout")
    assert (layout.kind, layout.description) == ("class", "Maps the index of an element to its place.")
    assert places(layout, "defined") == ["include/triton/Tools/Layout.h:2 class LinearLayout"]
    assert places(layout, "used") == ["lib/Tools/Layout.cpp:2"]
    helper = command.explain(index, "getTotalElemsPerThread")
    assert places(helper, "defined") == ["lib/Tools/Layout.cpp:4 unsigned getTotalElemsPerThread(Type type)"]
    assert places(helper, "declared") == [
        "include/triton/Tools/Layout.h:9 unsigned getTotalElemsPerThread(Type type)"
    ], "calls and returns are no declarations"
    method = command.explain(index, "LinearLayout::elems")
    assert places(method, "defined") == ["lib/Tools/Layout.cpp:2 int LinearLayout::elems(int thread)"]
    pattern = command.explain(index, "Canonicalize")
    assert (pattern.kind, pattern.facts["matches"]) == ("pattern", "ttg.convert_layout")
    assert command.explain(index, "SameShape").kind == "trait"
    assert command.explain(index, "LDBG").kind == "macro"
    assert command.explain(index, "BlockedToMMA", "pattern").name == "BlockedToMMA"
    with pytest.raises(SmithError, match="of kind trait"):
        command.explain(index, "BlockedToMMA", "trait")


def test_classes_and_methods_of_python(index: Index) -> None:
    assert places(command.explain(index, "TritonSemantic"), "defined") == [
        "python/triton/language/semantic.py:2 class TritonSemantic()"
    ]
    found = command.explain(index, "CUDABackend.make_ttgir")
    assert found.facts["written"] == "def CUDABackend.make_ttgir(mod, metadata, opt, capability)"
    with pytest.raises(SmithError, match="nothing here is called"):
        command.explain(index, "HIPBackend.make_ttgir")


def test_the_tree_counts_every_file_of_a_folder(tmp_path: Path) -> None:
    root = plant(tmp_path)
    for name in ("cmake/llvm-hash.txt", "cmake/json-version.txt", "docs/index.rst", "docs/build/index.html"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("a\n")
    rows = command.folder_map(command.index_of(root, [])).tables["folders"]
    assert {folder: size for folder, size, _ in rows if folder in ("cmake", "docs")} == {
        "cmake": "2 files",
        "docs": "1 file",
    }


@pytest.mark.parametrize("name", sorted(command.stages()))
def test_every_stage_and_suffix_is_answered(index: Index, name: str) -> None:
    found = command.explain(index, f".{name}")
    assert (found.kind, found.name) == ("stage", name)
    assert found.summary
    assert found.facts["format"]
    made = [str(place) for place in found.places.get("made by", ())]
    assert made == (["third_party/nvidia/backend/compiler.py:9"] if name == "ttgir" else [])


def test_a_pass_of_mlir_has_one_answer_however_the_backend_imports_passes(index: Index) -> None:
    for word in ("cse", "add_cse", "passes.common.add_cse", "triton_passes.common.add_cse", "CSE"):
        found = command.explain(index, word)
        assert (found.kind, found.name) == ("pass", "cse")
        assert len(found.places["called"]) == 2
    assert "common sub-expressions" in found.summary
    (row,) = command.listing(index, "mlir-passes")
    assert (row.name, row.summary) == ("cse", found.summary)


def test_a_variable_whose_name_the_sources_compose(index: Index) -> None:
    found = command.explain(index, "TRITON_PTXAS_PATH")
    assert (found.kind, found.summary) == ("variable", "ptxas")
    assert places(found, "read") == [
        """python/triton/knobs.py:6 f"TRITON_{binary.upper().replace('-', '_')}_PATH\"""",
        'python/triton/knobs.py:9 env_tool("ptxas")',
    ]
    assert "compose this name" in found.notes[-1]
    assert command.explain(index, "TRITON_NEWEST_TOOL_PATH").kind == "variable", "in no table"
    with pytest.raises(SmithError, match="nothing here is called"):
        command.explain(index, "TRITON_PTXAS_FOLDER")


def test_a_variable_that_a_file_without_the_lower_case_word_env_reads(index: Index) -> None:
    assert places(command.explain(index, "DISABLE_LLVM_OPT"), "read") == ["python/src/llvm.cc:1"]


def test_what_was_removed_is_answered_with_its_commit(index: Index) -> None:
    found = command.explain(index, "triton-rewrite-tensor-pointer")
    assert (found.kind, found.summary) == ("pass", "removed in 3.7")
    assert found.facts["removed by"] == (
        "2026-03-07 b939621a02 Rewrite block pointer to be python-only (#9668)"
    )
    assert "upstream's history" in found.notes[0]


def test_one_commit_is_one_line(tmp_path: Path) -> None:
    root = plant(tmp_path / "triton")
    made = Made(root)
    made.commit("all of it")
    made.close()
    index = command.index_of(root, [])
    assert [one.subject for one in command.explain(index, "num_stages").changes] == ["all of it"]


def test_the_map_has_the_folders_that_are_there(index: Index) -> None:
    rows = {row[0]: row[1] for row in command.explain(index, "tree").tables["folders"]}
    assert rows["third_party/nvidia/backend"] == "1 file"
    assert "third_party/proton" not in rows


def test_a_launcher_that_is_not_there_is_an_error(index: Index) -> None:
    with pytest.raises(SmithError, match="no step of a launch"):
        command.explain(index, "launcher")


def test_an_installed_triton_shows_its_python(tmp_path: Path) -> None:
    planted = plant(tmp_path / "checkout")
    package = tmp_path / "site-packages" / "triton"
    for name in ("language", "knobs.py"):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (planted / "python" / "triton" / name).rename(package / name)
    (package / "backends").mkdir()
    (planted / "third_party/nvidia/backend").rename(package / "backends/nvidia")
    index = command.index_of(package, [])
    found = command.explain(index, "tl.convert")
    assert "needs a checkout" in found.notes[-1]
    assert command.explain(index, "num_stages").tables["declared by"][0][0] == "CUDAOptions of nvidia"
    (call,) = command.explain(index, "passes.ttgpuir.add_pipeline").places["called"]
    assert call.when == ("capability // 10 >= 8", "opt.num_stages")


def test_a_wheel_with_definitions_names_the_pass_that_a_call_may_add(tmp_path: Path) -> None:
    planted = plant(tmp_path / "checkout")
    package = tmp_path / "site-packages" / "triton"
    (package / "backends").mkdir(parents=True)
    (planted / "include").rename(package / "include")
    (planted / "third_party/nvidia/backend").rename(package / "backends/nvidia")
    found = command.explain(command.index_of(package, []), "passes.ttgpuir.add_pipeline")
    assert "judging by its name, perhaps tritongpu-pipeline" in found.notes


def test_a_short_name_means_the_pass_in_a_wheel_as_in_a_checkout(tmp_path: Path) -> None:
    planted = plant(tmp_path / "checkout")
    package = tmp_path / "site-packages" / "triton"
    (package / "backends").mkdir(parents=True)
    (planted / "include").rename(package / "include")
    (planted / "third_party/nvidia/backend").rename(package / "backends/nvidia")
    (package / "gsan.cc").write_text('m.def("__str__", [](int x) { return x; });')  # what 3.9 has of C++
    compiler = package / "backends/nvidia/compiler.py"
    text = compiler.read_text()
    compiler.write_text(text.replace("amd.passes.ttgpuir.add_pipeline(pm, 1)", "pass"))
    index = command.index_of(package, [])
    found = command.explain(index, "pipeline")
    assert (found.kind, found.name) == ("pass", "tritongpu-pipeline")
    (call,) = found.places["called, perhaps"]
    assert "passes.ttgpuir.add_pipeline" in call.what
    assert "called" not in found.places
    assert any("its name is the only clue" in note for note in found.notes)
    compiler.write_text(text)  # where another call has that name, too
    with pytest.raises(SmithError) as error:
        command.explain(command.index_of(package, []), "pipeline")
    assert len(error.value.hints) == 3
