"""The GPU resources of a compiled kernel, read from the files of its compile, with no GPU."""
