"""A folder of kernels that must keep compiling: what they are compiled with, and copies of their sources."""
