"""Plugins of Triton: whether a shared library fits a Triton that is to load it."""
