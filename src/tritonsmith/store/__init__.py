"""LLVM builds, kept: many at once, found by what they provide."""
