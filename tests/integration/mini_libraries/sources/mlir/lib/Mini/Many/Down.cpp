#include "mlir/IR/Builders.h"

int miniDown() { return 4; }
