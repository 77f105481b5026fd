#ifndef MINI_TRITON_OPS
#define MINI_TRITON_OPS

include "mlir/IR/OpBase.td"

def Triton_Dialect : Dialect {
  let name = "tt";
  let cppNamespace = "::mlir::triton";
}

def TT_TwiceOp : Op<Triton_Dialect, "twice"> {
  let summary = "Two times a number";
  let arguments = (ins I32:$number);
  let results = (outs I32:$result);
  let assemblyFormat = "$number attr-dict";
}

#endif
