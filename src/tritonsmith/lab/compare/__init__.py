"""Two compilers, or two ways to call one, side by side: one kernel, or all that an upgrade would compile."""
