"""Which thread, register or byte of shared memory holds which element of a tensor."""
