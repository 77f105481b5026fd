"""Compile a corpus with the Triton in use and the next one, and report what an upgrade would break."""
