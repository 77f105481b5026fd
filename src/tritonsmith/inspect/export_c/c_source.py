"""Write the C source and header of one variant, with the binary inside."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from string import Template
from typing import Any

from tritonsmith.compiler import signature
from tritonsmith.core import configs
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.inspect.export_c import c_types
from tritonsmith.inspect.export_c.c_types import CArgument, Variant

_TEMPLATES = Path(__file__).with_name("templates")
_PACKED = {"fp16": "half.c", "bf16": "bfloat.c"}  # types that C99 lacks


def header(variant: Variant) -> str:
    """Return the text of the `.h`."""
    return fill("variant.h", _words(variant))


def source(variant: Variant, dimensions: Sequence[str]) -> str:
    """Return the text of the `.c`.

    Args:
        variant: with a binary.
        dimensions: three expressions of a grid.

    Raises:
        FactError: the binary cannot be read.
        UsageError: an expression does not fit the variant.
    """
    try:
        content = variant.binary.read_bytes()
    except OSError as error:
        raise FactError("cannot read this binary", where=variant.binary, why=error.strerror) from error
    x, y, z = (c_types.render_grid(dimension, variant) for dimension in dimensions)
    point = variant.point
    pointers = [f"&{_local(argument)}" for argument in variant.passed] + [
        f"&{name}" for name in variant.scratch
    ]
    words = _words(variant) | {
        "header": f"{variant.stem}.h",
        "size": len(content),
        "data": ", ".join(f"0x{byte:02x}" for byte in content),
        "symbol": point.metadata["name"],
        "helpers": "".join(_helpers(variant)),
        "allow": _allow(variant),
        "grid_x": x,
        "grid_y": y,
        "grid_z": z,
        "locals": "".join(f"    {line}\n" for line in _locals(variant)),
        "pointers": ", ".join(pointers) or "NULL",
        "warps": point.metadata.get("num_warps", variant.asked_warps),
        "warp_size": point.metadata.get("warp_size", point.target.split(":")[2]),  # AMD's goes by the GPU
        "shared": point.metadata.get("shared", 0),
    }
    return fill("variant.c", words)


def fill(template: str, words: dict[str, Any]) -> str:
    """Fill a template with words."""
    return Template((_TEMPLATES / template).read_text(encoding="utf-8")).substitute(words)


def _words(variant: Variant) -> dict[str, Any]:
    vendor = configs.load("aot")["backends"][variant.point.backend]
    settings = [f"{name}={signature.spell_value(value)}" for name, value in variant.constants.items()]
    settings += [f"num_warps={variant.asked_warps}", f"num_stages={variant.asked_stages}"]
    file = Path(variant.source).name
    title = f"{variant.out_name} of {file} for {variant.point.target}, compiled by Triton {variant.triton}."
    return {
        **vendor["words"],
        "backend": variant.point.backend,
        "binary": vendor["binary"],
        "name": variant.name,
        "algo": variant.algo,
        "title": comment(title),
        "docstring": comment(", ".join(settings)),
        "full_signature": ", ".join(argument.declaration for argument in variant.arguments),
        "parameters": ", ".join(
            [f"{vendor['words']['stream']} stream", *(argument.declaration for argument in variant.passed)]
        ),
    }


def comment(text: str) -> str:
    """Escape a text for a C comment: a comment end in it would turn the rest into code."""
    return " ".join(text.replace("*/", "* /").split())


def _packed(argument: CArgument) -> bool:
    """Report whether the kernel reads an argument in another form than the caller passes."""
    # Only floats are packed: `int32_t` for a bool has the right bits already.
    return argument.c_type in ("float", "double") and argument.c_type != argument.kernel_type


def _local(argument: CArgument) -> str:
    return f"{argument.c_name}_{argument.kind}" if _packed(argument) else argument.c_name


def _locals(variant: Variant) -> Iterator[str]:
    for argument in filter(_packed, variant.passed):
        how = f"pack_{argument.kind}" if argument.kind in _PACKED else f"({argument.kernel_type})"
        yield f"{argument.kernel_type} {_local(argument)} = {how}({argument.c_name});"
    pointer = configs.load("aot")["backends"][variant.point.backend]["pointer"]
    for name in variant.scratch:
        yield f"{pointer} {name} = 0;"


def _helpers(variant: Variant) -> Iterator[str]:
    kinds = {argument.kind for argument in variant.passed if _packed(argument)}
    for kind in sorted(kinds & set(_PACKED)):
        yield "\n" + fill(_PACKED[kind], {})


def _allow(variant: Variant) -> str:
    """Return C code that raises the limit of dynamic shared memory; empty if the launch needs no more."""
    # NVIDIA's driver refuses launches above the static limit without this attribute.
    shared = variant.point.metadata.get("shared", 0)
    if variant.point.backend != "cuda" or shared <= configs.load("aot")["shared"]["static"]:
        return ""
    attribute = "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES"
    return (
        "    if (code == CUDA_SUCCESS)\n"
        f"        code = cuFuncSetCacheConfig({variant.name}_func, CU_FUNC_CACHE_PREFER_SHARED);\n"
        "    if (code == CUDA_SUCCESS)\n"
        f"        code = cuFuncSetAttribute({variant.name}_func, {attribute}, {shared});\n"
    )


# Write the C source and header that choose among variants, as Triton's tools/link.py does.


def dispatcher_header(variants: Sequence[Variant]) -> str:
    """Return the text of the `.h`, for variants that passed `check`."""
    return fill("dispatch.h", _dispatcher_words(variants))


def dispatcher_source(variants: Sequence[Variant]) -> str:
    """Return the text of the `.c`."""
    groups = algorithms(variants)
    names = list(groups)
    words = _dispatcher_words(variants) | {
        "includes": "\n".join(f'#include "{variant.stem}.h"' for variant in variants) + "\n",
        "definitions": "\n".join(_algorithm(name, group) for name, group in groups.items()),
        "table": "".join(f"    {name},\n" for name in names),
        "names": ", ".join(["stream", *(argument.c_name for argument in variants[0].arguments)]),
        "loads": _calls("load", names),
        "unloads": _calls("unload", names),
    }
    return fill("dispatch.c", words)


def algorithms(variants: Sequence[Variant]) -> dict[str, list[Variant]]:
    """Group variants by constants and options, in the order of the ids that callers pass."""
    groups: dict[str, list[Variant]] = {}
    for variant in variants:
        groups.setdefault(variant.algorithm, []).append(variant)
    return groups


def check_variants(variants: Sequence[Variant]) -> None:
    """Check that one dispatcher can choose among all variants.

    Raises:
        UsageError: two have the same name or the same hints, or take different arguments.
    """
    first = variants[0]
    for variant in variants:
        if [a.declaration for a in variant.arguments] != [a.declaration for a in first.arguments]:
            raise UsageError(
                "these variants take different arguments in C",
                where=variant.point.id,
                why=f"{_prototype(first)} and {_prototype(variant)}",
                hints=["generate them one at a time, each with its own --out-name"],
            )
    _no_twins(variants, lambda variant: variant.name, "have the same name in C")
    for group in algorithms(variants).values():
        _no_twins(group, _hints, "cannot be told apart by their arguments")
        if len({str(dict(variant.constants)) for variant in group}) > 1:
            raise UsageError(f"different constants share the algorithm name: {group[0].algorithm}")


def _no_twins(variants: Sequence[Variant], key: Callable[[Variant], object], what: str) -> None:
    by_key: dict[object, Variant] = {}
    for variant in variants:
        other = by_key.setdefault(key(variant), variant)
        if other is not variant:
            raise UsageError(
                f"two variants {what}: {other.name} and {variant.name}",
                why=f"{other.point.id} and {variant.point.id}",
                hints=[
                    "names only distinguish signatures, num_warps and num_stages",
                    "generate them one at a time, each with its own --out-name",
                ],
            )


def _hints(variant: Variant) -> object:
    return tuple(argument.hint for argument in variant.arguments)


def _prototype(variant: Variant) -> str:
    return f"({', '.join(argument.declaration for argument in variant.arguments)})"


def _dispatcher_words(variants: Sequence[Variant]) -> dict[str, str]:
    first = variants[0]
    parameters = _parameters(first)
    declared = [
        f"TT_ResultTy {name}({parameters});\nvoid load_{name}(void);\nvoid unload_{name}(void);\n"
        for name in algorithms(variants)
    ]
    return {
        **configs.load("aot")["backends"][first.point.backend]["words"],
        "out_name": first.out_name,
        "parameters": parameters,
        "algorithms": "\n".join(declared),
    }


def _parameters(variant: Variant) -> str:
    return ", ".join(["TT_StreamTy stream", *(argument.declaration for argument in variant.arguments)])


def _algorithm(name: str, group: Sequence[Variant]) -> str:
    """Return the function that chooses among variants; the one with the most hints is tried first."""
    ranked = sorted(group, key=lambda variant: -sum(argument.hint != 0 for argument in variant.arguments))
    return fill(
        "algorithm.c",
        {
            "algorithm": name,
            "parameters": _parameters(group[0]),
            "choices": "".join(_choice(variant) for variant in ranked),
            "loads": _calls("load", [variant.name for variant in ranked]),
            "unloads": _calls("unload", [variant.name for variant in ranked]),
        },
    )


def _choice(variant: Variant) -> str:
    """Return the C call of one variant, under the condition that its hints hold."""
    tests = [
        f"{argument.c_name} == 1"
        if argument.hint == 1
        else f"(uintptr_t){argument.c_name} % {argument.hint} == 0"
        for argument in variant.arguments
        if argument.hint
    ]
    passed = ", ".join(["stream", *(argument.c_name for argument in variant.passed)])
    return f"    if ({' && '.join(tests) or '1'})\n        return {variant.name}({passed});\n"


def _calls(what: str, names: Sequence[str]) -> str:
    return "".join(f"    {what}_{name}();\n" for name in names)
