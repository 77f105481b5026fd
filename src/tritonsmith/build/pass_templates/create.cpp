
std::unique_ptr<::mlir::Pass> @MAKER@() {
  return std::make_unique<@CLASS@Pass>();
}
