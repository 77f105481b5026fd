"""Find global memory that is read or written element by element."""

from __future__ import annotations

from collections.abc import Iterator

from tritonsmith.inspect.lint.compiled import CompiledPoint
from tritonsmith.inspect.lint.finding import LintFinding, StageLine, rules
from tritonsmith.ir.ttgir import MlirOperation, Strides, Tensor

_ACCESSES = ("tt.load", "tt.store", "async_copy_global_to_local")
_WIDEST = 128  # bits of one instruction
_SECTOR = 256  # bits of memory that are moved together


def uncoalesced(one: CompiledPoint) -> Iterator[LintFinding]:
    """Yield accesses without any dimension that is contiguous in memory."""
    for operation, tensor, strides, line in _known(one):
        sized = [stride for stride, size in zip(strides, tensor.shape, strict=True) if size > 1]
        apart = [
            stride for stride in sized if not isinstance(stride, int) or abs(stride) * tensor.bits >= _SECTOR
        ]
        if len(apart) < len(sized) or not sized or (len(sized) == 1 and not operation.loop):
            continue
        if (narrow := _scalar(one, operation, tensor)) is None:
            continue
        distances = " and ".join(f"{stride} elements" for stride in sized)
        what = f"neighbours of a {_shape(tensor)} {_verb(operation)} lie {distances} apart"
        yield LintFinding(rules()["uncoalesced-access"], what, (line, narrow))


def scalar(one: CompiledPoint) -> Iterator[LintFinding]:
    """Yield accesses that have a contiguous dimension, but move one element at a time."""
    threads = one.ttgir.threads
    for operation, tensor, strides, line in _known(one):
        runs = [size for stride, size in zip(strides, tensor.shape, strict=True) if stride == 1]
        if not runs or not threads:
            continue
        possible = min(_WIDEST // tensor.bits, tensor.size // threads, max(runs))
        if possible < 2 or (narrow := _scalar(one, operation, tensor)) is None:  # noqa: PLR2004
            continue
        what = (
            f"a {_shape(tensor)} {_verb(operation)} moves {tensor.bits} bits at a time; {max(runs)} elements "
            f"lie side by side, and each thread has {tensor.size // threads}"
        )
        yield LintFinding(rules()["scalar-access"], what, (line, narrow))


def _known(one: CompiledPoint) -> Iterator[tuple[MlirOperation, Tensor, Strides, StageLine]]:
    """Yield accesses whose addresses are understood, one per Python line."""
    origins = set()
    for operation in one.ttgir.named(*_ACCESSES):
        tensor = one.ttgir.tensor(operation, 0)
        line = one.ttgir_line(operation.number)
        if tensor is None or "ptr" not in tensor.element or not tensor.bits or line.origin in origins:
            continue
        strides = one.ttgir.strides(operation.operands[0], operation.number)
        if strides is None or len(strides) != len(tensor.shape):
            continue
        origins.add(line.origin)
        yield operation, tensor, strides, line


def _scalar(one: CompiledPoint, operation: MlirOperation, tensor: Tensor) -> StageLine | None:
    """Return the first instruction of an access if none of them moves more than one element, else None."""
    accesses = one.accesses_of(operation)
    if not accesses or max(bits for _, bits in accesses) > tensor.bits:
        return None
    return accesses[0][0]


def _shape(tensor: Tensor) -> str:
    return "x".join(map(str, tensor.shape))


def _verb(operation: MlirOperation) -> str:
    return "store" if operation.name == "tt.store" else "load"
