"builtin.module"() ({
  "tt.func"() <{function_type = (!tt.ptr<f32>, i32) -> (), sym_name = "whole_blocks", sym_visibility = "public"}> ({
  ^bb0(%x_ptr: !tt.ptr<f32>, %n: i32):
    %0 = "arith.constant"() <{value = dense<1.000000e+00> : tensor<1024xf32>}> : () -> tensor<1024xf32>
    %1 = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %2 = "arith.constant"() <{value = 1024 : i32}> : () -> i32
    %3 = "arith.remsi"(%n, %2) : (i32, i32) -> i32
    %4 = "arith.cmpi"(%3, %1) <{predicate = 0 : i64}> : (i32, i32) -> i1
    "llvm.intr.assume"(%4) <{op_bundle_sizes = array<i32>}> : (i1) -> ()
    %offsets = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %offsets_0 = "arith.muli"(%offsets, %2) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
    %offsets_1 = "tt.make_range"() <{end = 1024 : i32, start = 0 : i32}> : () -> tensor<1024xi32>
    %offsets_2 = "tt.splat"(%offsets_0) : (i32) -> tensor<1024xi32>
    %offsets_3 = "arith.addi"(%offsets_2, %offsets_1) <{overflowFlags = #arith.overflow<none>}> : (tensor<1024xi32>, tensor<1024xi32>) -> tensor<1024xi32>
    %x = "tt.splat"(%x_ptr) : (!tt.ptr<f32>) -> tensor<1024x!tt.ptr<f32>>
    %x_4 = "tt.addptr"(%x, %offsets_3) : (tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>) -> tensor<1024x!tt.ptr<f32>>
    %x_5 = "tt.load"(%x_4) <{isVolatile = false, operandSegmentSizes = array<i32: 1, 0, 0>}> : (tensor<1024x!tt.ptr<f32>>) -> tensor<1024xf32>
    %5 = "tt.splat"(%n) : (i32) -> tensor<1024xi32>
    %6 = "arith.cmpi"(%offsets_3, %5) <{predicate = 2 : i64}> : (tensor<1024xi32>, tensor<1024xi32>) -> tensor<1024xi1>
    %7 = "arith.addf"(%x_5, %0) <{fastmath = #arith.fastmath<none>}> : (tensor<1024xf32>, tensor<1024xf32>) -> tensor<1024xf32>
    "tt.store"(%x_4, %7, %6) : (tensor<1024x!tt.ptr<f32>>, tensor<1024xf32>, tensor<1024xi1>) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()