"""The Triton that belongs to each PyTorch."""
