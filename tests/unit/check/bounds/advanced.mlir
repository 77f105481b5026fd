"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}], function_type = (!tt.ptr<f16>, !tt.ptr<f32>, i32, i32) -> (), sym_name = "advanced", sym_visibility = "public"}> ({
  ^bb0(%x_ptr: !tt.ptr<f16>, %y_ptr: !tt.ptr<f32>, %stride: i32, %n_k: i32):
    %total = "arith.constant"() <{value = dense<0.000000e+00> : tensor<64xf32>}> : () -> tensor<64xf32>
    %0 = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %1 = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %off = "arith.constant"() <{value = 16 : i32}> : () -> i32
    %at = "tt.make_range"() <{end = 64 : i32, start = 0 : i32}> : () -> tensor<64xi32>
    %off_0 = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %off_1 = "arith.muli"(%off_0, %off) : (i32, i32) -> i32
    %total_2:2 = "scf.for"(%1, %n_k, %0, %off_1, %total) ({
    ^bb0(%arg4: i32, %arg5: i32, %arg6: tensor<64xf32>):
      %total_3 = "tt.addptr"(%x_ptr, %arg5) : (!tt.ptr<f16>, i32) -> !tt.ptr<f16>
      %total_4 = "tt.splat"(%total_3) : (!tt.ptr<f16>) -> tensor<64x!tt.ptr<f16>>
      %total_5 = "tt.addptr"(%total_4, %at) : (tensor<64x!tt.ptr<f16>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f16>>
      %total_6 = "tt.load"(%total_5) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 0, 0>}> : (tensor<64x!tt.ptr<f16>>) -> tensor<64xf16>
      %total_7 = "arith.extf"(%total_6) : (tensor<64xf16>) -> tensor<64xf32>
      %total_8 = "arith.addf"(%arg6, %total_7) <{fastmath = #arith.fastmath<none>}> : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
      %off_9 = "arith.addi"(%arg5, %stride) : (i32, i32) -> i32
      "scf.yield"(%off_9, %total_8) : (i32, tensor<64xf32>) -> ()
    }) : (i32, i32, i32, i32, tensor<64xf32>) -> (i32, tensor<64xf32>)
    %2 = "tt.splat"(%y_ptr) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
    %3 = "tt.addptr"(%2, %at) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
    "tt.store"(%3, %total_2#1) : (tensor<64x!tt.ptr<f32>>, tensor<64xf32>) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()
