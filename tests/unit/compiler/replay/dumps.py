"""Dumps without files."""

from __future__ import annotations

from tritonsmith.compiler.dump.index import Dump

MODULE = "builtin.module"


def dump(
    number: int, argument: str, function: str = "", pipeline: str = "", operation: str = "tt.func"
) -> Dump:
    """A dump before a pass, on the module or on a function."""
    return Dump(
        number=number,
        kernel="k",
        stage="ttgir",
        name=argument.title(),
        argument=argument,
        pipeline=pipeline or argument,
        operation=operation if function else MODULE,
        symbol=function,
        when="before",
        path=f"k/{number:03d}-{argument}.mlir",
        size=0,
        lines=0,
        sha256="",
        changed=None,
        seconds=None,
        whole=True,
    )
