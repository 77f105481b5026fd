"""Stages as Triton 3.9.0 (63068fcc27) wrote them, cut to what is needed."""

# A row's softmax, before the layouts; the exponential and the sum of the loop's body.
TTIR = """#loc = loc("/home/somebody/softmax.py":6:1)
#loc1 = loc(unknown)
#loc17 = loc("/home/somebody/softmax.py":17:23)
#loc24 = loc("output_ptr"(#loc))
#loc41 = loc("denominator"(#loc17))
module {
  tt.func public @softmax(%output_ptr: !tt.ptr<f32> {tt.divisibility = 16 : i32} \
loc("output_ptr"(#loc)), \
%input_ptr: !tt.ptr<f32> {tt.divisibility = 16 : i32} loc("input_ptr"(#loc)), \
%n_cols: i32 loc("n_cols"(#loc))) \
attributes {noinline = false} {
    %c1024_i32 = arith.constant 1024 : i32 loc(#loc1)
    %row_start = tt.get_program_id x : i32 loc(#loc30)
    %row_start_0 = arith.muli %row_start, %c1024_i32 : i32 loc(#loc30)
    %offsets = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32> loc(#loc34)
    %mask = tt.splat %n_cols : i32 -> tensor<1024xi32> loc(#loc36)
    %mask_2 = arith.cmpi slt, %offsets, %mask : tensor<1024xi32> loc(#loc36)
    %input_1 = tt.addptr %input_ptr, %row_start_0 : !tt.ptr<f32>, i32 loc(#loc35)
    %input_3 = tt.splat %input_1 : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>> loc(#loc35)
    %input_4 = tt.addptr %input_3, %offsets : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32> loc(#loc35)
    %row = tt.load %input_4, %mask_2 : tensor<1024x!tt.ptr<f32>> loc(#loc37)
    %numerator = math.exp %row : tensor<1024xf32> loc(#loc40)
    %denominator = "tt.reduce"(%numerator) <{axis = 0 : i32}> ({
    ^bb0(%denominator_8: f32 loc(callsite(#loc1 at #loc41)), \
%denominator_9: f32 loc(callsite("standard.py":3:1 at callsite(#loc1 at "a)b":1:2)))):
      %denominator_10 = arith.addf %denominator_8, %denominator_9 : f32 loc(#loc51)
      tt.reduce.return %denominator_10 : f32 loc(#loc48)
    }) : (tensor<1024xf32>) -> f32 loc(#loc48)
    %output = tt.splat %denominator : f32 -> tensor<1024xf32> loc(#loc42)
    %output_5 = arith.divf %numerator, %output : tensor<1024xf32> loc(#loc42)
    %output_6 = tt.addptr %output_ptr, %row_start_0 : !tt.ptr<f32>, i32 loc(#loc44)
    %output_7 = tt.splat %output_6 : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>> loc(#loc45)
    %output_8 = tt.addptr %output_7, %offsets : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32> loc(#loc45)
    tt.store %output_8, %output_5, %mask_2 : tensor<1024x!tt.ptr<f32>> loc(#loc23)
    tt.return loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc23 = loc("/home/somebody/softmax.py":21:9)
#loc30 = loc("row_start"(#loc2))
#loc48 = loc(callsite(#loc16 at #loc41))
"""

