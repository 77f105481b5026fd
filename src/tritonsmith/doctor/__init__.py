"""Finds what costs people hours, by reading files."""
