"""`kernel.compile --resources`: tables and plots of registers, spills and occupancy, also of a cache."""
