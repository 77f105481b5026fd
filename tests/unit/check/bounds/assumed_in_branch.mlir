"builtin.module"() ({
  "tt.func"() <{function_type = (!tt.ptr<f32>, i32, i32) -> (), sym_name = "assumed_in_branch", sym_visibility = "public"}> ({
  ^bb0(%x: !tt.ptr<f32>, %stride: i32, %small: i32):
    %0 = "arith.constant"() <{value = dense<1.000000e+00> : tensor<64xf32>}> : () -> tensor<64xf32>
    %1 = "arith.constant"() <{value = dense<0.000000e+00> : tensor<64xf32>}> : () -> tensor<64xf32>
    %2 = "arith.constant"() <{value = 1024 : i32}> : () -> i32
    %3 = "arith.constant"() <{value = 16 : i32}> : () -> i32
    %4 = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %pid = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    %5 = "arith.cmpi"(%small, %4) <{predicate = 4 : i64}> : (i32, i32) -> i1
    "scf.if"(%5) ({
      %11 = "arith.cmpi"(%stride, %3) <{predicate = 3 : i64}> : (i32, i32) -> i1
      "llvm.intr.assume"(%11) <{op_bundle_sizes = array<i32>}> : (i1) -> ()
      %12 = "arith.cmpi"(%pid, %2) <{predicate = 2 : i64}> : (i32, i32) -> i1
      "llvm.intr.assume"(%12) <{op_bundle_sizes = array<i32>}> : (i1) -> ()
      %13 = "arith.muli"(%pid, %stride) : (i32, i32) -> i32
      %14 = "tt.addptr"(%x, %13) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
      %15 = "tt.make_range"() <{end = 64 : i32, start = 0 : i32}> : () -> tensor<64xi32>
      %16 = "tt.splat"(%14) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
      %17 = "tt.addptr"(%16, %15) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
      "tt.store"(%17, %1) : (tensor<64x!tt.ptr<f32>>, tensor<64xf32>) -> ()
      "scf.yield"() : () -> ()
    }, {
      %6 = "arith.muli"(%pid, %stride) : (i32, i32) -> i32
      %7 = "tt.addptr"(%x, %6) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
      %8 = "tt.make_range"() <{end = 64 : i32, start = 0 : i32}> : () -> tensor<64xi32>
      %9 = "tt.splat"(%7) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
      %10 = "tt.addptr"(%9, %8) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
      "tt.store"(%10, %0) : (tensor<64x!tt.ptr<f32>>, tensor<64xf32>) -> ()
      "scf.yield"() : () -> ()
    }) : (i1) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) {generic} : () -> ()
