#include "llvm/Mini/Metals.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Mini/Twice.h"

int main(int argc, char **argv) {
  llvm::cl::ParseCommandLineOptions(argc, argv);
  mlir::MLIRContext context; // MLIR's own libraries, which a distribution links with the shared LLVM
  llvm::outs() << mlir::mini::twice(mlir::mini::half(2)) << "; " << llvm::mini::describe(79) << "\n";
  return 0;
}
