
def @RECORD@ : Pass<"@ARGUMENT@", "mlir::ModuleOp"> {
  let summary = "@SUMMARY@";

  let description = [{
    What it changes, and what it expects of the passes before it.
  }];
@CONSTRUCTOR@
  let dependentDialects = ["mlir::triton::TritonDialect"];
}
