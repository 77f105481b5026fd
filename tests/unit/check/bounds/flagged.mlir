"builtin.module"() ({
  "tt.func"() <{function_type = (!tt.ptr<f32>, i32, !tt.ptr<i8>) -> (), sym_name = "flagged", sym_visibility = "public"}> ({
  ^bb0(%x_ptr: !tt.ptr<f32>, %n: i32, %flags_ptr: !tt.ptr<i8>):
    %0 = "arith.constant"() <{value = dense<0> : tensor<1024xi8>}> : () -> tensor<1024xi8>
    %offsets = "arith.constant"() <{value = 1024 : i32}> : () -> i32
    %offsets_0 = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %offsets_1 = "arith.muli"(%offsets_0, %offsets) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
    %offsets_2 = "tt.make_range"() <{end = 1024 : i32, start = 0 : i32}> : () -> tensor<1024xi32>
    %offsets_3 = "tt.splat"(%offsets_1) : (i32) -> tensor<1024xi32>
    %offsets_4 = "arith.addi"(%offsets_3, %offsets_2) <{overflowFlags = #arith.overflow<none>}> : (tensor<1024xi32>, tensor<1024xi32>) -> tensor<1024xi32>
    %x = "tt.splat"(%n) : (i32) -> tensor<1024xi32>
    %x_5 = "arith.cmpi"(%offsets_4, %x) <{predicate = 2 : i64}> : (tensor<1024xi32>, tensor<1024xi32>) -> tensor<1024xi1>
    %x_6 = "tt.splat"(%flags_ptr) : (!tt.ptr<i8>) -> tensor<1024x!tt.ptr<i8>>
    %x_7 = "tt.addptr"(%x_6, %offsets_4) : (tensor<1024x!tt.ptr<i8>>, tensor<1024xi32>) -> tensor<1024x!tt.ptr<i8>>
    %x_8 = "tt.load"(%x_7, %x_5, %0) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<1024x!tt.ptr<i8>>, tensor<1024xi1>, tensor<1024xi8>) -> tensor<1024xi8>
    %x_9 = "arith.cmpi"(%x_8, %0) <{predicate = 1 : i64}> : (tensor<1024xi8>, tensor<1024xi8>) -> tensor<1024xi1>
    %x_10 = "tt.splat"(%x_ptr) : (!tt.ptr<f32>) -> tensor<1024x!tt.ptr<f32>>
    %x_11 = "tt.addptr"(%x_10, %offsets_4) : (tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>) -> tensor<1024x!tt.ptr<f32>>
    %x_12 = "tt.load"(%x_11, %x_9) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 0>}> : (tensor<1024x!tt.ptr<f32>>, tensor<1024xi1>) -> tensor<1024xf32>
    "tt.store"(%x_11, %x_12, %x_5) : (tensor<1024x!tt.ptr<f32>>, tensor<1024xf32>, tensor<1024xi1>) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()