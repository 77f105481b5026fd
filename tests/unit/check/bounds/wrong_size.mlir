"builtin.module"() ({
  "tt.func"() <{function_type = (!tt.ptr<f32>, i32, i32, i32) -> (), sym_name = "wrong_size", sym_visibility = "public"}> ({
  ^bb0(%x_ptr: !tt.ptr<f32>, %rows: i32, %cols: i32, %stride: i32):
    %0 = "arith.constant"() <{value = dense<1.000000e+00> : tensor<64x32xf32>}> : () -> tensor<64x32xf32>
    %col = "arith.constant"() <{value = 32 : i32}> : () -> i32
    %row = "arith.constant"() <{value = 64 : i32}> : () -> i32
    %row_0 = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %row_1 = "arith.muli"(%row_0, %row) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
    %row_2 = "tt.make_range"() <{end = 64 : i32, start = 0 : i32}> : () -> tensor<64xi32>
    %row_3 = "tt.splat"(%row_1) : (i32) -> tensor<64xi32>
    %row_4 = "arith.addi"(%row_3, %row_2) <{overflowFlags = #arith.overflow<none>}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
    %col_5 = "tt.get_program_id"() <{axis = 1 : i32}> : () -> i32
    %col_6 = "arith.muli"(%col_5, %col) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
    %col_7 = "tt.make_range"() <{end = 32 : i32, start = 0 : i32}> : () -> tensor<32xi32>
    %col_8 = "tt.splat"(%col_6) : (i32) -> tensor<32xi32>
    %col_9 = "arith.addi"(%col_8, %col_7) <{overflowFlags = #arith.overflow<none>}> : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi32>
    %at = "tt.expand_dims"(%row_4) <{axis = 1 : i32}> : (tensor<64xi32>) -> tensor<64x1xi32>
    %at_10 = "tt.splat"(%stride) : (i32) -> tensor<64x1xi32>
    %at_11 = "arith.muli"(%at, %at_10) <{overflowFlags = #arith.overflow<none>}> : (tensor<64x1xi32>, tensor<64x1xi32>) -> tensor<64x1xi32>
    %at_12 = "tt.splat"(%x_ptr) : (!tt.ptr<f32>) -> tensor<64x1x!tt.ptr<f32>>
    %at_13 = "tt.addptr"(%at_12, %at_11) : (tensor<64x1x!tt.ptr<f32>>, tensor<64x1xi32>) -> tensor<64x1x!tt.ptr<f32>>
    %at_14 = "tt.expand_dims"(%col_9) <{axis = 0 : i32}> : (tensor<32xi32>) -> tensor<1x32xi32>
    %at_15 = "tt.broadcast"(%at_13) : (tensor<64x1x!tt.ptr<f32>>) -> tensor<64x32x!tt.ptr<f32>>
    %at_16 = "tt.broadcast"(%at_14) : (tensor<1x32xi32>) -> tensor<64x32xi32>
    %at_17 = "tt.addptr"(%at_15, %at_16) : (tensor<64x32x!tt.ptr<f32>>, tensor<64x32xi32>) -> tensor<64x32x!tt.ptr<f32>>
    %x = "tt.splat"(%rows) : (i32) -> tensor<64x1xi32>
    %x_18 = "arith.cmpi"(%at, %x) <{predicate = 2 : i64}> : (tensor<64x1xi32>, tensor<64x1xi32>) -> tensor<64x1xi1>
    %x_19 = "tt.splat"(%cols) : (i32) -> tensor<1x32xi32>
    %x_20 = "arith.cmpi"(%at_14, %x_19) <{predicate = 2 : i64}> : (tensor<1x32xi32>, tensor<1x32xi32>) -> tensor<1x32xi1>
    %x_21 = "tt.broadcast"(%x_18) : (tensor<64x1xi1>) -> tensor<64x32xi1>
    %x_22 = "tt.broadcast"(%x_20) : (tensor<1x32xi1>) -> tensor<64x32xi1>
    %x_23 = "arith.andi"(%x_21, %x_22) : (tensor<64x32xi1>, tensor<64x32xi1>) -> tensor<64x32xi1>
    %x_24 = "tt.load"(%at_17, %x_23) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 0>}> : (tensor<64x32x!tt.ptr<f32>>, tensor<64x32xi1>) -> tensor<64x32xf32>
    %1 = "tt.splat"(%cols) : (i32) -> tensor<64x1xi32>
    %2 = "arith.cmpi"(%at, %1) <{predicate = 2 : i64}> : (tensor<64x1xi32>, tensor<64x1xi32>) -> tensor<64x1xi1>
    %3 = "tt.broadcast"(%2) : (tensor<64x1xi1>) -> tensor<64x32xi1>
    %4 = "arith.andi"(%3, %x_22) : (tensor<64x32xi1>, tensor<64x32xi1>) -> tensor<64x32xi1>
    %5 = "arith.addf"(%x_24, %0) <{fastmath = #arith.fastmath<none>}> : (tensor<64x32xf32>, tensor<64x32xf32>) -> tensor<64x32xf32>
    "tt.store"(%at_17, %5, %4) : (tensor<64x32x!tt.ptr<f32>>, tensor<64x32xf32>, tensor<64x32xi1>) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()