#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "triton/Dialect/Triton/IR/Dialect.h"
#include "@HEADER@"
#include "llvm/Support/Debug.h"

#define DEBUG_TYPE "@ARGUMENT@"

namespace @NAMESPACE@ {

#define GEN_PASS_DEF_@UPPER@
#include "@HEADER@.inc"

namespace {

struct @CLASS@Pass : public impl::@RECORD@Base<@CLASS@Pass> {
  // An example to replace: it counts the operations of each function, and
  // leaves their number as an attribute that the lit test looks for.
  void runOnOperation() override {
    getOperation().walk([](::mlir::triton::FuncOp func) {
      int32_t operations = 0;
      func.getBody().walk([&](::mlir::Operation *) { ++operations; });
      LLVM_DEBUG(llvm::dbgs() << DEBUG_TYPE << ": " << func.getName() << " has "
                              << operations << " operations\n");
      func->setAttr("@ATTRIBUTE@",
                    ::mlir::Builder(func).getI32IntegerAttr(operations));
    });
  }
};

} // namespace
@CREATE@
} // namespace @NAMESPACE@
