"""Check a request's options against those of this Triton's backends: a point keeps those of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .refusal import RequestRefusedError

if TYPE_CHECKING:
    from .json_types import Table


def drop_foreign_options(request: Table) -> list[str]:
    """Drop options that only another backend has; refuse options that no backend has."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler.compiler import make_backend

    # `parse_options` of the backends ignores unknown names.
    known: dict[str, set[str]] = {}
    for point in request["points"]:
        name = point["target"][0]
        if name not in known:
            try:
                options = make_backend(GPUTarget(*point["target"])).parse_options({})
            except RuntimeError as error:
                raise RequestRefusedError(
                    "backend", f"this Triton has no backend for {name}", why=str(error)
                ) from None
            known[name] = set(getattr(options, "__dataclass_fields__", vars(options)))
    every: set[str] = set().union(*known.values())
    passed: dict[str, str] = {}
    for point in request["points"]:
        for option in list(point["options"]):
            if option not in every:
                what = f"no backend has an option {option!r}"
                parameters = list(point["signature"])
                raise RequestRefusedError(
                    "option", what, name=option, names=sorted(every), parameters=parameters
                )
            if option not in known[point["target"][0]]:
                passed.setdefault(option, point["target"][0])
                del point["options"][option]
    return [f"{backend} has no option {option}: ignored" for option, backend in passed.items()]
