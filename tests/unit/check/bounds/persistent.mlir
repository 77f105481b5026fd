"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}], function_type = (!tt.ptr<f16>, i32, i32) -> (), sym_name = "persistent", sym_visibility = "public"}> ({
  ^bb0(%x_ptr: !tt.ptr<f16>, %stride: i32, %n_rows: i32):
    %0 = "arith.constant"() <{value = dense<0.000000e+00> : tensor<64xf16>}> : () -> tensor<64xf16>
    %1 = "arith.constant"() <{value = 128 : i32}> : () -> i32
    %cols = "tt.make_range"() <{end = 64 : i32, start = 0 : i32}> : () -> tensor<64xi32>
    %2 = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    "scf.for"(%2, %n_rows, %1) ({
    ^bb0(%arg3: i32):
      %3 = "arith.muli"(%arg3, %stride) : (i32, i32) -> i32
      %4 = "tt.addptr"(%x_ptr, %3) : (!tt.ptr<f16>, i32) -> !tt.ptr<f16>
      %5 = "tt.splat"(%4) : (!tt.ptr<f16>) -> tensor<64x!tt.ptr<f16>>
      %6 = "tt.addptr"(%5, %cols) : (tensor<64x!tt.ptr<f16>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f16>>
      "tt.store"(%6, %0) : (tensor<64x!tt.ptr<f16>>, tensor<64xf16>) -> ()
      "scf.yield"() : () -> ()
    }) : (i32, i32, i32) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()
