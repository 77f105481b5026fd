"builtin.module"() ({
  "tt.func"() <{function_type = (!tt.ptr<f32>, !tt.ptr<f32>, i32, i32) -> (), sym_name = "either", sym_visibility = "public"}> ({
  ^bb0(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %stride: i32, %n: i32):
    %0 = "arith.constant"() <{value = dense<0.000000e+00> : tensor<64xf32>}> : () -> tensor<64xf32>
    %1 = "arith.constant"() <{value = 5 : i32}> : () -> i32
    %2 = "arith.cmpi"(%n, %1) <{predicate = 4 : i64}> : (i32, i32) -> i1
    %3 = "scf.if"(%2) ({
      %at = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
      %at_2 = "arith.muli"(%at, %stride) : (i32, i32) -> i32
      %at_3 = "tt.addptr"(%x, %at_2) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
      "scf.yield"(%at_3) : (!tt.ptr<f32>) -> ()
    }, {
      %at = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
      %at_0 = "arith.muli"(%at, %stride) : (i32, i32) -> i32
      %at_1 = "tt.addptr"(%y, %at_0) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
      "scf.yield"(%at_1) : (!tt.ptr<f32>) -> ()
    }) : (i1) -> !tt.ptr<f32>
    %4 = "tt.make_range"() <{end = 64 : i32, start = 0 : i32}> : () -> tensor<64xi32>
    %5 = "tt.splat"(%3) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
    %6 = "tt.addptr"(%5, %4) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
    "tt.store"(%6, %0) : (tensor<64x!tt.ptr<f32>>, tensor<64xf32>) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()
