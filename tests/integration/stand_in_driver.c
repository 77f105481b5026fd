/* A stand-in for libcuda.so.1 and libnvidia-ml.so.1: the entry points that worker/time_binaries.py calls.

   Memory is the host's, a launch runs nothing: it advances a clock, writes to memory what the image says, and
   is written to the file STAND_IN_LOG as one line of JSON. An image is text:

       stand-in ms=0.5 noise=0.01 sizes=8,8,4 write=1:2.5 add=1 fault=0 local=16 symbol=add

   write=P:X stores the float X through pointer parameter P (add=1: adds it). fault=1: the next call that waits
   fails as after an illegal address. STAND_IN_DRIFT: how much slower the GPU gets with each launch. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OK 0
#define INVALID 1
#define ILLEGAL_ADDRESS 700

typedef struct {
  double ms, noise;
  size_t sizes[64];
  int count, pointer, add, fault, local, most_shared;
  float value;
  char symbol[64];
} image;

typedef struct { unsigned id, pad, value[16]; } attribute;
typedef struct {
  unsigned grid[3], block[3], shared;
  void *stream;
  attribute *attributes;
  unsigned count;
} config;
typedef struct { const image *image; int launches; } graph;

static double now = 0, drift = 1;
static int broken = 0, capturing = 0, launches = 0;
static unsigned long long state = 88172645463325252ull;
static graph captured;

static double random_part(void) { /* xorshift, from -1 to 1 */
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return (double)(state >> 11) / (double)(1ull << 52) - 1;
}

static void advance(const image *what) {
  const char *each = getenv("STAND_IN_DRIFT");
  /* By a factor: it is as large after a warm-up of few launches as after one of many. */
  drift *= 1 + (each ? atof(each) : 0);
  now += what->ms * drift * (1 + what->noise * random_part());
}

static int run(const image *what, const unsigned *grid, const unsigned *block, unsigned shared, void **arguments,
               const config *extended) {
  const char *path = getenv("STAND_IN_LOG");
  if (capturing) {
    captured.image = what, captured.launches++;
    return OK;
  }
  advance(what);
  if (path && launches++ < 200) {
    FILE *log = fopen(path, "a");
    fprintf(log, "{\"symbol\": \"%s\", \"grid\": [%u, %u, %u], \"block\": [%u, %u, %u], \"shared\": %u, \"most\": %d, ",
            what->symbol, grid[0], grid[1], grid[2], block[0], block[1], block[2], shared, what->most_shared);
    fprintf(log, "\"attributes\": [");
    for (unsigned at = 0; extended && at < extended->count; at++)
      fprintf(log, "%s[%u, %u]", at ? ", " : "", extended->attributes[at].id, extended->attributes[at].value[0]);
    fprintf(log, "], \"parameters\": [");
    for (int at = 0; at < what->count; at++) {
      fprintf(log, "%s\"", at ? ", " : "");
      for (size_t byte = 0; byte < what->sizes[at]; byte++) fprintf(log, "%02x", ((unsigned char *)arguments[at])[byte]);
      fprintf(log, "\"");
    }
    fprintf(log, "]}\n");
    fclose(log);
  }
  if (what->pointer >= 0) {
    float *target = *(float **)arguments[what->pointer];
    *target = what->value + (what->add ? *target : 0);
  }
  broken |= what->fault;
  return OK;
}

