"""Export a compiled kernel as inline assembly: `kernel.export --as ptx`.

It becomes a function of CUDA C++, alone or in a header whose kernel calls it. A function of registers only
can instead become the string for Triton's `tl.inline_asm_elementwise`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tritonsmith.compiler import run
from tritonsmith.compiler.interpreter import Interpreter
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.core import configs
from tritonsmith.core.errors import SmithError, UsageError, did_you_mean
from tritonsmith.core.plan import Plan, Write
from tritonsmith.inspect.export_ptx import compiled_kernel, rewrite
from tritonsmith.inspect.export_ptx.compiled_kernel import CompiledKernel, KernelArgument, Refusal
from tritonsmith.inspect.export_ptx.rewrite import AsmVariable, Operand
from tritonsmith.ir.ptx import Function, Instruction, Module, Param


def compile_point(request: CompileRequest, where: Interpreter, point: str | None) -> CompiledKernel:
    """Compile a kernel, and select the point.

    Raises:
        SmithError: it does not compile, or several points have PTX and none is named.
    """
    # A sweep over targets may have points of other vendors, which never have PTX.
    manifest = run.compile_all(replace(request, stages=()), where)
    broken = [
        candidate for candidate in manifest.points if candidate.status != "ok" and candidate.backend == "cuda"
    ]
    if broken and len(broken) == sum(candidate.backend == "cuda" for candidate in manifest.points):
        raise SmithError(
            f"{manifest.kernel} did not compile", where=manifest.folder, why=broken[0].error or None
        )
    return compiled_kernel.from_folder(manifest, compiled_kernel.choose(manifest, point))


def exported(compiled: CompiledKernel, function: str, *, header: bool, for_triton: bool) -> str:
    """Return the function of inline assembly, alone or in a `.cuh` that compiles; or the string for Triton.

    Args:
        compiled: the kernel.
        function: with `for_triton`, the function to convert; empty for the only one.
        header: return a complete `.cuh`.
        for_triton: return the string for `tl.inline_asm_elementwise`.

    Raises:
        UnsupportedPtxError: no inline assembly can hold the kernel or the function.
    """
    if for_triton:
        return elementwise(compiled.module, compiled.path, function or None).python()
    inlined = inline(compiled)
    return cuh(inlined) if header else inlined.function


def plan(text: str, out: Path) -> Plan:
    """Return a plan that writes the text into a file."""
    return Plan(f"write {out.name}", (Write(out, text, phase="inline PTX"),))


# Bytes of dynamic shared memory that a launch gets unasked (CUDA C++ Programming Guide).
STATIC_SHARED = 48 << 10

# Bytes. The widest swizzle of wgmma and tcgen05 repeats every 1024 bytes and uses address bits, so
# Triton's offsets in shared memory are right only from such an address on.
_ALIGN = 1024

_ELEMENTS = {8: "unsigned char", 16: "unsigned short", 32: "unsigned int", 64: "unsigned long long"}


@dataclass(frozen=True)
class CudaParameter:
    """A parameter of the C++ function.

    Attributes:
        name: the name in C++.
        type: the type in C++.
        symbol: the name in PTX.
        value: the C++ expression for the operand.
        header: the header that declares its type, or None.
    """

    name: str
    type: str
    symbol: str
    value: str
    header: str | None


@dataclass(frozen=True)
class Inlined:
    """A kernel as CUDA C++.

    Attributes:
        compiled: the kernel that it was made from; the calls in its entry are expanded.
        name: the function's name.
        parameters: the function's parameters, without the shared memory.
        shared: the function takes the address of dynamic shared memory.
        scratch: the names of appended parameters that the kernel uses, and the function therefore has.
        function: the function's text, with the constants that it needs.
    """

    compiled: CompiledKernel
    name: str
    parameters: tuple[CudaParameter, ...]
    shared: bool
    scratch: tuple[str, ...]
    function: str


def cuh(inlined: Inlined) -> str:
    """Return a complete `.cuh`: a comment, the function, and a kernel of Triton's name that calls it."""
    compiled = inlined.compiled
    kernel = _identifier(compiled.entry.name)
    headers = sorted({parameter.header for parameter in inlined.parameters if parameter.header})
    taken = ", ".join(f"{parameter.type} {parameter.name}" for parameter in inlined.parameters)
    arguments = [parameter.name for parameter in inlined.parameters]
    lines = ["#pragma once", "", *_head_comment(inlined), ""]
    lines += [*(f"#include <{name}>" for name in headers), ""] if headers else []
    lines += [inlined.function]
    if inlined.shared:
        memory = f"{kernel}_shared"
        arguments.append(memory)
        # Named after the kernel: two declarations of one extern array with different types do not
        # compile in one file, and users have arrays of their own.
        lines += [f"extern __shared__ __align__({_ALIGN}) unsigned char {memory}[];", ""]
    lines += [
        f'extern "C" __global__ void __launch_bounds__({_bounds(compiled)}) {kernel}({taken}) {{',
        f"  {inlined.name}({', '.join(arguments)});",
        "}",
    ]
    return "\n".join(lines) + "\n"


