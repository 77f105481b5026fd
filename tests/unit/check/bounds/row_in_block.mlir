"builtin.module"() ({
  "tt.func"() <{function_type = (!tt.ptr<f32>, i32, i32) -> (), sym_name = "row_in_block", sym_visibility = "public"}> ({
  ^bb0(%x_ptr: !tt.ptr<f32>, %stride: i32, %n_cols: i32):
    %x = "arith.constant"() <{value = dense<0.000000e+00> : tensor<1024xf32>}> : () -> tensor<1024xf32>
    %at = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %at_0 = "arith.extsi"(%at) : (i32) -> i64
    %at_1 = "arith.extsi"(%stride) : (i32) -> i64
    %at_2 = "arith.muli"(%at_0, %at_1) <{overflowFlags = #arith.overflow<none>}> : (i64, i64) -> i64
    %at_3 = "tt.addptr"(%x_ptr, %at_2) : (!tt.ptr<f32>, i64) -> !tt.ptr<f32>
    %at_4 = "tt.make_range"() <{end = 1024 : i32, start = 0 : i32}> : () -> tensor<1024xi32>
    %at_5 = "tt.splat"(%at_3) : (!tt.ptr<f32>) -> tensor<1024x!tt.ptr<f32>>
    %at_6 = "tt.addptr"(%at_5, %at_4) : (tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>) -> tensor<1024x!tt.ptr<f32>>
    %x_7 = "tt.splat"(%n_cols) : (i32) -> tensor<1024xi32>
    %x_8 = "arith.cmpi"(%at_4, %x_7) <{predicate = 2 : i64}> : (tensor<1024xi32>, tensor<1024xi32>) -> tensor<1024xi1>
    %x_9 = "tt.load"(%at_6, %x_8, %x) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<1024x!tt.ptr<f32>>, tensor<1024xi1>, tensor<1024xf32>) -> tensor<1024xf32>
    %0 = "tt.reshape"(%x_9) <{allow_reorder}> : (tensor<1024xf32>) -> tensor<1024xf32>
    %1 = "tt.reduce"(%0) <{axis = 0 : i32}> ({
    ^bb0(%arg3: f32, %arg4: f32):
      %4 = "arith.addf"(%arg3, %arg4) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "tt.reduce.return"(%4) : (f32) -> ()
    }) : (tensor<1024xf32>) -> f32
    %2 = "tt.splat"(%1) : (f32) -> tensor<1024xf32>
    %3 = "arith.divf"(%x_9, %2) <{fastmath = #arith.fastmath<none>}> : (tensor<1024xf32>, tensor<1024xf32>) -> tensor<1024xf32>
    "tt.store"(%at_6, %3) : (tensor<1024x!tt.ptr<f32>>, tensor<1024xf32>) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()