"""All kernels of a corpus by the Triton of today and that of tomorrow: what an upgrade would break."""
