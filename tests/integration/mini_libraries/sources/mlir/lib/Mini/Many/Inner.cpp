#include "mlir/IR/Builders.h"

int miniInner() { return 4; }