# A matrix product on sm_90: layouts, a loop that carries values, a product without and with its wait.
TTGIR = """#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#blocked1 = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#loc = loc("/home/somebody/matmul.py":8:1)
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90"} {
  tt.func public @matmul(%a_ptr: !tt.ptr<f16> loc("a_ptr"(#loc)), %k: i32 loc("k"(#loc))) {
    %cst = arith.constant dense<0.000000e+00> : tensor<64x64xf32, #mma> loc(#loc1)
    %cst_0 = arith.constant dense<0.000000e+00> : tensor<64x32xf16, #blocked> loc(#loc1)
    %c-1_i32 = arith.constant -1 : i32 loc(#loc1)
    %c1_i32 = arith.constant 1 : i32 loc(#loc1)
    %rows_5 = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked}>> loc(#loc31)
    %rows_6 = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked1}>> loc(#loc31)
    %left_20 = tt.expand_dims %rows_5 {axis = 1 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked}>> -> tensor<64x1xi32, #blocked> loc(#loc35)
    %left_21 = tt.expand_dims %rows_6 {axis = 1 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked1}>> -> tensor<64x1xi32, #blocked1> loc(#loc35)
    %left_29 = ttg.local_alloc : () -> !ttg.memdesc<3x64x32xf16, #shared, #smem, mutable> loc(#loc41)
    %total_77:2 = scf.for %total_80 = %c-1_i32 to %k step %c1_i32 iter_args(%total_81 = %cst, %total_82 = %c1_i32) -> (tensor<64x64xf32, #mma>, i32) : i32 {
      %left_94 = ttg.memdesc_index %left_29[%total_82] : !ttg.memdesc<3x64x32xf16, #shared, #smem, mutable> -> !ttg.memdesc<64x32xf16, #shared, #smem, mutable> loc(#loc41)
      %total_96 = ttng.warp_group_dot %left_94, %left_94, %total_81 {inputPrecision = 0 : i32} : !ttg.memdesc<64x32xf16, #shared, #smem, mutable> * !ttg.memdesc<64x32xf16, #shared, #smem, mutable> -> tensor<64x64xf32, #mma> loc(#loc45)
      %total_97:2 = ttng.warp_group_dot_wait %total_96, %left_94 {pendings = 1 : i32} : tensor<64x64xf32, #mma>, !ttg.memdesc<64x32xf16, #shared, #smem, mutable> loc(#loc45)
      %total_98 = arith.addi %total_82, %c1_i32 : i32 loc(#loc43)
      scf.yield %total_97#0, %total_98 : tensor<64x64xf32, #mma>, i32 loc(#loc43)
    } loc(#loc43)
    %total_99 = ttg.convert_layout %total_77#0 : tensor<64x64xf32, #mma> -> tensor<64x64xf32, #blocked1> loc(#loc46)
    tt.return loc(#loc)
  } loc(#loc)
} loc(#loc)
"""  # noqa: E501

