"builtin.module"() ({
  "tt.func"() <{function_type = (!tt.ptr<f32>, !tt.ptr<f32>, i32) -> (), sym_name = "last_turn", sym_visibility = "public"}> ({
  ^bb0(%x_ptr: !tt.ptr<f32>, %y_ptr: !tt.ptr<f32>, %n: i32):
    %0 = "arith.constant"() <{value = 1024 : i32}> : () -> i32
    %1 = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %2 = "arith.constant"() <{value = dense<0.000000e+00> : tensor<1024xf32>}> : () -> tensor<1024xf32>
    %total = "scf.for"(%1, %n, %0, %2) ({
    ^bb0(%arg6: i32, %arg7: tensor<1024xf32>):
      %cols = "tt.make_range"() <{end = 1024 : i32, start = 0 : i32}> : () -> tensor<1024xi32>
      %cols_2 = "tt.splat"(%arg6) : (i32) -> tensor<1024xi32>
      %cols_3 = "arith.addi"(%cols_2, %cols) <{overflowFlags = #arith.overflow<none>}> : (tensor<1024xi32>, tensor<1024xi32>) -> tensor<1024xi32>
      %total_4 = "tt.splat"(%n) : (i32) -> tensor<1024xi32>
      %total_5 = "arith.cmpi"(%cols_3, %total_4) <{predicate = 2 : i64}> : (tensor<1024xi32>, tensor<1024xi32>) -> tensor<1024xi1>
      %total_6 = "tt.splat"(%x_ptr) : (!tt.ptr<f32>) -> tensor<1024x!tt.ptr<f32>>
      %total_7 = "tt.addptr"(%total_6, %cols_3) : (tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>) -> tensor<1024x!tt.ptr<f32>>
      %total_8 = "tt.load"(%total_7, %total_5, %2) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<1024x!tt.ptr<f32>>, tensor<1024xi1>, tensor<1024xf32>) -> tensor<1024xf32>
      %total_9 = "arith.addf"(%arg7, %total_8) <{fastmath = #arith.fastmath<none>}> : (tensor<1024xf32>, tensor<1024xf32>) -> tensor<1024xf32>
      "scf.yield"(%total_9) : (tensor<1024xf32>) -> ()
    }) : (i32, i32, i32, tensor<1024xf32>) -> tensor<1024xf32>
    "scf.for"(%1, %n, %0) ({
    ^bb0(%arg3: i32):
      %cols = "tt.make_range"() <{end = 1024 : i32, start = 0 : i32}> : () -> tensor<1024xi32>
      %cols_0 = "tt.splat"(%arg3) : (i32) -> tensor<1024xi32>
      %cols_1 = "arith.addi"(%cols_0, %cols) <{overflowFlags = #arith.overflow<none>}> : (tensor<1024xi32>, tensor<1024xi32>) -> tensor<1024xi32>
      %3 = "tt.splat"(%x_ptr) : (!tt.ptr<f32>) -> tensor<1024x!tt.ptr<f32>>
      %4 = "tt.addptr"(%3, %cols_1) : (tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>) -> tensor<1024x!tt.ptr<f32>>
      %5 = "tt.reshape"(%total) <{allow_reorder}> : (tensor<1024xf32>) -> tensor<1024xf32>
      %6 = "tt.reduce"(%5) <{axis = 0 : i32}> ({
      ^bb0(%arg4: f32, %arg5: f32):
        %8 = "arith.addf"(%arg4, %arg5) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
        "tt.reduce.return"(%8) : (f32) -> ()
      }) : (tensor<1024xf32>) -> f32
      %7 = "tt.splat"(%6) : (f32) -> tensor<1024xf32>
      "tt.store"(%4, %7) : (tensor<1024x!tt.ptr<f32>>, tensor<1024xf32>) -> ()
      "scf.yield"() : () -> ()
    }) : (i32, i32, i32) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()