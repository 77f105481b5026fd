"""Edits that make IR text or Python source smaller; all pure: a text in, texts out."""
