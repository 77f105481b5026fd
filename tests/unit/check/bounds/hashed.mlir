"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {}], function_type = (!tt.ptr<f16>, i32) -> (), sym_name = "hashed", sym_visibility = "public"}> ({
  ^bb0(%x_ptr: !tt.ptr<f16>, %seed: i32):
    %0 = "arith.constant"() <{value = dense<0.000000e+00> : tensor<64xf16>}> : () -> tensor<64xf16>
    %key = "arith.constant"() <{value = dense<1023> : tensor<64xi32>}> : () -> tensor<64xi32>
    %key_0 = "arith.constant"() <{value = dense<265443> : tensor<64xi32>}> : () -> tensor<64xi32>
    %at = "arith.constant"() <{value = 64 : i32}> : () -> i32
    %at_1 = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %at_2 = "arith.muli"(%at_1, %at) : (i32, i32) -> i32
    %at_3 = "tt.make_range"() <{end = 64 : i32, start = 0 : i32}> : () -> tensor<64xi32>
    %at_4 = "tt.splat"(%at_2) : (i32) -> tensor<64xi32>
    %at_5 = "arith.addi"(%at_4, %at_3) : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
    %key_6 = "arith.muli"(%at_5, %key_0) : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
    %key_7 = "tt.splat"(%seed) : (i32) -> tensor<64xi32>
    %key_8 = "arith.xori"(%key_6, %key_7) : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
    %key_9 = "arith.andi"(%key_8, %key) : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
    %1 = "tt.splat"(%x_ptr) : (!tt.ptr<f16>) -> tensor<64x!tt.ptr<f16>>
    %2 = "tt.addptr"(%1, %key_9) : (tensor<64x!tt.ptr<f16>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f16>>
    "tt.store"(%2, %0) : (tensor<64x!tt.ptr<f16>>, tensor<64xf16>) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()
