"""Diagnoses the environment, by reading files."""
