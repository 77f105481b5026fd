"""Every kind of step: the shell that it prints, and the code that does the same."""
