"""LLVM's dialect: the threads of one block run in lockstep, each value is an array over them."""
