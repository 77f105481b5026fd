"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}], function_type = (!tt.ptr<f16>, i32, i32) -> (), sym_name = "liger_1335", sym_visibility = "public"}> ({
  ^bb0(%x_ptr: !tt.ptr<f16>, %stride: i32, %n_cols: i32):
    %0 = "arith.constant"() <{value = dense<0.000000e+00> : tensor<1024xf16>}> : () -> tensor<1024xf16>
    %row = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %row_0 = "arith.extsi"(%row) : (i32) -> i64
    %cols = "tt.make_range"() <{end = 1024 : i32, start = 0 : i32}> : () -> tensor<1024xi32>
    %1 = "tt.splat"(%n_cols) : (i32) -> tensor<1024xi32>
    %2 = "arith.cmpi"(%cols, %1) <{predicate = 2 : i64}> : (tensor<1024xi32>, tensor<1024xi32>) -> tensor<1024xi1>
    %3 = "arith.extsi"(%stride) : (i32) -> i64
    %4 = "arith.muli"(%row_0, %3) : (i64, i64) -> i64
    %5 = "tt.addptr"(%x_ptr, %4) : (!tt.ptr<f16>, i64) -> !tt.ptr<f16>
    %6 = "tt.splat"(%5) : (!tt.ptr<f16>) -> tensor<1024x!tt.ptr<f16>>
    %7 = "tt.addptr"(%6, %cols) : (tensor<1024x!tt.ptr<f16>>, tensor<1024xi32>) -> tensor<1024x!tt.ptr<f16>>
    "tt.store"(%7, %0, %2) : (tensor<1024x!tt.ptr<f16>>, tensor<1024xf16>, tensor<1024xi1>) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()
