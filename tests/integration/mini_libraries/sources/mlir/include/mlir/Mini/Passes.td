include "mlir/Pass/PassBase.td"

def MiniTwice : Pass<"mini-twice"> {
  let summary = "names the double of a color";
}
