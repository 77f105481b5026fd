#include "mlir/IR/Builders.h"

int miniEast() { return 4; }
