"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}], function_type = (!tt.ptr<f16>, !tt.ptr<f16>, !tt.ptr<i32>, i32) -> (), sym_name = "vllm_53028", sym_visibility = "public"}> ({
  ^bb0(%x_ptr: !tt.ptr<f16>, %w_ptr: !tt.ptr<f16>, %ids_ptr: !tt.ptr<i32>, %stride_w: i32):
    %lora = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %lora_0 = "tt.addptr"(%ids_ptr, %lora) : (!tt.ptr<i32>, i32) -> !tt.ptr<i32>
    %lora_1 = "tt.load"(%lora_0) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 0, 0>}> : (!tt.ptr<i32>) -> i32
    %cols = "tt.make_range"() <{end = 64 : i32, start = 0 : i32}> : () -> tensor<64xi32>
    %0 = "tt.splat"(%x_ptr) : (!tt.ptr<f16>) -> tensor<64x!tt.ptr<f16>>
    %1 = "tt.addptr"(%0, %cols) : (tensor<64x!tt.ptr<f16>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f16>>
    %2 = "arith.muli"(%lora_1, %stride_w) : (i32, i32) -> i32
    %3 = "tt.addptr"(%w_ptr, %2) : (!tt.ptr<f16>, i32) -> !tt.ptr<f16>
    %4 = "tt.splat"(%3) : (!tt.ptr<f16>) -> tensor<64x!tt.ptr<f16>>
    %5 = "tt.addptr"(%4, %cols) : (tensor<64x!tt.ptr<f16>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f16>>
    %6 = "tt.load"(%5) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 0, 0>}> : (tensor<64x!tt.ptr<f16>>) -> tensor<64xf16>
    "tt.store"(%1, %6) : (tensor<64x!tt.ptr<f16>>, tensor<64xf16>) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()