def inline(compiled: CompiledKernel) -> Inlined:
    """Return the function of inline assembly.

    Raises:
        UnsupportedPtxError: no inline assembly can hold the kernel; the error names the instruction and line.
        FactError: the PTX does not have the form that compilers write.
    """
    entry = compiled_kernel.expand_calls(compiled.entry, compiled.module)
    refusals = compiled_kernel.find_refusals(entry)
    if refusals:
        raise compiled_kernel.unsupported(entry.name, compiled.path, refusals)
    surroundings = rewrite.surroundings_of(entry, compiled.module, compiled.path)
    block = rewrite.rewrite(entry, surroundings, rewrite.CUDA)
    if block.refused:
        raise compiled_kernel.unsupported(entry.name, compiled.path, list(block.refused))
    used = {operand.symbol for operand in surroundings.operands}
    own = len(entry.params) - len(compiled.scratch)
    appended = zip(compiled.scratch, entry.params[own:], strict=True)
    # Triton appends scratch pointers to every kernel; callers should only pass those that are read.
    scratch = tuple(name for name, param in appended if param.name in used)
    parameters = _parameters(compiled, used)
    name = f"{_identifier(entry.name)}_inline"
    dynamic = surroundings.dynamic is not None
    text = _function_text(name, parameters, surroundings.operands, block.lines, shared=dynamic)
    return Inlined(replace(compiled, entry=entry), name, parameters, dynamic, scratch, text)


def _parameters(compiled: CompiledKernel, used: set[str]) -> tuple[CudaParameter, ...]:
    params = compiled.entry.params
    own = len(params) - len(compiled.scratch)
    # Appended pointers come last, so that a parameter of the user's keeps its name if both have it.
    names: set[str] = {"shared_memory"}
    result = []
    for number, param in enumerate(params[:own]):
        argument = compiled.arguments[number] if compiled.arguments else None
        name = _free(_identifier(argument.name if argument else f"arg{number}"), names)
        result.append(_parameter(name, argument, param))
    for name, param in zip(compiled.scratch, params[own:], strict=True):
        if param.name in used:
            free = _free(name, names)
            result.append(CudaParameter(free, "void*", param.name, free, None))
    return tuple(result)


def _parameter(name: str, argument: KernelArgument | None, param: Param) -> CudaParameter:
    kind = argument.type if argument else "*" * param.pointer
    stars = kind.count("*")
    row = configs.load("ptx")["types"].get(kind.lstrip("*"))
    if row is None:  # not known, or a type of a newer Triton
        c_type = "void*" if stars else rewrite.constraint(param.type)[1]
        return CudaParameter(name, c_type, param.name, _bits(name, {}, param), None)
    if stars:
        return CudaParameter(name, f"{row['c']}{'*' * stars}", param.name, name, row.get("header"))
    return CudaParameter(name, row["c"], param.name, _bits(name, row, param), row.get("header"))


def _bits(name: str, row: dict[str, Any], param: Param) -> str:
    """Return an expression with the bits of a scalar, in a register of the operand's width."""
    value = str(row["bits"]).format(name) if "bits" in row else name
    if param.bits == 8:  # noqa: PLR2004 - no operand is that narrow; what loads it, extends it
        return f"static_cast<unsigned short>(static_cast<unsigned char>({value}))"
    return value


