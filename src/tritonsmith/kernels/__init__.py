"""Kernels compiled without a GPU, in the env's interpreter."""
