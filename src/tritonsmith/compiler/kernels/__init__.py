"""Lists of kernels to compile: kernels files, traces, and files of a git repository."""
