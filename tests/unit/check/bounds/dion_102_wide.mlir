"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}, {}], function_type = (!tt.ptr<f16>, i32, i32, i32) -> (), sym_name = "dion_102", sym_visibility = "public"}> ({
  ^bb0(%x_ptr: !tt.ptr<f16>, %stride_b: i32, %tiles: i32, %M: i32):
    %0 = "arith.constant"() <{value = dense<0.000000e+00> : tensor<64xf16>}> : () -> tensor<64xf16>
    %rows = "arith.constant"() <{value = 64 : i32}> : () -> i32
    %pid = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %batch = "arith.divsi"(%pid, %tiles) : (i32, i32) -> i32
    %tile = "arith.remsi"(%pid, %tiles) : (i32, i32) -> i32
    %batch_0 = "arith.extsi"(%batch) : (i32) -> i64
    %rows_1 = "arith.muli"(%tile, %rows) : (i32, i32) -> i32
    %rows_2 = "tt.make_range"() <{end = 64 : i32, start = 0 : i32}> : () -> tensor<64xi32>
    %rows_3 = "tt.splat"(%rows_1) : (i32) -> tensor<64xi32>
    %rows_4 = "arith.addi"(%rows_3, %rows_2) : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
    %1 = "tt.splat"(%M) : (i32) -> tensor<64xi32>
    %2 = "arith.cmpi"(%rows_4, %1) <{predicate = 2 : i64}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi1>
    %3 = "arith.extsi"(%stride_b) : (i32) -> i64
    %4 = "arith.muli"(%batch_0, %3) : (i64, i64) -> i64
    %5 = "tt.addptr"(%x_ptr, %4) : (!tt.ptr<f16>, i64) -> !tt.ptr<f16>
    %6 = "tt.splat"(%5) : (!tt.ptr<f16>) -> tensor<64x!tt.ptr<f16>>
    %7 = "tt.addptr"(%6, %rows_4) : (tensor<64x!tt.ptr<f16>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f16>>
    "tt.store"(%7, %0, %2) : (tensor<64x!tt.ptr<f16>>, tensor<64xf16>, tensor<64xi1>) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()
