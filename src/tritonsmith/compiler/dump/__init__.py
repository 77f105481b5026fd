"""`passes.dump`: the IR before each pass, split into files with an index."""
