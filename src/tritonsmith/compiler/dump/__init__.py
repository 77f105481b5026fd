"""`passes.dump` and `passes.import`: the IR before each pass, split into files with an index."""
