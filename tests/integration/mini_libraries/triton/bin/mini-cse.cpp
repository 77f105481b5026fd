#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

int main() {
  mlir::MLIRContext context;
  auto module = mlir::parseSourceString<mlir::ModuleOp>("module {}", &context);
  mlir::PassManager manager(&context);
  manager.addPass(mlir::createCSEPass());
  bool failed = mlir::failed(manager.run(*module));
  module->print(llvm::outs());
  return failed;
}
