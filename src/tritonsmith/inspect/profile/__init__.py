"""`kernel.profile`: what a program's kernels take on a GPU, by line of Python."""
