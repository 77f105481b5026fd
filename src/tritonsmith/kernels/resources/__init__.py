"""What a compiled kernel takes of the GPU: read from what the compiler left, with no GPU."""
