"""LLVM's dialect, run by the threads of a block."""
