"""The providers of an LLVM, one file each, and the choice among them."""
