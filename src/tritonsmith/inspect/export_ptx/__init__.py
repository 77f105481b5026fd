"""The PTX of a compiled kernel, read by its grammar and turned into inline assembly."""
