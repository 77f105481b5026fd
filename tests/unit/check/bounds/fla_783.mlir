"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}, {tt.divisibility = 16 : i32}], function_type = (!tt.ptr<f16>, !tt.ptr<f16>, i32, i32) -> (), sym_name = "fla_783", sym_visibility = "public"}> ({
  ^bb0(%x_ptr: !tt.ptr<f16>, %y_ptr: !tt.ptr<f16>, %T: i32, %D: i32):
    %cols = "arith.constant"() <{value = 32 : i32}> : () -> i32
    %rows = "arith.constant"() <{value = 16 : i32}> : () -> i32
    %i_d = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %i_t = "tt.get_program_id"() <{axis = 1 : i32}> : () -> i32
    %i_b = "tt.get_program_id"() <{axis = 2 : i32}> : () -> i32
    %rows_0 = "arith.muli"(%i_t, %rows) : (i32, i32) -> i32
    %rows_1 = "tt.make_range"() <{end = 16 : i32, start = 0 : i32}> : () -> tensor<16xi32>
    %rows_2 = "tt.splat"(%rows_0) : (i32) -> tensor<16xi32>
    %rows_3 = "arith.addi"(%rows_2, %rows_1) : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi32>
    %cols_4 = "arith.muli"(%i_d, %cols) : (i32, i32) -> i32
    %cols_5 = "tt.make_range"() <{end = 32 : i32, start = 0 : i32}> : () -> tensor<32xi32>
    %cols_6 = "tt.splat"(%cols_4) : (i32) -> tensor<32xi32>
    %cols_7 = "arith.addi"(%cols_6, %cols_5) : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi32>
    %mask = "tt.expand_dims"(%rows_3) <{axis = 1 : i32}> : (tensor<16xi32>) -> tensor<16x1xi32>
    %mask_8 = "tt.splat"(%T) : (i32) -> tensor<16x1xi32>
    %mask_9 = "arith.cmpi"(%mask, %mask_8) <{predicate = 2 : i64}> : (tensor<16x1xi32>, tensor<16x1xi32>) -> tensor<16x1xi1>
    %mask_10 = "tt.expand_dims"(%cols_7) <{axis = 0 : i32}> : (tensor<32xi32>) -> tensor<1x32xi32>
    %mask_11 = "tt.splat"(%D) : (i32) -> tensor<1x32xi32>
    %mask_12 = "arith.cmpi"(%mask_10, %mask_11) <{predicate = 2 : i64}> : (tensor<1x32xi32>, tensor<1x32xi32>) -> tensor<1x32xi1>
    %mask_13 = "tt.broadcast"(%mask_9) : (tensor<16x1xi1>) -> tensor<16x32xi1>
    %mask_14 = "tt.broadcast"(%mask_12) : (tensor<1x32xi1>) -> tensor<16x32xi1>
    %mask_15 = "arith.andi"(%mask_13, %mask_14) : (tensor<16x32xi1>, tensor<16x32xi1>) -> tensor<16x32xi1>
    %x = "arith.muli"(%i_b, %T) : (i32, i32) -> i32
    %x_16 = "arith.muli"(%x, %D) : (i32, i32) -> i32
    %x_17 = "tt.addptr"(%x_ptr, %x_16) : (!tt.ptr<f16>, i32) -> !tt.ptr<f16>
    %x_18 = "arith.extsi"(%D) : (i32) -> i64
    %x_19 = "arith.extsi"(%mask) : (tensor<16x1xi32>) -> tensor<16x1xi64>
    %x_20 = "tt.splat"(%x_18) : (i64) -> tensor<16x1xi64>
    %x_21 = "arith.muli"(%x_19, %x_20) : (tensor<16x1xi64>, tensor<16x1xi64>) -> tensor<16x1xi64>
    %x_22 = "tt.splat"(%x_17) : (!tt.ptr<f16>) -> tensor<16x1x!tt.ptr<f16>>
    %x_23 = "tt.addptr"(%x_22, %x_21) : (tensor<16x1x!tt.ptr<f16>>, tensor<16x1xi64>) -> tensor<16x1x!tt.ptr<f16>>
    %x_24 = "tt.broadcast"(%x_23) : (tensor<16x1x!tt.ptr<f16>>) -> tensor<16x32x!tt.ptr<f16>>
    %x_25 = "tt.broadcast"(%mask_10) : (tensor<1x32xi32>) -> tensor<16x32xi32>
    %x_26 = "tt.addptr"(%x_24, %x_25) : (tensor<16x32x!tt.ptr<f16>>, tensor<16x32xi32>) -> tensor<16x32x!tt.ptr<f16>>
    %x_27 = "tt.load"(%x_26, %mask_15) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 0>}> : (tensor<16x32x!tt.ptr<f16>>, tensor<16x32xi1>) -> tensor<16x32xf16>
    %0 = "tt.splat"(%y_ptr) : (!tt.ptr<f16>) -> tensor<16x1x!tt.ptr<f16>>
    %1 = "tt.addptr"(%0, %x_21) : (tensor<16x1x!tt.ptr<f16>>, tensor<16x1xi64>) -> tensor<16x1x!tt.ptr<f16>>
    %2 = "tt.broadcast"(%1) : (tensor<16x1x!tt.ptr<f16>>) -> tensor<16x32x!tt.ptr<f16>>
    %3 = "tt.addptr"(%2, %x_25) : (tensor<16x32x!tt.ptr<f16>>, tensor<16x32xi32>) -> tensor<16x32x!tt.ptr<f16>>
    "tt.store"(%3, %x_27, %mask_15) : (tensor<16x32x!tt.ptr<f16>>, tensor<16x32xf16>, tensor<16x32xi1>) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()
