"""Performance problems that a kernel's own stages show, each finding with the lines that prove it."""
