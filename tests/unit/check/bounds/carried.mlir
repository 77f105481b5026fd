"builtin.module"() ({
  "tt.func"() <{function_type = (!tt.ptr<f32>, i32, i32) -> (), sym_name = "carried", sym_visibility = "public"}> ({
  ^bb0(%x: !tt.ptr<f32>, %stride: i32, %n: i32):
    %0 = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %1 = "arith.constant"() <{value = 1024 : i32}> : () -> i32
    %2 = "arith.constant"() <{value = 3 : i32}> : () -> i32
    %3 = "arith.constant"() <{value = dense<0.000000e+00> : tensor<64xf32>}> : () -> tensor<64xf32>
    %4 = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %at = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %at_0 = "arith.muli"(%at, %stride) : (i32, i32) -> i32
    %at_1 = "tt.addptr"(%x, %at_0) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
    %at_2 = "tt.make_range"() <{end = 64 : i32, start = 0 : i32}> : () -> tensor<64xi32>
    %at_3 = "tt.splat"(%at_1) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
    %at_4 = "tt.addptr"(%at_3, %at_2) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
    %step:2 = "scf.for"(%0, %n, %4, %at_4, %4) ({
    ^bb0(%arg3: i32, %arg4: tensor<64x!tt.ptr<f32>>, %arg5: i32):
      "tt.store"(%arg4, %3) : (tensor<64x!tt.ptr<f32>>, tensor<64xf32>) -> ()
      %step_5 = "arith.muli"(%arg5, %2) : (i32, i32) -> i32
      %step_6 = "arith.remsi"(%step_5, %1) : (i32, i32) -> i32
      %at_7 = "tt.splat"(%step_6) : (i32) -> tensor<64xi32>
      %at_8 = "tt.addptr"(%arg4, %at_7) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
      "scf.yield"(%at_8, %step_6) : (tensor<64x!tt.ptr<f32>>, i32) -> ()
    }) : (i32, i32, i32, tensor<64x!tt.ptr<f32>>, i32) -> (tensor<64x!tt.ptr<f32>>, i32)
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()
