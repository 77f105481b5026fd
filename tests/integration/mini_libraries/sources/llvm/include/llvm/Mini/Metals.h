#pragma once
#include <string>

namespace llvm::mini {
std::string describe(unsigned number);

// Two libraries define it; the linker takes one of the two.
__attribute__((noinline)) inline unsigned raised(unsigned number) {
  unsigned higher = number + 1;
  return higher;
}
} // namespace llvm::mini
