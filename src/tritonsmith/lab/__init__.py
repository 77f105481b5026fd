"""Experiments: one thing is changed, a kernel is compiled or run again, and the results are compared."""
