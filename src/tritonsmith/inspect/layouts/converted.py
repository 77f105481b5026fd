"""Convert layouts with an interpreter's Triton."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.compiler import call
from tritonsmith.core import configs
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError
from tritonsmith.ir.layouts import LayoutType, LinearLayout
from tritonsmith.worker.messages import LayoutRequest, LayoutRow


@dataclass(frozen=True)
class ConvertedLayout:
    """A type, and its layout.

    Attributes:
        type: of a tensor, or of memory.
        linear: its layout; None if there is an error.
        error: reason why Triton does not convert it.
    """

    type: LayoutType
    linear: LinearLayout | None
    error: str = ""


def convert(types: Sequence[LayoutType], python: Path, space: Workspace) -> tuple[ConvertedLayout, ...]:
    """Convert layouts, each on its own: an assertion of the compiler is an error of that layout only.

    Raises:
        FactError: the interpreter has no Triton, or an older one than 3.6.
    """
    timeout = configs.load("layouts")["timeout"]
    request = LayoutRequest(tuple(layout.text for layout in types), timeout)
    try:
        rows = call.ask(
            python, request, LayoutRow, space, timeout=timeout * (1 + len(types)), count=len(types)
        )
    except call.UnansweredError as error:
        raise FactError(
            "cannot convert layouts with this Triton",
            where=python,
            why=error.why,
            hints=[
                f"check that this works: {python} -c 'import triton'",
                "or use another Triton: --env NAME, --python PATH",
            ],
        ) from error
    return tuple(map(_converted, types, rows))


def _converted(layout: LayoutType, row: LayoutRow) -> ConvertedLayout:
    if row.error:
        return ConvertedLayout(layout, None, row.error)
    bases = {name: tuple(map(tuple, values)) for name, values in row.bases.items()}
    return ConvertedLayout(layout, LinearLayout(row.shape, bases, row.padding))
