"""Env files, where each value came from, the workspace on disk, and receipts."""
