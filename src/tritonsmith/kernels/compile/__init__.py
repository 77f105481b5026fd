"""`kernel.compile`: a kernel, compiled in the env's interpreter without a GPU, and what that leaves."""
