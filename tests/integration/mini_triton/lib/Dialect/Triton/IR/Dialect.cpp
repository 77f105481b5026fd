#include "triton/Dialect/Triton/IR/Dialect.h"

#include "triton/Dialect/Triton/IR/Dialect.cpp.inc"

void mlir::triton::TritonDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "triton/Dialect/Triton/IR/Ops.cpp.inc"
      >();
}

#define GET_OP_CLASSES
#include "triton/Dialect/Triton/IR/Ops.cpp.inc"
