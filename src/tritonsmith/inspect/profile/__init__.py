"""`kernel.profile`: the time of a program's kernels on a GPU, by line of Python."""
