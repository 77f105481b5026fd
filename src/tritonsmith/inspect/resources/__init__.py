"""`kernel.resources`: tables and pictures of registers, spills and occupancy, also of a cache's kernels."""
