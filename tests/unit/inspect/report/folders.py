"""Output folders of a dump, made by hand."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tritonsmith.compiler.dump import index
from tritonsmith.compiler.dump.index import Dump, DumpedKernel, DumpIndex
from tritonsmith.ir import ir_text


def dump(kernel: str, number: int, name: str, text: str, **changes: object) -> Dump:
    """One dump, before a pass on the whole module."""
    made = Dump(
        number=number,
        kernel=kernel,
        stage="ttir",
        name=name,
        argument=name.lower(),
        pipeline=f"{name.lower()}{{x=1}}",
        operation="builtin.module",
        symbol="",
        when="before",
        path=f"{number:03d}-{name.lower()}.mlir",
        size=len(text.encode()),
        lines=text.count("\n"),
        sha256=hashlib.sha256(text.encode()).hexdigest(),
        changed=None,
        seconds=number / 1000,
        whole=True,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def folder(
    where: Path, kernels: Mapping[str, Sequence[tuple[str, str]]], *, target: str = "cuda:90"
) -> DumpIndex:
    """A dump in a folder.

    Args:
        where: the new folder.
        kernels: name to its passes: name, and the text before it; the last text is what the last pass left.
        target: of all.
    """
    dumps: list[Dump] = []
    for place, (kernel, passes) in enumerate(kernels.items()):
        (where / str(place)).mkdir(parents=True)
        for number, (name, text) in enumerate(passes):
            path = f"{place}/{number:03d}.mlir"
            (where / path).write_text(text, encoding="utf-8")
            last = number == len(passes) - 1
            against, changed = (
                (None, None)
                if last
                else (
                    len(dumps) + 1,
                    not ir_text.same_without_locations("mlir", text.encode(), passes[number + 1][1].encode()),
                )
            )
            dumps.append(dump(kernel, number, name, text, path=path, against=against, changed=changed))
    made = DumpIndex(
        folder=where,
        command="passes.dump matmul.py",
        triton="3.9.0",
        python="",
        size=sum(one.size for one in dumps),
        kernels=tuple(DumpedKernel(name, name, target) for name in kernels),
        dumps=tuple(dumps),
    )
    (where / index.FILE).write_text(made.render(), encoding="utf-8")
    return made
