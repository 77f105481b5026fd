"""A small Triton: one pass, one op, one function of the language, one option, one variable."""

from __future__ import annotations

from pathlib import Path

FILES = {
    "setup.py": 'TRITON_VERSION = "3.6.0"\n',
    "CMakeLists.txt": """option(TRITON_BUILD_UT "Build the unit tests" ON)
set(TRITON_KINDS "a;b" CACHE STRING "Which kinds")
""",
    "include/triton/Dialect/TritonGPU/IR/Base.td": """
def TritonGPU_Dialect : Dialect {
  let name = "ttg";
  let summary = "layouts";
}
class TTG_Op<string mnemonic, list<Trait> traits = []> :
    Op<TritonGPU_Dialect, mnemonic, !listconcat(traits, [VerifyTensorLayoutsTrait])> {
}
class TTG_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<TritonGPU_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
  let description = [{
    From the class.
  }];
}
""",
    "include/triton/Dialect/TritonGPU/IR/Ops.td": """
// def TTG_CommentOp : TTG_Op<"comment">;
def TTG_ConvertLayoutOp : TTG_Op<"convert_layout", [SameOperandsAndResultShape, Pure]> {
  let summary = "convert; \\"layout\\" { of a tensor";
  let description = [{
    Moves } elements.

      as: code;
  }];
  let arguments = (ins TT_Tensor:$src, OptionalAttr<UnitAttr>: $fast /* a comment, here */);
  let results = (outs TT_Tensor:$result);
  let hasCanonicalizer = 1;
  let hasFolder = 0;
}
def BlockedAttr : TTG_Attr<"BlockedEncoding", "blocked"> {
  let parameters = (ins "int":$order);
}
""",
    "include/triton/Dialect/TritonGPU/Transforms/Passes.td": """
def TritonGPUPipeline : Pass</*cli-arg*/"tritongpu-pipeline", "mlir::ModuleOp"> {
  let summary = "pipeline " "loops";
  let options = [
    Option<"numStages", "num-stages",
           "int32_t", /*default*/"3",
           "number of pipeline stages">,
    ListOption<"sizes", "sizes", "int64_t", "sizes, in bytes">
  ];
  let statistics = [Statistic<"loops", "num-loops", "Number of loops">];
}
def TritonGPUUnused : Pass<"tritongpu-unused", "mlir::ModuleOp">;
""",
    "lib/Dialect/TritonGPU/IR/Dialect.cpp": """
LogicalResult ConvertLayoutOp::verify() {
  return emitOpError() << "expected the source and the result " << "to have one shape, not " << shape;
}
void ConvertLayoutOp::getCanonicalizationPatterns(RewritePatternSet &patterns) {
  auto x = ConvertLayoutOp::get(1);
}
struct Canonicalize : public mlir::OpRewritePattern<triton::gpu::ConvertLayoutOp> {
};
""",
    "lib/Dialect/TritonGPU/Transforms/Pipeline.cpp": """#define DEBUG_TYPE "tritongpu-loop-pipeline"
#define GEN_PASS_DEF_TRITONGPUPIPELINE
struct PipelinePass : public impl::TritonGPUPipelineBase<PipelinePass> {
  void runOnOperation() override {
    pm.addPass(createTritonGPUUnused());
  }
};
""",
    "python/src/ir.cc": """#include <pybind11/pybind11.h>
void init_triton_ir(py::module &&m) {
  m.def("create_convert_layout", [](TritonOpBuilder &self, Value &v) {
         return self.create<ttg::ConvertLayoutOp>(v);
       })
      .def("create_other", [](Value &v) { return v; });
}
""",
    "python/src/llvm.cc": 'bool off = triton::tools::getBoolEnv("DISABLE_LLVM_OPT");\n',
    "python/src/passes.cc": """#include <pybind11/pybind11.h>
void init_triton_passes_ttgpuir(py::module &&m) {
  ADD_PASS_OPTION_WRAPPER_1("add_pipeline", createTritonGPUPipeline, int);
}
""",
    "third_party/amd/python/triton_amd.cc": """#include <pybind11/pybind11.h>
static Pass createAMDPipelineWrapper(int n) {
  return createAMDPipeline(n);
}
void init_triton_amd_passes_ttgpuir(py::module &&m) {
  ADD_PASS_WRAPPER_1("add_pipeline", createAMDPipelineWrapper, int);
}
""",
    "third_party/amd/include/Passes.td": 'def AMDPipeline : Pass<"amd-pipeline">;\n',
    "third_party/nvidia/backend/compiler.py": """
@dataclass(frozen=True)
class CUDAOptions:
    # stages of the pipeline
    num_stages: int = 3
    maxnreg: Optional[int] = None  # registers

class CUDABackend:
    def make_ttgir(mod, metadata, opt, capability):
        if capability // 10 >= 8:
            if opt.num_stages:
                passes.ttgpuir.add_pipeline(pm, opt.num_stages)
        else:
            amd.passes.ttgpuir.add_pipeline(pm, 1)
        passes.common.add_cse(pm)
        triton_passes.common.add_cse(pm)

    def add_stages(self, stages, options):
        stages["ttgir"] = lambda src, metadata: self.make_ttgir(src, metadata, options, 80)
""",
    "python/triton/knobs.py": """dump: env_bool = env_bool("TRITON_KERNEL_DUMP")


class env_tool:
    def __init__(self, binary):
        super().__init__(f"TRITON_{binary.upper().replace('-', '_')}_PATH")


ptxas: env_tool = env_tool("ptxas")
newest: env_tool = env_tool("newest-tool")
""",
    "include/triton/Tools/Layout.h": """// Maps the index of an element to its place.
class LinearLayout {
public:
  explicit LinearLayout(int n) : n(n) {}
  // The elements that a thread has.
  int elems(int thread) const;
};
#define LDBG(X) (X)
unsigned getTotalElemsPerThread(Type type);
template <typename ConcreteType>
class SameShape : public TraitBase<ConcreteType, SameShape> {};
""",
    "lib/Tools/Layout.cpp": """
int LinearLayout::elems(int thread) const { return getTotalElemsPerThread(type); }

unsigned getTotalElemsPerThread(Type type) {
  return getTotalElemsPerThread(type.next);
}
class BlockedToMMA
    : public mlir::OpRewritePattern<DotOp> {
};
""",
    "python/triton/language/__init__.py": "from .core import (convert)\n",
    "python/triton/language/core.py": '''
@builtin
def convert(x, fast=False, _semantic=None):
    """
    Converts a tensor.

    More of it.
    """
    return _semantic.convert(x)
''',
    "python/triton/language/semantic.py": """
class TritonSemantic:
    def convert(self, x):
        return self.help(x)

    def help(self, x):
        raise ValueError(f"cannot convert a tensor of {x} here")
        return self.builder.create_convert_layout(x)
""",
    "test/TritonGPU/pipeline.mlir": """// RUN: triton-opt %s -tritongpu-pipeline=num-stages=2 | FileCheck %s
%1 = ttg.convert_layout %0
%2 = ttg.convert_layout %1
// ttg.convert_layouts ttg.convert_layout.x
""",
    "test/TritonGPU/other.mlir": "// RUN: triton-opt %s -tritongpu-pipeline-more\n",
    "python/test/unit/test_core.py": "def test():\n    tl.convert(x)\n",
}  # fmt: skip


def plant(root: Path) -> Path:
    """The files, below a folder."""
    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root
