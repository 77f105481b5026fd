"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {}], function_type = (!tt.ptr<f16>, i32) -> (), sym_name = "assumed", sym_visibility = "public"}> ({
  ^bb0(%x_ptr: !tt.ptr<f16>, %stride: i32):
    %0 = "arith.constant"() <{value = dense<0.000000e+00> : tensor<64xf16>}> : () -> tensor<64xf16>
    %1 = "arith.constant"() <{value = 65536 : i32}> : () -> i32
    %2 = "arith.constant"() <{value = 1024 : i32}> : () -> i32
    %row = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %3 = "arith.cmpi"(%row, %2) <{predicate = 2 : i64}> : (i32, i32) -> i1
    "llvm.intr.assume"(%3) <{op_bundle_sizes = array<i32>}> : (i1) -> ()
    %4 = "arith.cmpi"(%stride, %1) <{predicate = 2 : i64}> : (i32, i32) -> i1
    "llvm.intr.assume"(%4) <{op_bundle_sizes = array<i32>}> : (i1) -> ()
    %5 = "arith.muli"(%row, %stride) : (i32, i32) -> i32
    %6 = "tt.addptr"(%x_ptr, %5) : (!tt.ptr<f16>, i32) -> !tt.ptr<f16>
    %7 = "tt.make_range"() <{end = 64 : i32, start = 0 : i32}> : () -> tensor<64xi32>
    %8 = "tt.splat"(%6) : (!tt.ptr<f16>) -> tensor<64x!tt.ptr<f16>>
    %9 = "tt.addptr"(%8, %7) : (tensor<64x!tt.ptr<f16>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f16>>
    "tt.store"(%9, %0) : (tensor<64x!tt.ptr<f16>>, tensor<64xf16>) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()
