"""Parse Triton's IR in generic form with xDSL: types become NumPy's, enumerations those of the .td files."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from functools import cache, lru_cache
from typing import Any

import ml_dtypes
import numpy as np
from xdsl.context import Context
from xdsl.dialects import builtin
from xdsl.ir import Attribute, Operation
from xdsl.parser import Parser

from tritonsmith.core.errors import FactError

Array = np.ndarray[Any, Any]

_FLOATS: dict[str, np.dtype[Any]] = {
    "f16": np.dtype(np.float16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f8E4M3FN": np.dtype(ml_dtypes.float8_e4m3fn),
    "f8E5M2": np.dtype(ml_dtypes.float8_e5m2),
    "f8E4M3FNUZ": np.dtype(ml_dtypes.float8_e4m3fnuz),
    "f8E5M2FNUZ": np.dtype(ml_dtypes.float8_e5m2fnuz),
    "f8E4M3B11FNUZ": np.dtype(ml_dtypes.float8_e4m3b11fnuz),
}
_INTEGERS = {
    1: np.dtype(np.bool_),
    8: np.dtype(np.int8),
    16: np.dtype(np.int16),
    32: np.dtype(np.int32),
    64: np.dtype(np.int64),
}
POINTER = np.dtype(np.int64)  # a byte address
_VOID = np.dtype(np.void)
_LARGEST = 1 << 22  # elements: TRITON_MAX_TENSOR_NUMEL is 1 << 20, and memory may have several buffers
_DIGITS = 9  # of a size; a longer one is too large, whatever it is
_SHOWN = 60  # letters of a type in an error
_SHAPE = re.compile(r"<((?:\d+x)+)")  # of a tensor, a vector, or a descriptor of memory
_STRING = r'"(?:[^"\\]|\\.)*"'
_FLAT = rf'(?:[^()"]|{_STRING})*'
_LOCATION = re.compile(rf"{_STRING}| ?\bloc\({_FLAT}(?:\({_FLAT}(?:\({_FLAT}\){_FLAT})*\){_FLAT})*\)")
# The parts of a text that no operation of the check reads: layouts of tensors and of shared memory, plans of
# pipeliner and allocator, and barriers between threads. Strings come first: they may contain anything.
_NESTED = r"<(?:[^<>]|<(?:[^<>]|<(?:[^<>]|<[^<>]*>)*>)*>)*>"
_PLAN = (
    r"(?:\b(?:(?:allocation|loop)\.\w+|ttg\.(?:shared|tensor_memory_size|\w+_scratch_memory_\w+))"
    r'|"ttg\.total-num-warps"|"ttng\.two-ctas") = (?:\d+ : i32|true|false)'
)
_UNREAD = re.compile(
    rf"(?P<kept>{_STRING})"
    rf"|(?P<type>\b(?:tensor|memdesc)<[\dx]*(?:!tt\.ptr<[^<>]*>|[^<>,#]+)), #(?:[^<>]|{_NESTED})*>"
    rf"| \{{{_PLAN}(?:, {_PLAN})*\}}|, {_PLAN}"
    r'|\n *"(?:ttg\.barrier|ttng\.fence_async_shared)"\(\) [^\n]*: \(\) -> \(\)(?=\n)'
    r"|(?P<value>%[\w$.-]+)"
)
_ALIAS = re.compile(r"^(#\w+) = .*\n", re.MULTILINE)
# Infinity and NaN, which xDSL reads as integers: as bytes it reads them well.
_HEXADECIMAL = re.compile(r"\bdense<0x([0-9A-Fa-f]+)>(?= : (?:tensor|vector)<[\dx]*b?f\d)")
# The same in a list of values, where MLIR prints single elements in hexadecimal.
_LISTED = re.compile(r"\bdense<\[(?=[^<>]*\b0x)[^<>]*>(?= : (?:tensor|vector)<[\dx]*b?f\d)")


class UnsupportedIrError(Exception):
    """An operation, a type or an access that the check does not know, so that it cannot go on."""


class ValueKind(Enum):
    """The kind of a value, or of each element of a tensor."""

    NUMBER = "number"
    POINTER = "pointer"
    MEMORY = "descriptor of shared or tensor memory"
    DESCRIPTOR = "descriptor of a tensor in global memory"
    BLOCK = "pointer to a block of a tensor"
    TOKEN = "token"  # noqa: S105 - an async token


@dataclass(frozen=True)
class ValueType:
    """The type of a value.

    Attributes:
        kind: the kind of the value, or of its elements.
        shape: the shape of a tensor or a descriptor; empty for a scalar.
        dtype: the dtype of an element, or of a pointer's target; void, of no size, if it is not known.
    """

    kind: ValueKind
    shape: tuple[int, ...] = ()
    dtype: np.dtype[Any] = _VOID

    @property
    def is_integer(self) -> bool:
        """Report whether it is a single integer, i1 not counted."""
        return self.kind is ValueKind.NUMBER and not self.shape and self.dtype.kind == "i"


def parse(text: str) -> builtin.ModuleOp:
    """Parse a module in generic form.

    Raises:
        FactError: xDSL cannot parse it.
        UnsupportedIrError: xDSL would misread it, or a type has more elements than Triton allows.
    """
    # xDSL makes a list of all elements of a constant, so the types are looked at before it parses.
    _refuse_large(text)
    if _LISTED.search(text):
        raise UnsupportedIrError("infinity or NaN in a list of values")
    lines = _HEXADECIMAL.sub(_as_bytes, text).splitlines()
    # xDSL resolves an alias when it is used; MLIR may print it later, as it does with locations.
    aliases = [line for line in lines if line.startswith("#")]
    rest = [line for line in lines if not line.startswith("#")]
    try:
        return Parser(_context(), "\n".join((*aliases, *rest))).parse_module()
    except MemoryError:
        raise
    except Exception as error:  # the parser has many of its own
        message = str(error).strip() or type(error).__name__
        raise FactError("this IR cannot be parsed", why=message.splitlines()[-1][:200]) from error


# xDSL makes a class of each operation and attribute that it does not know, and keeps it in the context: a new
# context for each text would cost a tenth of the time of its parsing.
@cache
def _context() -> Context:
    context = Context(allow_unregistered=True)
    context.load_dialect(builtin.Builtin)
    return context


def _refuse_large(text: str) -> None:
    for shape in set(_SHAPE.findall(text)):
        sizes = [size for size in shape.split("x") if size]
        if any(len(size) > _DIGITS for size in sizes) or math.prod(map(int, sizes)) > _LARGEST:
            raise UnsupportedIrError(f"type {shape[:_SHOWN]}..., of more than {_LARGEST} elements")


def without_locations(text: str) -> str:
    """Return the text of a module without the source locations."""
    # xDSL cannot parse all of their forms, and texts that differ in nothing else need not be run twice.
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("#loc"))
    return _LOCATION.sub(lambda match: match[0] if match[0].startswith('"') else "", lines)


def behaviour(text: str) -> str:
    """Reduce a text without locations to what decides how it runs: two texts that are equal then are one.

    Values are numbered, and the parts that no operation reads are left out. The result is no valid IR.
    """
    names: dict[str, str] = {}

    def shortened(match: re.Match[str]) -> str:
        if match["value"]:
            return names.setdefault(match["value"], f"%{len(names)}")
        return f"{match['type']}>" if match["type"] else match["kept"] or ""

    rest = _UNREAD.sub(shortened, text)
    body = _ALIAS.sub("", rest)
    # An attribute of an operation may still name a layout: then each of them counts.
    return rest if any(re.search(rf"{alias[1]}\b", body) for alias in _ALIAS.finditer(rest)) else body


def _as_bytes(match: re.Match[str]) -> str:
    # MLIR writes the bits of one element as a number, and bytes as a text begin with the lowest.
    return f'dense<"0x{bytes.fromhex(match[1])[::-1].hex().upper()}">'


def name_of(operation: Operation) -> str:
    """Return the operation's name, such as `tt.load`."""
    # Where xDSL parses an operation of a dialect that it does not know, the name is in this attribute.
    named = operation.attributes.get("op_name__")
    return named.data if isinstance(named, builtin.StringAttr) else operation.name


