/* A libcuda.so.1 to link against on a machine without a driver: names only, never to be run. */
#define STUB(name) \
    int name(void) { return 100; } /* CUDA_ERROR_NO_DEVICE */
STUB(cuCtxSetCurrent)
STUB(cuCtxSynchronize)
STUB(cuDeviceGet)
STUB(cuDeviceGetAttribute) /* upstream's own C calls it */
STUB(cuDeviceGetName)
STUB(cuDevicePrimaryCtxRelease_v2)
STUB(cuDevicePrimaryCtxRetain)
STUB(cuFuncSetAttribute)
STUB(cuFuncSetCacheConfig)
STUB(cuGetErrorString)
STUB(cuInit)
STUB(cuLaunchKernel)
STUB(cuMemAlloc_v2)
STUB(cuMemcpyDtoH_v2)
STUB(cuMemcpyHtoD_v2)
STUB(cuMemFree_v2)
STUB(cuModuleGetFunction)
STUB(cuModuleLoadData)
STUB(cuModuleUnload)
