"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}, {}, {tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}], function_type = (!tt.ptr<f16>, !tt.ptr<f16>, i32, i32, i32, i32) -> (), sym_name = "triton_10489", sym_visibility = "public"}> ({
  ^bb0(%a_ptr: !tt.ptr<f16>, %c_ptr: !tt.ptr<f16>, %M: i32, %N: i32, %stride_am: i32, %stride_cm: i32):
    %c = "arith.constant"() <{value = dense<0.000000e+00> : tensor<16x1xf32>}> : () -> tensor<16x1xf32>
    %0 = "arith.constant"() <{value = 15 : i32}> : () -> i32
    %1 = "arith.constant"() <{value = 16 : i32}> : () -> i32
    %2 = "arith.constant"() <{value = 8 : i32}> : () -> i32
    %pid = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %num_m = "arith.addi"(%M, %0) : (i32, i32) -> i32
    %num_m_0 = "arith.divsi"(%num_m, %1) : (i32, i32) -> i32
    %num_n = "arith.addi"(%N, %0) : (i32, i32) -> i32
    %num_n_1 = "arith.divsi"(%num_n, %1) : (i32, i32) -> i32
    %in_group = "arith.muli"(%num_n_1, %2) : (i32, i32) -> i32
    %first_m = "arith.divsi"(%pid, %in_group) : (i32, i32) -> i32
    %first_m_2 = "arith.muli"(%first_m, %2) : (i32, i32) -> i32
    %size_m = "arith.subi"(%num_m_0, %first_m_2) : (i32, i32) -> i32
    %size_m_3 = "arith.minsi"(%size_m, %2) : (i32, i32) -> i32
    %pid_m = "arith.remsi"(%pid, %in_group) : (i32, i32) -> i32
    %pid_m_4 = "arith.remsi"(%pid_m, %size_m_3) : (i32, i32) -> i32
    %pid_m_5 = "arith.addi"(%first_m_2, %pid_m_4) : (i32, i32) -> i32
    %pid_n = "arith.divsi"(%pid_m, %size_m_3) : (i32, i32) -> i32
    %offs_am = "arith.muli"(%pid_m_5, %1) : (i32, i32) -> i32
    %offs_am_6 = "tt.make_range"() <{end = 16 : i32, start = 0 : i32}> : () -> tensor<16xi32>
    %offs_am_7 = "tt.splat"(%offs_am) : (i32) -> tensor<16xi32>
    %offs_am_8 = "arith.addi"(%offs_am_7, %offs_am_6) : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi32>
    %offs_am_9 = "tt.splat"(%M) : (i32) -> tensor<16xi32>
    %offs_am_10 = "arith.remsi"(%offs_am_8, %offs_am_9) : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi32>
    %a = "tt.expand_dims"(%offs_am_10) <{axis = 1 : i32}> : (tensor<16xi32>) -> tensor<16x1xi32>
    %a_11 = "tt.splat"(%stride_am) : (i32) -> tensor<16x1xi32>
    %a_12 = "arith.muli"(%a, %a_11) : (tensor<16x1xi32>, tensor<16x1xi32>) -> tensor<16x1xi32>
    %a_13 = "tt.splat"(%a_ptr) : (!tt.ptr<f16>) -> tensor<16x1x!tt.ptr<f16>>
    %a_14 = "tt.addptr"(%a_13, %a_12) : (tensor<16x1x!tt.ptr<f16>>, tensor<16x1xi32>) -> tensor<16x1x!tt.ptr<f16>>
    %a_15 = "tt.expand_dims"(%offs_am_6) <{axis = 0 : i32}> : (tensor<16xi32>) -> tensor<1x16xi32>
    %a_16 = "tt.broadcast"(%a_14) : (tensor<16x1x!tt.ptr<f16>>) -> tensor<16x16x!tt.ptr<f16>>
    %a_17 = "tt.broadcast"(%a_15) : (tensor<1x16xi32>) -> tensor<16x16xi32>
    %a_18 = "tt.addptr"(%a_16, %a_17) : (tensor<16x16x!tt.ptr<f16>>, tensor<16x16xi32>) -> tensor<16x16x!tt.ptr<f16>>
    %a_19 = "tt.load"(%a_18) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 0, 0>}> : (tensor<16x16x!tt.ptr<f16>>) -> tensor<16x16xf16>
    %offs_cn = "arith.muli"(%pid_n, %1) : (i32, i32) -> i32
    %offs_cn_20 = "tt.splat"(%offs_cn) : (i32) -> tensor<16xi32>
    %offs_cn_21 = "arith.addi"(%offs_cn_20, %offs_am_6) : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi32>
    %c_22 = "tt.reduce"(%a_19) <{axis = 1 : i32}> ({
    ^bb0(%c_34: f16, %c_35: f16):
      %c_36 = "arith.addf"(%c_34, %c_35) <{fastmath = #arith.fastmath<none>}> : (f16, f16) -> f16
      "tt.reduce.return"(%c_36) : (f16) -> ()
    }) : (tensor<16x16xf16>) -> tensor<16xf16>
    %c_23 = "tt.expand_dims"(%c_22) <{axis = 1 : i32}> : (tensor<16xf16>) -> tensor<16x1xf16>
    %c_24 = "arith.extf"(%c_23) : (tensor<16x1xf16>) -> tensor<16x1xf32>
    %c_25 = "arith.addf"(%c_24, %c) <{fastmath = #arith.fastmath<none>}> : (tensor<16x1xf32>, tensor<16x1xf32>) -> tensor<16x1xf32>
    %mask = "tt.expand_dims"(%offs_am_8) <{axis = 1 : i32}> : (tensor<16xi32>) -> tensor<16x1xi32>
    %mask_26 = "tt.splat"(%M) : (i32) -> tensor<16x1xi32>
    %mask_27 = "arith.cmpi"(%mask, %mask_26) <{predicate = 2 : i64}> : (tensor<16x1xi32>, tensor<16x1xi32>) -> tensor<16x1xi1>
    %mask_28 = "tt.expand_dims"(%offs_cn_21) <{axis = 0 : i32}> : (tensor<16xi32>) -> tensor<1x16xi32>
    %mask_29 = "tt.splat"(%N) : (i32) -> tensor<1x16xi32>
    %mask_30 = "arith.cmpi"(%mask_28, %mask_29) <{predicate = 2 : i64}> : (tensor<1x16xi32>, tensor<1x16xi32>) -> tensor<1x16xi1>
    %mask_31 = "tt.broadcast"(%mask_27) : (tensor<16x1xi1>) -> tensor<16x16xi1>
    %mask_32 = "tt.broadcast"(%mask_30) : (tensor<1x16xi1>) -> tensor<16x16xi1>
    %mask_33 = "arith.andi"(%mask_31, %mask_32) : (tensor<16x16xi1>, tensor<16x16xi1>) -> tensor<16x16xi1>
    %3 = "arith.extsi"(%mask) : (tensor<16x1xi32>) -> tensor<16x1xi64>
    %4 = "arith.extsi"(%stride_cm) : (i32) -> i64
    %5 = "tt.splat"(%4) : (i64) -> tensor<16x1xi64>
    %6 = "arith.muli"(%3, %5) : (tensor<16x1xi64>, tensor<16x1xi64>) -> tensor<16x1xi64>
    %7 = "tt.splat"(%c_ptr) : (!tt.ptr<f16>) -> tensor<16x1x!tt.ptr<f16>>
    %8 = "tt.addptr"(%7, %6) : (tensor<16x1x!tt.ptr<f16>>, tensor<16x1xi64>) -> tensor<16x1x!tt.ptr<f16>>
    %9 = "tt.broadcast"(%8) : (tensor<16x1x!tt.ptr<f16>>) -> tensor<16x16x!tt.ptr<f16>>
    %10 = "tt.broadcast"(%mask_28) : (tensor<1x16xi32>) -> tensor<16x16xi32>
    %11 = "tt.addptr"(%9, %10) : (tensor<16x16x!tt.ptr<f16>>, tensor<16x16xi32>) -> tensor<16x16x!tt.ptr<f16>>
    %12 = "arith.truncf"(%c_25) : (tensor<16x1xf32>) -> tensor<16x1xf16>
    %13 = "tt.broadcast"(%12) : (tensor<16x1xf16>) -> tensor<16x16xf16>
    "tt.store"(%11, %13, %mask_33) : (tensor<16x16x!tt.ptr<f16>>, tensor<16x16xf16>, tensor<16x16xi1>) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()
