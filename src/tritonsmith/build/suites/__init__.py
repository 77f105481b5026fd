"""Triton's own tests: which there are, which a change can affect, and their results."""
