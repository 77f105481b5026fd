"""The enumerations of Triton's and MLIR's attributes that decide what an operation computes.

In generic form an enum is printed as its number, so the numbers are those of the .td files that each class
names. Releases from 3.0 on agree on them.
"""

from __future__ import annotations

from enum import IntEnum


class CmpIPredicate(IntEnum):
    """The comparison of `arith.cmpi`: mlir/Dialect/Arith/IR/ArithBase.td."""

    EQ = 0
    NE = 1
    SLT = 2
    SLE = 3
    SGT = 4
    SGE = 5
    ULT = 6
    ULE = 7
    UGT = 8
    UGE = 9


class CmpFPredicate(IntEnum):
    """The comparison of `arith.cmpf`: mlir/Dialect/Arith/IR/ArithBase.td.

    An ordered comparison (O...) with NaN is false, an unordered one (U...) true.
    """

    FALSE = 0
    OEQ = 1
    OGT = 2
    OGE = 3
    OLT = 4
    OLE = 5
    ONE = 6
    ORD = 7
    UEQ = 8
    UGT = 9
    UGE = 10
    ULT = 11
    ULE = 12
    UNE = 13
    UNO = 14
    TRUE = 15


class RMWOp(IntEnum):
    """The update of `tt.atomic_rmw`: TritonAttrDefs.td."""

    AND = 1
    OR = 2
    XOR = 3
    ADD = 4
    FADD = 5
    MAX = 6
    MIN = 7
    UMAX = 8
    UMIN = 9
    XCHG = 10


class DescriptorReduceKind(IntEnum):
    """The update of `tt.descriptor_reduce`: TritonAttrDefs.td."""

    ADD = 1
    MIN = 2
    MAX = 3
    INC = 4
    DEC = 5
    AND = 6
    OR = 7
    XOR = 8


class PaddingOption(IntEnum):
    """The elements that a load gives outside of a tensor: TritonAttrDefs.td."""

    PAD_ZERO = 1
    PAD_NAN = 2


class InputPrecision(IntEnum):
    """The precision of the operands of a dot of fp32: TritonAttrDefs.td; newer releases have more."""

    TF32 = 0
    TF32X3 = 1
    IEEE = 2


class ScaleDotElemType(IntEnum):
    """The format of an operand of `tt.dot_scaled`: TritonAttrDefs.td."""

    E4M3 = 0
    E5M2 = 1
    E2M3 = 2
    E3M2 = 3
    E2M1 = 4
    BF16 = 5
    FP16 = 6


class TensorMapFill(IntEnum):
    """The fill mode of `ttng.tensormap_create`: CUtensorMapFloatOOBfill of the CUDA driver API."""

    ZERO = 0
    NAN = 1


class AtomicBinOp(IntEnum):
    """The update of `llvm.atomicrmw`: mlir/Dialect/LLVMIR/LLVMEnums.td."""

    XCHG = 0
    ADD = 1
    SUB = 2
    AND = 3
    NAND = 4
    OR = 5
    XOR = 6
    MAX = 7
    MIN = 8
    UMAX = 9
    UMIN = 10
    FADD = 11
    FSUB = 12
    FMAX = 13
    FMIN = 14