LLIR = """; ModuleID = 'LLVMDialectModule'
source_filename = "LLVMDialectModule"
target datalayout = "e-p3:32:32-i64:64"

@global_smem = external addrspace(3) global [0 x i8], align 16

; Function Attrs: nounwind
define ptx_kernel void @softmax(ptr addrspace(1) %0, i32 %1) local_unnamed_addr #0 !dbg !4 {
  %3 = tail call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x(), !dbg !12
  %4 = tail call i32 @llvm.nvvm.read.ptx.sreg.tid.x(), !dbg !14
  %5 = and i32 %4, 127, !dbg !14
  %6 = icmp slt i32 %3, %1, !dbg !16
  tail call void asm sideeffect "mov.u32 $0, %tid.x; // %3", "r"(i32 %5) #2, !dbg !20, !srcloc !5
  br i1 %6, label %.lr.ph, label %._crit_edge, !dbg !16

.lr.ph:                                           ; preds = %2
  br label %7, !dbg !16

7:                                                ; preds = %.lr.ph, %7
  %8 = phi i32 [ %3, %.lr.ph ], [ %10, %7 ]
  %9 = mul i32 %8, %5, !dbg !17
  %10 = add i32 %9, %1, !dbg !17
  %11 = getelementptr inbounds nuw i8, ptr addrspace(1) %0, i32 %10, !dbg !20
  store i32 %9, ptr addrspace(1) %11, align 4, !dbg !20
  %12 = icmp slt i32 %10, %1, !dbg !16
  br i1 %12, label %7, label %._crit_edge, !dbg !16, !llvm.loop !27

._crit_edge:                                      ; preds = %7, %2
    #dbg_value(i32 %3, !4, !DIExpression(), !12)
  ret void, !dbg !37
}

; Function Attrs: mustprogress nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare noundef range(i32 0, 2147483647) i32 @llvm.nvvm.read.ptx.sreg.ctaid.x() #1
declare noundef range(i32 0, 1024) i32 @llvm.nvvm.read.ptx.sreg.tid.x() #1

attributes #0 = { nounwind "nvvm.reqntid"="128" }
attributes #1 = { mustprogress nocallback nofree nosync nounwind speculatable willreturn memory(none) }
attributes #2 = { nounwind }

!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!2, !3}

!0 = distinct !DICompileUnit(language: DW_LANG_C, file: !1, producer: "triton", isOptimized: true)
!1 = !DIFile(filename: "softmax.py", directory: "/home/somebody")
!2 = !{i32 2, !"Debug Info Version", i32 3}
!3 = !{i32 4, !"nvvm-reflect-ftz", i32 1}
!4 = distinct !DISubprogram(name: "softmax", scope: !1, file: !1, line: 6, type: !5, unit: !0)
!5 = !DISubroutineType(cc: DW_CC_normal, types: !6)
!6 = !{null, !7}
!7 = !DIBasicType(name: "int", size: 32, encoding: DW_ATE_signed)
!12 = !DILocation(line: 7, column: 17, scope: !4)
!14 = !DILocation(line: 11, column: 23, scope: !4)
!16 = !DILocation(line: 9, column: 5, scope: !4)
!17 = !DILocation(line: 10, column: 37, scope: !4)
!20 = !DILocation(line: 14, column: 15, scope: !4)
!27 = distinct !{!27, !16, !28}
!28 = !{!"llvm.loop.peeled.count", i32 1}
!37 = !DILocation(line: 6, column: 1, scope: !4)
"""

PTX = """//
// Generated by LLVM NVPTX Back-End
//

.version 9.4
.target sm_90a
.address_size 64

	// .globl	softmax                 // -- Begin function softmax
.extern .shared .align 16 .b8 global_smem[];
.visible .entry softmax(
	.param .u64 .ptr .global .align 1 softmax_param_0,
	.param .u32 softmax_param_1
)
.reqntid 128
{
	.reg .pred 	%p<3>;
	.reg .b32 	%r<9>;
	.reg .b64 	%rd<3>;
	.loc	1 6 0                           // softmax.py:6:0
$L__func_begin0:
	.loc	1 6 0                           // softmax.py:6:0

// %bb.0:
	ld.param.b32 	%r1, [softmax_param_1];
	ld.param.b64 	%rd1, [softmax_param_0];
$L__tmp0:
	.loc	1 7 17                          // softmax.py:7:17
	mov.u32 	%r2, %ctaid.x;
	mov.u32 	%r3, %tid.x;
	and.b32 	%r4, %r3, 127;
	setp.ge.s32 	%p1, %r2, %r1;
	@%p1 bra 	$L__BB0_2;
$L__BB0_1:                              // =>This Inner Loop Header: Depth=1
	mul.lo.s32 	%r5, %r2, %r4;
	add.s32 	%r6, %r5, %r1;
	mul.wide.s32 	%rd2, %r6, 4;
	// begin inline asm
	st.global.b32 [ %rd2 + 0 ], { %r5 };
	// end inline asm
	setp.lt.s32 	%p2, %r6, %r1;
	@%p2 bra 	$L__BB0_1;
$L__BB0_2:                              // %._crit_edge
	ret;
$L__tmp1:
$L__func_end0:
                                        // -- End function
}
	.file	1 "/home/somebody" "softmax.py"
	.section	.debug_abbrev
	{
.b8 1                                   // Abbreviation Code
.b64 $L__func_begin0                    // DW_AT_low_pc
	}
	.section	.debug_macinfo	{	}
"""

