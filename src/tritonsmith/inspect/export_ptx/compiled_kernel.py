"""Load a compiled kernel for export, inline its calls, and find the statements that cannot be inlined.

It comes from a folder of `kernel.compile`, or from a `.ptx` file and its metadata.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

from tritonsmith.compiler import manifest
from tritonsmith.compiler.manifest import Manifest, Point
from tritonsmith.core import configs, untrusted
from tritonsmith.core.errors import FactError, SmithError, UsageError, did_you_mean
from tritonsmith.ir import ptx
from tritonsmith.ir.ptx import (
    Close,
    Declaration,
    Directive,
    Function,
    Instruction,
    Label,
    Module,
    Named,
    Open,
    Statement,
    Token,
    width,
)

_DEFAULT_WARPS = 4  # Triton's

_WARP = 32  # threads

# Statements that a kernel may grow to by inlined calls. Each level of calls may double the text, so a small
# file could otherwise fill the memory.
_MOST_STATEMENTS = 200_000

_SHOWN = 5  # reasons in an error message

_DROPPED = ("loc", "file")  # source locations: their file numbers mean other files in another module

_KEPT = ("pragma", "branchtargets")

_IN_BODIES = ("reg", "local", "shared", "param")  # `param` belongs to a call, which is refused itself


@dataclass(frozen=True)
class KernelArgument:
    """A parameter of the Python function that the compiled kernel still has.

    Attributes:
        name: the Python name.
        type: the type as Triton spells it: `*fp32`, `i32`.
    """

    name: str
    type: str


@dataclass(frozen=True)
class CompiledKernel:
    """One compiled kernel and its metadata.

    Attributes:
        path: the PTX file.
        module: the parsed PTX.
        entry: the kernel in it.
        metadata: Triton's metadata; empty if there is none.
        arguments: the arguments of the Python signature; None if unknown, or if they do not fit the PTX.
        scratch: the names of the parameters that Triton appended, in order.
        triton: the version that compiled it, or empty.
        source: the Python file, or empty.
    """

    path: Path
    module: Module
    entry: Function
    metadata: Mapping[str, Any]
    arguments: tuple[KernelArgument, ...] | None
    scratch: tuple[str, ...]
    triton: str
    source: str

    @property
    def shared(self) -> int | None:
        """The bytes of dynamic shared memory; None if unknown."""
        known = self.metadata.get("shared")
        return known if isinstance(known, int) else None

    @property
    def threads(self) -> tuple[int, ...]:
        """The threads of a block, by dimension: as the PTX requires, or else by Triton's number of warps."""
        # Older Tritons write .maxntid, newer ones .reqntid. Warp specialization launches more warps
        # than the option num_warps says.
        for name in ("reqntid", "maxntid"):
            if numbers := self.entry.directives.get(name):
                return numbers
        return (int(self.metadata.get("num_warps", _DEFAULT_WARPS)) * _WARP,)


def from_ptx(path: Path, metadata: Path | None = None) -> CompiledKernel:
    """Load a `.ptx` file and Triton's `NAME.json`; by default the one beside it, if there is one.

    Raises:
        FactError: it is no PTX, has not exactly one kernel, or its metadata cannot be read.
    """
    beside = path.with_suffix(".json")
    chosen = metadata or (beside if beside.is_file() else None)
    # Triton's metadata has no signature, so the parameters of a bare file stay without their Python names.
    known = _read_metadata(chosen) if chosen else {}
    return _parse(path, known, None, str(known.get("triton_version", "")), "")


def from_folder(manifest: Manifest, point: Point) -> CompiledKernel:
    """Load a point of a folder that `kernel.compile --out` wrote.

    Raises:
        FactError: the point has no PTX.
    """
    path = manifest.path(point, "ptx")
    if path is None:
        why = point.error or f"its stages: {', '.join(point.stages) or 'none'}"
        hint = "inline assembly needs a CUDA target: invoke kernel.compile --target cuda:90"
        raise FactError(f"the point {point.id} has no PTX", where=manifest.folder, why=why, hints=[hint])
    # Constants, and integers that are specialized to 1, are no parameters of the compiled kernel.
    left = [
        KernelArgument(name, kind)
        for name, kind in point.signature.items()
        if kind != "constexpr" and name not in point.constexprs and point.hints.get(name) != 1
    ]
    return _parse(path, point.metadata, tuple(left), manifest.triton, manifest.file)


