"""Worktrees of Triton, each with an environment: added, listed, removed."""