def attribute(operation: Operation, name: str) -> Attribute | None:
    """Return a property or a discardable attribute; None if there is none."""
    # Which of the two an attribute is differs between dialects, and between releases.
    value = operation.properties.get(name)
    return operation.attributes.get(name) if value is None else value


def integer(operation: Operation, name: str, default: int = 0) -> int:
    """Return the value of an integer attribute; `default` if there is none."""
    value = attribute(operation, name)
    return int(value.value.data) if isinstance(value, builtin.IntegerAttr) else default


def integers(operation: Operation, name: str) -> tuple[int, ...]:
    """Return the values of a dense array attribute; empty if there is none."""
    array = attribute(operation, name)
    return (
        tuple(int(value) for value in array.get_values()) if isinstance(array, builtin.DenseArrayBase) else ()
    )


def text(attr: Attribute | None) -> str:
    """Return an attribute of a dialect that xDSL does not know, as it is written."""
    value = getattr(attr, "value", None)
    return str(getattr(value, "data", value if value is not None else attr))


def symbol(attr: Attribute | None) -> str:
    """Return the name of a function, or of the callee."""
    if isinstance(attr, builtin.SymbolRefAttr):
        return attr.root_reference.data
    return text(attr).strip('@"')


@lru_cache(maxsize=4096)
def type_of(attr: Attribute) -> ValueType:
    """Return the check's form of a type.

    Raises:
        UnsupportedIrError: the type is not known, or has more elements than Triton allows.
    """
    of = _type_of(attr)
    if math.prod(of.shape) > _LARGEST:
        raise UnsupportedIrError(f"type {attr}, of more than {_LARGEST} elements")
    return of


