"""Developer environments and build orchestration for people who hack on the Triton GPU compiler."""

__version__ = "0.1.0"
