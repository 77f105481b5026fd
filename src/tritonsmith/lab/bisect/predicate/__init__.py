"""What makes a Triton bad: limits, texts and failures of kernels that it compiles, commands, tests."""
