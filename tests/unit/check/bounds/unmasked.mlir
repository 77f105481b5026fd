"builtin.module"() ({
  "tt.func"() <{function_type = (!tt.ptr<f32>, i32) -> (), sym_name = "unmasked", sym_visibility = "public"}> ({
  ^bb0(%x_ptr: !tt.ptr<f32>, %n: i32):
    %0 = "arith.constant"() <{value = dense<1.000000e+00> : tensor<1024xf32>}> : () -> tensor<1024xf32>
    %offsets = "arith.constant"() <{value = 1024 : i32}> : () -> i32
    %offsets_0 = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %offsets_1 = "arith.muli"(%offsets_0, %offsets) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
    %offsets_2 = "tt.make_range"() <{end = 1024 : i32, start = 0 : i32}> : () -> tensor<1024xi32>
    %offsets_3 = "tt.splat"(%offsets_1) : (i32) -> tensor<1024xi32>
    %offsets_4 = "arith.addi"(%offsets_3, %offsets_2) <{overflowFlags = #arith.overflow<none>}> : (tensor<1024xi32>, tensor<1024xi32>) -> tensor<1024xi32>
    %x = "tt.splat"(%x_ptr) : (!tt.ptr<f32>) -> tensor<1024x!tt.ptr<f32>>
    %x_5 = "tt.addptr"(%x, %offsets_4) : (tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>) -> tensor<1024x!tt.ptr<f32>>
    %x_6 = "tt.load"(%x_5) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 0, 0>}> : (tensor<1024x!tt.ptr<f32>>) -> tensor<1024xf32>
    %1 = "tt.splat"(%n) : (i32) -> tensor<1024xi32>
    %2 = "arith.cmpi"(%offsets_4, %1) <{predicate = 2 : i64}> : (tensor<1024xi32>, tensor<1024xi32>) -> tensor<1024xi1>
    %3 = "arith.addf"(%x_6, %0) <{fastmath = #arith.fastmath<none>}> : (tensor<1024xf32>, tensor<1024xf32>) -> tensor<1024xf32>
    "tt.store"(%x_5, %3, %2) : (tensor<1024x!tt.ptr<f32>>, tensor<1024xf32>, tensor<1024xi1>) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()