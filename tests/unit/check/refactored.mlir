// kernel: subtract
"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}], function_type = (!tt.ptr<f32>, !tt.ptr<f32>, !tt.ptr<f32>, i32) -> (), sym_name = "subtract", sym_visibility = "public"}> ({
  ^bb0(%X: !tt.ptr<f32>, %Y: !tt.ptr<f32>, %OUT: !tt.ptr<f32>, %n: i32):
    %at = "arith.constant"() <{value = 64 : i32}> : () -> i32
    %at_0 = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %at_1 = "arith.muli"(%at_0, %at) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
    %at_2 = "tt.make_range"() <{end = 64 : i32, start = 0 : i32}> : () -> tensor<64xi32>
    %at_3 = "tt.splat"(%at_1) : (i32) -> tensor<64xi32>
    %at_4 = "arith.addi"(%at_3, %at_2) <{overflowFlags = #arith.overflow<none>}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
    %x = "tt.splat"(%n) : (i32) -> tensor<64xi32>
    %x_5 = "arith.cmpi"(%at_4, %x) <{predicate = 2 : i64}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi1>
    %x_6 = "tt.splat"(%X) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
    %x_7 = "tt.addptr"(%x_6, %at_4) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
    %x_8 = "tt.load"(%x_7, %x_5) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 0>}> : (tensor<64x!tt.ptr<f32>>, tensor<64xi1>) -> tensor<64xf32>
    %y = "tt.splat"(%Y) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
    %y_9 = "tt.addptr"(%y, %at_4) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
    %y_10 = "tt.load"(%y_9, %x_5) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 0>}> : (tensor<64x!tt.ptr<f32>>, tensor<64xi1>) -> tensor<64xf32>
    %0 = "tt.splat"(%OUT) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
    %1 = "tt.addptr"(%0, %at_4) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
    %2 = "arith.subf"(%x_8, %y_10) <{fastmath = #arith.fastmath<none>}> : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    "tt.store"(%1, %2, %x_5) : (tensor<64x!tt.ptr<f32>>, tensor<64xf32>, tensor<64xi1>) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()

// kernel: subtract_in_a_loop
"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}], function_type = (!tt.ptr<f32>, !tt.ptr<f32>, !tt.ptr<f32>, i32) -> (), sym_name = "subtract_in_a_loop", sym_visibility = "public"}> ({
  ^bb0(%X: !tt.ptr<f32>, %Y: !tt.ptr<f32>, %OUT: !tt.ptr<f32>, %n: i32):
    %0 = "arith.constant"() <{value = dense<0.000000e+00> : tensor<64xf32>}> : () -> tensor<64xf32>
    %1 = "arith.constant"() <{value = 64 : i32}> : () -> i32
    %2 = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %3 = "arith.muli"(%2, %1) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
    %4 = "tt.get_num_programs"() <{axis = 0 : i32}> : () -> i32
    %5 = "arith.muli"(%4, %1) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
    "scf.for"(%3, %n, %5) ({
    ^bb0(%arg4: i32):
      %at = "tt.make_range"() <{end = 64 : i32, start = 0 : i32}> : () -> tensor<64xi32>
      %at_0 = "tt.splat"(%arg4) : (i32) -> tensor<64xi32>
      %at_1 = "arith.addi"(%at_0, %at) <{overflowFlags = #arith.overflow<none>}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
      %x = "tt.splat"(%n) : (i32) -> tensor<64xi32>
      %x_2 = "arith.cmpi"(%at_1, %x) <{predicate = 2 : i64}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi1>
      %x_3 = "tt.splat"(%X) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
      %x_4 = "tt.addptr"(%x_3, %at_1) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
      %x_5 = "tt.load"(%x_4, %x_2, %0) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<64x!tt.ptr<f32>>, tensor<64xi1>, tensor<64xf32>) -> tensor<64xf32>
      %y = "tt.splat"(%Y) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
      %y_6 = "tt.addptr"(%y, %at_1) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
      %y_7 = "tt.load"(%y_6, %x_2, %0) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<64x!tt.ptr<f32>>, tensor<64xi1>, tensor<64xf32>) -> tensor<64xf32>
      %6 = "tt.splat"(%OUT) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
      %7 = "tt.addptr"(%6, %at_1) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
      %8 = "arith.subf"(%x_5, %y_7) <{fastmath = #arith.fastmath<none>}> : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
      "tt.store"(%7, %8, %x_2) : (tensor<64x!tt.ptr<f32>>, tensor<64xf32>, tensor<64xi1>) -> ()
      "scf.yield"() : () -> ()
    }) : (i32, i32, i32) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()

// kernel: subtract_negated
"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}], function_type = (!tt.ptr<f32>, !tt.ptr<f32>, !tt.ptr<f32>, i32) -> (), sym_name = "subtract_negated", sym_visibility = "public"}> ({
  ^bb0(%X: !tt.ptr<f32>, %Y: !tt.ptr<f32>, %OUT: !tt.ptr<f32>, %n: i32):
    %at = "arith.constant"() <{value = 64 : i32}> : () -> i32
    %at_0 = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %at_1 = "arith.muli"(%at_0, %at) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
    %at_2 = "tt.make_range"() <{end = 64 : i32, start = 0 : i32}> : () -> tensor<64xi32>
    %at_3 = "tt.splat"(%at_1) : (i32) -> tensor<64xi32>
    %at_4 = "arith.addi"(%at_3, %at_2) <{overflowFlags = #arith.overflow<none>}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
    %x = "tt.splat"(%n) : (i32) -> tensor<64xi32>
    %x_5 = "arith.cmpi"(%at_4, %x) <{predicate = 2 : i64}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi1>
    %x_6 = "tt.splat"(%X) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
    %x_7 = "tt.addptr"(%x_6, %at_4) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
    %x_8 = "tt.load"(%x_7, %x_5) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 0>}> : (tensor<64x!tt.ptr<f32>>, tensor<64xi1>) -> tensor<64xf32>
    %y = "tt.splat"(%Y) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
    %y_9 = "tt.addptr"(%y, %at_4) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
    %y_10 = "tt.load"(%y_9, %x_5) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 0>}> : (tensor<64x!tt.ptr<f32>>, tensor<64xi1>) -> tensor<64xf32>
    %0 = "tt.splat"(%OUT) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
    %1 = "tt.addptr"(%0, %at_4) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
    %2 = "arith.subf"(%y_10, %x_8) <{fastmath = #arith.fastmath<none>}> : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    %3 = "arith.negf"(%2) <{fastmath = #arith.fastmath<none>}> : (tensor<64xf32>) -> tensor<64xf32>
    "tt.store"(%1, %3, %x_5) : (tensor<64x!tt.ptr<f32>>, tensor<64xf32>, tensor<64xi1>) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()

// kernel: subtract_without_a_mask
"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}], function_type = (!tt.ptr<f32>, !tt.ptr<f32>, !tt.ptr<f32>, i32) -> (), sym_name = "subtract_without_a_mask", sym_visibility = "public"}> ({
  ^bb0(%X: !tt.ptr<f32>, %Y: !tt.ptr<f32>, %OUT: !tt.ptr<f32>, %n: i32):
    %at = "arith.constant"() <{value = 64 : i32}> : () -> i32
    %at_0 = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %at_1 = "arith.muli"(%at_0, %at) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
    %at_2 = "tt.make_range"() <{end = 64 : i32, start = 0 : i32}> : () -> tensor<64xi32>
    %at_3 = "tt.splat"(%at_1) : (i32) -> tensor<64xi32>
    %at_4 = "arith.addi"(%at_3, %at_2) <{overflowFlags = #arith.overflow<none>}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
    %x = "tt.splat"(%X) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
    %x_5 = "tt.addptr"(%x, %at_4) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
    %x_6 = "tt.load"(%x_5) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 0, 0>}> : (tensor<64x!tt.ptr<f32>>) -> tensor<64xf32>
    %y = "tt.splat"(%n) : (i32) -> tensor<64xi32>
    %y_7 = "arith.cmpi"(%at_4, %y) <{predicate = 2 : i64}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi1>
    %y_8 = "tt.splat"(%Y) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
    %y_9 = "tt.addptr"(%y_8, %at_4) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
    %y_10 = "tt.load"(%y_9, %y_7) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 0>}> : (tensor<64x!tt.ptr<f32>>, tensor<64xi1>) -> tensor<64xf32>
    %0 = "tt.splat"(%OUT) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
    %1 = "tt.addptr"(%0, %at_4) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
    %2 = "arith.subf"(%x_6, %y_10) <{fastmath = #arith.fastmath<none>}> : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    "tt.store"(%1, %2, %y_7) : (tensor<64x!tt.ptr<f32>>, tensor<64xf32>, tensor<64xi1>) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()

// kernel: subtract_one_more
"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}], function_type = (!tt.ptr<f32>, !tt.ptr<f32>, !tt.ptr<f32>, i32) -> (), sym_name = "subtract_one_more", sym_visibility = "public"}> ({
  ^bb0(%X: !tt.ptr<f32>, %Y: !tt.ptr<f32>, %OUT: !tt.ptr<f32>, %n: i32):
    %at = "arith.constant"() <{value = 64 : i32}> : () -> i32
    %at_0 = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %at_1 = "arith.muli"(%at_0, %at) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
    %at_2 = "tt.make_range"() <{end = 64 : i32, start = 0 : i32}> : () -> tensor<64xi32>
    %at_3 = "tt.splat"(%at_1) : (i32) -> tensor<64xi32>
    %at_4 = "arith.addi"(%at_3, %at_2) <{overflowFlags = #arith.overflow<none>}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
    %x = "tt.splat"(%n) : (i32) -> tensor<64xi32>
    %x_5 = "arith.cmpi"(%at_4, %x) <{predicate = 3 : i64}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi1>
    %x_6 = "tt.splat"(%X) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
    %x_7 = "tt.addptr"(%x_6, %at_4) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
    %x_8 = "tt.load"(%x_7, %x_5) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 0>}> : (tensor<64x!tt.ptr<f32>>, tensor<64xi1>) -> tensor<64xf32>
    %y = "tt.splat"(%Y) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
    %y_9 = "tt.addptr"(%y, %at_4) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
    %y_10 = "tt.load"(%y_9, %x_5) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 0>}> : (tensor<64x!tt.ptr<f32>>, tensor<64xi1>) -> tensor<64xf32>
    %0 = "tt.splat"(%OUT) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
    %1 = "tt.addptr"(%0, %at_4) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
    %2 = "arith.subf"(%x_8, %y_10) <{fastmath = #arith.fastmath<none>}> : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    "tt.store"(%1, %2, %x_5) : (tensor<64x!tt.ptr<f32>>, tensor<64xf32>, tensor<64xi1>) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()

// kernel: subtract_swapped
"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}], function_type = (!tt.ptr<f32>, !tt.ptr<f32>, !tt.ptr<f32>, i32) -> (), sym_name = "subtract_swapped", sym_visibility = "public"}> ({
  ^bb0(%X: !tt.ptr<f32>, %Y: !tt.ptr<f32>, %OUT: !tt.ptr<f32>, %n: i32):
    %at = "arith.constant"() <{value = 64 : i32}> : () -> i32
    %at_0 = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %at_1 = "arith.muli"(%at_0, %at) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
    %at_2 = "tt.make_range"() <{end = 64 : i32, start = 0 : i32}> : () -> tensor<64xi32>
    %at_3 = "tt.splat"(%at_1) : (i32) -> tensor<64xi32>
    %at_4 = "arith.addi"(%at_3, %at_2) <{overflowFlags = #arith.overflow<none>}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
    %x = "tt.splat"(%n) : (i32) -> tensor<64xi32>
    %x_5 = "arith.cmpi"(%at_4, %x) <{predicate = 2 : i64}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi1>
    %x_6 = "tt.splat"(%X) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
    %x_7 = "tt.addptr"(%x_6, %at_4) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
    %x_8 = "tt.load"(%x_7, %x_5) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 0>}> : (tensor<64x!tt.ptr<f32>>, tensor<64xi1>) -> tensor<64xf32>
    %y = "tt.splat"(%Y) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
    %y_9 = "tt.addptr"(%y, %at_4) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
    %y_10 = "tt.load"(%y_9, %x_5) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 0>}> : (tensor<64x!tt.ptr<f32>>, tensor<64xi1>) -> tensor<64xf32>
    %0 = "tt.splat"(%OUT) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
    %1 = "tt.addptr"(%0, %at_4) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
    %2 = "arith.subf"(%y_10, %x_8) <{fastmath = #arith.fastmath<none>}> : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    "tt.store"(%1, %2, %x_5) : (tensor<64x!tt.ptr<f32>>, tensor<64xf32>, tensor<64xi1>) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()

// kernel: subtract_from_the_second_block
"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}], function_type = (!tt.ptr<f32>, !tt.ptr<f32>, !tt.ptr<f32>, i32) -> (), sym_name = "subtract_from_the_second_block", sym_visibility = "public"}> ({
  ^bb0(%X: !tt.ptr<f32>, %Y: !tt.ptr<f32>, %OUT: !tt.ptr<f32>, %n: i32):
    %at = "arith.constant"() <{value = 64 : i32}> : () -> i32
    %at_0 = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %at_1 = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %at_2 = "arith.addi"(%at_1, %at_0) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
    %at_3 = "arith.muli"(%at_2, %at) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
    %at_4 = "tt.make_range"() <{end = 64 : i32, start = 0 : i32}> : () -> tensor<64xi32>
    %at_5 = "tt.splat"(%at_3) : (i32) -> tensor<64xi32>
    %at_6 = "arith.addi"(%at_5, %at_4) <{overflowFlags = #arith.overflow<none>}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
    %x = "tt.splat"(%n) : (i32) -> tensor<64xi32>
    %x_7 = "arith.cmpi"(%at_6, %x) <{predicate = 2 : i64}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi1>
    %x_8 = "tt.splat"(%X) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
    %x_9 = "tt.addptr"(%x_8, %at_6) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
    %x_10 = "tt.load"(%x_9, %x_7) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 0>}> : (tensor<64x!tt.ptr<f32>>, tensor<64xi1>) -> tensor<64xf32>
    %y = "tt.splat"(%Y) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
    %y_11 = "tt.addptr"(%y, %at_6) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
    %y_12 = "tt.load"(%y_11, %x_7) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 0>}> : (tensor<64x!tt.ptr<f32>>, tensor<64xi1>) -> tensor<64xf32>
    %0 = "tt.splat"(%OUT) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
    %1 = "tt.addptr"(%0, %at_6) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
    %2 = "arith.subf"(%x_10, %y_12) <{fastmath = #arith.fastmath<none>}> : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    "tt.store"(%1, %2, %x_7) : (tensor<64x!tt.ptr<f32>>, tensor<64xf32>, tensor<64xi1>) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()

// kernel: norm
"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}, {}], function_type = (!tt.ptr<f16>, !tt.ptr<f32>, i32, i32, f32) -> (), sym_name = "norm", sym_visibility = "public"}> ({
  ^bb0(%X: !tt.ptr<f16>, %OUT: !tt.ptr<f32>, %stride: i32, %n: i32, %eps: f32):
    %total = "arith.constant"() <{value = dense<0.000000e+00> : tensor<64xf32>}> : () -> tensor<64xf32>
    %0 = "arith.constant"() <{value = dense<0.000000e+00> : tensor<64xf16>}> : () -> tensor<64xf16>
    %1 = "arith.constant"() <{value = 64 : i32}> : () -> i32
    %2 = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %scale = "arith.constant"() <{value = 1.000000e+00 : f32}> : () -> f32
    %row = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %total_0 = "scf.for"(%2, %n, %1, %total) ({
    ^bb0(%arg8: i32, %arg9: tensor<64xf32>):
      %at = "tt.make_range"() <{end = 64 : i32, start = 0 : i32}> : () -> tensor<64xi32>
      %at_19 = "tt.splat"(%arg8) : (i32) -> tensor<64xi32>
      %at_20 = "arith.addi"(%at_19, %at) <{overflowFlags = #arith.overflow<none>}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
      %x = "tt.splat"(%n) : (i32) -> tensor<64xi32>
      %x_21 = "arith.cmpi"(%at_20, %x) <{predicate = 2 : i64}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi1>
      %x_22 = "arith.muli"(%row, %stride) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
      %x_23 = "tt.addptr"(%X, %x_22) : (!tt.ptr<f16>, i32) -> !tt.ptr<f16>
      %x_24 = "tt.splat"(%x_23) : (!tt.ptr<f16>) -> tensor<64x!tt.ptr<f16>>
      %x_25 = "tt.addptr"(%x_24, %at_20) : (tensor<64x!tt.ptr<f16>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f16>>
      %x_26 = "tt.load"(%x_25, %x_21, %0) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<64x!tt.ptr<f16>>, tensor<64xi1>, tensor<64xf16>) -> tensor<64xf16>
      %x_27 = "arith.extf"(%x_26) : (tensor<64xf16>) -> tensor<64xf32>
      %total_28 = "arith.mulf"(%x_27, %x_27) <{fastmath = #arith.fastmath<none>}> : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
      %total_29 = "arith.addf"(%arg9, %total_28) <{fastmath = #arith.fastmath<none>}> : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
      "scf.yield"(%total_29) : (tensor<64xf32>) -> ()
    }) : (i32, i32, i32, tensor<64xf32>) -> tensor<64xf32>
    %scale_1 = "tt.reduce"(%total_0) <{axis = 0 : i32}> ({
    ^bb0(%scale_16: f32, %scale_17: f32):
      %scale_18 = "arith.addf"(%scale_16, %scale_17) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "tt.reduce.return"(%scale_18) : (f32) -> ()
    }) : (tensor<64xf32>) -> f32
    %scale_2 = "arith.sitofp"(%n) : (i32) -> f32
    %scale_3 = "arith.divf"(%scale_1, %scale_2) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
    %scale_4 = "arith.addf"(%scale_3, %eps) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
    %scale_5 = "math.sqrt"(%scale_4) <{fastmath = #arith.fastmath<none>}> : (f32) -> f32
    %scale_6 = "arith.divf"(%scale, %scale_5) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
    "scf.for"(%2, %n, %1) ({
    ^bb0(%arg5: i32):
      %at = "tt.make_range"() <{end = 64 : i32, start = 0 : i32}> : () -> tensor<64xi32>
      %at_7 = "tt.splat"(%arg5) : (i32) -> tensor<64xi32>
      %at_8 = "arith.addi"(%at_7, %at) <{overflowFlags = #arith.overflow<none>}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
      %x = "tt.splat"(%n) : (i32) -> tensor<64xi32>
      %x_9 = "arith.cmpi"(%at_8, %x) <{predicate = 2 : i64}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi1>
      %x_10 = "arith.muli"(%row, %stride) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
      %x_11 = "tt.addptr"(%X, %x_10) : (!tt.ptr<f16>, i32) -> !tt.ptr<f16>
      %x_12 = "tt.splat"(%x_11) : (!tt.ptr<f16>) -> tensor<64x!tt.ptr<f16>>
      %x_13 = "tt.addptr"(%x_12, %at_8) : (tensor<64x!tt.ptr<f16>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f16>>
      %x_14 = "tt.load"(%x_13, %x_9, %0) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<64x!tt.ptr<f16>>, tensor<64xi1>, tensor<64xf16>) -> tensor<64xf16>
      %x_15 = "arith.extf"(%x_14) : (tensor<64xf16>) -> tensor<64xf32>
      %3 = "tt.addptr"(%OUT, %x_10) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
      %4 = "tt.splat"(%3) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
      %5 = "tt.addptr"(%4, %at_8) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
      %6 = "tt.splat"(%scale_6) : (f32) -> tensor<64xf32>
      %7 = "arith.mulf"(%x_15, %6) <{fastmath = #arith.fastmath<none>}> : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
      "tt.store"(%5, %7, %x_9) : (tensor<64x!tt.ptr<f32>>, tensor<64xf32>, tensor<64xi1>) -> ()
      "scf.yield"() : () -> ()
    }) : (i32, i32, i32) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()

// kernel: norm_by_rsqrt
"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}, {}], function_type = (!tt.ptr<f16>, !tt.ptr<f32>, i32, i32, f32) -> (), sym_name = "norm_by_rsqrt", sym_visibility = "public"}> ({
  ^bb0(%X: !tt.ptr<f16>, %OUT: !tt.ptr<f32>, %stride: i32, %n: i32, %eps: f32):
    %0 = "arith.constant"() <{value = dense<0.000000e+00> : tensor<64xf16>}> : () -> tensor<64xf16>
    %1 = "arith.constant"() <{value = 64 : i32}> : () -> i32
    %2 = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %3 = "arith.constant"() <{value = 0.000000e+00 : f32}> : () -> f32
    %row = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %total = "scf.for"(%2, %n, %1, %3) ({
    ^bb0(%arg6: i32, %arg7: f32):
      %at = "tt.make_range"() <{end = 64 : i32, start = 0 : i32}> : () -> tensor<64xi32>
      %at_12 = "tt.splat"(%arg6) : (i32) -> tensor<64xi32>
      %at_13 = "arith.addi"(%at_12, %at) <{overflowFlags = #arith.overflow<none>}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
      %x = "tt.splat"(%n) : (i32) -> tensor<64xi32>
      %x_14 = "arith.cmpi"(%at_13, %x) <{predicate = 2 : i64}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi1>
      %x_15 = "arith.muli"(%row, %stride) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
      %x_16 = "tt.addptr"(%X, %x_15) : (!tt.ptr<f16>, i32) -> !tt.ptr<f16>
      %x_17 = "tt.splat"(%x_16) : (!tt.ptr<f16>) -> tensor<64x!tt.ptr<f16>>
      %x_18 = "tt.addptr"(%x_17, %at_13) : (tensor<64x!tt.ptr<f16>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f16>>
      %x_19 = "tt.load"(%x_18, %x_14, %0) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<64x!tt.ptr<f16>>, tensor<64xi1>, tensor<64xf16>) -> tensor<64xf16>
      %x_20 = "arith.extf"(%x_19) : (tensor<64xf16>) -> tensor<64xf32>
      %total_21 = "arith.mulf"(%x_20, %x_20) <{fastmath = #arith.fastmath<none>}> : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
      %total_22 = "tt.reduce"(%total_21) <{axis = 0 : i32}> ({
      ^bb0(%total_24: f32, %total_25: f32):
        %total_26 = "arith.addf"(%total_24, %total_25) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
        "tt.reduce.return"(%total_26) : (f32) -> ()
      }) : (tensor<64xf32>) -> f32
      %total_23 = "arith.addf"(%arg7, %total_22) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "scf.yield"(%total_23) : (f32) -> ()
    }) : (i32, i32, i32, f32) -> f32
    %scale = "arith.sitofp"(%n) : (i32) -> f32
    %scale_0 = "arith.divf"(%total, %scale) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
    %scale_1 = "arith.addf"(%scale_0, %eps) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
    %scale_2 = "math.rsqrt"(%scale_1) <{fastmath = #arith.fastmath<none>}> : (f32) -> f32
    "scf.for"(%2, %n, %1) ({
    ^bb0(%arg5: i32):
      %at = "tt.make_range"() <{end = 64 : i32, start = 0 : i32}> : () -> tensor<64xi32>
      %at_3 = "tt.splat"(%arg5) : (i32) -> tensor<64xi32>
      %at_4 = "arith.addi"(%at_3, %at) <{overflowFlags = #arith.overflow<none>}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
      %x = "tt.splat"(%n) : (i32) -> tensor<64xi32>
      %x_5 = "arith.cmpi"(%at_4, %x) <{predicate = 2 : i64}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi1>
      %x_6 = "arith.muli"(%row, %stride) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
      %x_7 = "tt.addptr"(%X, %x_6) : (!tt.ptr<f16>, i32) -> !tt.ptr<f16>
      %x_8 = "tt.splat"(%x_7) : (!tt.ptr<f16>) -> tensor<64x!tt.ptr<f16>>
      %x_9 = "tt.addptr"(%x_8, %at_4) : (tensor<64x!tt.ptr<f16>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f16>>
      %x_10 = "tt.load"(%x_9, %x_5) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 0>}> : (tensor<64x!tt.ptr<f16>>, tensor<64xi1>) -> tensor<64xf16>
      %x_11 = "arith.extf"(%x_10) : (tensor<64xf16>) -> tensor<64xf32>
      %4 = "tt.addptr"(%OUT, %x_6) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
      %5 = "tt.splat"(%4) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
      %6 = "tt.addptr"(%5, %at_4) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
      %7 = "tt.splat"(%scale_2) : (f32) -> tensor<64xf32>
      %8 = "arith.mulf"(%x_11, %7) <{fastmath = #arith.fastmath<none>}> : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
      "tt.store"(%6, %8, %x_5) : (tensor<64x!tt.ptr<f32>>, tensor<64xf32>, tensor<64xi1>) -> ()
      "scf.yield"() : () -> ()
    }) : (i32, i32, i32) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()

// kernel: norm_without_eps
"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}, {}], function_type = (!tt.ptr<f16>, !tt.ptr<f32>, i32, i32, f32) -> (), sym_name = "norm_without_eps", sym_visibility = "public"}> ({
  ^bb0(%X: !tt.ptr<f16>, %OUT: !tt.ptr<f32>, %stride: i32, %n: i32, %eps: f32):
    %total = "arith.constant"() <{value = dense<0.000000e+00> : tensor<64xf32>}> : () -> tensor<64xf32>
    %0 = "arith.constant"() <{value = dense<0.000000e+00> : tensor<64xf16>}> : () -> tensor<64xf16>
    %1 = "arith.constant"() <{value = 64 : i32}> : () -> i32
    %2 = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %scale = "arith.constant"() <{value = 1.000000e+00 : f32}> : () -> f32
    %row = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %total_0 = "scf.for"(%2, %n, %1, %total) ({
    ^bb0(%arg8: i32, %arg9: tensor<64xf32>):
      %at = "tt.make_range"() <{end = 64 : i32, start = 0 : i32}> : () -> tensor<64xi32>
      %at_18 = "tt.splat"(%arg8) : (i32) -> tensor<64xi32>
      %at_19 = "arith.addi"(%at_18, %at) <{overflowFlags = #arith.overflow<none>}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
      %x = "tt.splat"(%n) : (i32) -> tensor<64xi32>
      %x_20 = "arith.cmpi"(%at_19, %x) <{predicate = 2 : i64}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi1>
      %x_21 = "arith.muli"(%row, %stride) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
      %x_22 = "tt.addptr"(%X, %x_21) : (!tt.ptr<f16>, i32) -> !tt.ptr<f16>
      %x_23 = "tt.splat"(%x_22) : (!tt.ptr<f16>) -> tensor<64x!tt.ptr<f16>>
      %x_24 = "tt.addptr"(%x_23, %at_19) : (tensor<64x!tt.ptr<f16>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f16>>
      %x_25 = "tt.load"(%x_24, %x_20, %0) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<64x!tt.ptr<f16>>, tensor<64xi1>, tensor<64xf16>) -> tensor<64xf16>
      %x_26 = "arith.extf"(%x_25) : (tensor<64xf16>) -> tensor<64xf32>
      %total_27 = "arith.mulf"(%x_26, %x_26) <{fastmath = #arith.fastmath<none>}> : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
      %total_28 = "arith.addf"(%arg9, %total_27) <{fastmath = #arith.fastmath<none>}> : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
      "scf.yield"(%total_28) : (tensor<64xf32>) -> ()
    }) : (i32, i32, i32, tensor<64xf32>) -> tensor<64xf32>
    %scale_1 = "tt.reduce"(%total_0) <{axis = 0 : i32}> ({
    ^bb0(%scale_15: f32, %scale_16: f32):
      %scale_17 = "arith.addf"(%scale_15, %scale_16) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "tt.reduce.return"(%scale_17) : (f32) -> ()
    }) : (tensor<64xf32>) -> f32
    %scale_2 = "arith.sitofp"(%n) : (i32) -> f32
    %scale_3 = "arith.divf"(%scale_1, %scale_2) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
    %scale_4 = "math.sqrt"(%scale_3) <{fastmath = #arith.fastmath<none>}> : (f32) -> f32
    %scale_5 = "arith.divf"(%scale, %scale_4) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
    "scf.for"(%2, %n, %1) ({
    ^bb0(%arg5: i32):
      %at = "tt.make_range"() <{end = 64 : i32, start = 0 : i32}> : () -> tensor<64xi32>
      %at_6 = "tt.splat"(%arg5) : (i32) -> tensor<64xi32>
      %at_7 = "arith.addi"(%at_6, %at) <{overflowFlags = #arith.overflow<none>}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
      %x = "tt.splat"(%n) : (i32) -> tensor<64xi32>
      %x_8 = "arith.cmpi"(%at_7, %x) <{predicate = 2 : i64}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi1>
      %x_9 = "arith.muli"(%row, %stride) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
      %x_10 = "tt.addptr"(%X, %x_9) : (!tt.ptr<f16>, i32) -> !tt.ptr<f16>
      %x_11 = "tt.splat"(%x_10) : (!tt.ptr<f16>) -> tensor<64x!tt.ptr<f16>>
      %x_12 = "tt.addptr"(%x_11, %at_7) : (tensor<64x!tt.ptr<f16>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f16>>
      %x_13 = "tt.load"(%x_12, %x_8, %0) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<64x!tt.ptr<f16>>, tensor<64xi1>, tensor<64xf16>) -> tensor<64xf16>
      %x_14 = "arith.extf"(%x_13) : (tensor<64xf16>) -> tensor<64xf32>
      %3 = "tt.addptr"(%OUT, %x_9) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
      %4 = "tt.splat"(%3) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
      %5 = "tt.addptr"(%4, %at_7) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
      %6 = "tt.splat"(%scale_5) : (f32) -> tensor<64xf32>
      %7 = "arith.mulf"(%x_14, %6) <{fastmath = #arith.fastmath<none>}> : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
      "tt.store"(%5, %7, %x_8) : (tensor<64x!tt.ptr<f32>>, tensor<64xf32>, tensor<64xi1>) -> ()
      "scf.yield"() : () -> ()
    }) : (i32, i32, i32) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()

// kernel: norm_without_the_last_block
"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}, {}], function_type = (!tt.ptr<f16>, !tt.ptr<f32>, i32, i32, f32) -> (), sym_name = "norm_without_the_last_block", sym_visibility = "public"}> ({
  ^bb0(%X: !tt.ptr<f16>, %OUT: !tt.ptr<f32>, %stride: i32, %n: i32, %eps: f32):
    %total = "arith.constant"() <{value = dense<0.000000e+00> : tensor<64xf32>}> : () -> tensor<64xf32>
    %0 = "arith.constant"() <{value = dense<0.000000e+00> : tensor<64xf16>}> : () -> tensor<64xf16>
    %1 = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %2 = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %scale = "arith.constant"() <{value = 1.000000e+00 : f32}> : () -> f32
    %3 = "arith.constant"() <{value = 64 : i32}> : () -> i32
    %row = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %4 = "arith.divsi"(%n, %3) : (i32, i32) -> i32
    %total_0 = "scf.for"(%2, %4, %1, %total) ({
    ^bb0(%arg8: i32, %arg9: tensor<64xf32>):
      %at = "arith.muli"(%arg8, %3) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
      %at_19 = "tt.make_range"() <{end = 64 : i32, start = 0 : i32}> : () -> tensor<64xi32>
      %at_20 = "tt.splat"(%at) : (i32) -> tensor<64xi32>
      %at_21 = "arith.addi"(%at_20, %at_19) <{overflowFlags = #arith.overflow<none>}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
      %x = "tt.splat"(%n) : (i32) -> tensor<64xi32>
      %x_22 = "arith.cmpi"(%at_21, %x) <{predicate = 2 : i64}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi1>
      %x_23 = "arith.muli"(%row, %stride) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
      %x_24 = "tt.addptr"(%X, %x_23) : (!tt.ptr<f16>, i32) -> !tt.ptr<f16>
      %x_25 = "tt.splat"(%x_24) : (!tt.ptr<f16>) -> tensor<64x!tt.ptr<f16>>
      %x_26 = "tt.addptr"(%x_25, %at_21) : (tensor<64x!tt.ptr<f16>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f16>>
      %x_27 = "tt.load"(%x_26, %x_22, %0) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<64x!tt.ptr<f16>>, tensor<64xi1>, tensor<64xf16>) -> tensor<64xf16>
      %x_28 = "arith.extf"(%x_27) : (tensor<64xf16>) -> tensor<64xf32>
      %total_29 = "arith.mulf"(%x_28, %x_28) <{fastmath = #arith.fastmath<none>}> : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
      %total_30 = "arith.addf"(%arg9, %total_29) <{fastmath = #arith.fastmath<none>}> : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
      "scf.yield"(%total_30) : (tensor<64xf32>) -> ()
    }) : (i32, i32, i32, tensor<64xf32>) -> tensor<64xf32>
    %scale_1 = "tt.reduce"(%total_0) <{axis = 0 : i32}> ({
    ^bb0(%scale_16: f32, %scale_17: f32):
      %scale_18 = "arith.addf"(%scale_16, %scale_17) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "tt.reduce.return"(%scale_18) : (f32) -> ()
    }) : (tensor<64xf32>) -> f32
    %scale_2 = "arith.sitofp"(%n) : (i32) -> f32
    %scale_3 = "arith.divf"(%scale_1, %scale_2) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
    %scale_4 = "arith.addf"(%scale_3, %eps) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
    %scale_5 = "math.sqrt"(%scale_4) <{fastmath = #arith.fastmath<none>}> : (f32) -> f32
    %scale_6 = "arith.divf"(%scale, %scale_5) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
    "scf.for"(%2, %n, %3) ({
    ^bb0(%arg5: i32):
      %at = "tt.make_range"() <{end = 64 : i32, start = 0 : i32}> : () -> tensor<64xi32>
      %at_7 = "tt.splat"(%arg5) : (i32) -> tensor<64xi32>
      %at_8 = "arith.addi"(%at_7, %at) <{overflowFlags = #arith.overflow<none>}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
      %x = "tt.splat"(%n) : (i32) -> tensor<64xi32>
      %x_9 = "arith.cmpi"(%at_8, %x) <{predicate = 2 : i64}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi1>
      %x_10 = "arith.muli"(%row, %stride) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
      %x_11 = "tt.addptr"(%X, %x_10) : (!tt.ptr<f16>, i32) -> !tt.ptr<f16>
      %x_12 = "tt.splat"(%x_11) : (!tt.ptr<f16>) -> tensor<64x!tt.ptr<f16>>
      %x_13 = "tt.addptr"(%x_12, %at_8) : (tensor<64x!tt.ptr<f16>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f16>>
      %x_14 = "tt.load"(%x_13, %x_9, %0) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<64x!tt.ptr<f16>>, tensor<64xi1>, tensor<64xf16>) -> tensor<64xf16>
      %x_15 = "arith.extf"(%x_14) : (tensor<64xf16>) -> tensor<64xf32>
      %5 = "tt.addptr"(%OUT, %x_10) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
      %6 = "tt.splat"(%5) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
      %7 = "tt.addptr"(%6, %at_8) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
      %8 = "tt.splat"(%scale_6) : (f32) -> tensor<64xf32>
      %9 = "arith.mulf"(%x_15, %8) <{fastmath = #arith.fastmath<none>}> : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
      "tt.store"(%7, %9, %x_9) : (tensor<64x!tt.ptr<f32>>, tensor<64xf32>, tensor<64xi1>) -> ()
      "scf.yield"() : () -> ()
    }) : (i32, i32, i32) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()

// kernel: norm_in_fp16
"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}, {}], function_type = (!tt.ptr<f16>, !tt.ptr<f32>, i32, i32, f32) -> (), sym_name = "norm_in_fp16", sym_visibility = "public"}> ({
  ^bb0(%X: !tt.ptr<f16>, %OUT: !tt.ptr<f32>, %stride: i32, %n: i32, %eps: f32):
    %0 = "arith.constant"() <{value = dense<0.000000e+00> : tensor<64xf16>}> : () -> tensor<64xf16>
    %1 = "arith.constant"() <{value = 64 : i32}> : () -> i32
    %2 = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %scale = "arith.constant"() <{value = 1.000000e+00 : f32}> : () -> f32
    %row = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %total = "scf.for"(%2, %n, %1, %0) ({
    ^bb0(%arg8: i32, %arg9: tensor<64xf16>):
      %at = "tt.make_range"() <{end = 64 : i32, start = 0 : i32}> : () -> tensor<64xi32>
      %at_19 = "tt.splat"(%arg8) : (i32) -> tensor<64xi32>
      %at_20 = "arith.addi"(%at_19, %at) <{overflowFlags = #arith.overflow<none>}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
      %x = "tt.splat"(%n) : (i32) -> tensor<64xi32>
      %x_21 = "arith.cmpi"(%at_20, %x) <{predicate = 2 : i64}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi1>
      %x_22 = "arith.muli"(%row, %stride) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
      %x_23 = "tt.addptr"(%X, %x_22) : (!tt.ptr<f16>, i32) -> !tt.ptr<f16>
      %x_24 = "tt.splat"(%x_23) : (!tt.ptr<f16>) -> tensor<64x!tt.ptr<f16>>
      %x_25 = "tt.addptr"(%x_24, %at_20) : (tensor<64x!tt.ptr<f16>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f16>>
      %x_26 = "tt.load"(%x_25, %x_21, %0) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<64x!tt.ptr<f16>>, tensor<64xi1>, tensor<64xf16>) -> tensor<64xf16>
      %total_27 = "arith.mulf"(%x_26, %x_26) <{fastmath = #arith.fastmath<none>}> : (tensor<64xf16>, tensor<64xf16>) -> tensor<64xf16>
      %total_28 = "arith.addf"(%arg9, %total_27) <{fastmath = #arith.fastmath<none>}> : (tensor<64xf16>, tensor<64xf16>) -> tensor<64xf16>
      "scf.yield"(%total_28) : (tensor<64xf16>) -> ()
    }) : (i32, i32, i32, tensor<64xf16>) -> tensor<64xf16>
    %scale_0 = "arith.extf"(%total) : (tensor<64xf16>) -> tensor<64xf32>
    %scale_1 = "tt.reduce"(%scale_0) <{axis = 0 : i32}> ({
    ^bb0(%scale_16: f32, %scale_17: f32):
      %scale_18 = "arith.addf"(%scale_16, %scale_17) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "tt.reduce.return"(%scale_18) : (f32) -> ()
    }) : (tensor<64xf32>) -> f32
    %scale_2 = "arith.sitofp"(%n) : (i32) -> f32
    %scale_3 = "arith.divf"(%scale_1, %scale_2) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
    %scale_4 = "arith.addf"(%scale_3, %eps) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
    %scale_5 = "math.sqrt"(%scale_4) <{fastmath = #arith.fastmath<none>}> : (f32) -> f32
    %scale_6 = "arith.divf"(%scale, %scale_5) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
    "scf.for"(%2, %n, %1) ({
    ^bb0(%arg5: i32):
      %at = "tt.make_range"() <{end = 64 : i32, start = 0 : i32}> : () -> tensor<64xi32>
      %at_7 = "tt.splat"(%arg5) : (i32) -> tensor<64xi32>
      %at_8 = "arith.addi"(%at_7, %at) <{overflowFlags = #arith.overflow<none>}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
      %x = "tt.splat"(%n) : (i32) -> tensor<64xi32>
      %x_9 = "arith.cmpi"(%at_8, %x) <{predicate = 2 : i64}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi1>
      %x_10 = "arith.muli"(%row, %stride) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
      %x_11 = "tt.addptr"(%X, %x_10) : (!tt.ptr<f16>, i32) -> !tt.ptr<f16>
      %x_12 = "tt.splat"(%x_11) : (!tt.ptr<f16>) -> tensor<64x!tt.ptr<f16>>
      %x_13 = "tt.addptr"(%x_12, %at_8) : (tensor<64x!tt.ptr<f16>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f16>>
      %x_14 = "tt.load"(%x_13, %x_9, %0) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<64x!tt.ptr<f16>>, tensor<64xi1>, tensor<64xf16>) -> tensor<64xf16>
      %x_15 = "arith.extf"(%x_14) : (tensor<64xf16>) -> tensor<64xf32>
      %3 = "tt.addptr"(%OUT, %x_10) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
      %4 = "tt.splat"(%3) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
      %5 = "tt.addptr"(%4, %at_8) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
      %6 = "tt.splat"(%scale_6) : (f32) -> tensor<64xf32>
      %7 = "arith.mulf"(%x_15, %6) <{fastmath = #arith.fastmath<none>}> : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
      "tt.store"(%5, %7, %x_9) : (tensor<64x!tt.ptr<f32>>, tensor<64xf32>, tensor<64xi1>) -> ()
      "scf.yield"() : () -> ()
    }) : (i32, i32, i32) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()

// kernel: largest
"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}, {}, {tt.divisibility = 16 : i32}, {}], function_type = (!tt.ptr<f32>, !tt.ptr<f32>, i32, i32, i32, i32) -> (), sym_name = "largest", sym_visibility = "public"}> ({
  ^bb0(%X: !tt.ptr<f32>, %OUT: !tt.ptr<f32>, %m: i32, %n: i32, %stride_m: i32, %stride_n: i32):
    %0 = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %1 = "arith.constant"() <{value = dense<0xFF800000> : tensor<16x16xf32>}> : () -> tensor<16x16xf32>
    %best = "arith.constant"() <{value = dense<0xFF800000> : tensor<16xf32>}> : () -> tensor<16xf32>
    %2 = "arith.constant"() <{value = 16 : i32}> : () -> i32
    %3 = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %4 = "arith.muli"(%3, %2) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
    %5 = "tt.make_range"() <{end = 16 : i32, start = 0 : i32}> : () -> tensor<16xi32>
    %6 = "tt.splat"(%4) : (i32) -> tensor<16xi32>
    %7 = "arith.addi"(%6, %5) <{overflowFlags = #arith.overflow<none>}> : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi32>
    %best_0 = "scf.for"(%0, %n, %2, %best) ({
    ^bb0(%arg6: i32, %arg7: tensor<16xf32>):
      %mask = "tt.splat"(%m) : (i32) -> tensor<16xi32>
      %mask_1 = "arith.cmpi"(%7, %mask) <{predicate = 2 : i64}> : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi1>
      %mask_2 = "tt.expand_dims"(%mask_1) <{axis = 1 : i32}> : (tensor<16xi1>) -> tensor<16x1xi1>
      %mask_3 = "tt.splat"(%arg6) : (i32) -> tensor<16xi32>
      %mask_4 = "arith.addi"(%mask_3, %5) <{overflowFlags = #arith.overflow<none>}> : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi32>
      %mask_5 = "tt.splat"(%n) : (i32) -> tensor<16xi32>
      %mask_6 = "arith.cmpi"(%mask_4, %mask_5) <{predicate = 2 : i64}> : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi1>
      %mask_7 = "tt.expand_dims"(%mask_6) <{axis = 0 : i32}> : (tensor<16xi1>) -> tensor<1x16xi1>
      %mask_8 = "tt.broadcast"(%mask_2) : (tensor<16x1xi1>) -> tensor<16x16xi1>
      %mask_9 = "tt.broadcast"(%mask_7) : (tensor<1x16xi1>) -> tensor<16x16xi1>
      %mask_10 = "arith.andi"(%mask_8, %mask_9) : (tensor<16x16xi1>, tensor<16x16xi1>) -> tensor<16x16xi1>
      %at = "tt.expand_dims"(%7) <{axis = 1 : i32}> : (tensor<16xi32>) -> tensor<16x1xi32>
      %at_11 = "tt.splat"(%stride_m) : (i32) -> tensor<16x1xi32>
      %at_12 = "arith.muli"(%at, %at_11) <{overflowFlags = #arith.overflow<none>}> : (tensor<16x1xi32>, tensor<16x1xi32>) -> tensor<16x1xi32>
      %at_13 = "tt.expand_dims"(%mask_4) <{axis = 0 : i32}> : (tensor<16xi32>) -> tensor<1x16xi32>
      %at_14 = "tt.splat"(%stride_n) : (i32) -> tensor<1x16xi32>
      %at_15 = "arith.muli"(%at_13, %at_14) <{overflowFlags = #arith.overflow<none>}> : (tensor<1x16xi32>, tensor<1x16xi32>) -> tensor<1x16xi32>
      %at_16 = "tt.broadcast"(%at_12) : (tensor<16x1xi32>) -> tensor<16x16xi32>
      %at_17 = "tt.broadcast"(%at_15) : (tensor<1x16xi32>) -> tensor<16x16xi32>
      %at_18 = "arith.addi"(%at_16, %at_17) <{overflowFlags = #arith.overflow<none>}> : (tensor<16x16xi32>, tensor<16x16xi32>) -> tensor<16x16xi32>
      %best_19 = "tt.splat"(%X) : (!tt.ptr<f32>) -> tensor<16x16x!tt.ptr<f32>>
      %best_20 = "tt.addptr"(%best_19, %at_18) : (tensor<16x16x!tt.ptr<f32>>, tensor<16x16xi32>) -> tensor<16x16x!tt.ptr<f32>>
      %best_21 = "tt.load"(%best_20, %mask_10, %1) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<16x16x!tt.ptr<f32>>, tensor<16x16xi1>, tensor<16x16xf32>) -> tensor<16x16xf32>
      %best_22 = "tt.reduce"(%best_21) <{axis = 1 : i32}> ({
      ^bb0(%best_24: f32, %best_25: f32):
        %best_26 = "arith.maxnumf"(%best_24, %best_25) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
        "tt.reduce.return"(%best_26) : (f32) -> ()
      }) : (tensor<16x16xf32>) -> tensor<16xf32>
      %best_23 = "arith.maxnumf"(%arg7, %best_22) <{fastmath = #arith.fastmath<none>}> : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
      "scf.yield"(%best_23) : (tensor<16xf32>) -> ()
    }) : (i32, i32, i32, tensor<16xf32>) -> tensor<16xf32>
    %8 = "tt.splat"(%m) : (i32) -> tensor<16xi32>
    %9 = "arith.cmpi"(%7, %8) <{predicate = 2 : i64}> : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi1>
    %10 = "tt.splat"(%OUT) : (!tt.ptr<f32>) -> tensor<16x!tt.ptr<f32>>
    %11 = "tt.addptr"(%10, %7) : (tensor<16x!tt.ptr<f32>>, tensor<16xi32>) -> tensor<16x!tt.ptr<f32>>
    "tt.store"(%11, %best_0, %9) : (tensor<16x!tt.ptr<f32>>, tensor<16xf32>, tensor<16xi1>) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()

// kernel: largest_of_blocks
"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}, {}, {tt.divisibility = 16 : i32}, {}], function_type = (!tt.ptr<f32>, !tt.ptr<f32>, i32, i32, i32, i32) -> (), sym_name = "largest_of_blocks", sym_visibility = "public"}> ({
  ^bb0(%X: !tt.ptr<f32>, %OUT: !tt.ptr<f32>, %m: i32, %n: i32, %stride_m: i32, %stride_n: i32):
    %0 = "arith.constant"() <{value = 15 : i32}> : () -> i32
    %1 = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %2 = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %3 = "arith.constant"() <{value = dense<0xFF800000> : tensor<16x16xf32>}> : () -> tensor<16x16xf32>
    %4 = "arith.constant"() <{value = 16 : i32}> : () -> i32
    %5 = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %6 = "arith.muli"(%5, %4) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
    %7 = "tt.make_range"() <{end = 16 : i32, start = 0 : i32}> : () -> tensor<16xi32>
    %8 = "tt.splat"(%6) : (i32) -> tensor<16xi32>
    %9 = "arith.addi"(%8, %7) <{overflowFlags = #arith.overflow<none>}> : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi32>
    %10 = "arith.addi"(%n, %0) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
    %11 = "arith.divsi"(%10, %4) : (i32, i32) -> i32
    %best = "scf.for"(%2, %11, %1, %3) ({
    ^bb0(%arg8: i32, %arg9: tensor<16x16xf32>):
      %mask = "tt.splat"(%m) : (i32) -> tensor<16xi32>
      %mask_0 = "arith.cmpi"(%9, %mask) <{predicate = 2 : i64}> : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi1>
      %mask_1 = "tt.expand_dims"(%mask_0) <{axis = 1 : i32}> : (tensor<16xi1>) -> tensor<16x1xi1>
      %mask_2 = "arith.muli"(%arg8, %4) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
      %mask_3 = "tt.splat"(%mask_2) : (i32) -> tensor<16xi32>
      %mask_4 = "arith.addi"(%mask_3, %7) <{overflowFlags = #arith.overflow<none>}> : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi32>
      %mask_5 = "tt.splat"(%n) : (i32) -> tensor<16xi32>
      %mask_6 = "arith.cmpi"(%mask_4, %mask_5) <{predicate = 2 : i64}> : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi1>
      %mask_7 = "tt.expand_dims"(%mask_6) <{axis = 0 : i32}> : (tensor<16xi1>) -> tensor<1x16xi1>
      %mask_8 = "tt.broadcast"(%mask_1) : (tensor<16x1xi1>) -> tensor<16x16xi1>
      %mask_9 = "tt.broadcast"(%mask_7) : (tensor<1x16xi1>) -> tensor<16x16xi1>
      %mask_10 = "arith.andi"(%mask_8, %mask_9) : (tensor<16x16xi1>, tensor<16x16xi1>) -> tensor<16x16xi1>
      %at = "tt.expand_dims"(%9) <{axis = 1 : i32}> : (tensor<16xi32>) -> tensor<16x1xi32>
      %at_11 = "tt.splat"(%stride_m) : (i32) -> tensor<16x1xi32>
      %at_12 = "arith.muli"(%at, %at_11) <{overflowFlags = #arith.overflow<none>}> : (tensor<16x1xi32>, tensor<16x1xi32>) -> tensor<16x1xi32>
      %at_13 = "tt.expand_dims"(%mask_4) <{axis = 0 : i32}> : (tensor<16xi32>) -> tensor<1x16xi32>
      %at_14 = "tt.splat"(%stride_n) : (i32) -> tensor<1x16xi32>
      %at_15 = "arith.muli"(%at_13, %at_14) <{overflowFlags = #arith.overflow<none>}> : (tensor<1x16xi32>, tensor<1x16xi32>) -> tensor<1x16xi32>
      %at_16 = "tt.broadcast"(%at_12) : (tensor<16x1xi32>) -> tensor<16x16xi32>
      %at_17 = "tt.broadcast"(%at_15) : (tensor<1x16xi32>) -> tensor<16x16xi32>
      %at_18 = "arith.addi"(%at_16, %at_17) <{overflowFlags = #arith.overflow<none>}> : (tensor<16x16xi32>, tensor<16x16xi32>) -> tensor<16x16xi32>
      %best_19 = "tt.splat"(%X) : (!tt.ptr<f32>) -> tensor<16x16x!tt.ptr<f32>>
      %best_20 = "tt.addptr"(%best_19, %at_18) : (tensor<16x16x!tt.ptr<f32>>, tensor<16x16xi32>) -> tensor<16x16x!tt.ptr<f32>>
      %best_21 = "tt.load"(%best_20, %mask_10, %3) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<16x16x!tt.ptr<f32>>, tensor<16x16xi1>, tensor<16x16xf32>) -> tensor<16x16xf32>
      %best_22 = "arith.maxnumf"(%arg9, %best_21) <{fastmath = #arith.fastmath<none>}> : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
      "scf.yield"(%best_22) : (tensor<16x16xf32>) -> ()
    }) : (i32, i32, i32, tensor<16x16xf32>) -> tensor<16x16xf32>
    %12 = "tt.splat"(%m) : (i32) -> tensor<16xi32>
    %13 = "arith.cmpi"(%9, %12) <{predicate = 2 : i64}> : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi1>
    %14 = "tt.splat"(%OUT) : (!tt.ptr<f32>) -> tensor<16x!tt.ptr<f32>>
    %15 = "tt.addptr"(%14, %9) : (tensor<16x!tt.ptr<f32>>, tensor<16xi32>) -> tensor<16x!tt.ptr<f32>>
    %16 = "tt.reduce"(%best) <{axis = 1 : i32}> ({
    ^bb0(%arg6: f32, %arg7: f32):
      %17 = "arith.maxnumf"(%arg6, %arg7) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "tt.reduce.return"(%17) : (f32) -> ()
    }) : (tensor<16x16xf32>) -> tensor<16xf32>
    "tt.store"(%15, %16, %13) : (tensor<16x!tt.ptr<f32>>, tensor<16xf32>, tensor<16xi1>) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()

// kernel: largest_with_another_stride
"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}, {}, {tt.divisibility = 16 : i32}, {}], function_type = (!tt.ptr<f32>, !tt.ptr<f32>, i32, i32, i32, i32) -> (), sym_name = "largest_with_another_stride", sym_visibility = "public"}> ({
  ^bb0(%X: !tt.ptr<f32>, %OUT: !tt.ptr<f32>, %m: i32, %n: i32, %stride_m: i32, %stride_n: i32):
    %0 = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %1 = "arith.constant"() <{value = dense<0xFF800000> : tensor<16x16xf32>}> : () -> tensor<16x16xf32>
    %best = "arith.constant"() <{value = dense<0xFF800000> : tensor<16xf32>}> : () -> tensor<16xf32>
    %2 = "arith.constant"() <{value = 16 : i32}> : () -> i32
    %3 = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %4 = "arith.muli"(%3, %2) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
    %5 = "tt.make_range"() <{end = 16 : i32, start = 0 : i32}> : () -> tensor<16xi32>
    %6 = "tt.splat"(%4) : (i32) -> tensor<16xi32>
    %7 = "arith.addi"(%6, %5) <{overflowFlags = #arith.overflow<none>}> : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi32>
    %best_0 = "scf.for"(%0, %n, %2, %best) ({
    ^bb0(%arg6: i32, %arg7: tensor<16xf32>):
      %mask = "tt.splat"(%m) : (i32) -> tensor<16xi32>
      %mask_1 = "arith.cmpi"(%7, %mask) <{predicate = 2 : i64}> : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi1>
      %mask_2 = "tt.expand_dims"(%mask_1) <{axis = 1 : i32}> : (tensor<16xi1>) -> tensor<16x1xi1>
      %mask_3 = "tt.splat"(%arg6) : (i32) -> tensor<16xi32>
      %mask_4 = "arith.addi"(%mask_3, %5) <{overflowFlags = #arith.overflow<none>}> : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi32>
      %mask_5 = "tt.splat"(%n) : (i32) -> tensor<16xi32>
      %mask_6 = "arith.cmpi"(%mask_4, %mask_5) <{predicate = 2 : i64}> : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi1>
      %mask_7 = "tt.expand_dims"(%mask_6) <{axis = 0 : i32}> : (tensor<16xi1>) -> tensor<1x16xi1>
      %mask_8 = "tt.broadcast"(%mask_2) : (tensor<16x1xi1>) -> tensor<16x16xi1>
      %mask_9 = "tt.broadcast"(%mask_7) : (tensor<1x16xi1>) -> tensor<16x16xi1>
      %mask_10 = "arith.andi"(%mask_8, %mask_9) : (tensor<16x16xi1>, tensor<16x16xi1>) -> tensor<16x16xi1>
      %at = "tt.expand_dims"(%7) <{axis = 1 : i32}> : (tensor<16xi32>) -> tensor<16x1xi32>
      %at_11 = "tt.splat"(%stride_m) : (i32) -> tensor<16x1xi32>
      %at_12 = "arith.muli"(%at, %at_11) <{overflowFlags = #arith.overflow<none>}> : (tensor<16x1xi32>, tensor<16x1xi32>) -> tensor<16x1xi32>
      %at_13 = "tt.expand_dims"(%mask_4) <{axis = 0 : i32}> : (tensor<16xi32>) -> tensor<1x16xi32>
      %at_14 = "tt.splat"(%stride_m) : (i32) -> tensor<1x16xi32>
      %at_15 = "arith.muli"(%at_13, %at_14) <{overflowFlags = #arith.overflow<none>}> : (tensor<1x16xi32>, tensor<1x16xi32>) -> tensor<1x16xi32>
      %at_16 = "tt.broadcast"(%at_12) : (tensor<16x1xi32>) -> tensor<16x16xi32>
      %at_17 = "tt.broadcast"(%at_15) : (tensor<1x16xi32>) -> tensor<16x16xi32>
      %at_18 = "arith.addi"(%at_16, %at_17) <{overflowFlags = #arith.overflow<none>}> : (tensor<16x16xi32>, tensor<16x16xi32>) -> tensor<16x16xi32>
      %best_19 = "tt.splat"(%X) : (!tt.ptr<f32>) -> tensor<16x16x!tt.ptr<f32>>
      %best_20 = "tt.addptr"(%best_19, %at_18) : (tensor<16x16x!tt.ptr<f32>>, tensor<16x16xi32>) -> tensor<16x16x!tt.ptr<f32>>
      %best_21 = "tt.load"(%best_20, %mask_10, %1) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<16x16x!tt.ptr<f32>>, tensor<16x16xi1>, tensor<16x16xf32>) -> tensor<16x16xf32>
      %best_22 = "tt.reduce"(%best_21) <{axis = 1 : i32}> ({
      ^bb0(%best_24: f32, %best_25: f32):
        %best_26 = "arith.maxnumf"(%best_24, %best_25) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
        "tt.reduce.return"(%best_26) : (f32) -> ()
      }) : (tensor<16x16xf32>) -> tensor<16xf32>
      %best_23 = "arith.maxnumf"(%arg7, %best_22) <{fastmath = #arith.fastmath<none>}> : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
      "scf.yield"(%best_23) : (tensor<16xf32>) -> ()
    }) : (i32, i32, i32, tensor<16xf32>) -> tensor<16xf32>
    %8 = "tt.splat"(%m) : (i32) -> tensor<16xi32>
    %9 = "arith.cmpi"(%7, %8) <{predicate = 2 : i64}> : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi1>
    %10 = "tt.splat"(%OUT) : (!tt.ptr<f32>) -> tensor<16x!tt.ptr<f32>>
    %11 = "tt.addptr"(%10, %7) : (tensor<16x!tt.ptr<f32>>, tensor<16xi32>) -> tensor<16x!tt.ptr<f32>>
    "tt.store"(%11, %best_0, %9) : (tensor<16x!tt.ptr<f32>>, tensor<16xf32>, tensor<16xi1>) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()

// kernel: largest_along_the_other_axis
"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}, {}, {tt.divisibility = 16 : i32}, {}], function_type = (!tt.ptr<f32>, !tt.ptr<f32>, i32, i32, i32, i32) -> (), sym_name = "largest_along_the_other_axis", sym_visibility = "public"}> ({
  ^bb0(%X: !tt.ptr<f32>, %OUT: !tt.ptr<f32>, %m: i32, %n: i32, %stride_m: i32, %stride_n: i32):
    %0 = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %1 = "arith.constant"() <{value = dense<0xFF800000> : tensor<16x16xf32>}> : () -> tensor<16x16xf32>
    %best = "arith.constant"() <{value = dense<0xFF800000> : tensor<16xf32>}> : () -> tensor<16xf32>
    %2 = "arith.constant"() <{value = 16 : i32}> : () -> i32
    %3 = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %4 = "arith.muli"(%3, %2) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
    %5 = "tt.make_range"() <{end = 16 : i32, start = 0 : i32}> : () -> tensor<16xi32>
    %6 = "tt.splat"(%4) : (i32) -> tensor<16xi32>
    %7 = "arith.addi"(%6, %5) <{overflowFlags = #arith.overflow<none>}> : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi32>
    %best_0 = "scf.for"(%0, %n, %2, %best) ({
    ^bb0(%arg6: i32, %arg7: tensor<16xf32>):
      %mask = "tt.splat"(%m) : (i32) -> tensor<16xi32>
      %mask_1 = "arith.cmpi"(%7, %mask) <{predicate = 2 : i64}> : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi1>
      %mask_2 = "tt.expand_dims"(%mask_1) <{axis = 1 : i32}> : (tensor<16xi1>) -> tensor<16x1xi1>
      %mask_3 = "tt.splat"(%arg6) : (i32) -> tensor<16xi32>
      %mask_4 = "arith.addi"(%mask_3, %5) <{overflowFlags = #arith.overflow<none>}> : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi32>
      %mask_5 = "tt.splat"(%n) : (i32) -> tensor<16xi32>
      %mask_6 = "arith.cmpi"(%mask_4, %mask_5) <{predicate = 2 : i64}> : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi1>
      %mask_7 = "tt.expand_dims"(%mask_6) <{axis = 0 : i32}> : (tensor<16xi1>) -> tensor<1x16xi1>
      %mask_8 = "tt.broadcast"(%mask_2) : (tensor<16x1xi1>) -> tensor<16x16xi1>
      %mask_9 = "tt.broadcast"(%mask_7) : (tensor<1x16xi1>) -> tensor<16x16xi1>
      %mask_10 = "arith.andi"(%mask_8, %mask_9) : (tensor<16x16xi1>, tensor<16x16xi1>) -> tensor<16x16xi1>
      %at = "tt.expand_dims"(%7) <{axis = 1 : i32}> : (tensor<16xi32>) -> tensor<16x1xi32>
      %at_11 = "tt.splat"(%stride_m) : (i32) -> tensor<16x1xi32>
      %at_12 = "arith.muli"(%at, %at_11) <{overflowFlags = #arith.overflow<none>}> : (tensor<16x1xi32>, tensor<16x1xi32>) -> tensor<16x1xi32>
      %at_13 = "tt.expand_dims"(%mask_4) <{axis = 0 : i32}> : (tensor<16xi32>) -> tensor<1x16xi32>
      %at_14 = "tt.splat"(%stride_n) : (i32) -> tensor<1x16xi32>
      %at_15 = "arith.muli"(%at_13, %at_14) <{overflowFlags = #arith.overflow<none>}> : (tensor<1x16xi32>, tensor<1x16xi32>) -> tensor<1x16xi32>
      %at_16 = "tt.broadcast"(%at_12) : (tensor<16x1xi32>) -> tensor<16x16xi32>
      %at_17 = "tt.broadcast"(%at_15) : (tensor<1x16xi32>) -> tensor<16x16xi32>
      %at_18 = "arith.addi"(%at_16, %at_17) <{overflowFlags = #arith.overflow<none>}> : (tensor<16x16xi32>, tensor<16x16xi32>) -> tensor<16x16xi32>
      %best_19 = "tt.splat"(%X) : (!tt.ptr<f32>) -> tensor<16x16x!tt.ptr<f32>>
      %best_20 = "tt.addptr"(%best_19, %at_18) : (tensor<16x16x!tt.ptr<f32>>, tensor<16x16xi32>) -> tensor<16x16x!tt.ptr<f32>>
      %best_21 = "tt.load"(%best_20, %mask_10, %1) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<16x16x!tt.ptr<f32>>, tensor<16x16xi1>, tensor<16x16xf32>) -> tensor<16x16xf32>
      %best_22 = "tt.reduce"(%best_21) <{axis = 0 : i32}> ({
      ^bb0(%best_24: f32, %best_25: f32):
        %best_26 = "arith.maxnumf"(%best_24, %best_25) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
        "tt.reduce.return"(%best_26) : (f32) -> ()
      }) : (tensor<16x16xf32>) -> tensor<16xf32>
      %best_23 = "arith.maxnumf"(%arg7, %best_22) <{fastmath = #arith.fastmath<none>}> : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
      "scf.yield"(%best_23) : (tensor<16xf32>) -> ()
    }) : (i32, i32, i32, tensor<16xf32>) -> tensor<16xf32>
    %8 = "tt.splat"(%m) : (i32) -> tensor<16xi32>
    %9 = "arith.cmpi"(%7, %8) <{predicate = 2 : i64}> : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi1>
    %10 = "tt.splat"(%OUT) : (!tt.ptr<f32>) -> tensor<16x!tt.ptr<f32>>
    %11 = "tt.addptr"(%10, %7) : (tensor<16x!tt.ptr<f32>>, tensor<16xi32>) -> tensor<16x!tt.ptr<f32>>
    "tt.store"(%11, %best_0, %9) : (tensor<16x!tt.ptr<f32>>, tensor<16xf32>, tensor<16xi1>) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()

// kernel: largest_without_other
"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}, {}, {tt.divisibility = 16 : i32}, {}], function_type = (!tt.ptr<f32>, !tt.ptr<f32>, i32, i32, i32, i32) -> (), sym_name = "largest_without_other", sym_visibility = "public"}> ({
  ^bb0(%X: !tt.ptr<f32>, %OUT: !tt.ptr<f32>, %m: i32, %n: i32, %stride_m: i32, %stride_n: i32):
    %0 = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %best = "arith.constant"() <{value = dense<0xFF800000> : tensor<16xf32>}> : () -> tensor<16xf32>
    %1 = "arith.constant"() <{value = 16 : i32}> : () -> i32
    %2 = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %3 = "arith.muli"(%2, %1) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
    %4 = "tt.make_range"() <{end = 16 : i32, start = 0 : i32}> : () -> tensor<16xi32>
    %5 = "tt.splat"(%3) : (i32) -> tensor<16xi32>
    %6 = "arith.addi"(%5, %4) <{overflowFlags = #arith.overflow<none>}> : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi32>
    %best_0 = "scf.for"(%0, %n, %1, %best) ({
    ^bb0(%arg6: i32, %arg7: tensor<16xf32>):
      %mask = "tt.splat"(%m) : (i32) -> tensor<16xi32>
      %mask_1 = "arith.cmpi"(%6, %mask) <{predicate = 2 : i64}> : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi1>
      %mask_2 = "tt.expand_dims"(%mask_1) <{axis = 1 : i32}> : (tensor<16xi1>) -> tensor<16x1xi1>
      %mask_3 = "tt.splat"(%arg6) : (i32) -> tensor<16xi32>
      %mask_4 = "arith.addi"(%mask_3, %4) <{overflowFlags = #arith.overflow<none>}> : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi32>
      %mask_5 = "tt.splat"(%n) : (i32) -> tensor<16xi32>
      %mask_6 = "arith.cmpi"(%mask_4, %mask_5) <{predicate = 2 : i64}> : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi1>
      %mask_7 = "tt.expand_dims"(%mask_6) <{axis = 0 : i32}> : (tensor<16xi1>) -> tensor<1x16xi1>
      %mask_8 = "tt.broadcast"(%mask_2) : (tensor<16x1xi1>) -> tensor<16x16xi1>
      %mask_9 = "tt.broadcast"(%mask_7) : (tensor<1x16xi1>) -> tensor<16x16xi1>
      %mask_10 = "arith.andi"(%mask_8, %mask_9) : (tensor<16x16xi1>, tensor<16x16xi1>) -> tensor<16x16xi1>
      %at = "tt.expand_dims"(%6) <{axis = 1 : i32}> : (tensor<16xi32>) -> tensor<16x1xi32>
      %at_11 = "tt.splat"(%stride_m) : (i32) -> tensor<16x1xi32>
      %at_12 = "arith.muli"(%at, %at_11) <{overflowFlags = #arith.overflow<none>}> : (tensor<16x1xi32>, tensor<16x1xi32>) -> tensor<16x1xi32>
      %at_13 = "tt.expand_dims"(%mask_4) <{axis = 0 : i32}> : (tensor<16xi32>) -> tensor<1x16xi32>
      %at_14 = "tt.splat"(%stride_n) : (i32) -> tensor<1x16xi32>
      %at_15 = "arith.muli"(%at_13, %at_14) <{overflowFlags = #arith.overflow<none>}> : (tensor<1x16xi32>, tensor<1x16xi32>) -> tensor<1x16xi32>
      %at_16 = "tt.broadcast"(%at_12) : (tensor<16x1xi32>) -> tensor<16x16xi32>
      %at_17 = "tt.broadcast"(%at_15) : (tensor<1x16xi32>) -> tensor<16x16xi32>
      %at_18 = "arith.addi"(%at_16, %at_17) <{overflowFlags = #arith.overflow<none>}> : (tensor<16x16xi32>, tensor<16x16xi32>) -> tensor<16x16xi32>
      %best_19 = "tt.splat"(%X) : (!tt.ptr<f32>) -> tensor<16x16x!tt.ptr<f32>>
      %best_20 = "tt.addptr"(%best_19, %at_18) : (tensor<16x16x!tt.ptr<f32>>, tensor<16x16xi32>) -> tensor<16x16x!tt.ptr<f32>>
      %best_21 = "tt.load"(%best_20, %mask_10) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 0>}> : (tensor<16x16x!tt.ptr<f32>>, tensor<16x16xi1>) -> tensor<16x16xf32>
      %best_22 = "tt.reduce"(%best_21) <{axis = 1 : i32}> ({
      ^bb0(%best_24: f32, %best_25: f32):
        %best_26 = "arith.maxnumf"(%best_24, %best_25) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
        "tt.reduce.return"(%best_26) : (f32) -> ()
      }) : (tensor<16x16xf32>) -> tensor<16xf32>
      %best_23 = "arith.maxnumf"(%arg7, %best_22) <{fastmath = #arith.fastmath<none>}> : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
      "scf.yield"(%best_23) : (tensor<16xf32>) -> ()
    }) : (i32, i32, i32, tensor<16xf32>) -> tensor<16xf32>
    %7 = "tt.splat"(%m) : (i32) -> tensor<16xi32>
    %8 = "arith.cmpi"(%6, %7) <{predicate = 2 : i64}> : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi1>
    %9 = "tt.splat"(%OUT) : (!tt.ptr<f32>) -> tensor<16x!tt.ptr<f32>>
    %10 = "tt.addptr"(%9, %6) : (tensor<16x!tt.ptr<f32>>, tensor<16xi32>) -> tensor<16x!tt.ptr<f32>>
    "tt.store"(%10, %best_0, %8) : (tensor<16x!tt.ptr<f32>>, tensor<16xf32>, tensor<16xi1>) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()
// kernel: total
"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}], function_type = (!tt.ptr<f32>, !tt.ptr<f32>, i32) -> (), sym_name = "total", sym_visibility = "public"}> ({
  ^bb0(%X: !tt.ptr<f32>, %OUT: !tt.ptr<f32>, %n: i32):
    %0 = "arith.constant"() <{value = dense<0.000000e+00> : tensor<64xf32>}> : () -> tensor<64xf32>
    %1 = "arith.constant"() <{value = 64 : i32}> : () -> i32
    %at = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %at_0 = "arith.muli"(%at, %1) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
    %at_1 = "tt.make_range"() <{end = 64 : i32, start = 0 : i32}> : () -> tensor<64xi32>
    %at_2 = "tt.splat"(%at_0) : (i32) -> tensor<64xi32>
    %at_3 = "arith.addi"(%at_2, %at_1) <{overflowFlags = #arith.overflow<none>}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
    %2 = "arith.cmpi"(%at_0, %n) <{predicate = 2 : i64}> : (i32, i32) -> i1
    %3 = "tt.splat"(%n) : (i32) -> tensor<64xi32>
    %4 = "arith.cmpi"(%at_3, %3) <{predicate = 2 : i64}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi1>
    %5 = "tt.splat"(%X) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
    %6 = "tt.addptr"(%5, %at_3) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
    %7 = "tt.load"(%6, %4, %0) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<64x!tt.ptr<f32>>, tensor<64xi1>, tensor<64xf32>) -> tensor<64xf32>
    %8 = "tt.reshape"(%7) <{allow_reorder}> : (tensor<64xf32>) -> tensor<64xf32>
    %9 = "tt.reduce"(%8) <{axis = 0 : i32}> ({
    ^bb0(%arg3: f32, %arg4: f32):
      %11 = "arith.addf"(%arg3, %arg4) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "tt.reduce.return"(%11) : (f32) -> ()
    }) : (tensor<64xf32>) -> f32
    %10 = "tt.atomic_rmw"(%OUT, %9, %2) <{atomic_rmw_op = 5 : i32, scope = 1 : i32, sem = 4 : i32}> : (!tt.ptr<f32>, f32, i1) -> f32
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()
// kernel: total_by_a_store
"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}], function_type = (!tt.ptr<f32>, !tt.ptr<f32>, i32) -> (), sym_name = "total_by_a_store", sym_visibility = "public"}> ({
  ^bb0(%X: !tt.ptr<f32>, %OUT: !tt.ptr<f32>, %n: i32):
    %total = "arith.constant"() <{value = dense<0.000000e+00> : tensor<64xf32>}> : () -> tensor<64xf32>
    %0 = "arith.constant"() <{value = 64 : i32}> : () -> i32
    %at = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %at_0 = "arith.muli"(%at, %0) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
    %at_1 = "tt.make_range"() <{end = 64 : i32, start = 0 : i32}> : () -> tensor<64xi32>
    %at_2 = "tt.splat"(%at_0) : (i32) -> tensor<64xi32>
    %at_3 = "arith.addi"(%at_2, %at_1) <{overflowFlags = #arith.overflow<none>}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
    %total_4 = "tt.splat"(%n) : (i32) -> tensor<64xi32>
    %total_5 = "arith.cmpi"(%at_3, %total_4) <{predicate = 2 : i64}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi1>
    %total_6 = "tt.splat"(%X) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
    %total_7 = "tt.addptr"(%total_6, %at_3) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
    %total_8 = "tt.load"(%total_7, %total_5, %total) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<64x!tt.ptr<f32>>, tensor<64xi1>, tensor<64xf32>) -> tensor<64xf32>
    %total_9 = "tt.reshape"(%total_8) <{allow_reorder}> : (tensor<64xf32>) -> tensor<64xf32>
    %total_10 = "tt.reduce"(%total_9) <{axis = 0 : i32}> ({
    ^bb0(%total_11: f32, %total_12: f32):
      %total_13 = "arith.addf"(%total_11, %total_12) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "tt.reduce.return"(%total_13) : (f32) -> ()
    }) : (tensor<64xf32>) -> f32
    %has_work = "arith.cmpi"(%at_0, %n) <{predicate = 2 : i64}> : (i32, i32) -> i1
    %1 = "tt.load"(%OUT, %has_work) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 0>}> : (!tt.ptr<f32>, i1) -> f32
    %2 = "arith.addf"(%1, %total_10) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
    "tt.store"(%OUT, %2, %has_work) : (!tt.ptr<f32>, f32, i1) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()
// kernel: causal
"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}], function_type = (!tt.ptr<f32>, !tt.ptr<f32>, i32) -> (), sym_name = "causal", sym_visibility = "public"}> ({
  ^bb0(%X: !tt.ptr<f32>, %OUT: !tt.ptr<f32>, %n: i32):
    %0 = "arith.constant"() <{value = dense<2.000000e+00> : tensor<16x16xf32>}> : () -> tensor<16x16xf32>
    %1 = "arith.constant"() <{value = 16 : i32}> : () -> i32
    %2 = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %3 = "tt.get_program_id"() <{axis = 1 : i32}> : () -> i32
    %4 = "arith.cmpi"(%2, %3) <{predicate = 3 : i64}> : (i32, i32) -> i1
    "scf.if"(%4) ({
      %rows = "arith.muli"(%3, %1) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
      %rows_0 = "tt.make_range"() <{end = 16 : i32, start = 0 : i32}> : () -> tensor<16xi32>
      %rows_1 = "tt.splat"(%rows) : (i32) -> tensor<16xi32>
      %rows_2 = "arith.addi"(%rows_1, %rows_0) <{overflowFlags = #arith.overflow<none>}> : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi32>
      %cols = "arith.muli"(%2, %1) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
      %cols_3 = "tt.splat"(%cols) : (i32) -> tensor<16xi32>
      %cols_4 = "arith.addi"(%cols_3, %rows_0) <{overflowFlags = #arith.overflow<none>}> : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi32>
      %mask = "tt.splat"(%n) : (i32) -> tensor<16xi32>
      %mask_5 = "arith.cmpi"(%rows_2, %mask) <{predicate = 2 : i64}> : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi1>
      %mask_6 = "tt.expand_dims"(%mask_5) <{axis = 1 : i32}> : (tensor<16xi1>) -> tensor<16x1xi1>
      %mask_7 = "arith.cmpi"(%cols_4, %mask) <{predicate = 2 : i64}> : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi1>
      %mask_8 = "tt.expand_dims"(%mask_7) <{axis = 0 : i32}> : (tensor<16xi1>) -> tensor<1x16xi1>
      %mask_9 = "tt.broadcast"(%mask_6) : (tensor<16x1xi1>) -> tensor<16x16xi1>
      %mask_10 = "tt.broadcast"(%mask_8) : (tensor<1x16xi1>) -> tensor<16x16xi1>
      %mask_11 = "arith.andi"(%mask_9, %mask_10) : (tensor<16x16xi1>, tensor<16x16xi1>) -> tensor<16x16xi1>
      %at = "tt.expand_dims"(%rows_2) <{axis = 1 : i32}> : (tensor<16xi32>) -> tensor<16x1xi32>
      %at_12 = "tt.splat"(%n) : (i32) -> tensor<16x1xi32>
      %at_13 = "arith.muli"(%at, %at_12) <{overflowFlags = #arith.overflow<none>}> : (tensor<16x1xi32>, tensor<16x1xi32>) -> tensor<16x1xi32>
      %at_14 = "tt.expand_dims"(%cols_4) <{axis = 0 : i32}> : (tensor<16xi32>) -> tensor<1x16xi32>
      %at_15 = "tt.broadcast"(%at_13) : (tensor<16x1xi32>) -> tensor<16x16xi32>
      %at_16 = "tt.broadcast"(%at_14) : (tensor<1x16xi32>) -> tensor<16x16xi32>
      %at_17 = "arith.addi"(%at_15, %at_16) <{overflowFlags = #arith.overflow<none>}> : (tensor<16x16xi32>, tensor<16x16xi32>) -> tensor<16x16xi32>
      %5 = "tt.splat"(%OUT) : (!tt.ptr<f32>) -> tensor<16x16x!tt.ptr<f32>>
      %6 = "tt.addptr"(%5, %at_17) : (tensor<16x16x!tt.ptr<f32>>, tensor<16x16xi32>) -> tensor<16x16x!tt.ptr<f32>>
      %7 = "tt.splat"(%X) : (!tt.ptr<f32>) -> tensor<16x16x!tt.ptr<f32>>
      %8 = "tt.addptr"(%7, %at_17) : (tensor<16x16x!tt.ptr<f32>>, tensor<16x16xi32>) -> tensor<16x16x!tt.ptr<f32>>
      %9 = "tt.load"(%8, %mask_11) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 0>}> : (tensor<16x16x!tt.ptr<f32>>, tensor<16x16xi1>) -> tensor<16x16xf32>
      %10 = "arith.mulf"(%9, %0) <{fastmath = #arith.fastmath<none>}> : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
      "tt.store"(%6, %10, %mask_11) : (tensor<16x16x!tt.ptr<f32>>, tensor<16x16xf32>, tensor<16x16xi1>) -> ()
      "scf.yield"() : () -> ()
    }, {
    }) : (i1) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()
// kernel: causal_off_the_diagonal
"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}], function_type = (!tt.ptr<f32>, !tt.ptr<f32>, i32) -> (), sym_name = "causal_off_the_diagonal", sym_visibility = "public"}> ({
  ^bb0(%X: !tt.ptr<f32>, %OUT: !tt.ptr<f32>, %n: i32):
    %0 = "arith.constant"() <{value = dense<2.000000e+00> : tensor<16x16xf32>}> : () -> tensor<16x16xf32>
    %1 = "arith.constant"() <{value = 16 : i32}> : () -> i32
    %2 = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %3 = "tt.get_program_id"() <{axis = 1 : i32}> : () -> i32
    %4 = "arith.cmpi"(%2, %3) <{predicate = 3 : i64}> : (i32, i32) -> i1
    "scf.if"(%4) ({
      %rows = "arith.muli"(%3, %1) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
      %rows_0 = "tt.make_range"() <{end = 16 : i32, start = 0 : i32}> : () -> tensor<16xi32>
      %rows_1 = "tt.splat"(%rows) : (i32) -> tensor<16xi32>
      %rows_2 = "arith.addi"(%rows_1, %rows_0) <{overflowFlags = #arith.overflow<none>}> : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi32>
      %cols = "arith.muli"(%2, %1) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
      %cols_3 = "tt.splat"(%cols) : (i32) -> tensor<16xi32>
      %cols_4 = "arith.addi"(%cols_3, %rows_0) <{overflowFlags = #arith.overflow<none>}> : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi32>
      %mask = "tt.splat"(%n) : (i32) -> tensor<16xi32>
      %mask_5 = "arith.cmpi"(%rows_2, %mask) <{predicate = 2 : i64}> : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi1>
      %mask_6 = "tt.expand_dims"(%mask_5) <{axis = 1 : i32}> : (tensor<16xi1>) -> tensor<16x1xi1>
      %mask_7 = "arith.cmpi"(%cols_4, %mask) <{predicate = 2 : i64}> : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi1>
      %mask_8 = "tt.expand_dims"(%mask_7) <{axis = 0 : i32}> : (tensor<16xi1>) -> tensor<1x16xi1>
      %mask_9 = "tt.broadcast"(%mask_6) : (tensor<16x1xi1>) -> tensor<16x16xi1>
      %mask_10 = "tt.broadcast"(%mask_8) : (tensor<1x16xi1>) -> tensor<16x16xi1>
      %mask_11 = "arith.andi"(%mask_9, %mask_10) : (tensor<16x16xi1>, tensor<16x16xi1>) -> tensor<16x16xi1>
      %at = "tt.expand_dims"(%rows_2) <{axis = 1 : i32}> : (tensor<16xi32>) -> tensor<16x1xi32>
      %at_12 = "tt.splat"(%n) : (i32) -> tensor<16x1xi32>
      %at_13 = "arith.muli"(%at, %at_12) <{overflowFlags = #arith.overflow<none>}> : (tensor<16x1xi32>, tensor<16x1xi32>) -> tensor<16x1xi32>
      %at_14 = "tt.expand_dims"(%cols_4) <{axis = 0 : i32}> : (tensor<16xi32>) -> tensor<1x16xi32>
      %at_15 = "tt.broadcast"(%at_13) : (tensor<16x1xi32>) -> tensor<16x16xi32>
      %at_16 = "tt.broadcast"(%at_14) : (tensor<1x16xi32>) -> tensor<16x16xi32>
      %at_17 = "arith.addi"(%at_15, %at_16) <{overflowFlags = #arith.overflow<none>}> : (tensor<16x16xi32>, tensor<16x16xi32>) -> tensor<16x16xi32>
      %5 = "tt.splat"(%OUT) : (!tt.ptr<f32>) -> tensor<16x16x!tt.ptr<f32>>
      %6 = "tt.addptr"(%5, %at_17) : (tensor<16x16x!tt.ptr<f32>>, tensor<16x16xi32>) -> tensor<16x16x!tt.ptr<f32>>
      %7 = "tt.splat"(%X) : (!tt.ptr<f32>) -> tensor<16x16x!tt.ptr<f32>>
      %8 = "tt.addptr"(%7, %at_17) : (tensor<16x16x!tt.ptr<f32>>, tensor<16x16xi32>) -> tensor<16x16x!tt.ptr<f32>>
      %9 = "tt.load"(%8, %mask_11) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 0>}> : (tensor<16x16x!tt.ptr<f32>>, tensor<16x16xi1>) -> tensor<16x16xf32>
      %10 = "arith.mulf"(%9, %0) <{fastmath = #arith.fastmath<none>}> : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
      %11 = "arith.sitofp"(%2) : (i32) -> f32
      %12 = "tt.splat"(%11) : (f32) -> tensor<16x16xf32>
      %13 = "arith.addf"(%10, %12) <{fastmath = #arith.fastmath<none>}> : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
      "tt.store"(%6, %13, %mask_11) : (tensor<16x16x!tt.ptr<f32>>, tensor<16x16xf32>, tensor<16x16xi1>) -> ()
      "scf.yield"() : () -> ()
    }, {
    }) : (i1) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()

// kernel: halves
"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}], function_type = (!tt.ptr<f32>, !tt.ptr<f32>, i32) -> (), sym_name = "halves", sym_visibility = "public"}> ({
  ^bb0(%X: !tt.ptr<f32>, %OUT: !tt.ptr<f32>, %n: i32):
    %0 = "arith.constant"() <{value = dense<2> : tensor<64xi32>}> : () -> tensor<64xi32>
    %x = "arith.constant"() <{value = dense<0.000000e+00> : tensor<64xf32>}> : () -> tensor<64xf32>
    %at = "arith.constant"() <{value = 64 : i32}> : () -> i32
    %at_0 = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %at_1 = "arith.muli"(%at_0, %at) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
    %at_2 = "tt.make_range"() <{end = 64 : i32, start = 0 : i32}> : () -> tensor<64xi32>
    %at_3 = "tt.splat"(%at_1) : (i32) -> tensor<64xi32>
    %at_4 = "arith.addi"(%at_3, %at_2) <{overflowFlags = #arith.overflow<none>}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
    %x_5 = "tt.splat"(%n) : (i32) -> tensor<64xi32>
    %x_6 = "arith.cmpi"(%at_4, %x_5) <{predicate = 2 : i64}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi1>
    %x_7 = "tt.splat"(%X) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
    %x_8 = "tt.addptr"(%x_7, %at_4) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
    %x_9 = "tt.load"(%x_8, %x_6, %x) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<64x!tt.ptr<f32>>, tensor<64xi1>, tensor<64xf32>) -> tensor<64xf32>
    %1 = "arith.divsi"(%at_4, %0) : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
    %2 = "tt.splat"(%OUT) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
    %3 = "tt.addptr"(%2, %1) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
    "tt.store"(%3, %x_9, %x_6) : (tensor<64x!tt.ptr<f32>>, tensor<64xf32>, tensor<64xi1>) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()

// kernel: halves_of_the_last
"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}], function_type = (!tt.ptr<f32>, !tt.ptr<f32>, i32) -> (), sym_name = "halves_of_the_last", sym_visibility = "public"}> ({
  ^bb0(%X: !tt.ptr<f32>, %OUT: !tt.ptr<f32>, %n: i32):
    %0 = "arith.constant"() <{value = dense<1> : tensor<64xi32>}> : () -> tensor<64xi32>
    %1 = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %2 = "arith.constant"() <{value = dense<2> : tensor<64xi32>}> : () -> tensor<64xi32>
    %x = "arith.constant"() <{value = dense<0.000000e+00> : tensor<64xf32>}> : () -> tensor<64xf32>
    %at = "arith.constant"() <{value = 64 : i32}> : () -> i32
    %at_0 = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %at_1 = "arith.muli"(%at_0, %at) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
    %at_2 = "tt.make_range"() <{end = 64 : i32, start = 0 : i32}> : () -> tensor<64xi32>
    %at_3 = "tt.splat"(%at_1) : (i32) -> tensor<64xi32>
    %at_4 = "arith.addi"(%at_3, %at_2) <{overflowFlags = #arith.overflow<none>}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
    %x_5 = "tt.splat"(%n) : (i32) -> tensor<64xi32>
    %x_6 = "arith.cmpi"(%at_4, %x_5) <{predicate = 2 : i64}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi1>
    %x_7 = "tt.splat"(%X) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
    %x_8 = "tt.addptr"(%x_7, %at_4) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
    %x_9 = "tt.load"(%x_8, %x_6, %x) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<64x!tt.ptr<f32>>, tensor<64xi1>, tensor<64xf32>) -> tensor<64xf32>
    %3 = "arith.remsi"(%at_4, %2) : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
    %4 = "arith.cmpi"(%3, %0) <{predicate = 0 : i64}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi1>
    %5 = "arith.subi"(%n, %1) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
    %6 = "tt.splat"(%5) : (i32) -> tensor<64xi32>
    %7 = "arith.cmpi"(%at_4, %6) <{predicate = 0 : i64}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi1>
    %8 = "arith.ori"(%4, %7) : (tensor<64xi1>, tensor<64xi1>) -> tensor<64xi1>
    %9 = "arith.andi"(%x_6, %8) : (tensor<64xi1>, tensor<64xi1>) -> tensor<64xi1>
    %10 = "arith.divsi"(%at_4, %2) : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
    %11 = "tt.splat"(%OUT) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
    %12 = "tt.addptr"(%11, %10) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
    "tt.store"(%12, %x_9, %9) : (tensor<64x!tt.ptr<f32>>, tensor<64xf32>, tensor<64xi1>) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()

// kernel: halves_doubled
"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}], function_type = (!tt.ptr<f32>, !tt.ptr<f32>, i32) -> (), sym_name = "halves_doubled", sym_visibility = "public"}> ({
  ^bb0(%X: !tt.ptr<f32>, %OUT: !tt.ptr<f32>, %n: i32):
    %0 = "arith.constant"() <{value = dense<2.000000e+00> : tensor<64xf32>}> : () -> tensor<64xf32>
    %1 = "arith.constant"() <{value = dense<2> : tensor<64xi32>}> : () -> tensor<64xi32>
    %x = "arith.constant"() <{value = dense<0.000000e+00> : tensor<64xf32>}> : () -> tensor<64xf32>
    %at = "arith.constant"() <{value = 64 : i32}> : () -> i32
    %at_0 = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %at_1 = "arith.muli"(%at_0, %at) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
    %at_2 = "tt.make_range"() <{end = 64 : i32, start = 0 : i32}> : () -> tensor<64xi32>
    %at_3 = "tt.splat"(%at_1) : (i32) -> tensor<64xi32>
    %at_4 = "arith.addi"(%at_3, %at_2) <{overflowFlags = #arith.overflow<none>}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
    %x_5 = "tt.splat"(%n) : (i32) -> tensor<64xi32>
    %x_6 = "arith.cmpi"(%at_4, %x_5) <{predicate = 2 : i64}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi1>
    %x_7 = "tt.splat"(%X) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
    %x_8 = "tt.addptr"(%x_7, %at_4) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
    %x_9 = "tt.load"(%x_8, %x_6, %x) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<64x!tt.ptr<f32>>, tensor<64xi1>, tensor<64xf32>) -> tensor<64xf32>
    %2 = "arith.divsi"(%at_4, %1) : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
    %3 = "tt.splat"(%OUT) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
    %4 = "tt.addptr"(%3, %2) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
    %5 = "arith.mulf"(%x_9, %0) <{fastmath = #arith.fastmath<none>}> : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    "tt.store"(%4, %5, %x_6) : (tensor<64x!tt.ptr<f32>>, tensor<64xf32>, tensor<64xi1>) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()

// kernel: pairs
"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}], function_type = (!tt.ptr<f32>, !tt.ptr<f32>, i32) -> (), sym_name = "pairs", sym_visibility = "public"}> ({
  ^bb0(%X: !tt.ptr<f32>, %OUT: !tt.ptr<f32>, %n: i32):
    %x = "arith.constant"() <{value = dense<0.000000e+00> : tensor<64xf32>}> : () -> tensor<64xf32>
    %0 = "arith.constant"() <{value = dense<2> : tensor<64xi32>}> : () -> tensor<64xi32>
    %at = "arith.constant"() <{value = 64 : i32}> : () -> i32
    %at_0 = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %at_1 = "arith.muli"(%at_0, %at) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
    %at_2 = "tt.make_range"() <{end = 64 : i32, start = 0 : i32}> : () -> tensor<64xi32>
    %at_3 = "tt.splat"(%at_1) : (i32) -> tensor<64xi32>
    %at_4 = "arith.addi"(%at_3, %at_2) <{overflowFlags = #arith.overflow<none>}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
    %x_5 = "tt.splat"(%n) : (i32) -> tensor<64xi32>
    %x_6 = "arith.cmpi"(%at_4, %x_5) <{predicate = 2 : i64}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi1>
    %x_7 = "arith.divsi"(%at_4, %0) : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
    %x_8 = "tt.splat"(%X) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
    %x_9 = "tt.addptr"(%x_8, %x_7) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
    %x_10 = "tt.load"(%x_9, %x_6, %x) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<64x!tt.ptr<f32>>, tensor<64xi1>, tensor<64xf32>) -> tensor<64xf32>
    %1 = "tt.splat"(%OUT) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
    %2 = "tt.addptr"(%1, %x_7) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
    "tt.store"(%2, %x_10, %x_6) : (tensor<64x!tt.ptr<f32>>, tensor<64xf32>, tensor<64xi1>) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()

// kernel: alternating
"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}], function_type = (!tt.ptr<f32>, !tt.ptr<f32>, i32) -> (), sym_name = "alternating", sym_visibility = "public"}> ({
  ^bb0(%X: !tt.ptr<f32>, %OUT: !tt.ptr<f32>, %n: i32):
    %x = "arith.constant"() <{value = dense<0.000000e+00> : tensor<64xf32>}> : () -> tensor<64xf32>
    %x_0 = "arith.constant"() <{value = 64 : i32}> : () -> i32
    %x_1 = "arith.constant"() <{value = 2 : i32}> : () -> i32
    %at = "tt.make_range"() <{end = 64 : i32, start = 0 : i32}> : () -> tensor<64xi32>
    %x_2 = "tt.splat"(%n) : (i32) -> tensor<64xi32>
    %x_3 = "arith.cmpi"(%at, %x_2) <{predicate = 2 : i64}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi1>
    %x_4 = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %x_5 = "arith.remsi"(%x_4, %x_1) : (i32, i32) -> i32
    %x_6 = "arith.muli"(%x_5, %x_0) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
    %x_7 = "tt.addptr"(%X, %x_6) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
    %x_8 = "tt.splat"(%x_7) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
    %x_9 = "tt.addptr"(%x_8, %at) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
    %x_10 = "tt.load"(%x_9, %x_3, %x) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<64x!tt.ptr<f32>>, tensor<64xi1>, tensor<64xf32>) -> tensor<64xf32>
    %0 = "tt.splat"(%OUT) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
    %1 = "tt.addptr"(%0, %at) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
    "tt.store"(%1, %x_10, %x_3) : (tensor<64x!tt.ptr<f32>>, tensor<64xf32>, tensor<64xi1>) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()

// kernel: alternating_by_a_multiple
"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}], function_type = (!tt.ptr<f32>, !tt.ptr<f32>, i32) -> (), sym_name = "alternating_by_a_multiple", sym_visibility = "public"}> ({
  ^bb0(%X: !tt.ptr<f32>, %OUT: !tt.ptr<f32>, %n: i32):
    %0 = "arith.constant"() <{value = dense<5.000000e-01> : tensor<64xf32>}> : () -> tensor<64xf32>
    %1 = "arith.constant"() <{value = dense<2.000000e+00> : tensor<64xf32>}> : () -> tensor<64xf32>
    %x = "arith.constant"() <{value = dense<0.000000e+00> : tensor<64xf32>}> : () -> tensor<64xf32>
    %x_0 = "arith.constant"() <{value = 64 : i32}> : () -> i32
    %x_1 = "arith.constant"() <{value = 2 : i32}> : () -> i32
    %at = "tt.make_range"() <{end = 64 : i32, start = 0 : i32}> : () -> tensor<64xi32>
    %x_2 = "tt.splat"(%n) : (i32) -> tensor<64xi32>
    %x_3 = "arith.cmpi"(%at, %x_2) <{predicate = 2 : i64}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi1>
    %x_4 = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %x_5 = "arith.remsi"(%x_4, %x_1) : (i32, i32) -> i32
    %x_6 = "arith.muli"(%x_5, %x_0) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
    %x_7 = "tt.addptr"(%X, %x_6) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
    %x_8 = "tt.splat"(%x_7) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
    %x_9 = "tt.addptr"(%x_8, %at) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
    %x_10 = "tt.load"(%x_9, %x_3, %x) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<64x!tt.ptr<f32>>, tensor<64xi1>, tensor<64xf32>) -> tensor<64xf32>
    %2 = "tt.splat"(%OUT) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
    %3 = "tt.addptr"(%2, %at) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
    %4 = "arith.mulf"(%x_10, %1) <{fastmath = #arith.fastmath<none>}> : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    %5 = "arith.mulf"(%4, %0) <{fastmath = #arith.fastmath<none>}> : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    "tt.store"(%3, %5, %x_3) : (tensor<64x!tt.ptr<f32>>, tensor<64xf32>, tensor<64xi1>) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()

// kernel: scatter
"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}], function_type = (!tt.ptr<f32>, !tt.ptr<i32>, !tt.ptr<f32>, i32) -> (), sym_name = "scatter", sym_visibility = "public"}> ({
  ^bb0(%X: !tt.ptr<f32>, %INDEX: !tt.ptr<i32>, %OUT: !tt.ptr<f32>, %n: i32):
    %0 = "arith.constant"() <{value = dense<0.000000e+00> : tensor<64xf32>}> : () -> tensor<64xf32>
    %to = "arith.constant"() <{value = dense<0> : tensor<64xi32>}> : () -> tensor<64xi32>
    %at = "arith.constant"() <{value = 64 : i32}> : () -> i32
    %at_0 = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %at_1 = "arith.muli"(%at_0, %at) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
    %at_2 = "tt.make_range"() <{end = 64 : i32, start = 0 : i32}> : () -> tensor<64xi32>
    %at_3 = "tt.splat"(%at_1) : (i32) -> tensor<64xi32>
    %at_4 = "arith.addi"(%at_3, %at_2) <{overflowFlags = #arith.overflow<none>}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
    %to_5 = "tt.splat"(%n) : (i32) -> tensor<64xi32>
    %to_6 = "arith.cmpi"(%at_4, %to_5) <{predicate = 2 : i64}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi1>
    %to_7 = "tt.splat"(%INDEX) : (!tt.ptr<i32>) -> tensor<64x!tt.ptr<i32>>
    %to_8 = "tt.addptr"(%to_7, %at_4) : (tensor<64x!tt.ptr<i32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<i32>>
    %to_9 = "tt.load"(%to_8, %to_6, %to) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<64x!tt.ptr<i32>>, tensor<64xi1>, tensor<64xi32>) -> tensor<64xi32>
    %1 = "tt.splat"(%OUT) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
    %2 = "tt.addptr"(%1, %to_9) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
    %3 = "tt.splat"(%X) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
    %4 = "tt.addptr"(%3, %at_4) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
    %5 = "tt.load"(%4, %to_6, %0) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<64x!tt.ptr<f32>>, tensor<64xi1>, tensor<64xf32>) -> tensor<64xf32>
    "tt.store"(%2, %5, %to_6) : (tensor<64x!tt.ptr<f32>>, tensor<64xf32>, tensor<64xi1>) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()

// kernel: scatter_by_a_multiple
"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}], function_type = (!tt.ptr<f32>, !tt.ptr<i32>, !tt.ptr<f32>, i32) -> (), sym_name = "scatter_by_a_multiple", sym_visibility = "public"}> ({
  ^bb0(%X: !tt.ptr<f32>, %INDEX: !tt.ptr<i32>, %OUT: !tt.ptr<f32>, %n: i32):
    %0 = "arith.constant"() <{value = dense<5.000000e-01> : tensor<64xf32>}> : () -> tensor<64xf32>
    %1 = "arith.constant"() <{value = dense<2.000000e+00> : tensor<64xf32>}> : () -> tensor<64xf32>
    %2 = "arith.constant"() <{value = dense<0> : tensor<64xi32>}> : () -> tensor<64xi32>
    %x = "arith.constant"() <{value = dense<0.000000e+00> : tensor<64xf32>}> : () -> tensor<64xf32>
    %at = "arith.constant"() <{value = 64 : i32}> : () -> i32
    %at_0 = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %at_1 = "arith.muli"(%at_0, %at) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
    %at_2 = "tt.make_range"() <{end = 64 : i32, start = 0 : i32}> : () -> tensor<64xi32>
    %at_3 = "tt.splat"(%at_1) : (i32) -> tensor<64xi32>
    %at_4 = "arith.addi"(%at_3, %at_2) <{overflowFlags = #arith.overflow<none>}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
    %x_5 = "tt.splat"(%n) : (i32) -> tensor<64xi32>
    %x_6 = "arith.cmpi"(%at_4, %x_5) <{predicate = 2 : i64}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi1>
    %x_7 = "tt.splat"(%X) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
    %x_8 = "tt.addptr"(%x_7, %at_4) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
    %x_9 = "tt.load"(%x_8, %x_6, %x) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<64x!tt.ptr<f32>>, tensor<64xi1>, tensor<64xf32>) -> tensor<64xf32>
    %3 = "tt.splat"(%INDEX) : (!tt.ptr<i32>) -> tensor<64x!tt.ptr<i32>>
    %4 = "tt.addptr"(%3, %at_4) : (tensor<64x!tt.ptr<i32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<i32>>
    %5 = "tt.load"(%4, %x_6, %2) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<64x!tt.ptr<i32>>, tensor<64xi1>, tensor<64xi32>) -> tensor<64xi32>
    %6 = "tt.splat"(%OUT) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
    %7 = "tt.addptr"(%6, %5) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
    %8 = "arith.mulf"(%x_9, %1) <{fastmath = #arith.fastmath<none>}> : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    %9 = "arith.mulf"(%8, %0) <{fastmath = #arith.fastmath<none>}> : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    "tt.store"(%7, %9, %x_6) : (tensor<64x!tt.ptr<f32>>, tensor<64xf32>, tensor<64xi1>) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()

// kernel: scatter_of_one_less
"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}], function_type = (!tt.ptr<f32>, !tt.ptr<i32>, !tt.ptr<f32>, i32) -> (), sym_name = "scatter_of_one_less", sym_visibility = "public"}> ({
  ^bb0(%X: !tt.ptr<f32>, %INDEX: !tt.ptr<i32>, %OUT: !tt.ptr<f32>, %n: i32):
    %0 = "arith.constant"() <{value = dense<0> : tensor<64xi32>}> : () -> tensor<64xi32>
    %x = "arith.constant"() <{value = dense<0.000000e+00> : tensor<64xf32>}> : () -> tensor<64xf32>
    %1 = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %at = "arith.constant"() <{value = 64 : i32}> : () -> i32
    %at_0 = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %at_1 = "arith.muli"(%at_0, %at) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
    %at_2 = "tt.make_range"() <{end = 64 : i32, start = 0 : i32}> : () -> tensor<64xi32>
    %at_3 = "tt.splat"(%at_1) : (i32) -> tensor<64xi32>
    %at_4 = "arith.addi"(%at_3, %at_2) <{overflowFlags = #arith.overflow<none>}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
    %x_5 = "arith.subi"(%n, %1) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
    %x_6 = "tt.splat"(%x_5) : (i32) -> tensor<64xi32>
    %x_7 = "arith.cmpi"(%at_4, %x_6) <{predicate = 2 : i64}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi1>
    %x_8 = "tt.splat"(%X) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
    %x_9 = "tt.addptr"(%x_8, %at_4) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
    %x_10 = "tt.load"(%x_9, %x_7, %x) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<64x!tt.ptr<f32>>, tensor<64xi1>, tensor<64xf32>) -> tensor<64xf32>
    %2 = "tt.splat"(%n) : (i32) -> tensor<64xi32>
    %3 = "arith.cmpi"(%at_4, %2) <{predicate = 2 : i64}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi1>
    %4 = "tt.splat"(%INDEX) : (!tt.ptr<i32>) -> tensor<64x!tt.ptr<i32>>
    %5 = "tt.addptr"(%4, %at_4) : (tensor<64x!tt.ptr<i32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<i32>>
    %6 = "tt.load"(%5, %3, %0) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<64x!tt.ptr<i32>>, tensor<64xi1>, tensor<64xi32>) -> tensor<64xi32>
    %7 = "tt.splat"(%OUT) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
    %8 = "tt.addptr"(%7, %6) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
    "tt.store"(%8, %x_10, %x_7) : (tensor<64x!tt.ptr<f32>>, tensor<64xf32>, tensor<64xi1>) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()

// kernel: exchange
"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}], function_type = (!tt.ptr<f32>, !tt.ptr<f32>, i32) -> (), sym_name = "exchange", sym_visibility = "public"}> ({
  ^bb0(%X: !tt.ptr<f32>, %OUT: !tt.ptr<f32>, %n: i32):
    %0 = "arith.constant"() <{value = dense<0.000000e+00> : tensor<64xf32>}> : () -> tensor<64xf32>
    %1 = "arith.constant"() <{value = dense<2> : tensor<64xi32>}> : () -> tensor<64xi32>
    %at = "arith.constant"() <{value = 64 : i32}> : () -> i32
    %at_0 = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %at_1 = "arith.muli"(%at_0, %at) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
    %at_2 = "tt.make_range"() <{end = 64 : i32, start = 0 : i32}> : () -> tensor<64xi32>
    %at_3 = "tt.splat"(%at_1) : (i32) -> tensor<64xi32>
    %at_4 = "arith.addi"(%at_3, %at_2) <{overflowFlags = #arith.overflow<none>}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
    %2 = "tt.splat"(%n) : (i32) -> tensor<64xi32>
    %3 = "arith.cmpi"(%at_4, %2) <{predicate = 2 : i64}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi1>
    %4 = "arith.divsi"(%at_4, %1) : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
    %5 = "tt.splat"(%OUT) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
    %6 = "tt.addptr"(%5, %4) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
    %7 = "tt.splat"(%X) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
    %8 = "tt.addptr"(%7, %at_4) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
    %9 = "tt.load"(%8, %3, %0) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<64x!tt.ptr<f32>>, tensor<64xi1>, tensor<64xf32>) -> tensor<64xf32>
    %10 = "tt.atomic_rmw"(%6, %9, %3) <{atomic_rmw_op = 10 : i32, scope = 1 : i32, sem = 4 : i32}> : (tensor<64x!tt.ptr<f32>>, tensor<64xf32>, tensor<64xi1>) -> tensor<64xf32>
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()

// kernel: exchange_by_a_multiple
"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}], function_type = (!tt.ptr<f32>, !tt.ptr<f32>, i32) -> (), sym_name = "exchange_by_a_multiple", sym_visibility = "public"}> ({
  ^bb0(%X: !tt.ptr<f32>, %OUT: !tt.ptr<f32>, %n: i32):
    %0 = "arith.constant"() <{value = dense<5.000000e-01> : tensor<64xf32>}> : () -> tensor<64xf32>
    %1 = "arith.constant"() <{value = dense<2.000000e+00> : tensor<64xf32>}> : () -> tensor<64xf32>
    %2 = "arith.constant"() <{value = dense<0.000000e+00> : tensor<64xf32>}> : () -> tensor<64xf32>
    %3 = "arith.constant"() <{value = dense<2> : tensor<64xi32>}> : () -> tensor<64xi32>
    %at = "arith.constant"() <{value = 64 : i32}> : () -> i32
    %at_0 = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %at_1 = "arith.muli"(%at_0, %at) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
    %at_2 = "tt.make_range"() <{end = 64 : i32, start = 0 : i32}> : () -> tensor<64xi32>
    %at_3 = "tt.splat"(%at_1) : (i32) -> tensor<64xi32>
    %at_4 = "arith.addi"(%at_3, %at_2) <{overflowFlags = #arith.overflow<none>}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
    %4 = "tt.splat"(%n) : (i32) -> tensor<64xi32>
    %5 = "arith.cmpi"(%at_4, %4) <{predicate = 2 : i64}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi1>
    %6 = "arith.divsi"(%at_4, %3) : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
    %7 = "tt.splat"(%OUT) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
    %8 = "tt.addptr"(%7, %6) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
    %9 = "tt.splat"(%X) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
    %10 = "tt.addptr"(%9, %at_4) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
    %11 = "tt.load"(%10, %5, %2) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<64x!tt.ptr<f32>>, tensor<64xi1>, tensor<64xf32>) -> tensor<64xf32>
    %12 = "arith.mulf"(%11, %1) <{fastmath = #arith.fastmath<none>}> : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    %13 = "arith.mulf"(%12, %0) <{fastmath = #arith.fastmath<none>}> : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    %14 = "tt.atomic_rmw"(%8, %13, %5) <{atomic_rmw_op = 10 : i32, scope = 1 : i32, sem = 4 : i32}> : (tensor<64x!tt.ptr<f32>>, tensor<64xf32>, tensor<64xi1>) -> tensor<64xf32>
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()

// kernel: pairs_read_too_early
"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}], function_type = (!tt.ptr<f32>, !tt.ptr<f32>, i32) -> (), sym_name = "pairs_read_too_early", sym_visibility = "public"}> ({
  ^bb0(%X: !tt.ptr<f32>, %OUT: !tt.ptr<f32>, %n: i32):
    %0 = "arith.constant"() <{value = dense<1.000000e+03> : tensor<64xf32>}> : () -> tensor<64xf32>
    %1 = "arith.constant"() <{value = dense<2> : tensor<64xi32>}> : () -> tensor<64xi32>
    %2 = "arith.constant"() <{value = dense<0.000000e+00> : tensor<64xf32>}> : () -> tensor<64xf32>
    %3 = "arith.constant"() <{value = 64 : i32}> : () -> i32
    %at = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %at_0 = "arith.muli"(%at, %3) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
    %at_1 = "tt.make_range"() <{end = 64 : i32, start = 0 : i32}> : () -> tensor<64xi32>
    %at_2 = "tt.splat"(%at_0) : (i32) -> tensor<64xi32>
    %at_3 = "arith.addi"(%at_2, %at_1) <{overflowFlags = #arith.overflow<none>}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
    %4 = "tt.splat"(%n) : (i32) -> tensor<64xi32>
    %5 = "arith.cmpi"(%at_3, %4) <{predicate = 2 : i64}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi1>
    %6 = "tt.addptr"(%X, %n) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
    %7 = "tt.addptr"(%6, %at_0) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
    %8 = "tt.splat"(%7) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
    %9 = "tt.splat"(%X) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
    %10 = "tt.addptr"(%9, %at_3) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
    %11 = "tt.load"(%10, %5, %2) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<64x!tt.ptr<f32>>, tensor<64xi1>, tensor<64xf32>) -> tensor<64xf32>
    "tt.store"(%8, %11, %5) : (tensor<64x!tt.ptr<f32>>, tensor<64xf32>, tensor<64xi1>) -> ()
    %early = "tt.load"(%8, %5, %2) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<64x!tt.ptr<f32>>, tensor<64xi1>, tensor<64xf32>) -> tensor<64xf32>
    %x = "arith.divsi"(%at_3, %1) : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
    %x_4 = "tt.addptr"(%9, %x) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
    %x_5 = "tt.load"(%x_4, %5, %2) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<64x!tt.ptr<f32>>, tensor<64xi1>, tensor<64xf32>) -> tensor<64xf32>
    %12 = "tt.splat"(%OUT) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
    %13 = "tt.addptr"(%12, %x) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
    %14 = "arith.cmpf"(%early, %0) <{fastmath = #arith.fastmath<none>, predicate = 2 : i64}> : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xi1>
    %15 = "arith.select"(%14, %early, %x_5) : (tensor<64xi1>, tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    "tt.store"(%13, %15, %5) : (tensor<64x!tt.ptr<f32>>, tensor<64xf32>, tensor<64xi1>) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()
