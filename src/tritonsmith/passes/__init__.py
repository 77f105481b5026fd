"""What each pass of the compiler does to a kernel: dumps taken apart, compared, replayed, reduced."""
