"""`passes.run`: a program whose kernels are compiled by changed pipelines."""
