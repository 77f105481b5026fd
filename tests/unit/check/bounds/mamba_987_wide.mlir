"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}], function_type = (!tt.ptr<f16>, i32, i32, i32, i32) -> (), sym_name = "mamba_987", sym_visibility = "public"}> ({
  ^bb0(%x_ptr: !tt.ptr<f16>, %stride_seqlen: i32, %stride_b: i32, %chunk_size: i32, %seqlen: i32):
    %0 = "arith.constant"() <{value = dense<0.000000e+00> : tensor<64xf16>}> : () -> tensor<64xf16>
    %pid_c = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %pid_c_0 = "arith.extsi"(%pid_c) : (i32) -> i64
    %x_ptr_1 = "arith.extsi"(%chunk_size) : (i32) -> i64
    %x_ptr_2 = "arith.muli"(%pid_c_0, %x_ptr_1) : (i64, i64) -> i64
    %x_ptr_3 = "arith.extsi"(%stride_seqlen) : (i32) -> i64
    %x_ptr_4 = "arith.muli"(%x_ptr_2, %x_ptr_3) : (i64, i64) -> i64
    %x_ptr_5 = "tt.addptr"(%x_ptr, %x_ptr_4) : (!tt.ptr<f16>, i64) -> !tt.ptr<f16>
    %rows = "tt.make_range"() <{end = 64 : i32, start = 0 : i32}> : () -> tensor<64xi32>
    %left = "arith.extsi"(%seqlen) : (i32) -> i64
    %left_6 = "arith.subi"(%left, %x_ptr_2) : (i64, i64) -> i64
    %left_7 = "arith.minsi"(%x_ptr_1, %left_6) : (i64, i64) -> i64
    %1 = "arith.extsi"(%rows) : (tensor<64xi32>) -> tensor<64xi64>
    %2 = "tt.splat"(%left_7) : (i64) -> tensor<64xi64>
    %3 = "arith.cmpi"(%1, %2) <{predicate = 2 : i64}> : (tensor<64xi64>, tensor<64xi64>) -> tensor<64xi1>
    %4 = "tt.splat"(%x_ptr_5) : (!tt.ptr<f16>) -> tensor<64x!tt.ptr<f16>>
    %5 = "tt.addptr"(%4, %rows) : (tensor<64x!tt.ptr<f16>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f16>>
    "tt.store"(%5, %0, %3) : (tensor<64x!tt.ptr<f16>>, tensor<64xf16>, tensor<64xi1>) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()
