"builtin.module"() ({
  "tt.func"() <{function_type = (!tt.ptr<f32>, i32) -> (), sym_name = "guarded", sym_visibility = "public"}> ({
  ^bb0(%x_ptr: !tt.ptr<f32>, %n: i32):
    %0 = "arith.constant"() <{value = 1024 : i32}> : () -> i32
    %offsets = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %offsets_0 = "arith.muli"(%offsets, %0) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
    %offsets_1 = "tt.make_range"() <{end = 1024 : i32, start = 0 : i32}> : () -> tensor<1024xi32>
    %offsets_2 = "tt.splat"(%offsets_0) : (i32) -> tensor<1024xi32>
    %offsets_3 = "arith.addi"(%offsets_2, %offsets_1) <{overflowFlags = #arith.overflow<none>}> : (tensor<1024xi32>, tensor<1024xi32>) -> tensor<1024xi32>
    %1 = "arith.addi"(%offsets_0, %0) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
    %2 = "arith.cmpi"(%1, %n) <{predicate = 3 : i64}> : (i32, i32) -> i1
    "scf.if"(%2) ({
      %8 = "tt.splat"(%x_ptr) : (!tt.ptr<f32>) -> tensor<1024x!tt.ptr<f32>>
      %9 = "tt.addptr"(%8, %offsets_3) : (tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>) -> tensor<1024x!tt.ptr<f32>>
      %10 = "tt.load"(%9) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 0, 0>}> : (tensor<1024x!tt.ptr<f32>>) -> tensor<1024xf32>
      "tt.store"(%9, %10) : (tensor<1024x!tt.ptr<f32>>, tensor<1024xf32>) -> ()
      "scf.yield"() : () -> ()
    }, {
      %3 = "tt.splat"(%n) : (i32) -> tensor<1024xi32>
      %4 = "arith.cmpi"(%offsets_3, %3) <{predicate = 2 : i64}> : (tensor<1024xi32>, tensor<1024xi32>) -> tensor<1024xi1>
      %5 = "tt.splat"(%x_ptr) : (!tt.ptr<f32>) -> tensor<1024x!tt.ptr<f32>>
      %6 = "tt.addptr"(%5, %offsets_3) : (tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>) -> tensor<1024x!tt.ptr<f32>>
      %7 = "tt.load"(%6, %4) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 0>}> : (tensor<1024x!tt.ptr<f32>>, tensor<1024xi1>) -> tensor<1024xf32>
      "tt.store"(%6, %7, %4) : (tensor<1024x!tt.ptr<f32>>, tensor<1024xf32>, tensor<1024xi1>) -> ()
      "scf.yield"() : () -> ()
    }) : (i1) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()