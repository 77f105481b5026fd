"""`debug-library`: single libraries of LLVM and MLIR at `-O0 -g` under an LLVM that stays as it is."""
