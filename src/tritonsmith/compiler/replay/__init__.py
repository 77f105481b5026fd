"""One pass of a dump alone on its input: through libtriton's bindings, or a build's `triton-opt`."""
