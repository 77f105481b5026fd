"""Which release, commit and pass changed what a kernel compiles to."""
