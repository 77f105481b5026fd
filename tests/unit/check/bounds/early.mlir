"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}], function_type = (!tt.ptr<f16>, i32, i32) -> (), sym_name = "early", sym_visibility = "public"}> ({
  ^bb0(%x_ptr: !tt.ptr<f16>, %stride: i32, %n_rows: i32):
    %0 = "arith.constant"() <{value = dense<0.000000e+00> : tensor<64xf16>}> : () -> tensor<64xf16>
    %row = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %1 = "arith.cmpi"(%row, %n_rows) <{predicate = 5 : i64}> : (i32, i32) -> i1
    "cf.cond_br"(%1)[^bb1, ^bb2] <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (i1) -> ()
  ^bb1:  // pred: ^bb0
    "tt.return"() : () -> ()
  ^bb2:  // pred: ^bb0
    %2 = "arith.muli"(%row, %stride) : (i32, i32) -> i32
    %3 = "tt.addptr"(%x_ptr, %2) : (!tt.ptr<f16>, i32) -> !tt.ptr<f16>
    %4 = "tt.make_range"() <{end = 64 : i32, start = 0 : i32}> : () -> tensor<64xi32>
    %5 = "tt.splat"(%3) : (!tt.ptr<f16>) -> tensor<64x!tt.ptr<f16>>
    %6 = "tt.addptr"(%5, %4) : (tensor<64x!tt.ptr<f16>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f16>>
    "tt.store"(%6, %0) : (tensor<64x!tt.ptr<f16>>, tensor<64xf16>) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()
