"""A corpus as a table, and what a change did to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tritonsmith.compiler import values
from tritonsmith.compiler.kernels.kernel_list import ListedKernel
from tritonsmith.core.ui import tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.lab.corpus.corpus import Corpus, CorpusChange

_STATES = ("new", "changed", "same", "removed", "not added")
_FEW = 44  # characters of what a kernel is compiled with


def table(kernels: Sequence[ListedKernel]) -> Grid:
    """A kernel a line."""
    rows = [
        [
            one.name,
            _origin(one),
            tables.clipped(one.signature, _FEW),
            ", ".join(f"{name}={values.spell(value)}" for name, value in one.options.items()),
            ", ".join(map(str, one.targets)),
            str(one.count or ""),
        ]
        for one in kernels
    ]
    columns = ["kernel", "from", "signature", "options", "targets", "launches"]
    return tables.plain(f"{len(kernels)} kernels", columns, rows, right=["launches"])


def as_json(corpus: Corpus, kernels: Sequence[ListedKernel]) -> dict[str, Any]:
    """The kernels, with absolute paths of their copies."""
    rows = [
        {
            "name": one.name,
            "kernel": one.kernel,
            "file": str(corpus.folder / one.file),
            "module": one.module,
            "signature": one.signature,
            "options": dict(one.options),
            "targets": list(map(str, one.targets)),
            "versions": str(one.versions),
            "configs": len(one.configs),
            "launches": one.count,
        }
        for one in kernels
    ]
    return {"schema": 1, "corpus": str(corpus.folder), "kernels": rows}


def changes(made: Sequence[CorpusChange]) -> Iterator[str]:
    """A line for each state: how many, and which; those that are the same are not named."""
    for state in _STATES:
        names = [one.name for one in made if one.state == state]
        if names and state != "not added":  # the error tells
            yield f"{len(names)} {state}" + (f": {', '.join(names)}" if state != "same" else "")


def changes_as_json(corpus: Corpus, made: Sequence[CorpusChange]) -> dict[str, Any]:
    """All of them."""
    rows = [{"name": one.name, "state": one.state, "why": one.why} for one in made]
    return {"schema": 1, "corpus": str(corpus.folder), "changes": rows}


def _origin(one: ListedKernel) -> str:
    return f"{one.module or one.file.rpartition('/')[2]}:{one.kernel}"
