"""Convert layouts to linear ones with libtriton: the place of each element.

Gluon's bindings convert; `to_linear_layout` came with 3.6. An assertion of the compiler ends the process, so
each type has a process of its own.
"""

from __future__ import annotations

import functools
import os
import re
import tempfile
from typing import TYPE_CHECKING

from .border import EXIT_REFUSED, WorkerRefusal, refusal_text, request_of, text_of
from .libtriton import context_of
from .messages import LayoutRequest, LayoutRow
from .processes import in_child, interrupt_with_parent
from .ptxas_remarks import read_tail

if TYPE_CHECKING:
    from .border import Table
    from .foreign import Layout

MODULE = "module {\n  tt.func public @f(%%0: %s) {\n    tt.return\n  }\n}\n"
SIZES = re.compile(r"<((?:\d+x)+)")
SHOWN = 2000  # bytes of what was printed, in an error


def convert(request_text: str) -> int:
    """Print a line of JSON for each type of the request: its bases, or an error."""
    interrupt_with_parent()
    request = request_of(LayoutRequest, request_text)
    if not able():
        what = "it has no conversion to linear layouts: releases from 3.6.0 on have"
        print(refusal_text(WorkerRefusal("unusable", what)))
        return EXIT_REFUSED
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log")
        for number, text in enumerate(request.types):
            file = os.path.join(folder, f"{number}.mlir")
            with open(file, "w", encoding="utf-8") as module:
                module.write(MODULE % text)
            answer = in_child(functools.partial(bases, text, file), log, request.timeout)
            value = answer.get("value") or {"error": failure(answer["error"], log)}
            print(text_of(LayoutRow(text, **value)))
    return 0


def able() -> bool:
    """Report whether this Triton converts layouts; import the modules that this takes."""
    import triton

    try:
        import triton.experimental.gluon.language  # noqa: F401 - once, and not for each type
        from triton._C.libtriton import gluon_ir
    except ImportError:
        return False
    return hasattr(gluon_ir.GluonOpBuilder, "to_linear_layout")


def bases(text: str, file: str) -> Table:
    """Return the bases of the layout of a tensor or memory type."""
    import triton._C.libtriton as lib

    context = context_of(lib)
    module = lib.ir.parse_mlir_module(file, context)
    module.context = context
    value = module.get_function("f").args(0)
    builder = lib.gluon_ir.GluonOpBuilder(context)
    shape = [int(size) for size in SIZES.search(text)[1].split("x")[:-1]]  # type: ignore[index]
    if text.startswith("tensor"):
        layout = builder.get_gluon_layout_from_tensor(value)
    else:
        layout = builder.get_gluon_layout_from_memdesc(value)
    if hasattr(layout, "interval_padding_pairs"):  # not linear by its padding only
        return answer_of(layout, layout.shape)
    shape = shape[-rank_of(layout, len(shape)) :]  # the buffers of a pipeline come first
    return answer_of(builder.to_linear_layout(layout._to_ir(builder), shape), shape)  # noqa: SLF001 - as Gluon does


def rank_of(layout: Layout, most: int) -> int:
    """Return the number of dimensions of a layout."""
    for field in ("rank", "order", "block"):
        value = getattr(layout, field, None)
        if value is not None:
            return value if isinstance(value, int) else len(value)
    rows = getattr(layout, "offset_bases", None)
    return len(rows[0]) if rows else most


def answer_of(layout: Layout, shape: list[int]) -> Table:
    """Return the fields of one of Gluon's linear layouts."""
    names = {"reg_bases": "register", "lane_bases": "lane", "warp_bases": "warp", "offset_bases": "offset"}
    names.update(rows="row", cols="column", block_bases="block", cga_layout="block")
    found = {name: getattr(layout, field) for field, name in names.items() if hasattr(layout, field)}
    padding = getattr(layout, "interval_padding_pairs", [])
    return {"bases": found, "shape": shape, "padding": padding}


def failure(error: str, log: str) -> str:
    """Return the error with the compiler's output."""
    said = re.findall(
        r"^(?:loc\(.*\): )?(.*(?:error|Assertion|ERROR).*)$", read_tail(log, SHOWN), re.MULTILINE
    )
    return "\n".join([error, *said[:3]])
