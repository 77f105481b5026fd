"""The command line: parsing, and one module for each noun of it."""

import gc

# What a start allocates stays to the end, and scanning it again and again takes a tenth of a short command.
# Here, as this package is imported before Invoke and all else.
gc.set_threshold(50_000)
