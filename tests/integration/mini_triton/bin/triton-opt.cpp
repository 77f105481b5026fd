#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<mlir::triton::TritonDialect>();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "mini-triton optimizer\n", registry));
}
