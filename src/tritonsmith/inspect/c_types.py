"""Choose the C names and types of compiled variants as the Triton that compiled them would."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritonsmith.compiler import signature
from tritonsmith.compiler.manifest import Manifest, Point
from tritonsmith.core import configs
from tritonsmith.core.errors import FactError, SmithError, UsageError, did_you_mean
from tritonsmith.core.text import version_key

# Names, types and suffixes follow upstream's tools/compile.py and tools/link.py version by version, so
# that code written against their output links against ours without a change.
_CONSTEXPR = "constexpr"
_ONE, _ALIGNED = 1, 16
_LETTERS = {_ONE: "c", _ALIGNED: "d"}
_DEFAULTS = {"num_warps": 4, "num_stages": 3}  # if the metadata has neither


@dataclass(frozen=True)
class CArgument:
    """A parameter of the kernel that is not a constant.

    Attributes:
        name: the Python name.
        c_name: the C name.
        kind: the type as Triton spells it.
        c_type: the type that a caller in C passes.
        kernel_type: the type that the kernel reads; it differs if the launcher has to pack.
        hint: 16, 1 (the kernel does not take this argument), or 0.
    """

    name: str
    c_name: str
    kind: str
    c_type: str
    kernel_type: str
    hint: int

    @property
    def declaration(self) -> str:
        """The C declaration: `int32_t n`."""
        return f"{self.c_type} {self.c_name}"


@dataclass(frozen=True)
class Variant:
    """One compiled point, and its names in C.

    Attributes:
        point: the compiled point.
        binary: the file with its machine code.
        triton: the version that compiled it.
        source: the Python file.
        out_name: the name that all variants of the kernel share.
        sighash: 8 hex digits over the signature and the options.
        suffix: the hints: `0d1d2d`.
        algo: constants and options, as a part of a name: `64x64_warps4xstages3`.
        arguments: the dispatcher's, in order, including those with a hint of 1.
        constants: parameter to value, in upstream's order.
        scratch: the names of the pointers that the compiler appended.
        asked_warps: the requested warps, a part of the names; warp specialization may launch more.
        asked_stages: the requested stages.
    """

    point: Point
    binary: Path
    triton: str
    source: str
    out_name: str
    sighash: str
    suffix: str
    algo: str
    arguments: tuple[CArgument, ...]
    constants: Mapping[str, Any]
    scratch: tuple[str, ...]
    asked_warps: int
    asked_stages: int

    @property
    def name(self) -> str:
        """The name of the function in C."""
        return f"{self.out_name}_{self.sighash}_{self.suffix}"

    @property
    def stem(self) -> str:
        """The stem of its files, as upstream names them."""
        return f"{self.out_name}.{self.sighash}_{self.suffix}"

    @property
    def algorithm(self) -> str:
        """The name of the function that chooses among variants that differ only in hints."""
        return f"{self.out_name}_{self.algo}"

    @property
    def passed(self) -> tuple[CArgument, ...]:
        """The arguments that the kernel itself takes."""
        return tuple(argument for argument in self.arguments if argument.hint != _ONE)


def variant(manifest: Manifest, point: Point, out_name: str) -> Variant:
    """Return the C side of a compiled point; an empty `out_name` uses the kernel's name.

    Raises:
        SmithError: it did not compile, or a C launcher like upstream's cannot launch it.
    """
    if point.status != "ok":
        raise SmithError(f"{point.id} did not compile", where=manifest.folder, why=point.error or None)
    table = configs.load("aot")
    if point.backend not in table["backends"]:
        raise FactError(f"no C launcher supports {point.target}", where=manifest.folder)
    vendor = table["backends"][point.backend]
    binary = manifest.path(point, vendor["binary"])
    if binary is None:
        why = f"its stages: {', '.join(point.stages) or 'none'}"
        hints = [f"compile the kernel with all stages, or with --stage {vendor['binary']}"]
        raise FactError(f"{point.id} has no {vendor['binary']}", where=manifest.folder, why=why, hints=hints)
    # Refused here, not at the launch: a kernel without its scratch memory writes through a null pointer,
    # and one without its cluster hangs or computes wrong results.
    _refuse(point, manifest)
    names = _row_of_version(manifest.triton, table["names"])
    # Triton specializes an integer that is 1 to a constant, and its tools count such a parameter among
    # the constants from some version on. A tuple's elements have names with a dot: they are no
    # parameters of the C function.
    ones = {name: _ONE for name, hint in point.hints.items() if hint == _ONE}
    constants = {name: value for name, value in point.constexprs.items() if "." not in name}
    constants = {name: constants[name] for name in point.signature if name in constants}
    constants |= ones if names["ones"] else {}
    name = out_name or manifest.kernel
    if not _is_free(name):
        hints = [f"choose another name: --out-name {name}_kernel"]
        raise UsageError(f"the kernel's name {name} is reserved in C", where=manifest.folder, hints=hints)
    # The options win over the metadata, which has the warps after warp specialization: names are
    # made of what was requested.
    known = _DEFAULTS | dict(point.metadata) | dict(point.options)
    warps, stages = (int(known[option]) for option in _DEFAULTS)
    meta = f"warps{warps}xstages{stages}"
    return Variant(
        point=point,
        binary=binary,
        triton=manifest.triton,
        source=manifest.file,
        out_name=name,
        sighash=_hash(point, meta),
        suffix=_suffix(point, names["suffix"]),
        algo=f"{_constants_word(constants)}_{meta}",
        arguments=tuple(_arguments(point, _types(manifest.triton, table), vendor, as_i32=names["ones"])),
        constants=constants,
        scratch=scratch_names(manifest.triton, point),
        asked_warps=warps,
        asked_stages=stages,
    )


def check_name(name: str) -> str:
    """Check a name for functions in C, and return it.

    Raises:
        UsageError: it is not a valid name.
    """
    if name and not (name.isidentifier() and name.isascii() and _is_free(name)):
        raise UsageError(
            f"--out-name cannot be {name!r}",
            hints=["use letters, digits and _, but no C keyword: --out-name matmul_fp16"],
        )
    return name


def _row_of_version(version: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the last row that begins no later than this version."""
    return [row for row in rows if _has_reached(version, row)][-1]


