"""`passes.list`, `passes.find`, `passes.diff` and `passes.show`: views of a dump."""
