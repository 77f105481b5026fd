"""`debug-library`: single libraries of LLVM and MLIR at `-O0 -g` within an otherwise unchanged LLVM."""
