"""Which Triton belongs to which PyTorch."""
