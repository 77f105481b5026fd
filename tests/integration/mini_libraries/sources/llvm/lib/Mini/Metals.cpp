#include "llvm/Mini/Metals.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/CommandLine.h"
#include <algorithm>
#include <cstdint>
#include <string>

using llvm::ArrayRef; // the generated code has no namespace

namespace {
struct Metal {
  const char *Name;
  uint16_t Number;
};
#define GET_Metals_IMPL
#define GET_Metals_DECL
#include "MiniGenMetals.inc"
} // namespace

// Registered twice, it ends the program: the sign that LLVM is in a process twice.
static llvm::cl::opt<bool> Loud("mini-loud", llvm::cl::desc("say it louder"));

std::string llvm::mini::describe(unsigned number) {
  const Metal *metal = metalByNumber(raised(number) - 1);
  std::string name = metal ? metal->Name : "none";
  std::string words = name + " has number " + std::to_string(number);
  return Loud ? words + "!" : words;
}
