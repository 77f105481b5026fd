"""A function of registers only, as the string for Triton's `tl.inline_asm_elementwise`.

A kernel itself never has that form: it has no result, and only changes memory. What has that form
is a function that Triton compiled on its own (`@triton.jit(noinline=True)`): it takes values and returns one.
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
    """What `tl.inline_asm_elementwise` takes.

    Attributes:
        function: name in the PTX.
        asm: the text.
        constraints: of the result and the arguments.
        arguments: how many there are.
    """

    function: str
    asm: str
    constraints: str
    arguments: int

    def python(self) -> str:
        """As Python source: the text and its constraints."""
        quoted = self.asm.replace("\\", "\\\\").replace('"""', '\\"""')
        return (
            f"# {self.function}: one result, {self.arguments} arguments\n"
            f'ASM = """\n{quoted}\n"""\nCONSTRAINTS = "{self.constraints}"\n'
        )


def convert(module: Module, path: Path, name: str | None = None) -> Elementwise:
    """The string for a function of a module.

    Args:
        module: that has it.
        path: of the module, for errors.
        name: of the function, or a part of it; may be left out where there is one only.

    Raises:
        UsageError: no such function, or several to choose from.
        UnsupportedPtxError: its shape does not allow it; says why.
    """
    function = inline_calls.expand(_choose(module, path, name), module)
    found = [*unsupported.find(function), *_other(function)]
    if found:
        raise unsupported.error(function.name, path, found)
    given = operands.of(function, module, path)
    results = [one for one in given.operands if one.kind == "result"]
    inputs = [one for one in given.operands if one.kind == "param"]
    # An argument that the function does not read is an operand of the call all the same.
    letters = [operands.constraint(param.type)[0] for param in function.params]
    if len(results) != 1 or len(inputs) + 1 != len(given.operands) or len(inputs) != len(letters):
        raise unsupported.error(function.name, path, [_shape(function)])
    block = rewrite.rewrite(function, given, rewrite.LLVM)
    if block.refused:
        raise unsupported.error(function.name, path, list(block.refused))
    constraints = ",".join([f"=&{results[0].letter}", *letters])  # &: written before all are read
    return Elementwise(function.name, "\n".join(block.lines), constraints, len(letters))


def _choose(module: Module, path: Path, name: str | None) -> Function:
    able = [one for one in module.functions if not one.entry and one.body is not None]
    fitting = [one for one in able if name in (None, one.name)]
    fitting = fitting or [one for one in able if str(name) in one.name]
    if len(fitting) == 1:
        return fitting[0]
    if not able:
        kernels = [one for one in module.functions if one.entry and one.body is not None]
        raise unsupported.error(kernels[0].name if kernels else "it", path, [_of_kernel(kernels)])
    names = [one.name for one in able]
    if not fitting and name is not None:
        raise UsageError(f"no function {name!r} in {path}", hints=did_you_mean(name, names))
    raise UsageError(
        f"{len(names)} functions in {path}", hints=["choose one: --function NAME", ", ".join(names)]
    )


def _of_kernel(kernels: list[Function]) -> Refusal:
    why = "a kernel has no result; it only changes memory"
    hint = "compile the code to inline as a separate function: @triton.jit(noinline=True)"
    first = next((one for kernel in kernels for one in _instructions(kernel) if _in_memory(one)), None)
    line = first.line if first else kernels[0].line if kernels else 1
    text = str(first) if first else "no instruction that uses memory"
    return Refusal(line, text, _IMPURE, why, (hint,))


def _other(function: Function) -> Iterator[Refusal]:
    forbidden = configs.load("ptx")["elementwise"]["opcodes"]
    for one in _instructions(function):
        if _in_memory(one):
            yield Refusal(one.line, str(one), _IMPURE, "it accesses memory")
        elif one.parts[0] in forbidden:
            yield Refusal(one.line, str(one), _IMPURE, "it has effects beyond computing a value")


def _instructions(function: Function) -> Iterator[Instruction]:
    return (one for one in function.body or () if isinstance(one, Instruction))


def _in_memory(one: Instruction) -> bool:
    """An instruction with an address, other than a parameter's."""
    addressed = any(word.text == "[" for word in one.operands)
    return addressed and not one.opcode.startswith(("ld.param", "st.param"))


def _shape(function: Function) -> Refusal:
    count = len(function.results)
    text = f".func {function.name} has {count} results and {len(function.params)} parameters"
    why = "exactly one result is required, and every parameter must be read"
    return Refusal(function.line, text, "its signature", why)
