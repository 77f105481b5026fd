"""Write the C source and header that choose among variants, as Triton's tools/link.py does."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tritonsmith.core import configs
from tritonsmith.core.errors import UsageError
from tritonsmith.inspect.export_c.c_types import Variant
from tritonsmith.inspect.export_c.variant_source import fill


def header(variants: Sequence[Variant]) -> str:
    """Return the text of the `.h`, for variants that passed `check`."""
    return fill("dispatch.h", _words(variants))


def source(variants: Sequence[Variant]) -> str:
    """Return the text of the `.c`."""
    groups = algorithms(variants)
    names = list(groups)
    words = _words(variants) | {
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


def check(variants: Sequence[Variant]) -> None:
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


def _words(variants: Sequence[Variant]) -> dict[str, str]:
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