int cuInit(unsigned flags) { return OK; }
int cuDriverGetVersion(int *version) { return *version = 13000, OK; }
int cuDeviceGet(int *device, int number) { return *device = number, number ? 101 : OK; }
int cuDeviceGetName(char *name, int size, int device) { return snprintf(name, size, "stand-in"), OK; }
int cuDeviceGetPCIBusId(char *name, int size, int device) { return snprintf(name, size, "0000:01:00.0"), OK; }
int cuDeviceGetAttribute(int *value, int which, int device) {
  *value = which == 38 ? 1 << 20 : which == 97 ? 232448 : which == 16 ? 132 : which == 75 ? 9 : 0;
  return OK;
}
int cuDevicePrimaryCtxRetain(void **context, int device) { return *context = &now, OK; }
int cuCtxSetCurrent(void *context) { return context == &now ? OK : INVALID; }
int cuGetErrorName(int code, const char **name) {
  *name = code == ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_INVALID_VALUE";
  return OK;
}
int cuStreamCreate(void **stream, unsigned flags) { return *stream = &drift, OK; }
int cuStreamSynchronize(void *stream) { return broken ? ILLEGAL_ADDRESS : OK; }
int cuMemAlloc_v2(uint64_t *address, size_t size) { return *address = (uint64_t)malloc(size), OK; }
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t size) { return memcpy((void *)to, from, size), OK; }
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t size) { return memcpy(to, (void *)from, size), OK; }
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t size, void *stream) {
  return memcpy((void *)to, (void *)from, size), stream == &drift ? OK : INVALID;
}
int cuMemsetD32Async(uint64_t to, unsigned value, size_t count, void *stream) {
  for (size_t at = 0; at < count; at++) ((unsigned *)to)[at] = value;
  now += 0.03;
  return OK;
}
int cuModuleLoadData(void **module, const char *text) {
  char copy[512], *rest = copy;
  if (strncmp(text, "stand-in", 8)) return 200;
  image *made = calloc(1, sizeof *made);
  made->pointer = -1, made->ms = 0.1, strcpy(made->symbol, "kernel");
  snprintf(copy, sizeof copy, "%s", text);
  for (char *word; (word = strsep(&rest, " \n"));) {
    char *value = strchr(word, '=');
    if (!value++) continue;
    if (!strncmp(word, "ms=", 3)) made->ms = atof(value);
    if (!strncmp(word, "noise=", 6)) made->noise = atof(value);
    if (!strncmp(word, "fault=", 6)) made->fault = atoi(value);
    if (!strncmp(word, "local=", 6)) made->local = atoi(value);
    if (!strncmp(word, "add=", 4)) made->add = atoi(value);
    if (!strncmp(word, "symbol=", 7)) snprintf(made->symbol, sizeof made->symbol, "%s", value);
    if (!strncmp(word, "write=", 6)) made->pointer = atoi(value), made->value = atof(strchr(value, ':') + 1);
    if (!strncmp(word, "sizes=", 6))
      for (char *part; (part = strsep(&value, ","));) made->sizes[made->count++] = atoi(part);
  }
  return *module = made, OK;
}
int cuModuleGetFunction(void **function, image *module, const char *name) {
  return *function = module, strcmp(name, module->symbol) ? 500 : OK;
}
int cuFuncGetAttribute(int *value, int which, image *function) {
  return *value = which == 3 ? function->local : which == 4 ? 32 : 0, OK;
}
int cuFuncSetAttribute(image *function, int which, int value) {
  return which == 8 ? (function->most_shared = value, OK) : INVALID;
}
int cuFuncSetCacheConfig(image *function, int which) { return which == 1 ? OK : INVALID; }
int cuFuncGetParamInfo(image *function, size_t index, size_t *offset, size_t *size) {
  if (index >= (size_t)function->count) return INVALID;
  return *offset = 8 * index, *size = function->sizes[index], OK;
}
int cuLaunchKernel(image *function, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **arguments, void **extra) {
  unsigned grid[3] = {x, y, z}, block[3] = {bx, by, bz};
  if (stream != &drift || extra) return INVALID;
  return run(function, grid, block, shared, arguments, NULL);
}
int cuLaunchKernelEx(const config *how, image *function, void **arguments, void **extra) {
  if (how->stream != &drift || extra) return INVALID;
  return run(function, how->grid, how->block, how->shared, arguments, how);
}
int cuEventCreate(double **event, unsigned flags) { return *event = calloc(1, sizeof(double)), OK; }
int cuEventRecord(double *event, void *stream) { return *event = now, OK; }
int cuEventElapsedTime(float *ms, double *begin, double *end) { return *ms = (float)(*end - *begin), OK; }
int cuStreamBeginCapture_v2(void *stream, int mode) { return captured.launches = 0, capturing = 1, OK; }
int cuStreamEndCapture(void *stream, graph **made) {
  capturing = 0, *made = malloc(sizeof captured), **made = captured;
  return OK;
}
int cuGraphInstantiateWithFlags(graph **ready, graph *made, unsigned long long flags) { return *ready = made, OK; }
int cuGraphLaunch(graph *ready, void *stream) {
  for (int at = 0; at < ready->launches; at++) advance(ready->image);
  return OK;
}

int nvmlInit_v2(void) { return OK; }
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **handle) {
  return *handle = &now, strcmp(bus, "0000:01:00.0") ? 2 : OK;
}
int nvmlDeviceGetClockInfo(void *handle, int which, unsigned *value) {
  const char *text = getenv("STAND_IN_MHZ");
  return *value = which == 1 ? (text ? atoi(text) : 1980) : 3201, OK;
}
int nvmlDeviceGetTemperature(void *handle, int which, unsigned *value) { return *value = 40, OK; }
int nvmlDeviceGetPowerUsage(void *handle, unsigned *value) { return *value = 350000, OK; }
int nvmlDeviceGetCurrentClocksEventReasons(void *handle, unsigned long long *value) {
  const char *text = getenv("STAND_IN_REASONS");
  return *value = text ? strtoull(text, NULL, 16) : 0, OK;
}
