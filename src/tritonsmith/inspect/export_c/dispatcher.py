"""The C source and header that choose among variants, as Triton's tools/link.py does."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tritonsmith.core import configs
from tritonsmith.core.errors import UsageError
from tritonsmith.inspect.export_c.c_types import Variant
from tritonsmith.inspect.export_c.variant_source import fill


def header(variants: Sequence[Variant]) -> str:
    """The text of the `.h`, for variants that passed `check`."""
    return fill("dispatch.h", _words(variants))


def source(variants: Sequence[Variant]) -> str:
    """The text of the `.c`."""
    groups = algorithms(variants)
    names = list(groups)
    words = _words(variants) | {
        "includes": "\n".join(f'#include "{one.stem}.h"' for one in variants) + "\n",
        "definitions": "\n".join(_algorithm(name, group) for name, group in groups.items()),
        "table": "".join(f"    {name},\n" for name in names),
        "names": ", ".join(["stream", *(one.c_name for one in variants[0].arguments)]),
        "loads": _calls("load", names),
        "unloads": _calls("unload", names),
    }
    return fill("dispatch.c", words)


def algorithms(variants: Sequence[Variant]) -> dict[str, list[Variant]]:
    """Variants with the same constants and options, in the order of the ids that callers give."""
    groups: dict[str, list[Variant]] = {}
    for one in variants:
        groups.setdefault(one.algorithm, []).append(one)
    return groups


def check(variants: Sequence[Variant]) -> None:
    """Check that one dispatcher can choose among all variants.

    Raises:
        UsageError: two have the same name, or cannot be told apart, or take other arguments than the first.
    """
    first = variants[0]
    for one in variants:
        if [a.declaration for a in one.arguments] != [a.declaration for a in first.arguments]:
            raise UsageError(
                "these variants take different arguments in C",
                where=one.point.id,
                why=f"{_prototype(first)} and {_prototype(one)}",
                hints=["generate them one at a time, each with its own --out-name"],
            )
    _no_twins(variants, lambda one: one.name, "have the same name in C")
    for group in algorithms(variants).values():
        _no_twins(group, _hints, "cannot be told apart by their arguments")
        if len({str(dict(one.constants)) for one in group}) > 1:
            raise UsageError(f"different constants share the algorithm name: {group[0].algorithm}")


def _no_twins(variants: Sequence[Variant], key: Callable[[Variant], object], what: str) -> None:
    seen: dict[object, Variant] = {}
    for one in variants:
        other = seen.setdefault(key(one), one)
        if other is not one:
            raise UsageError(
                f"two variants {what}: {other.name} and {one.name}",
                why=f"{other.point.id} and {one.point.id}",
                hints=[
                    "names only distinguish signatures, num_warps and num_stages",
                    "generate them one at a time, each with its own --out-name",
                ],
            )


def _hints(variant: Variant) -> object:
    return tuple(one.hint for one in variant.arguments)


def _prototype(variant: Variant) -> str:
    return f"({', '.join(one.declaration for one in variant.arguments)})"


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
    return ", ".join(["TT_StreamTy stream", *(one.declaration for one in variant.arguments)])


def _algorithm(name: str, group: Sequence[Variant]) -> str:
    """What knows most comes first."""
    ranked = sorted(group, key=lambda one: -sum(argument.hint != 0 for argument in one.arguments))
    return fill(
        "algorithm.c",
        {
            "algorithm": name,
            "parameters": _parameters(group[0]),
            "choices": "".join(_choice(one) for one in ranked),
            "loads": _calls("load", [one.name for one in ranked]),
            "unloads": _calls("unload", [one.name for one in ranked]),
        },
    )


def _choice(variant: Variant) -> str:
    """The call of one variant, if its hints hold."""
    tests = [
        f"{one.c_name} == 1" if one.hint == 1 else f"(uintptr_t){one.c_name} % {one.hint} == 0"
        for one in variant.arguments
        if one.hint
    ]
    passed = ", ".join(["stream", *(one.c_name for one in variant.passed)])
    return f"    if ({' && '.join(tests) or '1'})\n        return {variant.name}({passed});\n"


def _calls(what: str, names: Sequence[str]) -> str:
    return "".join(f"    {what}_{name}();\n" for name in names)
