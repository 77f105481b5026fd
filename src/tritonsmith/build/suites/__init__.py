"""Triton's own tests: their selection, the effect of changes on them, and their results."""
