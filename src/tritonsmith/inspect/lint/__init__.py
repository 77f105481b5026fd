"""What a kernel's own stages show to be slow, each finding with the lines that prove it."""
