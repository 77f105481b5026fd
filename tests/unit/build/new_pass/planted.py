"""Small Tritons as they were: the passes of one family, and what binds and registers them."""

from __future__ import annotations

from pathlib import Path

TD = """#ifndef PASSES
include "mlir/Pass/PassBase.td"

def @RECORD@Coalesce : Pass<"@ARGUMENT@coalesce", "mlir::ModuleOp"> {
  let summary = "coalesce";
@MORE@}

#endif
"""
GENERATED = """#include "mlir/Pass/Pass.h"

namespace mlir {
struct Other {};
namespace triton { namespace gpu {

// namespace in_a_comment {
#define GEN_PASS_DECL
#include "X.h.inc"

#define GEN_PASS_REGISTRATION
#include "X.h.inc"

} }
} // namespace mlir
"""
BY_HAND = """namespace mlir {
namespace triton {
struct Info { int x; };
} // namespace triton

std::unique_ptr<Pass>
createTritonAMDGPUCoalescePass(std::string arch = std::string(),
                               int kpack = 1);

#define GEN_PASS_REGISTRATION
#include "TritonAMDGPUTransforms/Passes.h.inc"

} // namespace mlir
"""
CMAKE = """add_triton_library(TritonTransforms
  AccelerateMatmul.cpp
  Coalesce.cpp
  Pipeliner/Schedule.cpp
  Utility.cpp

  DEPENDS
  TransformsIncGen
)
"""
OPT = """inline void registerTritonDialects(mlir::DialectRegistry &registry) {
  mlir::registerAllPasses();
  mlir::triton::gpu::registerTritonGPUPasses();
  mlir::registerTritonAMDGPUCoalesce();
  mlir::triton::AMD::registerTritonAMDGPUElsewhere();
}
"""
_GPU = "include/triton/Dialect/TritonGPU/Transforms"
_GPU_LIB = "lib/Dialect/TritonGPU/Transforms/CMakeLists.txt"
_AMD = "third_party/amd/include/TritonAMDGPUTransforms"
_SETUP = {"python/setup.py": 'TRITON_VERSION = "3.0.0"\n', "bin/RegisterTritonDialects.h": OPT}


def _td(record: str, argument: str, more: str = "") -> str:
    return TD.replace("@RECORD@", record).replace("@ARGUMENT@", argument).replace("@MORE@", more)


WRAPPED = {
    **_SETUP,
    f"{_GPU}/Passes.td": _td("TritonGPU", "tritongpu-"),
    f"{_GPU}/Passes.h": GENERATED,
    _GPU_LIB: CMAKE,
    "python/src/passes.cc": """#include <pybind11/pybind11.h>
void init_triton_passes_ttgpuir(py::module &&m) {
  using namespace mlir::triton::gpu;
  ADD_PASS_WRAPPER_0("add_coalesce",
                     createTritonGPUCoalesce);
}
""",
    "test/TritonGPU/coalesce.mlir": "",
}
CHAINED = {
    **_SETUP,
    f"{_GPU}/Passes.td": _td(
        "TritonGPU", "tritongpu-", '  let constructor = "mlir::createTritonGPUCoalescePass()";\n'
    ),
    f"{_GPU}/Passes.h": "namespace mlir {\nstd::unique_ptr<Pass> createTritonGPUCoalescePass();\n}\n",
    _GPU_LIB: CMAKE,
    "python/src/triton.cc": """#include <pybind11/pybind11.h>
void init_triton_ir(py::module &&m) {
  py::class_<mlir::PassManager>(m, "pass_manager")
      .def("add_tritongpu_coalesce_pass",
           [](mlir::PassManager &self) {
             self.addPass(mlir::createTritonGPUCoalescePass());
           });
}
""",
    "test/TritonGPU/coalesce.mlir": "",
}
REGISTERED = {
    **_SETUP,
    f"{_AMD}/Passes.td": _td(
        "TritonAMDGPU", "tritonamdgpu-", '  let constructor = "mlir::createTritonAMDGPUCoalescePass()";\n'
    ),
    f"{_AMD}/Passes.h": BY_HAND,
    "third_party/amd/lib/TritonAMDGPUTransforms/CMakeLists.txt": CMAKE,
    "third_party/amd/python/triton_amd.cc": """#include <pybind11/pybind11.h>
void init_triton_amd_passes_ttgpuir(py::module &&m) {
  m.def("add_coalesce", [](mlir::PassManager &pm, const std::string &arch) {
    pm.addPass(mlir::createTritonAMDGPUCoalescePass(arch));
  });
}
""",
    "test/TritonGPU/coalesce.mlir": "",
    "include/triton/x.h": "",
}


def plant(root: Path, files: dict[str, str]) -> Path:
    """The files, below a folder."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root
