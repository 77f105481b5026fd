"""Plugins of Triton: checks of a shared library against the Triton that should load it."""
