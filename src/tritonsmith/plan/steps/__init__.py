"""Every kind of step, each with the shell that it prints and what it does."""