def choose(manifest: Manifest, point_id: str | None) -> Point:
    """Select a point by its id, which may be omitted if only one point has PTX.

    Raises:
        UsageError: there is no such point, or there are several to choose from.
    """
    if point_id is not None:
        for point in manifest.points:
            if point.id == point_id:
                return point
        names = [point.id for point in manifest.points]
        raise UsageError(f"no point {point_id!r} in {manifest.folder}", hints=did_you_mean(point_id, names))
    able = [point for point in manifest.points if "ptx" in point.stages]
    if len(able) == 1:
        return able[0]
    if not able:
        hints = ["invoke kernel.compile FILE:KERNEL --target cuda:90 --out DIR"]
        raise UsageError(f"no point in {manifest.folder} has PTX", hints=hints)
    hints = ["choose one: --point ID", f"points with PTX: {', '.join(point.id for point in able)}"]
    raise UsageError(f"{len(able)} points in {manifest.folder} have PTX", hints=hints)


def load(source: Path, *, point: str | None = None, metadata: Path | None = None) -> CompiledKernel:
    """Load a kernel from a folder or a `.ptx` file.

    Raises:
        FactError: it is neither.
        UsageError: there is no such point, or a flag belongs to the other kind.
    """
    if source.is_dir():
        if metadata is not None:
            raise UsageError(
                "--metadata is only for a .ptx file", hints=["the folder's manifest contains the metadata"]
            )
        folder_manifest = manifest.read(source)
        return from_folder(folder_manifest, choose(folder_manifest, point))
    if point is not None:
        raise UsageError("--point is only for a folder of kernel.compile", hints=["omit --point"])
    return from_ptx(source, metadata)


def _parse(
    path: Path, metadata: Mapping[str, Any], left: tuple[KernelArgument, ...] | None, triton: str, source: str
) -> CompiledKernel:
    module = ptx.read(path)
    # A kernel of Triton's is a module of one entry. With several, as nvcc writes them, no metadata would tell
    # which is meant.
    entries = [function for function in module.functions if function.entry and function.body is not None]
    if len(entries) != 1:
        names = ", ".join(function.name for function in entries) or "none"
        raise FactError(
            "inline assembly needs a PTX file with exactly one kernel",
            where=path,
            why=f"its kernels: {names}",
        )
    entry = entries[0]
    scratch = _scratch(metadata, entry)
    fits = left is not None and len(left) == len(entry.params) - len(scratch) and all(map(_is_scalar, left))
    return CompiledKernel(path, module, entry, metadata, left if fits else None, scratch, triton, source)


def _is_scalar(argument: KernelArgument) -> bool:
    """Report whether an argument is one parameter of the PTX."""
    # A tuple becomes several, and so does a descriptor, with shape and strides: names can then no
    # longer be given to parameters by counting.
    return re.fullmatch(r"\**[a-z]\w*", argument.type) is not None


def _scratch(metadata: Mapping[str, Any], entry: Function) -> tuple[str, ...]:
    rows = configs.load("ptx")["scratch"]
    # Triton appends these pointers after the user's arguments, always in the order of the rows.
    names = tuple(row["name"] for row in rows if row["metadata"] in metadata)
    pointers = entry.params[len(entry.params) - len(names) :]
    return names if len(pointers) == len(names) else ()


def _read_metadata(path: Path) -> dict[str, Any]:
    try:
        content = untrusted.read_json(path)
    except (OSError, ValueError) as error:
        raise FactError("cannot read this metadata", where=path, why=str(error)) from error
    if not isinstance(content, dict):
        hint = "give Triton's NAME.json, which is next to NAME.ptx in its cache"
        raise FactError("this file is not the metadata of a kernel", where=path, hints=[hint])
    return content


def expand_calls(function: Function, module: Module) -> Function:
    """Return a function with the bodies of its callees inlined; a call that cannot be replaced is kept."""
    # A compiler writes a call as a scope that declares parameters, stores to them, calls, and loads the
    # result. The parameters become registers of that scope, and the body becomes a scope inside it. A call of
    # any other form stays a call, which `find_refusals` then reports with its line.
    known = {
        candidate.name: candidate
        for candidate in module.functions
        if candidate.body is not None and not candidate.entry
    }
    body, numbers, tried = list(function.body or ()), count(), 0
    # Counted from the end, because everything before a place keeps growing while bodies are put in.
    above: list[tuple[int, str]] = []  # end of each inlined body, and its name
    while (at := next((at for at in range(tried, len(body)) if _is_call(body[at])), None)) is not None:
        tried = at + 1
        above = [(left, name) for left, name in above if left < len(body) - at]
        called = _called(body[at])
        callee = known.get(called[0]) if called else None
        # A function that is inlined around this place already is recursive: it stays a call.
        if called is None or callee is None or callee.name in {name for _, name in above}:
            continue
        first, last = _call_scope(body, at)
        put = _inlined(body[first:last], callee, called[1], f"call{next(numbers)}")
        if put is None or len(body) + len(put) > _MOST_STATEMENTS:
            continue
        above.append((len(body) - last, callee.name))
        body[first:last] = put
        # The inlined body may have calls of its own: go on at its beginning.
        tried = first
    return replace(function, body=tuple(body))


