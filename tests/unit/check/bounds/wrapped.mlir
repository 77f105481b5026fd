"builtin.module"() ({
  "tt.func"() <{function_type = (!tt.ptr<f32>, !tt.ptr<f32>, i32) -> (), sym_name = "wrapped", sym_visibility = "public"}> ({
  ^bb0(%x_ptr: !tt.ptr<f32>, %y_ptr: !tt.ptr<f32>, %n: i32):
    %x = "arith.constant"() <{value = dense<0> : tensor<1024xi32>}> : () -> tensor<1024xi32>
    %offsets = "arith.constant"() <{value = 1024 : i32}> : () -> i32
    %offsets_0 = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %offsets_1 = "arith.muli"(%offsets_0, %offsets) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
    %offsets_2 = "tt.make_range"() <{end = 1024 : i32, start = 0 : i32}> : () -> tensor<1024xi32>
    %offsets_3 = "tt.splat"(%offsets_1) : (i32) -> tensor<1024xi32>
    %offsets_4 = "arith.addi"(%offsets_3, %offsets_2) <{overflowFlags = #arith.overflow<none>}> : (tensor<1024xi32>, tensor<1024xi32>) -> tensor<1024xi32>
    %x_5 = "tt.splat"(%n) : (i32) -> tensor<1024xi32>
    %x_6 = "arith.remsi"(%offsets_4, %x_5) : (tensor<1024xi32>, tensor<1024xi32>) -> tensor<1024xi32>
    %x_7 = "tt.splat"(%x_ptr) : (!tt.ptr<f32>) -> tensor<1024x!tt.ptr<f32>>
    %x_8 = "tt.addptr"(%x_7, %x_6) : (tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>) -> tensor<1024x!tt.ptr<f32>>
    %x_9 = "tt.load"(%x_8) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 0, 0>}> : (tensor<1024x!tt.ptr<f32>>) -> tensor<1024xf32>
    %x_10 = "arith.cmpi"(%offsets_4, %x_5) <{predicate = 2 : i64}> : (tensor<1024xi32>, tensor<1024xi32>) -> tensor<1024xi1>
    %x_11 = "arith.select"(%x_10, %offsets_4, %x) : (tensor<1024xi1>, tensor<1024xi32>, tensor<1024xi32>) -> tensor<1024xi32>
    %x_12 = "tt.addptr"(%x_7, %x_11) : (tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>) -> tensor<1024x!tt.ptr<f32>>
    %x_13 = "tt.load"(%x_12) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 0, 0>}> : (tensor<1024x!tt.ptr<f32>>) -> tensor<1024xf32>
    %x_14 = "arith.addf"(%x_9, %x_13) <{fastmath = #arith.fastmath<none>}> : (tensor<1024xf32>, tensor<1024xf32>) -> tensor<1024xf32>
    %0 = "tt.addptr"(%x_7, %offsets_4) : (tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>) -> tensor<1024x!tt.ptr<f32>>
    "tt.store"(%0, %x_14, %x_10) : (tensor<1024x!tt.ptr<f32>>, tensor<1024xf32>, tensor<1024xi1>) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()