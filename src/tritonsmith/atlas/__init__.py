"""Explain a thing of Triton from one checkout: its definition, implementation, callers and tests."""