def _function_text(
    name: str,
    parameters: tuple[CudaParameter, ...],
    operands: tuple[Operand, ...],
    lines: tuple[str, ...],
    *,
    shared: bool,
) -> str:
    values = {parameter.symbol: parameter.value for parameter in parameters}
    taken = [f"{parameter.type} {parameter.name}" for parameter in parameters]
    if shared:
        taken.append("void* shared_memory")
    constants: list[str] = []
    inputs: list[str] = []
    for operand in operands:
        if operand.kind == "shared":
            # A generic pointer is 64 bits wide; instructions on shared memory take 32-bit addresses.
            value = "static_cast<unsigned int>(__cvta_generic_to_shared(shared_memory))"
        elif operand.variable is not None:
            constant = f"{name}_{len(constants)}"
            constants.append(_constant_text(constant, operand.variable))
            value = f"__cvta_generic_to_global({constant})"
        else:
            value = values[operand.symbol]
        inputs.append(f'"{operand.letter}"({value})')
    # volatile and the clobber: the result is in memory, which the compiler cannot see. Without them it
    # may move or drop the block.
    body = "\n".join(f'    "{_quoted(line)}\\n\\t"' for line in lines[:-1])
    return (
        "".join(f"{text}\n\n" for text in constants)
        + f"__device__ __forceinline__ void {name}({', '.join(taken)}) {{\n"
        + f'  asm volatile(\n{body}\n    "{lines[-1]}"\n'
        + f'    :\n    : {", ".join(inputs)}\n    : "memory");\n}}\n'
    )


def _constant_text(name: str, variable: AsmVariable) -> str:
    values = ", ".join(map(str, variable.values)) or "0"
    kind = _ELEMENTS[variable.bits]
    return (
        f"// {variable.name}\nstatic __device__ __align__({variable.align}) {kind} "
        f"{name}[{variable.length}] = {{{values}}};"
    )


def _bounds(compiled: CompiledKernel) -> str:
    blocks = compiled.entry.directives.get("minnctapersm", ())
    return ", ".join(map(str, (math.prod(compiled.threads), *blocks[:1])))


def _head_comment(inlined: Inlined) -> list[str]:
    compiled = inlined.compiled
    where = f" of {Path(compiled.source).name}" if compiled.source else ""
    target, version = compiled.module.target, compiled.module.version
    triton = f"Triton {compiled.triton}" if compiled.triton else "a Triton of unknown version"
    block = " x ".join(map(str, (*compiled.threads, 1, 1)[:3]))
    lines = [
        f"{compiled.entry.name}{where}, compiled by {triton}.",
        "",
        f"target  {target}: nvcc -arch={target}{_flags(compiled)}, from a CUDA that supports PTX {version}",
        f"block   {block} threads, all of which must call {inlined.name}",
        f"grid    as for Triton; the kernel reads its program ids in {_grid_axes(compiled)}",
        f"shared  {_shared_line(inlined)}",
    ]
    for name in inlined.scratch:
        size = compiled.metadata.get(f"{name}_size", "unknown")
        lines.append(f"scratch {name}: {size} bytes of global memory per block of the grid")
    if compiled.arguments is None:
        lines.append("types   from the PTX: the Python signature is unknown")
    lines += ["", "Written by tritonsmith kernel.export --as ptx; include it in one file."]
    return ["/*", *(f" * {line.replace('*/', '* /')}".rstrip() for line in lines), " */"]


def _flags(compiled: CompiledKernel) -> str:
    # ptxas fuses a multiplication with an addition wherever neither names a rounding mode, in inline
    # assembly, too. The register limit is a property of the kernel that the block lands in.
    flags = ""
    if compiled.metadata.get("enable_fp_fusion") is False:
        flags += " -fmad=false"
    if registers := compiled.entry.directives.get("maxnreg"):
        flags += f" -maxrregcount={registers[0]}"
    return flags


def _grid_axes(compiled: CompiledKernel) -> str:
    """Return the dimensions of the grid that the kernel reads."""
    axes = set()
    for statement in compiled.entry.body or ():
        if isinstance(statement, Instruction):
            text = "".join(word.text for word in statement.operands)
            axes |= set(re.findall(r"%(?:n?ctaid)\.([xyz])\b", text))
    return ", ".join(sorted(axes)) or "no dimension"


