"""The grammar of signatures: upstream's tools/compile.py, plus names, tuples and defaults.

`*fp32:16,i32,1024` gives types, hints and constants in the order of the kernel's parameters, and
`*fp32:16,i32,BLOCK=1024` gives some of them by name. Values are numbers, words, dtypes and tuples; options
and sweeps of the command line spell them in the same way. A grid is an expression over the parameters.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tritonsmith.compiler.source import KernelParameter, KernelSource
from tritonsmith.core import configs, untrusted
from tritonsmith.core.errors import UsageError, did_you_mean
from tritonsmith.core.text import split_outside_brackets

CONSTEXPR = "constexpr"
DTYPE = "dtype"  # {"dtype": "float16"}: how JSON carries a value of tl.dtype
_VALUE = 1024  # of a block size, in examples
_NAMED = re.compile(r"([A-Za-z_]\w*)\s*=(?!=)\s*(.*)", re.DOTALL)
_LITERALS = {"none": None, "true": True, "false": False}
# A tuple of dtypes and integers, which Python's parser of literals refuses because of the names in it.
_DTYPES = re.compile(r"(?=.*tl\.)\((tl\.\w+|-?\d+)(,\s*(tl\.\w+|-?\d+))*,?\)")

_GRID = "--grid 'cdiv(M, BLOCK_M) * cdiv(N, BLOCK_N)'"
_FUNCTIONS: Mapping[str, Callable[..., int]] = {
    "cdiv": lambda size, block: -(-size // block),
    "next_power_of_2": lambda size: 1 << max(size - 1, 0).bit_length(),
    "min": min,
    "max": max,
    "abs": abs,
    "int": int,
}
_OPERATORS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
}


@dataclass
class BoundSignature:
    """A kernel's parameters with their types, values and hints.

    Attributes:
        signature: parameter to type as Triton spells it; `constexpr` for constants; `(i32,*fp32)` for tuples.
        constexprs: parameter, or `x.1` for a part of a tuple, to value.
        hints: parameter, or a part of a tuple, to 16 (divisible by it) or 1 (equal to it).
        ranges: pointers to memory that 32-bit offsets can address, for which AMD's backend emits buffer
            instructions.
    """

    signature: dict[str, str] = field(default_factory=dict)
    constexprs: dict[str, Any] = field(default_factory=dict)
    hints: dict[str, int] = field(default_factory=dict)
    ranges: list[str] = field(default_factory=list)

    def take(self, name: str, entry: str, parameter: KernelParameter | None = None) -> str:
        """Record an entry of a signature.

        Args:
            name: the parameter, or a part of a tuple.
            entry: its type with a hint, or its value.
            parameter: its declaration; None for a part of a tuple.

        Returns:
            The type.

        Raises:
            UsageError: the entry is neither a type nor a value for this parameter.
        """
        value = parse_value(entry)
        # A quoted text is a constant even where it spells a type: without the quotes it would be one.
        if not isinstance(value, str) or entry[:1] in "'\"":
            self.constexprs[name] = value
            return CONSTEXPR
        if parameter is not None and parameter.constexpr:
            if is_type(value):
                raise UsageError(
                    f"{name} is a tl.constexpr: it takes a value, not the type {value!r}",
                    hints=[f"give a value: {name}=64", f"for a string, use quotes: {name}='{value}'"],
                )
            self.constexprs[name] = value
            return CONSTEXPR
        if entry.startswith("(") and entry.endswith(")"):
            parts = split_values(entry[1:-1].removesuffix(","))
            types = [self.take(f"{name}.{number}", part) for number, part in enumerate(parts)]
            # As in Python: without its comma, a tuple of one is a type in parentheses.
            return f"({','.join(types)}{',' if len(types) == 1 else ''})"
        # Before the hint is split off: `:r32` would be taken for one, and refused.
        range_ = configs.load("kernels")["hints"]["range"]
        if entry.startswith("*") and entry.endswith(range_):
            entry = entry.removesuffix(range_)
            self.ranges.append(name)
        kind, hint = _hint(name, entry)
        if not is_type(kind):
            raise _unknown(name, kind)
        if hint is not None:
            self.hints[name] = hint
        return kind


def bind(
    signature: str, kernel: KernelSource, tuned: Mapping[str, Any], swept: Mapping[str, str]
) -> BoundSignature:
    """Match a signature with a kernel's parameters.

    Args:
        signature: its text.
        kernel: the kernel.
        tuned: values that a config of its autotuner sets.
        swept: entries that a sweep sets; they override the signature's.

    Raises:
        UsageError: a parameter is missing, unknown or set twice, or there are too many entries.
    """
    entries = assigned(signature, kernel) | dict(swept)
    # `BLOCK=constexpr` is how upstream's articles write it: it says how the value is passed, not what it is.
    unset = [name for name, entry in entries.items() if entry.removeprefix("tl.") == CONSTEXPR]
    entries = {name: entry for name, entry in entries.items() if name not in unset}
    twice = sorted(set(entries) & set(tuned) - set(swept))
    if twice:
        raise UsageError(
            f"both the signature and the configs of @triton.autotune set {', '.join(twice)}",
            hints=["remove them from the signature", "or omit --sweep autotune"],
        )
    bound = BoundSignature()
    missing = []
    for parameter in kernel.parameters:
        name = parameter.name
        if name in entries:
            bound.signature[name] = bound.take(name, entries[name], parameter)
        elif name in tuned or parameter.has_default:
            bound.signature[name] = CONSTEXPR
            bound.constexprs[name] = tuned.get(name, parameter.default)
        elif name in kernel.heuristics:
            # A heuristic is a function of the other arguments: the worker calls it, where Triton is.
            bound.signature[name] = CONSTEXPR
        else:
            missing.append(parameter)
    if lacking := [parameter for parameter in missing if parameter.name in unset]:
        raise _without_value(lacking, kernel, signature)
    if missing:
        raise _lacks(missing, kernel, signature)
    return bound


def without(signature: str, names: Container[str], kernel: KernelSource | None) -> str:
    """Remove the entries of some parameters from a signature; without the kernel, only those given by name.

    Raises:
        UsageError: the signature does not fit the kernel.
    """
    if kernel:
        return ",".join(
            f"{name}={entry}" for name, entry in assigned(signature, kernel).items() if name not in names
        )
    named = ((entry, _NAMED.fullmatch(entry)) for entry in split_values(signature))
    return ",".join(entry for entry, match in named if not match or match[1] not in names)


def is_type(text: str) -> bool:
    """Report whether Triton has a type of this name."""
    table = configs.load("kernels")["types"]
    if text in table["scalars"] or text in table["whole"]:
        return True
    if text.startswith(table["pointer"]):
        inner = text.removeprefix(table["pointer"])
        return is_type(inner) or is_type(inner.removeprefix(table["read-only"]))
    # What stands inside the brackets is left to Triton: its layouts change from release to release.
    return text.startswith(tuple(table["templates"])) and text.endswith(">") and "[" in text


def assigned(signature: str, kernel: KernelSource) -> dict[str, str]:
    """Return the entry of each parameter that a signature sets.

    Raises:
        UsageError: a parameter is unknown or set twice, or there are too many entries.
    """
    names = [parameter.name for parameter in kernel.parameters]
    by_parameter: dict[str, str] = {}
    # Counts entries without a name only: a named one before them does not shift their parameters.
    position = 0
    for part in split_values(signature):
        if named := _NAMED.fullmatch(part):
            name, entry = named.groups()
            if name not in names:
                raise UsageError(f"{kernel.name} has no parameter {name!r}", hints=did_you_mean(name, names))
        elif position >= len(names):
            raise _too_long(signature, kernel)
        else:
            name, entry = names[position], part
            position += 1
        if name in by_parameter:
            raise UsageError(f"the signature sets {name} twice", why=signature)
        if not entry:
            hints = ["an entry between two commas is empty"]
            raise UsageError(f"the signature has no type or value for {name}", hints=hints)
        by_parameter[name] = entry
    return by_parameter


def _hint(name: str, entry: str) -> tuple[str, int | None]:
    """Split `*fp32:16` into type and hint; the hint is None if there is none."""
    kind, colon, hint = entry.rpartition(":")
    # A layout in a tensor descriptor has colons, too; it ends with a bracket.
    if not colon or ">" in hint:
        return entry, None
    allowed = configs.load("kernels")["hints"]["values"]
    if not hint.strip().isdecimal() or int(hint) not in allowed:
        raise UsageError(
            f"the hint of {name} cannot be {hint.strip()!r}",
            why=f"in {entry!r}",
            hints=[":16 means divisible by 16", ":1 means equal to 1"],
        )
    return kind.strip(), int(hint)


def _unknown(name: str, kind: str) -> UsageError:
    table = configs.load("kernels")["types"]
    stars = kind[: len(kind) - len(kind.lstrip(table["pointer"]))]
    word = kind.lstrip(table["pointer"])
    other = table["others"].get(word.lower().removeprefix("torch.").removeprefix("tl."))
    if other:
        hints: tuple[str, ...] = (f"Triton calls it {stars}{other}",)
    else:
        hints = did_you_mean(word, table["scalars"])
        hints = (*hints, "pointers start with a star: *fp32")
    return UsageError(
        f"the signature gives {name} the type {kind!r}, which Triton does not have", hints=hints
    )


def _lacks(missing: list[KernelParameter], kernel: KernelSource, signature: str) -> UsageError:
    names = ", ".join(parameter.name for parameter in missing)
    whole = ", ".join(parameter.name for parameter in kernel.parameters)
    example = ",".join(f"{each.name}={_example(each)}" for each in missing)
    hints = [f"add them by name: {signature.strip() + ',' if signature.strip() else ''}{example}"]
    if kernel.autotuned and any(each.constexpr for each in missing):
        hints.append("the kernel has @triton.autotune: --sweep autotune compiles its configs")
    return UsageError(f"the signature does not set {names}", why=f"{kernel.name} takes {whole}", hints=hints)


def _without_value(lacking: list[KernelParameter], kernel: KernelSource, signature: str) -> UsageError:
    """Return the error for the entry `constexpr`."""
    names = [parameter.name for parameter in lacking]
    # The hint repeats the signature as it was given, so that it can be copied, with only these entries
    # replaced.
    parts = zip(split_values(signature), assigned(signature, kernel), strict=True)
    entries = [f"{name}={_VALUE}" if name in names else part for part, name in parts]
    need = "need" if names[1:] else "needs"
    return UsageError(
        f"constexpr is a kind of parameter, not a value: {', '.join(names)} {need} one",
        why=f"a compile needs the value of each tl.constexpr parameter of {kernel.name}",
        hints=[f"give a value: --signature '{','.join(entries)}'"],
    )


def _example(parameter: KernelParameter) -> str:
    # A hint has to be runnable as it stands, and upstream's kernels name pointers `x_ptr`.
    if parameter.constexpr:
        return "64"
    return "*fp32:16" if "ptr" in parameter.name.lower() else "i32"


def _too_long(signature: str, kernel: KernelSource) -> UsageError:
    names = [parameter.name for parameter in kernel.parameters]
    count = len(split_values(signature))
    return UsageError(
        f"the signature has {count} entries, and {kernel.name} has {len(names)} parameters",
        why=f"{kernel.name} takes {', '.join(names)}",
        hints=["commas separate entries, except inside types such as tensordesc<fp16[128,64]>"],
    )


def split_values(text: str) -> list[str]:
    """Split a text at commas outside brackets and quotes, and strip the parts; empty for an empty text."""
    return split_outside_brackets(text, ",", quotes="'\"") if text.strip() else []


def parse_value(text: str) -> Any:
    """Parse a word: a number, True, False, None, a tuple, `tl.float16`; any other word is a string."""
    if text.lower() in _LITERALS:
        return _LITERALS[text.lower()]
    if text.startswith("tl.") and text[3:].isidentifier():
        return {DTYPE: text[3:]}
    try:
        value = ast.literal_eval(untrusted.parse_expression(text.lstrip(" \t")))
    # The last two: a text may be nested more deeply than Python's parser can follow.
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        if _DTYPES.fullmatch(text):
            return tuple(map(parse_value, split_values(text[1:-1].rstrip(","))))
        try:
            # `inf` and `nan` are values of constants, and no literals of Python.
            return float(text)
        except ValueError:
            return text
    # A set or bytes is a literal, too, but nothing that JSON can carry to the worker: it stays a word.
    return value if is_value(value) and not isinstance(value, dict) else text


def is_value(value: object) -> bool:
    """Report whether JSON and a command line can carry a value; the worker turns lists back into tuples."""
    if isinstance(value, dict):
        return [*value] == [DTYPE] and isinstance(value[DTYPE], str) and value[DTYPE].isidentifier()
    if isinstance(value, (list, tuple)):
        return all(map(is_value, value))
    return value is None or isinstance(value, (bool, int, float, str))


def spell_value(value: Any) -> str:
    """Return the text that `parse_value` turns into this value."""
    if isinstance(value, dict):
        return f"tl.{value[DTYPE]}"
    if isinstance(value, (list, tuple)):
        return f"({','.join(map(spell_value, value))}{',' if len(value) == 1 else ''})"
    # A string that reads as something else (`"64"`, `"none"`) keeps its quotes.
    return repr(value) if isinstance(value, str) and parse_value(value) != value else str(value)


def evaluated(text: str, names: Mapping[str, Any], flag: str, *, whole: bool = True) -> tuple[Any, ...]:
    """Evaluate an expression over parameters: a number, a tuple of them, or a lambda of META.

    Args:
        text: `cdiv(n, BLOCK)`, `(n + BLOCK - 1) / BLOCK, 1, 1`, `lambda META: (triton.cdiv(n, META["B"]),)`.
        names: the values of the parameters, constants included.
        flag: the flag that has it, for errors.
        whole: divide as C does; else `/` gives a fraction.

    Raises:
        UsageError: it is no such expression, or names something that the kernel does not have.
    """
    try:
        body: ast.expr = untrusted.parse_expression(text.strip())
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UsageError(f"{flag} cannot be {text!r}", why=str(error), hints=[_GRID]) from error
    own = ""
    if isinstance(body, ast.Lambda):
        own, body = next((argument.arg for argument in body.args.args), ""), body.body
    parts = body.elts if isinstance(body, (ast.Tuple, ast.List)) else [body]
    try:
        numbers = (_computed(part, names, own, whole=whole) for part in parts)
        return tuple(int(number) if whole else number for number in numbers)
    # `int(1e400)` is an OverflowError, and `next_power_of_2(4.5)` an AttributeError.
    except (KeyError, ValueError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        why = f"the kernel has no {error}" if isinstance(error, KeyError) else str(error)
        hints = [_GRID, f"its parameters: {', '.join(names)}"]
        raise UsageError(f"{flag} cannot be {text!r}", why=why, hints=hints) from error


def _computed(node: ast.expr, names: Mapping[str, Any], own: str, *, whole: bool) -> Any:
    """Return the value of an expression; `own` is the name of the lambda's parameter."""
    inner = partial(_computed, names=names, own=own, whole=whole)
    result: Any = None
    match node:
        case ast.Constant(value=int() | float() as number):
            result = number
        case ast.Name(id=name):
            result = names[name]
        case ast.Subscript(value=ast.Name(id=table), slice=ast.Constant(value=str() as name)) if table == own:
            result = names[name]
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            result = inner(left) // inner(right) if whole else inner(left) / inner(right)
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _OPERATORS:
            result = _OPERATORS[type(operator)](inner(left), inner(right))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            result = -inner(operand)
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=values, keywords=[]) if (
            name in _FUNCTIONS
        ):
            result = _FUNCTIONS[name](*map(inner, values))
    if result is None:
        raise ValueError(f"{ast.unparse(node)} is no arithmetic of parameters")
    return result
