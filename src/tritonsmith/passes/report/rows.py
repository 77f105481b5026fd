"""The rows of the pipeline: a pass, the IR before it and the IR after it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tritonsmith.passes.index import Dump, Index

_LANGUAGES = {"ll": "llvm", "mir": "mir", "ptx": "ptx", "amdgcn": "amdgcn", "s": "amdgcn"}  # by suffix


@dataclass(frozen=True)
class Row:
    """A pass.

    Attributes:
        dump: that stands for it; where IR was printed before and after it, the first.
        before: IR that it was given; None if nobody printed it.
        after: IR that it made; None if nobody printed it.
    """

    dump: Dump
    before: Dump | None
    after: Dump | None


def language(dump: Dump) -> str:
    """What a dump is written in: `mlir`, `llvm`, `mir`, `ptx`, `amdgcn`."""
    return _LANGUAGES.get(dump.path.rpartition(".")[2], "mlir")


def of(index: Index, kernel: str) -> Iterator[Row]:
    """The rows of one kernel, in order."""
    for dump in index.of(kernel):
        other = None if dump.against is None else index.dumps[dump.against]
        if dump.when == "before":
            yield Row(dump, dump, other)
        elif other is None or not _same_pass(index, other, dump):
            yield Row(dump, other, dump)


def _same_pass(index: Index, before: Dump, after: Dump) -> bool:
    """Whether the two show one pass, so that one row is enough."""
    followed = None if before.against is None else index.dumps[before.against]
    return before.when == "before" and followed == after and before.name == after.name


def packed(dump: Dump | None, texts: Mapping[int, int]) -> list[int | str] | None:
    """A dump as the page has it: number of its text, language, lines, bytes."""
    return None if dump is None else [texts[dump.number], language(dump), dump.lines, dump.size]
