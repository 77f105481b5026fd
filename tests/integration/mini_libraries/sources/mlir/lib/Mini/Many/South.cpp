#include "mlir/IR/Builders.h"

int miniSouth() { return 5; }
