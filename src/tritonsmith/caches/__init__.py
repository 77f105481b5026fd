"""Triton's compile caches: what is in them, and how to clear a part."""
