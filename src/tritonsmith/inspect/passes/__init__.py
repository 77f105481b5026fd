"""`passes.list`, `passes.diff` and `passes.show`: views of a dump."""
