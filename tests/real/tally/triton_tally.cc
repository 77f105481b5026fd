// The Python module of a backend for no device: it counts the operations of a module.

#include "mlir/IR/BuiltinOps.h"
#include <map>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <string>

namespace py = pybind11;

void init_triton_tally(py::module &&m) {
  m.doc() = "Counts of operations";
  m.def("operations", [](mlir::ModuleOp module) {
    std::map<std::string, int> counts;
    module.walk([&](mlir::Operation *op) {
      ++counts[op->getName().getStringRef().str()];
    });
    return counts;
  });
}
