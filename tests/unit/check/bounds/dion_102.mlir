"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}, {}], function_type = (!tt.ptr<f16>, i32, i32, i32) -> (), sym_name = "dion_102", sym_visibility = "public"}> ({
  ^bb0(%x_ptr: !tt.ptr<f16>, %stride_b: i32, %tiles: i32, %M: i32):
    %0 = "arith.constant"() <{value = dense<0.000000e+00> : tensor<64xf16>}> : () -> tensor<64xf16>
    %rows = "arith.constant"() <{value = 64 : i32}> : () -> i32
    %pid = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %batch = "arith.divsi"(%pid, %tiles) : (i32, i32) -> i32
    %tile = "arith.remsi"(%pid, %tiles) : (i32, i32) -> i32
    %rows_0 = "arith.muli"(%tile, %rows) : (i32, i32) -> i32
    %rows_1 = "tt.make_range"() <{end = 64 : i32, start = 0 : i32}> : () -> tensor<64xi32>
    %rows_2 = "tt.splat"(%rows_0) : (i32) -> tensor<64xi32>
    %rows_3 = "arith.addi"(%rows_2, %rows_1) : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
    %1 = "tt.splat"(%M) : (i32) -> tensor<64xi32>
    %2 = "arith.cmpi"(%rows_3, %1) <{predicate = 2 : i64}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi1>
    %3 = "arith.muli"(%batch, %stride_b) : (i32, i32) -> i32
    %4 = "tt.addptr"(%x_ptr, %3) : (!tt.ptr<f16>, i32) -> !tt.ptr<f16>
    %5 = "tt.splat"(%4) : (!tt.ptr<f16>) -> tensor<64x!tt.ptr<f16>>
    %6 = "tt.addptr"(%5, %rows_3) : (tensor<64x!tt.ptr<f16>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f16>>
    "tt.store"(%6, %0, %2) : (tensor<64x!tt.ptr<f16>>, tensor<64xf16>, tensor<64xi1>) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()
