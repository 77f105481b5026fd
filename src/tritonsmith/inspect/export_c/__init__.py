"""Kernels compiled ahead of time, as C: the interface of Triton's tools/compile.py and tools/link.py."""
