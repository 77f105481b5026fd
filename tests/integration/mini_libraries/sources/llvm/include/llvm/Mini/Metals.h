#pragma once
#include <string>

namespace llvm::mini {
std::string describe(unsigned number);
} // namespace llvm::mini
