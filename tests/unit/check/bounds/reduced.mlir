"builtin.module"() ({
  "tt.func"() <{function_type = (!tt.ptr<f32>, i32) -> (), sym_name = "reduced", sym_visibility = "public"}> ({
  ^bb0(%x: !tt.ptr<f32>, %stride: i32):
    %0 = "arith.constant"() <{value = 0.000000e+00 : f32}> : () -> f32
    %first = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %first_0 = "arith.muli"(%first, %stride) : (i32, i32) -> i32
    %first_1 = "tt.make_range"() <{end = 64 : i32, start = 0 : i32}> : () -> tensor<64xi32>
    %first_2 = "tt.splat"(%first_0) : (i32) -> tensor<64xi32>
    %first_3 = "arith.addi"(%first_2, %first_1) : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
    %first_4 = "tt.reduce"(%first_3) <{axis = 0 : i32}> ({
    ^bb0(%first_5: i32, %first_6: i32):
      %first_7 = "arith.minsi"(%first_5, %first_6) : (i32, i32) -> i32
      "tt.reduce.return"(%first_7) : (i32) -> ()
    }) : (tensor<64xi32>) -> i32
    %1 = "tt.addptr"(%x, %first_4) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
    "tt.store"(%1, %0) : (!tt.ptr<f32>, f32) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()
