"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}, {tt.divisibility = 16 : i32}], function_type = (!tt.ptr<f16>, !tt.ptr<f16>, i32, i32) -> (), sym_name = "fla_783", sym_visibility = "public"}> ({
  ^bb0(%x_ptr: !tt.ptr<f16>, %y_ptr: !tt.ptr<f16>, %T: i32, %D: i32):
    %cols = "arith.constant"() <{value = 32 : i32}> : () -> i32
    %rows = "arith.constant"() <{value = 16 : i32}> : () -> i32
    %i_d = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %i_t = "tt.get_program_id"() <{axis = 1 : i32}> : () -> i32
    %i_b = "tt.get_program_id"() <{axis = 2 : i32}> : () -> i32
    %i_b_0 = "arith.extsi"(%i_b) : (i32) -> i64
    %rows_1 = "arith.muli"(%i_t, %rows) : (i32, i32) -> i32
    %rows_2 = "tt.make_range"() <{end = 16 : i32, start = 0 : i32}> : () -> tensor<16xi32>
    %rows_3 = "tt.splat"(%rows_1) : (i32) -> tensor<16xi32>
    %rows_4 = "arith.addi"(%rows_3, %rows_2) : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi32>
    %cols_5 = "arith.muli"(%i_d, %cols) : (i32, i32) -> i32
    %cols_6 = "tt.make_range"() <{end = 32 : i32, start = 0 : i32}> : () -> tensor<32xi32>
    %cols_7 = "tt.splat"(%cols_5) : (i32) -> tensor<32xi32>
    %cols_8 = "arith.addi"(%cols_7, %cols_6) : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi32>
    %mask = "tt.expand_dims"(%rows_4) <{axis = 1 : i32}> : (tensor<16xi32>) -> tensor<16x1xi32>
    %mask_9 = "tt.splat"(%T) : (i32) -> tensor<16x1xi32>
    %mask_10 = "arith.cmpi"(%mask, %mask_9) <{predicate = 2 : i64}> : (tensor<16x1xi32>, tensor<16x1xi32>) -> tensor<16x1xi1>
    %mask_11 = "tt.expand_dims"(%cols_8) <{axis = 0 : i32}> : (tensor<32xi32>) -> tensor<1x32xi32>
    %mask_12 = "tt.splat"(%D) : (i32) -> tensor<1x32xi32>
    %mask_13 = "arith.cmpi"(%mask_11, %mask_12) <{predicate = 2 : i64}> : (tensor<1x32xi32>, tensor<1x32xi32>) -> tensor<1x32xi1>
    %mask_14 = "tt.broadcast"(%mask_10) : (tensor<16x1xi1>) -> tensor<16x32xi1>
    %mask_15 = "tt.broadcast"(%mask_13) : (tensor<1x32xi1>) -> tensor<16x32xi1>
    %mask_16 = "arith.andi"(%mask_14, %mask_15) : (tensor<16x32xi1>, tensor<16x32xi1>) -> tensor<16x32xi1>
    %x = "arith.extsi"(%T) : (i32) -> i64
    %x_17 = "arith.muli"(%i_b_0, %x) : (i64, i64) -> i64
    %x_18 = "arith.extsi"(%D) : (i32) -> i64
    %x_19 = "arith.muli"(%x_17, %x_18) : (i64, i64) -> i64
    %x_20 = "tt.addptr"(%x_ptr, %x_19) : (!tt.ptr<f16>, i64) -> !tt.ptr<f16>
    %x_21 = "arith.extsi"(%mask) : (tensor<16x1xi32>) -> tensor<16x1xi64>
    %x_22 = "tt.splat"(%x_18) : (i64) -> tensor<16x1xi64>
    %x_23 = "arith.muli"(%x_21, %x_22) : (tensor<16x1xi64>, tensor<16x1xi64>) -> tensor<16x1xi64>
    %x_24 = "tt.splat"(%x_20) : (!tt.ptr<f16>) -> tensor<16x1x!tt.ptr<f16>>
    %x_25 = "tt.addptr"(%x_24, %x_23) : (tensor<16x1x!tt.ptr<f16>>, tensor<16x1xi64>) -> tensor<16x1x!tt.ptr<f16>>
    %x_26 = "tt.broadcast"(%x_25) : (tensor<16x1x!tt.ptr<f16>>) -> tensor<16x32x!tt.ptr<f16>>
    %x_27 = "tt.broadcast"(%mask_11) : (tensor<1x32xi32>) -> tensor<16x32xi32>
    %x_28 = "tt.addptr"(%x_26, %x_27) : (tensor<16x32x!tt.ptr<f16>>, tensor<16x32xi32>) -> tensor<16x32x!tt.ptr<f16>>
    %x_29 = "tt.load"(%x_28, %mask_16) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 0>}> : (tensor<16x32x!tt.ptr<f16>>, tensor<16x32xi1>) -> tensor<16x32xf16>
    %0 = "tt.splat"(%y_ptr) : (!tt.ptr<f16>) -> tensor<16x1x!tt.ptr<f16>>
    %1 = "tt.addptr"(%0, %x_23) : (tensor<16x1x!tt.ptr<f16>>, tensor<16x1xi64>) -> tensor<16x1x!tt.ptr<f16>>
    %2 = "tt.broadcast"(%1) : (tensor<16x1x!tt.ptr<f16>>) -> tensor<16x32x!tt.ptr<f16>>
    %3 = "tt.addptr"(%2, %x_27) : (tensor<16x32x!tt.ptr<f16>>, tensor<16x32xi32>) -> tensor<16x32x!tt.ptr<f16>>
    "tt.store"(%3, %x_29, %mask_16) : (tensor<16x32x!tt.ptr<f16>>, tensor<16x32xf16>, tensor<16x32xi1>) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()
