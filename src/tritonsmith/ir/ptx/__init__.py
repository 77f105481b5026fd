"""A parser of PTX, as far as a kernel's body needs one."""
