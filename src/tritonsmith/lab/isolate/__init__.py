"""`passes.isolate`: the pass that fails, or the first pass after which a text is there."""
