"""Run a kernel in LLVM's dialect with one block of threads, in lockstep.

Inline assembly runs too: the instructions of the PTX ISA that Triton emits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import ml_dtypes
import numpy as np
from xdsl.dialects import builtin
from xdsl.ir import Block, Operation, SSAValue

from tritonsmith.check import arith
from tritonsmith.check.llvm import intrinsics, operations
from tritonsmith.check.llvm.intrinsics import ldmatrix, mma
from tritonsmith.check.llvm.operations import (
    UPDATES,
    LlvmType,
    Value,
    atomic,
    from_bytes,
    llvm_type,
    merge,
    result_type,
    to_bytes,
)
from tritonsmith.check.llvm.threads import ByteMemory, RaceError, SharedMemory, ThreadBlock
from tritonsmith.check.memory import GlobalMemory, base
from tritonsmith.check.module import (
    Array,
    AtomicBinOp,
    UnsupportedIrError,
    attribute,
    element_type,
    integer,
    name_of,
    parse,
    text,
    without_locations,
)
from tritonsmith.check.program import MISUSED, OperationTable, Recorder, Values, bind
from tritonsmith.core.errors import SmithError

_BRANCHES = {"llvm.br", "llvm.cond_br", "cf.br", "cf.cond_br"}
_RETURNS = {"llvm.return", "tt.return"}
# They work element by element, so that they mean the same for an array over threads.
_PLAIN = OperationTable(
    {name: run for name, run in arith.OPERATIONS.items() if name.startswith(("arith.", "math."))}
)


_INLINE = OperationTable()

_STATEMENT = re.compile(r"(?:@(!?)\$(\d+)\s+)?([a-z][\w.:]*)\s+(.*)", re.DOTALL)
# Hints and memory orders change no value here, as a single block runs, in lockstep.
_HINT = r"(?:L[12]::\w+|c[agsv]|lu|wb|wt|nc|relaxed|acquire|release|acq_rel|volatile|weak|gpu|sys|cta)"
_HINTS = rf"(?:\.{_HINT})*"
_ACCESS = rf"{_HINTS}\.(?P<space>global|shared)(?:::cta)?{_HINTS}(?:\.v(?P<count>[248]))?\.[bu](?P<bits>\d+)"
_UNSIGNED = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}


@dataclass
class Registers:
    """The registers of an inline assembly, as bits: results first.

    Attributes:
        run: the run that executes it.
        values: the value of each register, by number.
        predicate: mask of the threads that run the current instruction.
    """

    run: ThreadBlock
    values: list[Array]
    predicate: Array | bool = True

    def read(self, operand: str) -> Array:
        """Return the value of a register or of a literal."""
        operand = operand.strip()
        if operand.startswith("$"):
            register: Array = self.values[int(operand[1:])]
            return register
        # A register holds bits, and a literal may be negative.
        return np.asarray(np.uint64(int(operand, 0) & (1 << 64) - 1))

    def write(self, operand: str, value: Array) -> None:
        """Set a register where the predicate is true."""
        number = int(operand.strip().removeprefix("$"))
        # Threads that are elsewhere, or whose predicate is false, keep what the register had.
        old = self.values[number]
        self.values[number] = np.where(self.run.mask & self.predicate, value, old).astype(old.dtype)

    def address(self, operand: str) -> Array:
        """Return the address of an operand such as `[ $4 + 0 ]`."""
        register, _, offset = operand.strip().strip("[]").partition("+")
        return self.read(register).astype(np.int64) + int(offset.strip() or "0", 0)


@_INLINE.known("llvm.inline_asm")
def _inline_asm(run: ThreadBlock, operation: Operation, *values: Value) -> Values:
    # `$$` is a dollar sign of the assembly, `$0` a register: the former is put out of the way first.
    code = text(attribute(operation, "asm_string")).strip('"')
    code = code.replace("\\0A", "\n").replace("\\09", " ").replace("$$", "\0")
    # `~{memory}` and its kind say what is clobbered, and stand for no register.
    constraints = [
        item for item in text(attribute(operation, "constraints")).strip('"').split(",") if "~" not in item
    ]
    outputs = [item for item in constraints if item.startswith("=")]
    types: tuple[LlvmType, ...] = ()
    if outputs:
        of = result_type(operation)
        types = of.members or (of,)
    if len(constraints) - len(outputs) != len(values):
        raise UnsupportedIrError(f"assembly with the constraints {','.join(constraints)}")
    inputs = [_bits(item) for item in values]
    fresh: list[Array] = [np.zeros((), _UNSIGNED[8 * item.bytes]) for item in types]
    for constraint, value in zip(constraints[len(outputs) :], inputs, strict=True):
        # A number ties an input to that result, whose register begins with the input's value.
        if constraint.isdigit():
            fresh[int(constraint)] = value
    registers = Registers(run, [*fresh, *inputs])
    for statement in filter(None, (item.strip() for item in code.split(";"))):
        try:
            _execute(registers, statement)
        except (ValueError, IndexError) as error:  # operands that are neither numbers nor registers
            raise UnsupportedIrError(f"the assembly {statement}") from error
    results = tuple(
        from_bytes(to_bytes(value, run.threads), item)
        for value, item in zip(registers.values[: len(types)], types, strict=True)
    )
    if not operation.results:
        return ()
    if not types:
        return (np.zeros((), np.int8),)  # of type void: nobody reads it
    return (results if result_type(operation).members else results[0],)


def _bits(value: Value) -> Array:
    if isinstance(value, tuple):
        size = sum(lane.dtype.itemsize for lane in value)
        stacked = np.stack(np.broadcast_arrays(*value), axis=-1)
        return np.ascontiguousarray(stacked).view(_UNSIGNED[8 * size])[..., 0]
    return (
        value
        if value.dtype == np.bool_
        else np.ascontiguousarray(value).view(_UNSIGNED[8 * value.dtype.itemsize]).reshape(np.shape(value))
    )


def _execute(registers: Registers, statement: str) -> None:
    match = _STATEMENT.fullmatch(statement)
    if match is None:
        raise UnsupportedIrError(f"the assembly {statement}")
    negated, predicate, opcode, rest = match.groups()
    # The guard belongs to one instruction, so that of the last one must not stay.
    registers.predicate = True
    if predicate:
        truth = registers.values[int(predicate)] != 0
        registers.predicate = ~truth if negated else truth
    operands = [
        operand.strip()
        # Brackets and braces hold one operand, whatever commas are in them.
        for operand in re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^,{}\[\]]+", rest)
        if operand.strip()
    ]
    for pattern, function in _INSTRUCTIONS:
        if matched := pattern.fullmatch(opcode):
            function(registers, matched, operands)
            return
    raise UnsupportedIrError(f"the instruction {opcode}")


def _list(operand: str) -> list[str]:
    return operand.strip("{}").split(",")


def _mov(registers: Registers, _match: re.Match[str], operands: list[str]) -> None:
    target, source = operands
    registers.write(target, registers.read(source))


def _count(match: re.Match[str], names: list[str]) -> int:
    count = int(match["count"] or 1)
    if len(names) != count:
        raise UnsupportedIrError(f"{match[0]} of {len(names)} registers")
    return count


def _two(match: re.Match[str], operands: list[str]) -> tuple[str, str]:
    """Return registers and address, and refuse further operands such as a cache policy."""
    if len(operands) != 2:  # noqa: PLR2004
        raise UnsupportedIrError(f"{match[0]} with {len(operands)} operands")
    return operands[0], operands[1]


def _load(registers: Registers, match: re.Match[str], operands: list[str]) -> None:
    (target, address), run, size = _two(match, operands), registers.run, int(match["bits"]) // 8
    names = _list(target)
    count = _count(match, names)
    memory = run.memory if match["space"] == "global" else run.shared
    raw = run.read(memory, registers.address(address), size * count, registers.predicate)
    lanes = raw.view(_UNSIGNED[8 * size])
    for number, name in enumerate(names):
        registers.write(name, lanes[:, number])


def _store(registers: Registers, match: re.Match[str], operands: list[str]) -> None:
    (address, listed), run, size = _two(match, operands), registers.run, int(match["bits"]) // 8
    names = _list(listed)
    _count(match, names)
    memory = run.memory if match["space"] == "global" else run.shared
    lanes = tuple(registers.read(name).astype(_UNSIGNED[8 * size]) for name in names)
    run.write(memory, registers.address(address), to_bytes(lanes, run.threads), registers.predicate)


def _copy(registers: Registers, _match: re.Match[str], operands: list[str]) -> None:
    """Run cp.async at once; where the size of the source is 0, zeros are written."""
    target, source, count, *source_size = operands
    # At once is one of the orders that hardware may take; waits are checked in Triton's own IR, not here.
    run, size = registers.run, int(count, 0)
    filled = run.spread(registers.read(source_size[0])).astype(np.int64) if source_size else run.spread(size)
    if len(source_size) > 1 or not np.isin(filled, (0, size)).all():
        raise UnsupportedIrError("cp.async of a part of its size, or with a hint")
    raw = run.read(run.memory, registers.address(source), size, registers.predicate & (filled > 0))
    run.write(run.shared, registers.address(target), raw, registers.predicate)


def _ldmatrix(registers: Registers, match: re.Match[str], operands: list[str]) -> None:
    names = _list(operands[0])
    _count(match, names)
    every = ldmatrix(
        registers.run, registers.address(operands[1]), len(names), transposed=bool(match["trans"])
    )
    for name, value in zip(names, every, strict=True):
        registers.write(name, value.view(np.uint32))


_TYPES = {
    "f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16), "tf32": np.dtype(np.float32),
    "f32": np.dtype(np.float32), "s8": np.dtype(np.int8), "s32": np.dtype(np.int32),
    "e4m3": np.dtype(ml_dtypes.float8_e4m3fn), "e5m2": np.dtype(ml_dtypes.float8_e5m2),
}  # fmt: skip


def _mma(registers: Registers, match: re.Match[str], operands: list[str]) -> None:
    result, left, right, more = (match[name] for name in ("d", "a", "b", "c"))
    if left != right or result != more or not {left, more} <= set(_TYPES):
        raise UnsupportedIrError(f"the instruction {match[0]}")
    parts = [tuple(registers.read(name) for name in _list(operand)) for operand in operands[1:4]]
    depth, size = int(match["k"]), _TYPES[left].itemsize
    # Over 32 lanes, A has 16 times K elements and B has K times 8; other numbers of registers are of another
    # shape.
    if len(parts[0]) * 4 != depth * size // 2 or len(parts[1]) * 8 != depth * size // 2:
        raise UnsupportedIrError(f"{match[0]} of {len(parts[0])} and {len(parts[1])} registers")
    rounds = left == "tf32" and registers.run.rounds
    of = _TYPES[left], _TYPES[more]
    every = mma(registers.run, (parts[0], parts[1], parts[2]), depth, *of, rounds=rounds)
    for name, value in zip(_list(operands[0]), every, strict=True):
        registers.write(name, value)


def _atom(registers: Registers, match: re.Match[str], operands: list[str]) -> None:
    kind, bits, size = match["op"], match["type"], int(match["bits"])
    signed = {"s": "i", "f": "f"}.get(bits, "u")
    # `.b`, which only cas, exch and the bitwise operations have, is as good as unsigned.
    dtype = np.dtype(f"{signed}{size // 8}")
    values = [
        registers.run.spread(registers.read(operand)).astype(_UNSIGNED[size]).view(dtype)
        for operand in operands[2:]
    ]

    def combine(before: Array, group: Array) -> Array:
        if kind == "cas":
            return np.where(before == values[0][group], values[1][group], before)
        return UPDATES[_UPDATE_NAMES[kind]](before, values[0][group])

    old = atomic(registers.run, registers.address(operands[1]), dtype, combine, registers.predicate)
    registers.write(operands[0], old.view(_UNSIGNED[size]))


# Commits and waits of cp.async: `_copy` has copied at once.
def _nothing(_registers: Registers, _found: re.Match[str], _operands: list[str]) -> None:
    pass


_UPDATE_NAMES = {
    "exch": AtomicBinOp.XCHG,
    "add": AtomicBinOp.ADD,
    "and": AtomicBinOp.AND,
    "or": AtomicBinOp.OR,
    "xor": AtomicBinOp.XOR,
    "max": AtomicBinOp.MAX,  # the dtype of the operands says whether they have a sign
    "min": AtomicBinOp.MIN,
}
_OPS = "|".join(("cas", *_UPDATE_NAMES))
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


@dataclass
class LockstepRun(ThreadBlock):
    """The run of one block of threads."""

    operations: ClassVar[OperationTable] = OperationTable.of(
        _PLAIN,
        operations.THREADED,
        intrinsics.THREADED,
        _INLINE,
    )

    def start(self, name: str, values: Values) -> None:
        """Run the kernel."""
        self.mask = np.ones(self.threads, np.bool_)
        with np.errstate(all="ignore"):
            self.call(name, values)

    def call(self, name: str, values: Values) -> Values:
        """Run a function with the threads that are active."""
        blocks = list(self.functions[name].regions[0].blocks)
        order = {block: number for number, block in enumerate(blocks)}
        active, results = self.mask, None
        self._set(blocks[0].args, values)
        waiting = {0: active}
        while waiting:
            # Of the blocks where threads wait, the first in the text runs next, with all that wait there: so
            # threads that diverged meet again where their paths join, and those that left a loop wait for the
            # others.
            number = min(waiting)
            self.mask = waiting.pop(number)
            terminator, operands = self._block(blocks[number])
            if name_of(terminator) in _RETURNS:
                # Threads may return at different places, each with a value of its own.
                results = operands if results is None else merge(self.mask, operands, results)
                continue
            for block, mask, arguments in self._ways(terminator, operands):
                self.mask = mask
                self._set(block.args, arguments)
                # Threads that wait there already are joined, and run as one from here on.
                at = order[block]
                waiting[at] = waiting[at] | mask if at in waiting else mask
        self.mask = active
        return results or ()

    def _block(self, block: Block) -> tuple[Operation, Values]:
        """Run a block, and return its terminator with the values of that one's operands."""
        for operation in block.ops:
            name = name_of(operation)
            values = self._operands(operation)
            if name in _BRANCHES or name in _RETURNS:
                return operation, values
            self._count()
            if (function := self.operations.get(name)) is None:
                raise UnsupportedIrError(name)
            self.name = name
            try:
                results = function(self, operation, *values)
            except RaceError as error:
                error.operation = operation
                raise
            except MISUSED as error:
                raise UnsupportedIrError(f"{name}: {error}") from error
            self._set(operation.results, results)
            if self.recorder is not None:
                self.recorder(operation, results)
        raise UnsupportedIrError("a block without an end")

    def _ways(self, terminator: Operation, values: Values) -> list[tuple[Block, Array, Values]]:
        """Return where the threads go on: the block, a mask of threads, and the block's arguments."""
        if len(terminator.successors) == 1:
            return [(terminator.successors[0], self.mask, values)]
        condition, if_true, if_false = bind(terminator, values, ("condition", "true*", "false*"))
        taken = np.broadcast_to(condition, self.threads)
        ways = (
            (terminator.successors[0], self.mask & taken, if_true),
            (terminator.successors[1], self.mask & ~taken, if_false),
        )
        return [way for way in ways if way[1].any()]

    def _set(self, names: Iterable[SSAValue], values: Iterable[Value]) -> None:
        """Set values for the active threads; the others keep what they had."""
        whole = bool(self.mask.all())
        for name, value in zip(names, values, strict=True):
            # Threads that are elsewhere keep their value, which they may read when they come back.
            old = None if whole else self._values.get(name)
            self._values[name] = value if old is None else merge(self.mask, value, old)


