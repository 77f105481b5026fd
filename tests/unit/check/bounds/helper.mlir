"builtin.module"() ({
  "tt.func"() <{function_type = (!tt.ptr<f32>, i32) -> (), sym_name = "helper", sym_visibility = "public"}> ({
  ^bb0(%x: !tt.ptr<f32>, %stride: i32):
    %0 = "arith.constant"() <{value = 3 : i32}> : () -> i32
    %1 = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %2 = "arith.constant"() <{value = dense<0.000000e+00> : tensor<64xf32>}> : () -> tensor<64xf32>
    %3 = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %4 = "arith.cmpi"(%3, %0) <{predicate = 4 : i64}> : (i32, i32) -> i1
    "cf.cond_br"(%4, %1)[^bb1, ^bb2] <{operandSegmentSizes = array<i32: 1, 0, 1>}> : (i1, i32) -> ()
  ^bb1:  // pred: ^bb0
    %5 = "arith.muli"(%3, %stride) : (i32, i32) -> i32
    "cf.br"(%5)[^bb2] : (i32) -> ()
  ^bb2(%6: i32):  // 2 preds: ^bb0, ^bb1
    %7 = "tt.addptr"(%x, %6) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
    %8 = "tt.make_range"() <{end = 64 : i32, start = 0 : i32}> : () -> tensor<64xi32>
    %9 = "tt.splat"(%7) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
    %10 = "tt.addptr"(%9, %8) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
    "tt.store"(%10, %2) : (tensor<64x!tt.ptr<f32>>, tensor<64xf32>) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()
