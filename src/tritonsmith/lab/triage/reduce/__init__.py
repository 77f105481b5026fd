"""Shrink a kernel's Python source while a symptom persists: `reduce FILE.py`."""
