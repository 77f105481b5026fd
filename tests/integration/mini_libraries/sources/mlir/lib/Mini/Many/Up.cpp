#include "mlir/IR/Builders.h"

int miniUp() { return 4; }
