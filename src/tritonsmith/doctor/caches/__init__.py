"""Triton's compile caches: listing and clearing."""
