"""Compiles kernels without a GPU, in the interpreter of an environment, and keeps every stage."""