def _has_reached(version: str, row: Mapping[str, Any]) -> bool:
    return version_key(version)[:2] >= version_key(row["since"])


def _types(version: str, table: Mapping[str, Any]) -> dict[str, str]:
    c_types = dict(table["kernel"])
    for row in table["types"]:
        if _has_reached(version, row):
            c_types |= {name: kind for name, kind in row.items() if name != "since"}
    return c_types


def _arguments(
    point: Point, types: Mapping[str, str], vendor: Mapping[str, Any], *, as_i32: bool
) -> Iterator[CArgument]:
    kernel = configs.load("aot")["kernel"]
    for index, (name, kind) in enumerate(point.signature.items()):
        if kind == _CONSTEXPR or name in point.constexprs:
            continue
        hint = point.hints.get(name, 0)
        # From 3.3 on, compile.py declares a parameter that is always 1 as an i32, whatever its type is.
        word = "i32" if hint == _ONE and as_i32 else kind
        if word.startswith("*"):
            c_type = read = vendor["pointer"]
        elif word == "nvTmaDesc" and vendor["descriptor"]:
            # CUtensorMap is passed by value in the kernel's parameter buffer; AMD has no such object.
            c_type = read = vendor["descriptor"]
        elif word in types:
            c_type, read = types[word], kernel[word]
        else:
            raise _no_c_type(name, kind)
        yield CArgument(name, c_identifier(name, index), word, c_type, read, hint)


def c_identifier(name: str, index: int) -> str:
    """Return a parameter's name in C, changed if C or the templates reserve it."""
    # Python allows letters in names that C99 compilers reject without universal character names.
    if not name.isascii():
        return f"arg{index}"
    return name if _is_free(name) else f"{name}_"


def _is_free(name: str) -> bool:
    """Report whether neither C nor the templates reserve a name."""
    return name not in configs.load("aot")["reserved"]["words"]


def _no_c_type(name: str, kind: str) -> UsageError:
    why, hints = None, ["pass a pointer: *fp32"]
    if kind.startswith("("):
        why = "upstream's tools/compile.py does not support tuples"
        hints = ["pass its elements as separate parameters"]
    elif kind.startswith("tensordesc"):
        why = "Triton's launcher appends shapes and strides, which upstream's C interface does not support"
        hints = ["pass a pointer, and load and store through pointers"]
    return UsageError(f"{name} has the type {kind}, which has no equivalent in C", why=why, hints=hints)


def _refuse(point: Point, manifest: Manifest) -> None:
    """Reject kernels that this interface would launch incorrectly.

    Raises:
        UsageError: the kernel needs scratch memory, clusters or a cooperative grid.
    """
    # The generated launcher passes 0 for these pointers, as upstream's does.
    for name in ("global_scratch_size", "profile_scratch_size"):
        size = point.metadata.get(name) or 0
        if size > 0:
            raise UsageError(
                f"{point.id} needs scratch memory: {name} is {size} bytes per program",
                where=manifest.folder,
                why="nothing allocates that memory: upstream's tools/compile.py rejects such kernels too",
                hints=["tensor descriptors created in the kernel need it: load and store through pointers"],
            )
    if (point.metadata.get("num_ctas") or 1) > 1:
        hints = ["compile the kernel with --option num_ctas=1"]
        raise UsageError(
            f"{point.id} is launched in clusters, which upstream's interface does not support", hints=hints
        )
    if point.metadata.get("launch_cooperative_grid"):
        raise UsageError(
            f"{point.id} is launched as a cooperative grid, which upstream's interface does not support"
        )


