"""Shrink IR while a pass fails on it in the same way: `reduce FILE.mlir`."""
