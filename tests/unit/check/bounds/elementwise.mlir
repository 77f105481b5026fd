"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {}], function_type = (!tt.ptr<f16>, i32) -> (), sym_name = "elementwise", sym_visibility = "public"}> ({
  ^bb0(%x_ptr: !tt.ptr<f16>, %n: i32):
    %0 = "arith.constant"() <{value = dense<0.000000e+00> : tensor<1024xf16>}> : () -> tensor<1024xf16>
    %at = "arith.constant"() <{value = 1024 : i32}> : () -> i32
    %at_0 = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %at_1 = "arith.muli"(%at_0, %at) : (i32, i32) -> i32
    %at_2 = "tt.make_range"() <{end = 1024 : i32, start = 0 : i32}> : () -> tensor<1024xi32>
    %at_3 = "tt.splat"(%at_1) : (i32) -> tensor<1024xi32>
    %at_4 = "arith.addi"(%at_3, %at_2) : (tensor<1024xi32>, tensor<1024xi32>) -> tensor<1024xi32>
    %1 = "tt.splat"(%n) : (i32) -> tensor<1024xi32>
    %2 = "arith.cmpi"(%at_4, %1) <{predicate = 2 : i64}> : (tensor<1024xi32>, tensor<1024xi32>) -> tensor<1024xi1>
    %3 = "tt.splat"(%x_ptr) : (!tt.ptr<f16>) -> tensor<1024x!tt.ptr<f16>>
    %4 = "tt.addptr"(%3, %at_4) : (tensor<1024x!tt.ptr<f16>>, tensor<1024xi32>) -> tensor<1024x!tt.ptr<f16>>
    "tt.store"(%4, %0, %2) : (tensor<1024x!tt.ptr<f16>>, tensor<1024xf16>, tensor<1024xi1>) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()
