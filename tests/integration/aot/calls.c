/* Calls everything that the dispatcher of vector_add offers. */
#include "vector_add.h"

#include <stdio.h>

#define POINTER(number) ((CUdeviceptr)(number))

const int parameter_bytes[] = {8, 8, 8, 4, 4, 8, 8};
const int parameter_count = PARAMETERS;

static void try(CUdeviceptr x, double scale, int n) {
    printf("algos %d\n", vector_add_get_num_algos());
    printf("default: %d\n", (int)vector_add_default((CUstream)8, x, POINTER(64), POINTER(4096), scale, n));
    for (int algo = -1; algo <= vector_add_get_num_algos(); algo++)
        printf("%d: %d\n", algo, (int)vector_add((CUstream)8, x, POINTER(64), POINTER(4096), scale, n, algo));
}

int main(void) {
    load_vector_add();
    try(POINTER(32), SCALE, 1024);
    try(POINTER(36), SCALE, 1024);
    try(POINTER(32), SCALE, 1000);
    try(POINTER(32), SCALE, 1);
    try(POINTER(36), SCALE, 2147480000);
    unload_vector_add();
    return 0;
}