def _shared_line(inlined: Inlined) -> str:
    size = inlined.compiled.shared
    if not inlined.shared:
        return "none"
    if size is None:
        return "dynamic; the size is in Triton's metadata, which was not given"
    more = ""
    if size > STATIC_SHARED:
        kernel = _identifier(inlined.compiled.entry.name)
        more = f": cudaFuncSetAttribute({kernel}, cudaFuncAttributeMaxDynamicSharedMemorySize, {size}) first"
    return f"{size} bytes, dynamic{more}"


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _identifier(name: str) -> str:
    plain = re.sub(r"\W", "_", name, flags=re.ASCII)
    return f"{plain}_" if plain in configs.load("ptx")["reserved"]["words"] else plain


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name


_IMPURE = "not a pure register function"


@dataclass(frozen=True)
class Elementwise:
    """The arguments of `tl.inline_asm_elementwise`.

    Attributes:
        function: the name in the PTX.
        asm: the assembly.
        constraints: the constraints of the result and the arguments.
        arguments: the number of arguments.
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


def elementwise(module: Module, path: Path, name: str | None = None) -> Elementwise:
    """Return the string for a function of a module.

    Args:
        module: the module.
        path: the module's file, for errors.
        name: the function's name, or a part of it; may be omitted if there is only one.

    Raises:
        UsageError: there is no such function, or there are several to choose from.
        UnsupportedPtxError: its form does not allow it; the error names the reason.
    """
    function = compiled_kernel.expand_calls(_choose(module, path, name), module)
    refusals = [*compiled_kernel.find_refusals(function), *_find_effects(function)]
    if refusals:
        raise compiled_kernel.unsupported(function.name, path, refusals)
    surroundings = rewrite.surroundings_of(function, module, path)
    results = [operand for operand in surroundings.operands if operand.kind == "result"]
    inputs = [operand for operand in surroundings.operands if operand.kind == "param"]
    # An argument that the function does not read is still an operand of the call.
    letters = [rewrite.constraint(param.type)[0] for param in function.params]
    if len(results) != 1 or len(inputs) + 1 != len(surroundings.operands) or len(inputs) != len(letters):
        raise compiled_kernel.unsupported(function.name, path, [_refuse_shape(function)])
    block = rewrite.rewrite(function, surroundings, rewrite.LLVM)
    if block.refused:
        raise compiled_kernel.unsupported(function.name, path, list(block.refused))
    # &: the result is written before all arguments are read. Without it LLVM may give both one register.
    constraints = ",".join([f"=&{results[0].letter}", *letters])
    return Elementwise(function.name, "\n".join(block.lines), constraints, len(letters))


def _choose(module: Module, path: Path, name: str | None) -> Function:
    able = [candidate for candidate in module.functions if not candidate.entry and candidate.body is not None]
    fitting = [candidate for candidate in able if name in (None, candidate.name)]
    # Triton mangles the types of the arguments into the name, which nobody wants to type.
    fitting = fitting or [candidate for candidate in able if str(name) in candidate.name]
    if len(fitting) == 1:
        return fitting[0]
    if not able:
        kernels = [
            candidate for candidate in module.functions if candidate.entry and candidate.body is not None
        ]
        raise compiled_kernel.unsupported(
            kernels[0].name if kernels else "it", path, [_refuse_kernel(kernels)]
        )
    names = [candidate.name for candidate in able]
    if not fitting and name is not None:
        raise UsageError(f"no function {name!r} in {path}", hints=did_you_mean(name, names))
    raise UsageError(
        f"{len(names)} functions in {path}", hints=["choose one: --function NAME", ", ".join(names)]
    )


def _refuse_kernel(kernels: list[Function]) -> Refusal:
    # Only a function that Triton compiled on its own takes values and returns one.
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


def _find_effects(function: Function) -> Iterator[Refusal]:
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


def _refuse_shape(function: Function) -> Refusal:
    count = len(function.results)
    text = f".func {function.name} has {count} results and {len(function.params)} parameters"
    why = "exactly one result is required, and every parameter must be read"
    return Refusal(function.line, text, "its signature", why)
