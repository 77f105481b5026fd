"""A new pass: its files in a checkout of Triton, or a plugin in a folder of its own."""