SASS = """	.target	sm_90a

//--------------------- .text.softmax             --------------------------
	.section	.text.softmax,"ax",@progbits
	.align	128
        .size           softmax,(.L_x_3 - softmax)
softmax:
.text.softmax:
	//## File "/home/somebody/softmax.py", line 6
        /*0000*/                   LDC R1, c[0x0][0x28] ;
	//## File "/home/somebody/softmax.py", line 11
        /*0010*/                   S2R R4, SR_TID.X ;
        /*0020*/               @P5 BRA `(.L_x_0) ;
.L_x_1:
        /*0030*/                   FADD R6, |R10|.reuse, R11 ;
        /*0040*/              @!P5 BRA `(.L_x_1) ;
.L_x_0:
        /*0050*/                   EXIT ;
.L_x_2:
        /*0060*/                   BRA `(.L_x_2);
        /*0070*/                   NOP;
.L_x_3:
"""

# The form of cuobjdump: addresses instead of labels, encodings.
CUOBJDUMP = """	.headerflags	@"EF_CUDA_SM90"
		Function : softmax
        /*0000*/                   LDC R1, c[0x0][0x28] ;    /* 0x00000a00ff017b82 */
                                                             /* 0x000e220000000800 */
        /*0010*/               @P0 BRA 0x30 ;                /* 0x0000001000000947 */
        /*0020*/                   FADD R6, R10, R11 ;       /* 0x0000000b0a067221 */
        /*0030*/                   EXIT ;                    /* 0x000000000000794d */
        /*0040*/                   BRA 0x40;                 /* 0xfffffffc00fc7947 */
"""

AMDGCN = """	.amdgcn_target "amdgpu9.42-amd-amdhsa-unknown-gfx942"
	.text
	.globl	softmax                         ; -- Begin function softmax
	.p2align	8
	.type	softmax,@function
softmax:                                ; @softmax
.Lfunc_begin0:
	.cfi_sections .debug_frame
	.cfi_startproc
; %bb.7:
	.file	1 "/home/somebody" "softmax.py"
	.loc	1 6 0 prologue_end              ; softmax.py:6:0
	s_load_dwordx2 s[2:3], s[0:1], 0x0
	s_branch .LBB0_0
	.loc	1 0 0 is_stmt 0                 ; :0:0
.Ltmp0:
	.p2align	8
.LBB0_0:
	.cfi_undefined 16
	v_mov_b32_e32 v5, v4
	s_cbranch_scc1 .LBB0_0
	s_endpgm
.Lfunc_end0:
	.size	softmax, .Lfunc_end0-softmax
	.section	.debug_info,"",@progbits
	.long	.Ldebug_info_end0-.Ldebug_info_start0 ; Length of Unit
.Ldebug_info_start0:
	.short	5                               ; DWARF version number
	.section	".note.GNU-stack","",@progbits
	.amdgpu_metadata
---
    .vgpr_count:     6
...
	.end_amdgpu_metadata
"""

GCNASM = """
/home/somebody/softmax.hsaco:	file format elf64-amdgpu

Disassembly of section .text:

0000000000001900 <softmax>:
; softmax():
; /home/somebody/softmax.py:6
	s_load_dwordx2 s[2:3], s[0:1], 0x0                         // 000000001900: C0060080 00000000
	s_branch 1                                                 // 000000001908: BF820001 <softmax+0x10>
	s_nop 0                                                    // 00000000190C: BF800000
	v_mov_b32_e32 v5, v4                                       // 000000001910: 7E0A0304
	s_cbranch_scc1 65534                                       // 000000001914: BF85FFFE <softmax+0x10>
	s_endpgm                                                   // 000000001918: BF810000
"""

STAGES = {
    "ttir": TTIR,
    "ttgir": TTGIR,
    "llir": LLIR,
    "ptx": PTX,
    "sass": SASS,
    "amdgcn": AMDGCN,
    "gcnasm": GCNASM,
}
