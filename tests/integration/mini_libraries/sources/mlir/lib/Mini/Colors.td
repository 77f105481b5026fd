include "mlir/IR/EnumAttr.td"

def Red : I32EnumAttrCase<"Red", 1, "red">;
def Blue : I32EnumAttrCase<"Blue", 2, "blue">;
def Color : I32EnumAttr<"Color", "a color", [Red, Blue]> {
  let cppNamespace = "::mlir::mini";
  let genSpecializedAttr = 0;
}
