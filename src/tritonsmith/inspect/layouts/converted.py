"""Convert layouts with an interpreter's Triton."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritonsmith import worker
from tritonsmith.core import configs
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError
from tritonsmith.core.plan.process import query
from tritonsmith.ir.layout_types import LayoutType
from tritonsmith.ir.linear import LinearLayout


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
    request = {"types": [layout.text for layout in types], "timeout": timeout}
    argv = (str(python), str(worker.FOLDER), "layout", json.dumps(request))
    change = {"TRITON_INTERPRET": None, "TRITON_HOME": str(space.root / "kernels")}
    answer = query(argv, change=change, timeout=timeout * (1 + len(types)))
    rows = [json.loads(line) for line in (answer.out if answer else "").splitlines() if line.startswith("{")]
    if not answer or answer.code or len(rows) != len(types):
        refused = str(rows[-1].get("refused", "")) if rows else ""
        raise FactError(
            "cannot convert layouts with this Triton",
            where=python,
            why=refused or (answer.err[-2000:] if answer else "the interpreter did not respond in time"),
            hints=[
                f"check that this works: {python} -c 'import triton'",
                "or use another Triton: --env NAME, --python PATH",
            ],
        )
    return tuple(map(_converted, types, rows))


def _converted(of: LayoutType, row: dict[str, Any]) -> ConvertedLayout:
    if error := row.get("error"):
        return ConvertedLayout(of, None, error)
    bases = {name: tuple(map(tuple, values)) for name, values in row["bases"].items()}
    padding = tuple((interval, more) for interval, more in row["padding"])
    return ConvertedLayout(of, LinearLayout(tuple(row["shape"]), bases, padding))
