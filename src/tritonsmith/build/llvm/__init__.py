"""`setup-mlir`: an LLVM/MLIR from one of three providers, and its entry in the store."""
