"""Read grids: C expressions over a kernel's parameters and constants, `--grid "(n+1023)/1024,1,1"`."""

from __future__ import annotations

import re

from tritonsmith.compiler import values
from tritonsmith.core import configs
from tritonsmith.core.errors import UsageError, did_you_mean
from tritonsmith.inspect.export_c.c_types import Variant

_DIMENSIONS = 3
_TOKENS = re.compile(
    r"(?:[A-Za-z_]\w*|0[xX][0-9a-fA-F]+[uUlL]*|\d+[uUlL]*|[<>=!]=|[-+*/%()<>!&|^~?:]|\s)*", re.ASCII
)
_EXAMPLE = '--grid "(n+1023)/1024,1,1"'


def parse(text: str) -> tuple[str, str, str]:
    """Split a grid into its three dimensions; missing ones are 1.

    Raises:
        UsageError: the grid is empty, has too many parts, or is not a C expression.
    """
    parts = values.split(text)
    if not parts:
        raise UsageError(
            "--grid is missing", hints=[f"a C expression over the kernel's parameters: {_EXAMPLE}"]
        )
    if len(parts) > _DIMENSIONS:
        raise UsageError(f"--grid has {len(parts)} parts; a grid has at most 3", why=text, hints=[_EXAMPLE])
    for part in parts:
        why = _wrong(part)
        if why:
            raise UsageError(
                f"--grid cannot be {part!r}", why=why, hints=[f"write a C expression: {_EXAMPLE}"]
            )
    x, y, z = [*parts, "1", "1"][:_DIMENSIONS]
    return x, y, z


def render(expression: str, variant: Variant) -> str:
    """Rewrite an expression with the names of a variant; constants become their values.

    Raises:
        UsageError: it names something that the kernel does not have, or that is no integer.
    """
    here = {argument.name: argument.c_name for argument in variant.passed}
    ones = {argument.name: 1 for argument in variant.arguments if argument.hint == 1}
    constants = {**variant.constants, **ones}
    words = configs.load("aot")["grid"]["words"]

    def replaced(match: re.Match[str]) -> str:
        name = match[0]
        if name in constants:
            value = constants[name]
            if not isinstance(value, int):
                raise UsageError(
                    f"--grid names {name}, which is {values.spell(value)}, not an integer", why=expression
                )
            return str(int(value))
        if name in here:
            return here[name]
        if name in words:
            return name
        names = [*here, *constants]
        hints = [*did_you_mean(name, names), f"its parameters: {', '.join(names)}"]
        raise UsageError(
            f"--grid names {name!r}, which the kernel does not have", why=expression, hints=hints
        )

    return re.sub(r"(?<!\w)[A-Za-z_]\w*", replaced, expression)


def _wrong(part: str) -> str:
    if not part:
        return "a part between two commas is empty"
    if "//" in part or "/*" in part:
        return "// and /* start a comment in C; use / to divide integers"
    if not _TOKENS.fullmatch(part):
        return "it contains characters that are not part of an expression over parameters"
    depth = 0
    for char in part:
        depth += (char == "(") - (char == ")")
        if depth < 0:
            break
    return "its parentheses are not balanced" if depth else ""