def _call_scope(body: Sequence[Statement], at: int) -> tuple[int, int]:
    """Return the begin and the end of the innermost scope around a place, without its braces."""

    def until(edge: type[Statement], other: type[Statement], places: Iterable[int], end: int) -> int:
        depth = 0
        for place in places:
            if isinstance(body[place], edge) and not depth:
                return place
            depth += isinstance(body[place], other) - isinstance(body[place], edge)
        return end

    last = until(Close, Open, range(at, len(body)), len(body))
    return until(Open, Close, range(at, -1, -1), -1) + 1, last


def _is_call(statement: Statement) -> bool:
    return isinstance(statement, Instruction) and statement.parts[0] == "call"


def _called(statement: Statement) -> tuple[str, tuple[str, ...]] | None:
    """Return the function's name and its arguments, results first; None for a call of another form."""
    if not isinstance(statement, Instruction) or statement.guard:
        return None
    lists: list[list[str]] = []
    name, inside = "", False
    for word in statement.operands:
        if word.text == "(":
            inside = True
            lists.append([])
        elif word.text == ")":
            inside = False
        elif word.kind == "name" and inside:
            lists[-1].append(word.text)
        elif word.kind == "name" and name:
            return None  # a prototype: the function is known at run time only
        elif word.kind == "name":
            name = word.text
    return name, tuple(argument for words in lists for argument in words)


def _inlined(
    body: Sequence[Statement], callee: Function, given: tuple[str, ...], prefix: str
) -> list[Statement] | None:
    """Return the inside of a call's scope without the call; None if it has another form."""
    declared = {
        variable.name: width(statement.type)
        for statement in body
        if isinstance(statement, Declaration) and statement.space == "param"
        for variable in statement.names
        if variable.array is None
    }
    taken = [*callee.results, *callee.params]
    if sum(map(_is_call, body)) != 1 or len(taken) != len(given):
        return None
    if any(param.length is not None for param in taken):
        return None
    if any(declared.get(name) != param.bits for name, param in zip(given, taken, strict=True)):
        return None
    outside = {name: (f"{prefix}_{name}", bits) for name, bits in declared.items()}
    inside = {param.name: outside[name] for name, param in zip(given, taken, strict=True)}
    result: list[Statement] = []
    for statement in body:
        if isinstance(statement, Declaration) and statement.space == "param":
            names = tuple(Named(f"{prefix}_{variable.name}") for variable in statement.names)
            result.append(replace(statement, space="reg", modifiers=f".{statement.type}", names=names))
        elif _is_call(statement):
            put = _inlined_body(callee, inside, f"{prefix}_end", statement.line)
            if put is None:
                return None
            result += put
        elif (moved := _as_move(statement, outside)) is None:
            return None
        else:
            result.append(moved)
    return result


def _inlined_body(
    callee: Function, inside: Mapping[str, tuple[str, int]], end: str, line: int
) -> list[Statement] | None:
    result: list[Statement] = [Open(line)]
    for statement in callee.body or ():
        # A return leaves the function's scope only. Its guard and so its condition are kept.
        if isinstance(statement, Instruction) and statement.parts[0] == "ret":
            result.append(replace(statement, opcode="bra", operands=(Token("name", end, statement.line),)))
        elif (moved := _as_move(statement, inside)) is None:
            return None
        else:
            result.append(moved)
    return [*result, Close(line), Label(line, end)]


