// RUN: triton-opt %s -@ARGUMENT@ | FileCheck %s

// CHECK: tt.func public @sum
// CHECK-SAME: @ATTRIBUTE@ = 3 : i32
tt.func public @sum(%a: i32, %b: i32) -> i32 {
  %0 = arith.addi %a, %b : i32
  %1 = arith.addi %0, %b : i32
  tt.return %1 : i32
}

// CHECK: tt.func public @nothing
// CHECK-SAME: @ATTRIBUTE@ = 1 : i32
tt.func public @nothing() {
  tt.return
}
