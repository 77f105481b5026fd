/* Stands for NVIDIA's driver: says on standard output what it is asked to load and to launch.
   The host says how many bytes each parameter of the kernel has. */
#include <cuda.h>
#include <stdint.h>
#include <stdio.h>

extern const int parameter_bytes[];
extern const int parameter_count;

static const char *names[64];
static int count;

CUresult cuGetErrorString(CUresult code, const char **text) {
    *text = code == CUDA_SUCCESS ? "no error" : "some error";
    return CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image) {
    const unsigned char *bytes = image;
    uint64_t tables, sum = 14695981039346656037u;
    uint16_t size, number;
    __builtin_memcpy(&tables, bytes + 0x28, 8); /* of an ELF: the section headers come last, or nearly so */
    __builtin_memcpy(&size, bytes + 0x3a, 2);
    __builtin_memcpy(&number, bytes + 0x3c, 2);
    for (uint64_t at = 0; at < tables + (uint64_t)size * number; at++)
        sum = (sum ^ bytes[at]) * 1099511628211u;
    printf("load %016llx\n", (unsigned long long)sum);
    *module = (CUmodule)image;
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    (void)module;
    names[count] = name;
    *function = (CUfunction)&names[count++];
    return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule module) {
    printf("unload %s\n", module ? "a module" : "nothing");
    return module ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
    (void)device;
    *value = attribute == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN ? 232448 : 0;
    return CUDA_SUCCESS;
}

CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config) {
    printf("%s: cache %d\n", *(const char **)function, (int)config);
    return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
    printf("%s: attribute %d is %d\n", *(const char **)function, (int)attribute, value);
    return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                        unsigned bz, unsigned shared, CUstream stream, void **parameters, void **extra) {
    printf("%s<<<(%u, %u, %u), (%u, %u, %u), %u, %p>>>%s", *(const char **)function, gx, gy, gz, bx, by, bz,
           shared, (void *)stream, extra ? " extra" : "");
    for (int one = 0; one < parameter_count; one++) {
        printf(" ");
        for (int at = 0; at < parameter_bytes[one]; at++)
            printf("%02x", ((unsigned char *)parameters[one])[at]);
    }
    printf("\n");
    return CUDA_SUCCESS;
}
