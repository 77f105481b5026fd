"""Recipes for LLVM/MLIR and Triton: pure functions from facts and settings to plans."""
