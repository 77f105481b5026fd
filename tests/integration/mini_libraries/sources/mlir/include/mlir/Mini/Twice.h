#pragma once
#include <string>

namespace mlir::mini {
std::string twice(int number);
} // namespace mlir::mini
