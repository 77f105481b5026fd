"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}], function_type = (!tt.ptr<f16>, i32, i32, i32, i32) -> (), sym_name = "mamba_987", sym_visibility = "public"}> ({
  ^bb0(%x_ptr: !tt.ptr<f16>, %stride_seqlen: i32, %stride_b: i32, %chunk_size: i32, %seqlen: i32):
    %0 = "arith.constant"() <{value = dense<0.000000e+00> : tensor<64xf16>}> : () -> tensor<64xf16>
    %pid_c = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %x_ptr_0 = "arith.muli"(%pid_c, %chunk_size) : (i32, i32) -> i32
    %x_ptr_1 = "arith.muli"(%x_ptr_0, %stride_seqlen) : (i32, i32) -> i32
    %x_ptr_2 = "tt.addptr"(%x_ptr, %x_ptr_1) : (!tt.ptr<f16>, i32) -> !tt.ptr<f16>
    %rows = "tt.make_range"() <{end = 64 : i32, start = 0 : i32}> : () -> tensor<64xi32>
    %left = "arith.subi"(%seqlen, %x_ptr_0) : (i32, i32) -> i32
    %left_3 = "arith.minsi"(%chunk_size, %left) : (i32, i32) -> i32
    %1 = "tt.splat"(%left_3) : (i32) -> tensor<64xi32>
    %2 = "arith.cmpi"(%rows, %1) <{predicate = 2 : i64}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi1>
    %3 = "tt.splat"(%x_ptr_2) : (!tt.ptr<f16>) -> tensor<64x!tt.ptr<f16>>
    %4 = "tt.addptr"(%3, %rows) : (tensor<64x!tt.ptr<f16>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f16>>
    "tt.store"(%4, %0, %2) : (tensor<64x!tt.ptr<f16>>, tensor<64xf16>, tensor<64xi1>) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()
