"""What is wrong with a kernel: one thing changed at a time, and a verdict."""
