"""The store of LLVM builds, found by what they provide."""
