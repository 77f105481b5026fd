#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Pass/Pass.h"
#include "triton/Tools/PluginUtils.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/VCSRevision.h"

#include <memory>
#include <string>
#include <vector>

// Whose headers these are: nothing else in the library tells, and
// `plugin.check` compares it with the LLVM that is in libtriton.
#ifndef LLVM_REVISION
#define LLVM_REVISION ""
#endif
#define VERSION "0.1.0 (LLVM " LLVM_VERSION_STRING " " LLVM_REVISION ")"

namespace {

struct @CLASS@Pass
    : public mlir::PassWrapper<@CLASS@Pass,
                               mlir::OperationPass<mlir::ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(@CLASS@Pass)

  llvm::StringRef getArgument() const final { return "@ARGUMENT@"; }
  llvm::StringRef getDescription() const final { return "@SUMMARY@"; }

  // An example to replace: it counts the operations of each function, and
  // leaves their number as an attribute that the tests look for.
  void runOnOperation() override {
    getOperation().walk([](mlir::FunctionOpInterface func) {
      int32_t operations = 0;
      func.getFunctionBody().walk([&](mlir::Operation *) { ++operations; });
      mlir::Operation *op = func.getOperation();
      op->setAttr("@ATTRIBUTE@",
                  mlir::Builder(op).getI32IntegerAttr(operations));
    });
  }
};

void addPass(mlir::PassManager *pm, const std::vector<std::string> &) {
  pm->addPass(std::make_unique<@CLASS@Pass>());
}

void registerPass() { mlir::PassRegistration<@CLASS@Pass>(); }

} // namespace

TRITON_PLUGIN_API mlir::triton::plugin::PluginInfo *tritonGetPluginInfo() {
  static mlir::triton::plugin::PassInfo passes[] = {
      {"@ATTRIBUTE@", VERSION, addPass, registerPass}};
  static mlir::triton::plugin::PluginInfo info = [] {
    mlir::triton::plugin::PluginInfo made{};
    made.apiVersion = TRITON_PLUGIN_API_VERSION;
    made.pluginName = "@NAME@";
    made.pluginVersion = VERSION;
    made.passes = passes;
    made.numPasses = 1;
#if TRITON_PLUGIN_API_VERSION >= 2
    made.tritonVersion = TRITON_VERSION;
#endif
    return made;
  }();
  return &info;
}
