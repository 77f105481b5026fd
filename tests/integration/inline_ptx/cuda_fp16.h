// The type alone: the kernels of these tests take pointers to it.
#pragma once

struct __half {
  unsigned short bits;
};
