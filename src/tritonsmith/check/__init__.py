"""`passes.check`: run the IR before and after each pass, and name the first that changes the result."""
