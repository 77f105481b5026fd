#include <cuda.h>

int mini_nvidia_cuda_version(void) { return CUDA_VERSION; }
