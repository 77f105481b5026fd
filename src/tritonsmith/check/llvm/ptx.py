"""Inline assembly: those instructions of the PTX ISA that Triton writes."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from xdsl.ir import Operation

from tritonsmith.check.llvm.atomics import ATOMICS, atomic
from tritonsmith.check.llvm.nvidia import ldmatrix, mma
from tritonsmith.check.llvm.operations import result_type
from tritonsmith.check.llvm.types import LlvmType, from_bytes, to_bytes
from tritonsmith.check.module import UnsupportedIrError, attribute, text
from tritonsmith.check.registry import threaded

Array = np.ndarray[Any, Any]

_STATEMENT = re.compile(r"(?:@(!?)\$(\d+)\s+)?([a-z][\w.:]*)\s+(.*)", re.DOTALL)
_HINT = r"(?:L[12]::\w+|c[agsv]|lu|wb|wt|nc|relaxed|acquire|release|acq_rel|volatile|weak|gpu|sys|cta)"
_HINTS = rf"(?:\.{_HINT})*"
_ACCESS = rf"{_HINTS}\.(?P<space>global|shared)(?:::cta)?{_HINTS}(?:\.v(?P<count>[248]))?\.[bu](?P<bits>\d+)"
_UNSIGNED = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}


@dataclass
class Registers:
    """The registers of an inline assembly, as bits: results first.

    Attributes:
        run: that executes it.
        values: by number.
        wanted: threads whose predicate is true.
    """

    run: Any
    values: list[Any]
    wanted: Any = True

    def read(self, said: str) -> Array:
        """A register, or a number."""
        said = said.strip()
        if said.startswith("$"):
            found: Array = self.values[int(said[1:])]
            return found
        return np.asarray(np.uint64(int(said, 0) & (1 << 64) - 1))

    def write(self, said: str, value: Array) -> None:
        """Set a register where the predicate is true."""
        number = int(said.strip().removeprefix("$"))
        old = self.values[number]
        self.values[number] = np.where(self.run.mask & self.wanted, value, old).astype(old.dtype)

    def address(self, said: str) -> Array:
        """Of `[ $4 + 0 ]`."""
        register, _, offset = said.strip().strip("[]").partition("+")
        return self.read(register).astype(np.int64) + int(offset.strip() or "0", 0)


@threaded("llvm.inline_asm")
def _inline_asm(run: Any, operation: Operation, *values: Any) -> tuple[Any, ...]:
    code = text(attribute(operation, "asm_string")).strip('"')
    code = code.replace("\\0A", "\n").replace("\\09", " ").replace("$$", "\0")
    constraints = [
        one for one in text(attribute(operation, "constraints")).strip('"').split(",") if "~" not in one
    ]
    outputs = [one for one in constraints if one.startswith("=")]
    types: tuple[LlvmType, ...] = ()
    if outputs:
        of = result_type(operation)
        types = of.members or (of,)
    if len(constraints) - len(outputs) != len(values):
        raise UnsupportedIrError(f"assembly with the constraints {','.join(constraints)}")
    given = [_bits(one) for one in values]
    fresh: list[Any] = [np.zeros((), _UNSIGNED[8 * one.bytes]) for one in types]
    for constraint, value in zip(constraints[len(outputs) :], given, strict=True):
        if constraint.isdigit():
            fresh[int(constraint)] = value
    registers = Registers(run, [*fresh, *given])
    for statement in filter(None, (one.strip() for one in code.split(";"))):
        try:
            _execute(registers, statement)
        except (ValueError, IndexError) as error:  # operands that are neither numbers nor registers
            raise UnsupportedIrError(f"the assembly {statement}") from error
    found = tuple(
        from_bytes(to_bytes(value, run.threads), one)
        for value, one in zip(registers.values[: len(types)], types, strict=True)
    )
    if not operation.results:
        return ()
    if not types:
        return (np.zeros((), np.int8),)  # of type void: nobody reads it
    return (found if result_type(operation).members else found[0],)


def _bits(value: Any) -> Any:
    if isinstance(value, tuple):
        size = sum(one.dtype.itemsize for one in value)
        stacked = np.stack(np.broadcast_arrays(*value), axis=-1)
        return np.ascontiguousarray(stacked).view(_UNSIGNED[8 * size])[..., 0]
    return (
        value
        if value.dtype == np.bool_
        else np.ascontiguousarray(value).view(_UNSIGNED[8 * value.dtype.itemsize]).reshape(np.shape(value))
    )


def _execute(registers: Registers, statement: str) -> None:
    found = _STATEMENT.fullmatch(statement)
    if found is None:
        raise UnsupportedIrError(f"the assembly {statement}")
    negated, predicate, opcode, rest = found.groups()
    registers.wanted = True
    if predicate:
        truth = registers.values[int(predicate)] != 0
        registers.wanted = ~truth if negated else truth
    operands = [one.strip() for one in re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^,{}\[\]]+", rest) if one.strip()]
    for pattern, function in _INSTRUCTIONS:
        if matched := pattern.fullmatch(opcode):
            function(registers, matched, operands)
            return
    raise UnsupportedIrError(f"the instruction {opcode}")


def _list(said: str) -> list[str]:
    return said.strip("{}").split(",")


def _mov(registers: Registers, _found: re.Match[str], operands: list[str]) -> None:
    target, source = operands
    registers.write(target, registers.read(source))


def _count(found: re.Match[str], names: list[str]) -> int:
    count = int(found["count"] or 1)
    if len(names) != count:
        raise UnsupportedIrError(f"{found[0]} of {len(names)} registers")
    return count


def _two(found: re.Match[str], operands: list[str]) -> tuple[str, str]:
    """Registers and an address, without the policy of a cache."""
    if len(operands) != 2:  # noqa: PLR2004
        raise UnsupportedIrError(f"{found[0]} with {len(operands)} operands")
    return operands[0], operands[1]


def _load(registers: Registers, found: re.Match[str], operands: list[str]) -> None:
    (said, address), run, size = _two(found, operands), registers.run, int(found["bits"]) // 8
    names = _list(said)
    count = _count(found, names)
    memory = run.memory if found["space"] == "global" else run.shared
    raw = run.read(memory, registers.address(address), size * count, registers.wanted)
    lanes = raw.view(_UNSIGNED[8 * size])
    for number, name in enumerate(names):
        registers.write(name, lanes[:, number])


def _store(registers: Registers, found: re.Match[str], operands: list[str]) -> None:
    (address, said), run, size = _two(found, operands), registers.run, int(found["bits"]) // 8
    names = _list(said)
    _count(found, names)
    memory = run.memory if found["space"] == "global" else run.shared
    lanes = tuple(registers.read(one).astype(_UNSIGNED[8 * size]) for one in names)
    run.write(memory, registers.address(address), to_bytes(lanes, run.threads), registers.wanted)


def _copy(registers: Registers, _found: re.Match[str], operands: list[str]) -> None:
    """cp.async, done at once: where the size of the source is 0, zeros are written."""
    target, source, said, *given = operands
    run, size = registers.run, int(said, 0)
    filled = run.spread(registers.read(given[0])).astype(np.int64) if given else run.spread(size)
    if len(given) > 1 or not np.isin(filled, (0, size)).all():
        raise UnsupportedIrError("cp.async of a part of its size, or with a hint")
    raw = run.read(run.memory, registers.address(source), size, registers.wanted & (filled > 0))
    run.write(run.shared, registers.address(target), raw, registers.wanted)


def _ldmatrix(registers: Registers, found: re.Match[str], operands: list[str]) -> None:
    names = _list(operands[0])
    _count(found, names)
    every = ldmatrix(
        registers.run, registers.address(operands[1]), len(names), transposed=bool(found["trans"])
    )
    for name, value in zip(names, every, strict=True):
        registers.write(name, value.view(np.uint32))


_TYPES = {
    "f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16), "tf32": np.dtype(np.float32),
    "f32": np.dtype(np.float32), "s8": np.dtype(np.int8), "s32": np.dtype(np.int32),
    "e4m3": np.dtype(ml_dtypes.float8_e4m3fn), "e5m2": np.dtype(ml_dtypes.float8_e5m2),
}  # fmt: skip


def _mma(registers: Registers, found: re.Match[str], operands: list[str]) -> None:
    result, left, right, more = (found[name] for name in ("d", "a", "b", "c"))
    if left != right or result != more or not {left, more} <= set(_TYPES):
        raise UnsupportedIrError(f"the instruction {found[0]}")
    parts = [tuple(registers.read(one) for one in _list(said)) for said in operands[1:4]]
    depth, size = int(found["k"]), _TYPES[left].itemsize
    if len(parts[0]) * 4 != depth * size // 2 or len(parts[1]) * 8 != depth * size // 2:
        raise UnsupportedIrError(f"{found[0]} of {len(parts[0])} and {len(parts[1])} registers")
    rounds = left == "tf32" and registers.run.rounds
    of = _TYPES[left], _TYPES[more]
    every = mma(registers.run, (parts[0], parts[1], parts[2]), depth, *of, rounds=rounds)
    for name, value in zip(_list(operands[0]), every, strict=True):
        registers.write(name, value)


def _atom(registers: Registers, found: re.Match[str], operands: list[str]) -> None:
    kind, bits, size = found["op"], found["type"], int(found["bits"])
    signed = {"s": "i", "f": "f"}.get(bits, "u")
    dtype = np.dtype(f"{signed}{size // 8}")
    values = [
        registers.run.spread(registers.read(one)).astype(_UNSIGNED[size]).view(dtype) for one in operands[2:]
    ]

    def combine(before: Array, group: Array) -> Array:
        if kind == "cas":
            return np.where(before == values[0][group], values[1][group], before)
        return ATOMICS["xchg" if kind == "exch" else kind](before, values[0][group])

    old = atomic(registers.run, registers.address(operands[1]), dtype, combine, registers.wanted)
    registers.write(operands[0], old.view(_UNSIGNED[size]))


def _nothing(_registers: Registers, _found: re.Match[str], _operands: list[str]) -> None:
    pass


_OPS = "cas|exch|add|and|or|xor|max|min"
_KINDS = r"\.(?P<d>\w+)\.(?P<a>\w+)\.(?P<b>\w+)\.(?P<c>\w+)"
_ATOM = rf"atom{_HINTS}\.global{_HINTS}\.(?P<op>{_OPS})(\.noftz)?\.(?P<type>[bsuf])(?P<bits>16|32|64)"
_INSTRUCTIONS: list[tuple[re.Pattern[str], Callable[[Registers, re.Match[str], list[str]], None]]] = [
    (re.compile(pattern), function)
    for pattern, function in (
        (r"mov\.[bus](8|16|32|64)", _mov),
        (rf"ld{_ACCESS}", _load),
        (rf"st{_ACCESS}", _store),
        (r"cp\.async\.c[ag]\.shared\.global", _copy),
        (r"cp\.async\.(commit|wait)_(group|all)", _nothing),
        (r"ldmatrix\.sync\.aligned\.m8n8\.x(?P<count>[124])(?P<trans>\.trans)?\.shared\.b16", _ldmatrix),
        (rf"mma\.sync\.aligned\.m16n8k(?P<k>\d+)\.row\.col{_KINDS}", _mma),
        (_ATOM, _atom),
    )
]
