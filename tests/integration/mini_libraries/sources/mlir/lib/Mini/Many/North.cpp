#include "mlir/IR/Builders.h"

int miniNorth() { return 5; }
