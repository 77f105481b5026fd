"""`build-triton` and `install-triton`: Triton's CMake configure and build, and the editable install."""
