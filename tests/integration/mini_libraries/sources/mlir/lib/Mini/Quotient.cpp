#include "mlir/Mini/Twice.h"

int mlir::mini::half(int number) {
  int halved = number / 2;
  return halved;
}
