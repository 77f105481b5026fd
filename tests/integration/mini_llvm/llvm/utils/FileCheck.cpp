#include <cstdio>

int main() {
  std::puts("FileCheck of mini-llvm");
  return 0;
}
