"""How kernels change over versions of Triton: registers, spills, code size."""
