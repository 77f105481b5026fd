"builtin.module"() ({
  "tt.func"() <{function_type = (!tt.ptr<f32>, i32, i32) -> (), sym_name = "unlimited_row", sym_visibility = "public"}> ({
  ^bb0(%y_ptr: !tt.ptr<f32>, %stride: i32, %n_cols: i32):
    %0 = "arith.constant"() <{value = dense<0.000000e+00> : tensor<1024xf32>}> : () -> tensor<1024xf32>
    %cols = "tt.make_range"() <{end = 1024 : i32, start = 0 : i32}> : () -> tensor<1024xi32>
    %1 = "tt.splat"(%n_cols) : (i32) -> tensor<1024xi32>
    %2 = "arith.cmpi"(%cols, %1) <{predicate = 2 : i64}> : (tensor<1024xi32>, tensor<1024xi32>) -> tensor<1024xi1>
    %3 = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %4 = "arith.extsi"(%3) : (i32) -> i64
    %5 = "arith.extsi"(%stride) : (i32) -> i64
    %6 = "arith.muli"(%4, %5) <{overflowFlags = #arith.overflow<none>}> : (i64, i64) -> i64
    %7 = "tt.addptr"(%y_ptr, %6) : (!tt.ptr<f32>, i64) -> !tt.ptr<f32>
    %8 = "tt.splat"(%7) : (!tt.ptr<f32>) -> tensor<1024x!tt.ptr<f32>>
    %9 = "tt.addptr"(%8, %cols) : (tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>) -> tensor<1024x!tt.ptr<f32>>
    "tt.store"(%9, %0, %2) : (tensor<1024x!tt.ptr<f32>>, tensor<1024xf32>, tensor<1024xi1>) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()