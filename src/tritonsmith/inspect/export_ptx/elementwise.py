"""Convert a function of registers only into the string for Triton's `tl.inline_asm_elementwise`.

A kernel itself never has that form: it has no result, and only changes memory. A function that Triton
compiled on its own (`@triton.jit(noinline=True)`) has: it takes values and returns one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.core import configs
from tritonsmith.core.errors import UsageError, did_you_mean
from tritonsmith.inspect.export_ptx import inline_calls, operands, rewrite, unsupported
from tritonsmith.inspect.export_ptx.unsupported import Refusal
from tritonsmith.ir.ptx.syntax import Function, Instruction, Module

_IMPURE = "not a pure register function"


@dataclass(frozen=True)
class Elementwise:
    """The arguments of `tl.inline_asm_elementwise`.

    Attributes:
        function: name in the PTX.
        asm: the text.
        constraints: of the result and the arguments.
        arguments: number of arguments.
    """

    function: str
    asm: str
    constraints: str
    arguments: int

    def python(self) -> str:
        """Return Python source of the text and its constraints."""
        quoted = self.asm.replace("\\", "\\\\").replace('"""', '\\"""')
        return (
            f"# {self.function}: one result, {self.arguments} arguments\n"
            f'ASM = """\n{quoted}\n"""\nCONSTRAINTS = "{self.constraints}"\n'
        )


def convert(module: Module, path: Path, name: str | None = None) -> Elementwise:
    """Return the string for a function of a module.

    Args:
        module: the module.
        path: of the module, for errors.
        name: of the function, or a part of it; may be omitted if there is only one.

    Raises:
        UsageError: there is no such function, or there are several to choose from.
        UnsupportedPtxError: its form does not allow it; the error names the reason.
    """
    function = inline_calls.expand(_choose(module, path, name), module)
    refusals = [*unsupported.find(function), *_other(function)]
    if refusals:
        raise unsupported.error(function.name, path, refusals)
    surroundings = operands.of(function, module, path)
    results = [operand for operand in surroundings.operands if operand.kind == "result"]
    inputs = [operand for operand in surroundings.operands if operand.kind == "param"]
    # An argument that the function does not read is still an operand of the call.
    letters = [operands.constraint(param.type)[0] for param in function.params]
    if len(results) != 1 or len(inputs) + 1 != len(surroundings.operands) or len(inputs) != len(letters):
        raise unsupported.error(function.name, path, [_shape(function)])
    block = rewrite.rewrite(function, surroundings, rewrite.LLVM)
    if block.refused:
        raise unsupported.error(function.name, path, list(block.refused))
    constraints = ",".join([f"=&{results[0].letter}", *letters])  # &: written before all are read
    return Elementwise(function.name, "\n".join(block.lines), constraints, len(letters))


def _choose(module: Module, path: Path, name: str | None) -> Function:
    able = [candidate for candidate in module.functions if not candidate.entry and candidate.body is not None]
    fitting = [candidate for candidate in able if name in (None, candidate.name)]
    fitting = fitting or [candidate for candidate in able if str(name) in candidate.name]
    if len(fitting) == 1:
        return fitting[0]
    if not able:
        kernels = [
            candidate for candidate in module.functions if candidate.entry and candidate.body is not None
        ]
        raise unsupported.error(kernels[0].name if kernels else "it", path, [_of_kernel(kernels)])
    names = [candidate.name for candidate in able]
    if not fitting and name is not None:
        raise UsageError(f"no function {name!r} in {path}", hints=did_you_mean(name, names))
    raise UsageError(
        f"{len(names)} functions in {path}", hints=["choose one: --function NAME", ", ".join(names)]
    )


def _of_kernel(kernels: list[Function]) -> Refusal:
    why = "a kernel has no result; it only changes memory"
    hint = "compile the code to inline as a separate function: @triton.jit(noinline=True)"
    first = next(
        (
            instruction
            for kernel in kernels
            for instruction in _instructions(kernel)
            if _in_memory(instruction)
        ),
        None,
    )
    line = first.line if first else kernels[0].line if kernels else 1
    text = str(first) if first else "no instruction that uses memory"
    return Refusal(line, text, _IMPURE, why, (hint,))


def _other(function: Function) -> Iterator[Refusal]:
    forbidden = configs.load("ptx")["elementwise"]["opcodes"]
    for instruction in _instructions(function):
        if _in_memory(instruction):
            yield Refusal(instruction.line, str(instruction), _IMPURE, "it accesses memory")
        elif instruction.parts[0] in forbidden:
            yield Refusal(
                instruction.line, str(instruction), _IMPURE, "it has effects beyond computing a value"
            )


def _instructions(function: Function) -> Iterator[Instruction]:
    return (statement for statement in function.body or () if isinstance(statement, Instruction))


def _in_memory(instruction: Instruction) -> bool:
    """Report whether an instruction has an address other than a parameter's."""
    addressed = any(word.text == "[" for word in instruction.operands)
    return addressed and not instruction.opcode.startswith(("ld.param", "st.param"))


def _shape(function: Function) -> Refusal:
    count = len(function.results)
    text = f".func {function.name} has {count} results and {len(function.params)} parameters"
    why = "exactly one result is required, and every parameter must be read"
    return Refusal(function.line, text, "its signature", why)