def _suffix(point: Point, which: str) -> str:
    """Return the suffix of hints, as the tools/compile.py of that version spells it."""
    types = [kind for kind in point.signature.values() if kind != _CONSTEXPR]
    text = ""
    for index, name in enumerate(point.signature):
        letter = _LETTERS.get(point.hints.get(name, 0), "")
        # An old compile.py loops over the types, from which constants are missing, but looks hints
        # up by the parameter's index: it drops the last parameters of a kernel with constants.
        if which == "types" and index >= len(types):
            break
        text += f"{index}{letter}" if letter or which != "hinted" else ""
    return text


def scratch_names(version: str, point: Point) -> tuple[str, ...]:
    """Return the names of the scratch pointers that a version of Triton appended to a kernel's parameters."""
    # A build between two releases carries the number of the older one, yet may append a pointer
    # already; its metadata shows that. Pointers are appended in a fixed order, so the last one
    # present implies those before it.
    rows = configs.load("aot")["scratch"]
    there = [_has_reached(version, row) or f"{row['name']}_size" in point.metadata for row in rows]
    last = max((number for number, has in enumerate(there) if has), default=-1)
    return tuple(row["name"] for row in rows[: last + 1])


def _hash(point: Point, meta: str) -> str:
    """Return 8 hex digits of the signature, in the words that upstream's tool receives."""
    # compile.py hashes the words of its own command line, in which a hint follows a colon. Another
    # spelling of the same signature would give functions another name than upstream's.
    words = []
    for name, kind in point.signature.items():
        if kind == _CONSTEXPR or name in point.constexprs:
            words.append(signature.spell_value(point.constexprs.get(name)))
        else:
            hint = point.hints.get(name)
            words.append(f"{kind}:{hint}" if hint else kind)
    return hashlib.sha256(" ".join([*words, meta]).encode()).hexdigest()[:8]


def _constants_word(constants: Mapping[str, Any]) -> str:
    """Return the constants as a part of a name; upstream's own text if that is a valid name."""
    # compile.py joins the values by x, and link.py makes a function's name of that. A float, a negative
    # number or a string would end the name in C.
    text = "x".join(signature.spell_value(value) for value in constants.values())
    return re.sub(r"\W", "_", text.replace("-", "m").replace(".", "p"), flags=re.ASCII)


_DIMENSIONS = 3
# The grid goes into the C source as it is. So only tokens of an arithmetic expression pass:
# no quotes, braces, semicolons or calls, which could smuggle statements into the function.
_TOKENS = re.compile(
    r"(?:[A-Za-z_]\w*|0[xX][0-9a-fA-F]+[uUlL]*|\d+[uUlL]*|[<>=!]=|[-+*/%()<>!&|^~?:]|\s)*", re.ASCII
)
_EXAMPLE = '--grid "(n+1023)/1024,1,1"'


def parse_grid(text: str) -> tuple[str, str, str]:
    """Split a grid, a C expression for each dimension, into its three dimensions; missing ones are 1.

    Raises:
        UsageError: the grid is empty, has too many parts, or is not a C expression.
    """
    parts = signature.split_values(text)
    if not parts:
        raise UsageError(
            "--grid is missing", hints=[f"a C expression over the kernel's parameters: {_EXAMPLE}"]
        )
    if len(parts) > _DIMENSIONS:
        raise UsageError(f"--grid has {len(parts)} parts; a grid has at most 3", why=text, hints=[_EXAMPLE])
    for part in parts:
        if why := _expression_error(part):
            raise UsageError(
                f"--grid cannot be {part!r}", why=why, hints=[f"write a C expression: {_EXAMPLE}"]
            )
    x, y, z = [*parts, "1", "1"][:_DIMENSIONS]
    return x, y, z


def render_grid(expression: str, variant: Variant) -> str:
    """Rewrite an expression with the names of a variant; constants become their values.

    Raises:
        UsageError: it names something that the kernel does not have, or that is no integer.
    """
    # One dispatcher has several variants with other constants, so a grid over BLOCK is another
    # expression in each of them. A parameter with hint 1 is no argument of the variant's function.
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
                    f"--grid names {name}, which is {signature.spell_value(value)}, not an integer",
                    why=expression,
                )
            return str(int(value))
        if name in here:
            return here[name]
        # A cast such as (int64_t), so that a large grid does not overflow.
        if name in words:
            return name
        names = [*here, *constants]
        hints = [*did_you_mean(name, names), f"its parameters: {', '.join(names)}"]
        raise UsageError(
            f"--grid names {name!r}, which the kernel does not have", why=expression, hints=hints
        )

    return re.sub(r"(?<!\w)[A-Za-z_]\w*", replaced, expression)  # not the suffix of 1024u or 0xff


def _expression_error(part: str) -> str:
    if not part:
        return "a part between two commas is empty"
    if "//" in part or "/*" in part:
        return "// and /* start a comment in C; use / to divide integers"
    if not _TOKENS.fullmatch(part):
        return "it contains characters that are not part of an expression over parameters"
    # A part with unbalanced parentheses could close the expression that the template puts around it.
    depth = 0
    for char in part:
        depth += (char == "(") - (char == ")")
        if depth < 0:
            break
    return "its parentheses are not balanced" if depth else ""
