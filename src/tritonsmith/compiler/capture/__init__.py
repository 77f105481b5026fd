"""`kernel.capture`: what a program launches, as a list of kernels."""