# By the operation, whose hash is its identity: that of a type is made of all of its parts.
@lru_cache(maxsize=4096)
def result_type(operation: Operation) -> ValueType:
    """Return the type of an operation's only result."""
    return type_of(operation.results[0].type)


def _type_of(attr: Attribute) -> ValueType:
    if isinstance(attr, builtin.TensorType):
        inner = type_of(attr.element_type)
        return ValueType(inner.kind, tuple(attr.get_shape()), inner.dtype)
    if isinstance(attr, builtin.IntegerType):
        if attr.width.data not in _INTEGERS:
            raise UnsupportedIrError(f"type {attr}")
        return ValueType(ValueKind.NUMBER, (), _INTEGERS[attr.width.data])
    if isinstance(attr, builtin.IndexType):
        return ValueType(ValueKind.NUMBER, (), np.dtype(np.int64))
    # Vectors are of LLVM's dialect, where `llvm.operations` makes a value of each lane.
    if isinstance(attr, builtin.VectorType):
        return type_of(attr.element_type)
    return _other(str(attr))


def _other(spelling: str) -> ValueType:
    # xDSL knows no dialect of Triton's: such a type is what the text says between `!tt.ptr<` and `>`.
    spelling = spelling.replace('"', "")
    if spelling in _FLOATS:
        return ValueType(ValueKind.NUMBER, (), _FLOATS[spelling])
    if spelling.startswith("!tt.ptr<tensor<"):
        return ValueType(
            ValueKind.BLOCK,
            *_shaped(spelling.removeprefix("!tt.ptr<tensor<").partition(">")[0].split(",")[0]),
        )
    if spelling.startswith("!tt.ptr<"):
        return ValueType(
            ValueKind.POINTER, (), _pointee(spelling.removeprefix("!tt.ptr<").rstrip(">").split(",")[0])
        )
    if spelling.startswith(("!ttg.memdesc<", "!triton_gpu.memdesc<", "!tt.memdesc<")):
        return ValueType(ValueKind.MEMORY, *_shaped(spelling.partition("<")[2].split(",")[0]))
    if spelling.startswith("!tt.tensordesc<"):
        return ValueType(
            ValueKind.DESCRIPTOR,
            *_shaped(spelling.partition("<")[2].removeprefix("tensor<").split(",")[0].rstrip(">")),
        )
    if "async.token" in spelling:
        return ValueType(ValueKind.TOKEN)
    raise UnsupportedIrError(f"type {spelling}")


def _shaped(spelling: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    *shape, element = spelling.strip().split("x")
    return tuple(map(int, shape)), element_type(element)


def element_type(spelling: str) -> np.dtype[Any]:
    """Return the dtype of an element type such as `f16` or `i32`.

    Raises:
        UnsupportedIrError: the type is not known.
    """
    if spelling in _FLOATS:
        return _FLOATS[spelling]
    spelling = spelling[1:] if spelling[:2] in ("si", "ui") else spelling  # of a descriptor
    if spelling[:1] == "i" and spelling[1:].isdigit() and int(spelling[1:]) in _INTEGERS:
        return _INTEGERS[int(spelling[1:])]
    raise UnsupportedIrError(f"element type {spelling}")


def _pointee(spelling: str) -> np.dtype[Any]:
    try:
        return element_type(spelling)
    except UnsupportedIrError:
        # A pointer to an unknown type may be passed on; only arithmetic with it is refused.
        return POINTER if spelling.startswith("!tt.ptr") else _VOID


def constant(attr: Attribute | None, kind: ValueType) -> np.ndarray[Any, Any]:
    """Return the value of a constant as an array of the shape and dtype of a type."""
    dtype = kind.dtype
    if isinstance(attr, builtin.DenseIntOrFPElementsAttr):
        array = np.array(_elements(attr))
        if dtype == np.bool_:
            array = array != 0
        with np.errstate(all="ignore"):
            return np.broadcast_to(
                array.astype(dtype).reshape(kind.shape if array.size > 1 else (1,) * len(kind.shape)),
                kind.shape,
            )
    if isinstance(attr, builtin.IntegerAttr):
        value = attr.value.data
        return np.asarray(value != 0 if dtype == np.bool_ else value).astype(dtype)
    if isinstance(attr, builtin.FloatAttr):
        return np.asarray(attr.value.data).astype(dtype)
    raise UnsupportedIrError(f"constant {attr}")


def _elements(attr: builtin.DenseIntOrFPElementsAttr[Any]) -> Sequence[Any]:
    """Return the elements of a dense attribute, a splat's only once."""
    # xDSL writes a splat out, and would make a Python number of each element; NumPy broadcasts one, which
    # takes no memory.
    raw, count = attr.data.data, len(attr)
    element = raw[: len(raw) // count] if count else raw
    is_splat = bool(element) and element * count == raw
    values: Sequence[Any] = attr.get_element_type().unpack(element, 1) if is_splat else attr.get_values()
    return values


# In generic form an enum is printed as its number, so the numbers below are those of the .td files that each
# class names. Releases from 3.0 on agree on them.


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