_ALIAS = re.compile(r"^#di_\w* = .*\n?", re.MULTILINE)  # debug information, which xDSL does not read


@dataclass(frozen=True)
class LoweredKernel:
    """A module in LLVM's dialect, without Triton's functions.

    Attributes:
        module: the parsed module.
        functions: its functions by name.
        main: the name of the kernel.
    """

    module: Operation
    functions: dict[str, Operation]
    main: str

    def run(
        self,
        values: Values,
        reference: GlobalMemory,
        program: tuple[int, int, int],
        grid: tuple[int, int, int],
        limit: int,
        recorder: Recorder | None = None,
        *,
        rounds: bool = False,
    ) -> GlobalMemory:
        """Run a block of threads on the reference's arguments; return its writes as the reference's elements.

        Raises:
            UnsupportedIrError: the kernel has an operation, a type or an access that is not known.
            RaceError: warps access the same shared memory without a barrier between them.
        """
        function = self.functions[self.main]
        parameters = function.regions[0].blocks[0].args
        scratch = parameters[len(values) :]
        if any(not isinstance(argument, np.ndarray) for argument in values) or any(
            llvm_type(str(parameter.type)).space != 1 for parameter in scratch
        ):
            raise UnsupportedIrError("parameters that are not those of Triton's IR")
        # Which thread writes last is undefined on a GPU, so either value is right.
        if reference.races.any:
            raise UnsupportedIrError("elements that one operation of the reference writes twice")
        memory = ByteMemory.of(reference, self._pointees())
        warp, warps = integer(self.module, "ttg.threads-per-warp"), integer(self.module, "ttg.num-warps")
        if not warp or not warps or integer(self.module, "ttg.num-ctas", 1) != 1:
            raise UnsupportedIrError("a cluster of blocks, or an unknown number of threads")
        if integer(self.module, "ttg.total-num-warps", warps) != warps:
            raise UnsupportedIrError("warp specialization")
        shared = SharedMemory(integer(self.module, "ttg.shared"))
        run = LockstepRun(
            self.functions,
            memory,
            program,
            grid,
            limit,
            recorder=recorder,
            rounds=rounds,
            shared=shared,
            threads=warp * warps,
            warp=warp,
        )
        # Further parameters point to scratch memory, whose regions are no argument's: nothing in them is a
        # result.
        scratch_values = tuple(
            np.asarray(np.int64(base(number))) for number in range(len(values), len(parameters))
        )
        run.start(self.main, (*values, *scratch_values))
        return memory.result(len(values))

    def _pointees(self) -> tuple[np.dtype[Any] | None, ...]:
        """Return the dtype that each parameter points to; None where the attributes do not say."""
        hints = attribute(self.functions[self.main], "arg_attrs")
        dtypes: list[np.dtype[Any] | None] = []
        for hint in hints.data if isinstance(hints, builtin.ArrayAttr) else ():
            spelling = str(hint.data.get("tt.pointee_type", ""))
            try:
                dtypes.append(element_type(spelling))
            except UnsupportedIrError:
                dtypes.append(None)
        return tuple(dtypes)


def lowered(raw: str) -> LoweredKernel | None:
    """Parse a module in generic form; None if it has no functions of LLVM's dialect.

    Raises:
        FactError: xDSL cannot parse it.
        SmithError: the module has no kernel, or more than one.
    """
    module = parse(_ALIAS.sub("", without_locations(raw)))
    functions = {
        text(attribute(function, "sym_name")).strip('"'): function
        for function in module.walk()
        if name_of(function) in ("llvm.func", "tt.func")
    }
    shown = [
        name
        for name, function in functions.items()
        if function.regions[0].blocks and "internal" not in str(attribute(function, "linkage"))
    ]
    if not functions:
        return None
    if len(shown) != 1:
        raise SmithError("the module has no kernel, or more than one", why=", ".join(functions))
    return LoweredKernel(module, functions, shown[0])
