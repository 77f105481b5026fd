#include <cstdio>

int main() {
  std::puts("mlir-tblgen of mini-llvm");
  return 0;
}
