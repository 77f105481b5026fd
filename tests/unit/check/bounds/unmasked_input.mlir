"builtin.module"() ({
  "tt.func"() <{function_type = (!tt.ptr<f32>, !tt.ptr<f32>, i32) -> (), sym_name = "unmasked_input", sym_visibility = "public"}> ({
  ^bb0(%x_ptr: !tt.ptr<f32>, %y_ptr: !tt.ptr<f32>, %n: i32):
    %offsets = "arith.constant"() <{value = 1024 : i32}> : () -> i32
    %offsets_0 = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %offsets_1 = "arith.muli"(%offsets_0, %offsets) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
    %offsets_2 = "tt.make_range"() <{end = 1024 : i32, start = 0 : i32}> : () -> tensor<1024xi32>
    %offsets_3 = "tt.splat"(%offsets_1) : (i32) -> tensor<1024xi32>
    %offsets_4 = "arith.addi"(%offsets_3, %offsets_2) <{overflowFlags = #arith.overflow<none>}> : (tensor<1024xi32>, tensor<1024xi32>) -> tensor<1024xi32>
    %0 = "tt.splat"(%n) : (i32) -> tensor<1024xi32>
    %1 = "arith.cmpi"(%offsets_4, %0) <{predicate = 2 : i64}> : (tensor<1024xi32>, tensor<1024xi32>) -> tensor<1024xi1>
    %2 = "tt.splat"(%y_ptr) : (!tt.ptr<f32>) -> tensor<1024x!tt.ptr<f32>>
    %3 = "tt.addptr"(%2, %offsets_4) : (tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>) -> tensor<1024x!tt.ptr<f32>>
    %4 = "tt.splat"(%x_ptr) : (!tt.ptr<f32>) -> tensor<1024x!tt.ptr<f32>>
    %5 = "tt.addptr"(%4, %offsets_4) : (tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>) -> tensor<1024x!tt.ptr<f32>>
    %6 = "tt.load"(%5) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 0, 0>}> : (tensor<1024x!tt.ptr<f32>>) -> tensor<1024xf32>
    "tt.store"(%3, %6, %1) : (tensor<1024x!tt.ptr<f32>>, tensor<1024xf32>, tensor<1024xi1>) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()