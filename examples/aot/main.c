/* Runs kernels that `kernel.aot` compiled ahead of time, and compares what they make with the CPU's results.

   examples/aot/README.md says how it is built. One line per case; the exit code is the number of wrong ones.
   `main 1234` repeats the inputs of a run. */
#include <cuda.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "matmul.h"
#include "vector_add.h"

static int wrong = 0;
static uint64_t state;

static void need(CUresult code, const char *what) {
    const char *text = NULL;
    if (code == CUDA_SUCCESS)
        return;
    cuGetErrorString(code, &text);
    fprintf(stderr, "%s: %s\n", what, text ? text : "unknown error");
    exit(100);
}
#define NEED(call) need(call, #call)

/* xorshift64*: the same numbers everywhere from one seed. */
static uint32_t any(void) {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (uint32_t)(state * 2685821657736338717u >> 32);
}

static float uniform(void) { return (float)any() / 2147483648.0f - 1.0f; }

/* A half between -2 and 2, and its value. */
static uint16_t half(double *value) {
    const uint32_t bits = any();
    const int exponent = 10 + (int)((bits >> 16) % 6);
    const uint16_t made = (uint16_t)((bits & 0x83ff) | (uint32_t)exponent << 10);
    const double size = ldexp(1024 + (made & 0x3ff), exponent - 25);
    *value = made & 0x8000 ? -size : size;
    return made;
}

static void *memory(size_t bytes) {
    void *made = malloc(bytes);
    if (made == NULL) {
        fprintf(stderr, "no memory\n");
        exit(100);
    }
    return made;
}

/* A copy on the GPU, `offset` bytes behind an address that is a multiple of 256. */
static CUdeviceptr on_gpu(const void *from, size_t bytes, size_t offset) {
    CUdeviceptr made;
    NEED(cuMemAlloc(&made, bytes + offset));
    NEED(cuMemcpyHtoD(made + offset, from, bytes));
    return made + offset;
}

static void tell(const char *what, double error, double allowed, CUresult code) {
    const int good = code == CUDA_SUCCESS && error <= allowed;
    wrong += !good;
    printf("%s %s: code %d, largest error %g, allowed %g\n", good ? "ok" : "WRONG", what, (int)code, error, allowed);
}

static void check_vector_add(int n, size_t offset, int algo) {
    const size_t bytes = (size_t)n * sizeof(float);
    const float scale = uniform();
    float *x = memory(bytes), *y = memory(bytes), *out = memory(bytes);
    double error = 0;
    char what[100];
    for (int i = 0; i < n; i++) {
        x[i] = uniform();
        y[i] = uniform();
        out[i] = NAN;
    }
    const CUdeviceptr gx = on_gpu(x, bytes, offset), gy = on_gpu(y, bytes, 0), gout = on_gpu(out, bytes, 0);
    const CUresult code = vector_add(NULL, gx, gy, gout, scale, n, algo);
    NEED(cuCtxSynchronize());
    NEED(cuMemcpyDtoH(out, gout, bytes));
    for (int i = 0; i < n; i++) {
        const double off = fabs(out[i] - ((double)scale * x[i] + y[i]));
        error = fmax(error, isnan(off) ? INFINITY : off);
    }
    snprintf(what, sizeof what, "vector_add n=%d offset=%d algo=%d", n, (int)offset, algo);
    tell(what, error, 3e-7, code);
    NEED(cuMemFree(gx - offset));
    NEED(cuMemFree(gy));
    NEED(cuMemFree(gout));
    free(x);
    free(y);
    free(out);
}

static void check_matmul(int m, int n, int k, int algo) {
    const size_t of_a = (size_t)m * k, of_b = (size_t)k * n, of_c = (size_t)m * n;
    uint16_t *a = memory(of_a * 2), *b = memory(of_b * 2);
    double *wide_a = memory(of_a * 8), *wide_b = memory(of_b * 8), *row = memory((size_t)n * 8), error = 0;
    float *c = memory(of_c * 4);
    char what[100];
    for (size_t i = 0; i < of_a; i++)
        a[i] = half(&wide_a[i]);
    for (size_t i = 0; i < of_b; i++)
        b[i] = half(&wide_b[i]);
    for (size_t i = 0; i < of_c; i++)
        c[i] = NAN;
    const CUdeviceptr ga = on_gpu(a, of_a * 2, 0), gb = on_gpu(b, of_b * 2, 0), gc = on_gpu(c, of_c * 4, 0);
    const CUresult code = matmul(NULL, ga, gb, gc, m, n, k, k, n, n, algo);
    NEED(cuCtxSynchronize());
    NEED(cuMemcpyDtoH(c, gc, of_c * 4));
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < n; j++)
            row[j] = 0;
        for (int l = 0; l < k; l++)
            for (int j = 0; j < n; j++)
                row[j] += wide_a[(size_t)i * k + l] * wide_b[(size_t)l * n + j];
        for (int j = 0; j < n; j++) {
            const double off = fabs(c[(size_t)i * n + j] - row[j]);
            error = fmax(error, isnan(off) ? INFINITY : off);
        }
    }
    snprintf(what, sizeof what, "matmul m=%d n=%d k=%d algo=%d", m, n, k, algo);
    tell(what, error, 1e-5 * k, code); /* products are exact in fp32; what is lost is lost in sums */
    NEED(cuMemFree(ga));
    NEED(cuMemFree(gb));
    NEED(cuMemFree(gc));
    free(a);
    free(b);
    free(wide_a);
    free(wide_b);
    free(row);
    free(c);
}

int main(int count, char **words) {
    CUdevice device;
    CUcontext context;
    char name[100];
    const unsigned long long seed = count > 1 ? strtoull(words[1], NULL, 10) : (unsigned long long)time(NULL);
    state = seed * 2654435769u + 88172645463325252u;
    NEED(cuInit(0));
    NEED(cuDeviceGet(&device, 0));
    NEED(cuDeviceGetName(name, sizeof name, device));
    NEED(cuDevicePrimaryCtxRetain(&context, device));
    NEED(cuCtxSetCurrent(context));
    printf("%s, seed %llu\n", name, seed);
    for (int algo = 0; algo < vector_add_get_num_algos(); algo++) {
        const int sizes[] = {1, 16, 1000, 1024, 98432, 1000003};
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            check_vector_add(sizes[i], 0, algo);
            check_vector_add(sizes[i], 4, algo);
        }
    }
    load_matmul();
    for (int algo = 0; algo < matmul_get_num_algos(); algo++) {
        check_matmul(16, 16, 16, algo);
        check_matmul(512, 512, 512, algo);
        check_matmul(500, 384, 1040, algo);
        check_matmul(333, 257, 129, algo);
    }
    if (vector_add(NULL, 0, 0, 0, 1.0, 1, vector_add_get_num_algos()) != CUDA_ERROR_INVALID_VALUE) {
        printf("WRONG an algorithm that is not there was launched\n");
        wrong++;
    }
    unload_matmul();
    unload_vector_add();
    unload_vector_add();
    NEED(cuDevicePrimaryCtxRelease(device));
    printf("%s\n", wrong ? "FAILED" : "all right");
    return wrong;
}
