"""Which component changed a kernel: Triton's passes, LLVM, or ptxas."""
