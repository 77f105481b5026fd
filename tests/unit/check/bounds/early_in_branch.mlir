"builtin.module"() ({
  "tt.func"() <{function_type = (!tt.ptr<f32>, i32, i32) -> (), sym_name = "early_in_branch", sym_visibility = "public"}> ({
  ^bb0(%x: !tt.ptr<f32>, %stride: i32, %small: i32):
    %0 = "arith.constant"() <{value = dense<0.000000e+00> : tensor<64xf32>}> : () -> tensor<64xf32>
    %1 = "arith.constant"() <{value = 100 : i32}> : () -> i32
    %2 = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %3 = "arith.constant"() <{value = 65536 : i32}> : () -> i32
    %pid = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %4 = "arith.cmpi"(%stride, %3) <{predicate = 3 : i64}> : (i32, i32) -> i1
    "llvm.intr.assume"(%4) <{op_bundle_sizes = array<i32>}> : (i1) -> ()
    %5 = "arith.cmpi"(%small, %2) <{predicate = 4 : i64}> : (i32, i32) -> i1
    "cf.cond_br"(%5)[^bb1, ^bb3] <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (i1) -> ()
  ^bb1:  // pred: ^bb0
    %6 = "arith.cmpi"(%pid, %1) <{predicate = 4 : i64}> : (i32, i32) -> i1
    "cf.cond_br"(%6)[^bb2, ^bb3] <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (i1) -> ()
  ^bb2:  // pred: ^bb1
    "tt.return"() : () -> ()
  ^bb3:  // 2 preds: ^bb0, ^bb1
    %7 = "arith.muli"(%pid, %stride) : (i32, i32) -> i32
    %8 = "tt.addptr"(%x, %7) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
    %9 = "tt.make_range"() <{end = 64 : i32, start = 0 : i32}> : () -> tensor<64xi32>
    %10 = "tt.splat"(%8) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
    %11 = "tt.addptr"(%10, %9) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
    "tt.store"(%11, %0) : (tensor<64x!tt.ptr<f32>>, tensor<64xf32>) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()
