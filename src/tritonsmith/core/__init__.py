"""Shared ground: plans and their runner, environments, the screen, errors, readers of untrusted files."""
