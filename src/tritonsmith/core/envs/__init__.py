"""Env files, the origin of each value, the workspace on disk, and receipts."""
