// RUN: triton-opt "%s" | FileCheck "%s"

// CHECK: %[[N:.*]] = unrealized_conversion_cast to i32
// CHECK-NEXT: %{{.*}} = tt.twice %[[N]]
%n = "builtin.unrealized_conversion_cast"() : () -> i32
%twice = tt.twice %n