def _as_move(statement: Statement, registers: Mapping[str, tuple[str, int]]) -> Statement | None:
    """Turn a load or store of one of these parameters into a move; None if it has another form."""
    # Only whole values at offset 0, as compilers pass scalars. A part of a parameter would need shifts
    # and masks: such a call stays, and is reported.
    if not isinstance(statement, Instruction):
        return statement
    if not any(word.text in registers for word in statement.operands):
        return statement
    words = [word for word in statement.operands if not word.blank]
    texts = [word.text for word in words]
    loads = statement.opcode.startswith("ld.param")
    if not loads and not statement.opcode.startswith("st.param"):
        return None
    address = texts[2:] if loads else texts[:-2]
    other = words[0] if loads else words[-1]
    name = address[1] if len(address) > 1 else ""
    plain = address in (["[", name, "]"], ["[", name, "+", "0", "]"])
    register, bits = registers.get(name, ("", 0))
    if not plain or bits != width(statement.parts[-1]) or "," not in (texts[1], texts[-2]):
        return None
    own = Token("name", register, statement.line)
    comma, blank = Token("mark", ",", statement.line), Token("space", " ", statement.line)
    operands = (other, comma, blank, own) if loads else (own, comma, blank, other)
    return replace(statement, opcode=f"mov.b{bits}", operands=operands)


class UnsupportedPtxError(SmithError):
    """A kernel that cannot be expressed as inline assembly."""


@dataclass(frozen=True)
class Refusal:
    """A reason why a function cannot be inlined.

    Attributes:
        line: the line in the PTX.
        text: the text of the instruction, parameter or directive.
        what: the group that it belongs to: `tensor maps`.
        why: the reason why it cannot be inlined.
        hints: things to try.
    """

    line: int
    text: str
    what: str
    why: str
    hints: tuple[str, ...] = ()


def unsupported(name: str, where: object, refusals: list[Refusal]) -> UnsupportedPtxError:
    """Return the error about a kernel, with the first of its reasons and the lines of the next ones.

    Args:
        name: the kernel's name.
        where: the PTX file.
        refusals: the reasons; at least one.
    """
    first = refusals[0]
    groups = list(dict.fromkeys(refusal.what for refusal in refusals))
    lines = [f"line {refusal.line}: {refusal.text}" for refusal in refusals[:_SHOWN]]
    if len(refusals) > _SHOWN:
        lines.append(f"and {len(refusals) - _SHOWN} more")
    return UnsupportedPtxError(
        f"{name} cannot be inlined: {', '.join(groups)}",
        where=f"{where}:{first.line}",
        why="\n".join([first.why, *lines]),
        hints=dict.fromkeys(hint for refusal in refusals for hint in refusal.hints),  # each once, in order
    )


def find_refusals(function: Function) -> list[Refusal]:
    """Return all reasons against a function that can be known before it is rewritten."""
    return [
        *_refuse_head(function),
        *(refusal for statement in function.body or () for refusal in _refuse_statement(statement)),
    ]


def _refuse_head(function: Function) -> Iterator[Refusal]:
    for group in _groups():
        for param in function.params:
            if param.length is not None and group.get("array_params"):
                yield _in_group(param.line, f".param .{param.type} {param.name}[{param.length}]", group)
        for name, values in function.directives.items():
            if name not in group.get("directives", ()):
                continue
            numbers = ", ".join(map(str, values))
            yield _in_group(function.placed[name], f".{name} {numbers}".strip(), group)


def _refuse_statement(statement: Statement) -> Iterator[Refusal]:
    if isinstance(statement, Instruction):
        for group in _groups():
            # One reason per instruction: groups overlap, as opcodes and modifiers of one instruction may be
            # in two of them.
            if _forbids(group, statement):
                yield _in_group(statement.line, str(statement), group)
                return
    elif isinstance(statement, Directive) and statement.name not in (*_DROPPED, *_KEPT):
        why = "this directive may have another meaning inside a function"
        yield Refusal(statement.line, f".{statement.name}", "directives of an entry", why)
    elif isinstance(statement, Declaration) and statement.space not in _IN_BODIES:
        why = "a variable of this state space belongs to a module"
        names = ", ".join(variable.name for variable in statement.names)
        yield Refusal(statement.line, f".{statement.space} {names}", "variables of a module", why)


def _forbids(group: dict[str, Any], instruction: Instruction) -> bool:
    # The dots keep `bar` from matching `barrier`: rows name whole parts of an opcode.
    opcode = f"{instruction.opcode}."
    if any(opcode.startswith(f"{first}.") for first in group["opcodes"]):
        return True
    if set(group.get("modifiers", ())) & set(instruction.parts[1:]):
        return True
    registers = group.get("registers", ())
    return any(word.kind == "name" and word.text[1:] in registers for word in instruction.operands)


def _in_group(line: int, text: str, group: dict[str, Any]) -> Refusal:
    return Refusal(line, text, group["what"], group["why"], tuple(group["hints"]))


def _groups() -> list[dict[str, Any]]:
    groups: list[dict[str, Any]] = configs.load("ptx")["refused"]
    return groups
