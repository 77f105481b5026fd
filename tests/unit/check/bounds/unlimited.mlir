"builtin.module"() ({
  "tt.func"() <{function_type = (!tt.ptr<f32>, !tt.ptr<f32>, i32) -> (), sym_name = "unlimited", sym_visibility = "public"}> ({
  ^bb0(%x_ptr: !tt.ptr<f32>, %y_ptr: !tt.ptr<f32>, %n: i32):
    %offsets = "arith.constant"() <{value = 1024 : i32}> : () -> i32
    %offsets_0 = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %offsets_1 = "arith.muli"(%offsets_0, %offsets) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
    %offsets_2 = "tt.make_range"() <{end = 1024 : i32, start = 0 : i32}> : () -> tensor<1024xi32>
    %offsets_3 = "tt.splat"(%offsets_1) : (i32) -> tensor<1024xi32>
    %offsets_4 = "arith.addi"(%offsets_3, %offsets_2) <{overflowFlags = #arith.overflow<none>}> : (tensor<1024xi32>, tensor<1024xi32>) -> tensor<1024xi32>
    %0 = "tt.splat"(%y_ptr) : (!tt.ptr<f32>) -> tensor<1024x!tt.ptr<f32>>
    %1 = "tt.addptr"(%0, %offsets_4) : (tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>) -> tensor<1024x!tt.ptr<f32>>
    %2 = "tt.splat"(%x_ptr) : (!tt.ptr<f32>) -> tensor<1024x!tt.ptr<f32>>
    %3 = "tt.addptr"(%2, %offsets_4) : (tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>) -> tensor<1024x!tt.ptr<f32>>
    %4 = "tt.load"(%3) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 0, 0>}> : (tensor<1024x!tt.ptr<f32>>) -> tensor<1024xf32>
    "tt.store"(%1, %4) : (tensor<1024x!tt.ptr<f32>>, tensor<1024xf32>) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()