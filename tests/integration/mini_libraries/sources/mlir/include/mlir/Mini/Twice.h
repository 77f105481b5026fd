#pragma once
#include <string>

namespace mlir::mini {
int half(int number);
std::string twice(int number);
} // namespace mlir::mini
