"builtin.module"() ({
  "tt.func"() <{function_type = (!tt.ptr<f32>, i32, i32) -> (), sym_name = "whiled", sym_visibility = "public"}> ({
  ^bb0(%x: !tt.ptr<f32>, %stride: i32, %n: i32):
    %0 = "arith.constant"() <{value = 2 : i32}> : () -> i32
    %1 = "arith.constant"() <{value = 64 : i32}> : () -> i32
    %2 = "arith.constant"() <{value = dense<0.000000e+00> : tensor<64xf32>}> : () -> tensor<64xf32>
    %3 = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %at = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %at_0 = "arith.muli"(%at, %stride) : (i32, i32) -> i32
    %left:2 = "scf.while"(%at_0, %n) ({
    ^bb0(%arg5: i32, %arg6: i32):
      %8 = "arith.cmpi"(%arg6, %3) <{predicate = 4 : i64}> : (i32, i32) -> i1
      "scf.condition"(%8, %arg5, %arg6) : (i1, i32, i32) -> ()
    }, {
    ^bb0(%at_1: i32, %left_2: i32):
      %4 = "tt.addptr"(%x, %at_1) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
      %5 = "tt.make_range"() <{end = 64 : i32, start = 0 : i32}> : () -> tensor<64xi32>
      %6 = "tt.splat"(%4) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
      %7 = "tt.addptr"(%6, %5) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
      "tt.store"(%7, %2) : (tensor<64x!tt.ptr<f32>>, tensor<64xf32>) -> ()
      %at_3 = "arith.addi"(%at_1, %1) : (i32, i32) -> i32
      %left_4 = "arith.divsi"(%left_2, %0) : (i32, i32) -> i32
      "scf.yield"(%at_3, %left_4) : (i32, i32) -> ()
    }) : (i32, i32) -> (i32, i32)
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()
