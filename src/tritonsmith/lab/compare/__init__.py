"""Two compilers, or two ways to call one, side by side."""
