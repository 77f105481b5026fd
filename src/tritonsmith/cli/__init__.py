"""The command line: Invoke's program, and a file per command."""
