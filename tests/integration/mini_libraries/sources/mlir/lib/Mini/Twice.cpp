#include "mlir/Mini/Twice.h"
#include "mlir/IR/OpImplementation.h"
#include "llvm/Mini/Metals.h"
#include "llvm/ADT/StringSwitch.h"
#include <optional>

#include "Colors.h.inc"

#include "Colors.cpp.inc"

#define GEN_PASS_DEF_MINITWICE

std::string mlir::mini::twice(int number) {
  int doubled = number * 2;
  doubled = llvm::mini::raised(doubled) - 1;
  auto color = symbolizeColor(static_cast<uint32_t>(doubled));
  return color ? stringifyColor(*color).str() : std::to_string(doubled);
}
