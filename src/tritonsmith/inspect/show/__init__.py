"""Stages of a compiled kernel, and the source lines that each line of a stage comes from."""
