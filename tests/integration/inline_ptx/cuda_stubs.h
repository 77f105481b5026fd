// The words of CUDA C++ that a header of kernel.inline-ptx uses, for clang without a CUDA toolkit.
#pragma once

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __forceinline__ inline __attribute__((always_inline))
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))

#define SHARED_SPACE __attribute__((address_space(3)))
#define GLOBAL_SPACE __attribute__((address_space(1)))

__device__ inline unsigned long __cvta_generic_to_shared(const void *pointer) {
  return (unsigned long)(const SHARED_SPACE void *)pointer;
}

__device__ inline unsigned long __cvta_generic_to_global(const void *pointer) {
  return (unsigned long)(const GLOBAL_SPACE void *)pointer;
}
