"""Write an output folder of `passes.dump` as one HTML file."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from tritonsmith.compiler.dump import binaries, pass_runs
from tritonsmith.compiler.dump.binaries import Binary
from tritonsmith.compiler.dump.index import Dump, DumpIndex
from tritonsmith.compiler.dump.pass_runs import PassRun
from tritonsmith.core import untrusted
from tritonsmith.core.errors import FactError, SmithError, UsageError
from tritonsmith.core.plan import files
from tritonsmith.core.ui import redact
from tritonsmith.inspect.passes import pipeline_table
from tritonsmith.inspect.report import kernel_resources, page, python_sources
from tritonsmith.inspect.report.pack_texts import Packer

_SUFFIXES = (".html", ".htm")
# Fields of a dump that the page does not need, or has in another form.
_OMITTED = ("kernel", "path", "size", "lines", "sha256", "offset", "banner", "against")


@dataclass(frozen=True)
class Made:
    """A report.

    Attributes:
        path: the file.
        size: of the file, in bytes.
        dumped: size of the IR in it, in bytes.
        passes: number of passes that ran.
        seconds: time to make it.
    """

    path: Path
    size: int
    dumped: int
    passes: int
    seconds: float


def check(out: Path) -> None:
    """Check that a report may have this name, before anything is read.

    Raises:
        UsageError: it is a folder, or not the name of a page, so that another kind of file could be
            overwritten.
    """
    if out.suffix.lower() not in _SUFFIXES or out.is_dir():
        raise UsageError("a report needs the suffix .html", where=out, hints=["--out report.html"])


def make(index: DumpIndex, out: Path, against: DumpIndex | None = None) -> Made:
    """Write the report of a dump, or of two to compare. The file appears under its name when it is complete.

    Raises:
        FactError: a file of the dump cannot be read, or there are no passes.
        SmithError: the report cannot be written.
    """
    began = time.perf_counter()
    sides = [index] if against is None else [index, against]
    for each in sides:
        if not each.dumps:
            raise FactError("this dump has no passes", where=each.folder)
    writing = _Writing(Packer())
    try:
        with files.growing(out) as file:
            writing.write(file, sides)
        size = out.stat().st_size
    except OSError as error:
        raise SmithError("cannot write the report", where=out, why=error.strerror) from error
    kernels = ((side, kernel.name) for side in sides for kernel in side.kernels)
    passes = sum(pass_runs.totals(side, kernel).passes for side, kernel in kernels)
    return Made(out, size, writing.packer.size, passes, time.perf_counter() - began)


class _Writing:
    """A writer that holds one text at a time in memory, and the chunk that is being filled."""

    def __init__(self, packer: Packer) -> None:
        self.packer = packer
        self._chunks = 0
        self._names: dict[str, None] = {}  # in order

    def write(self, file: IO[str], sides: Sequence[DumpIndex]) -> None:
        file.write(page.head(_title(sides)))
        contents = [self._side(file, side) for side in sides]
        sources = python_sources.read(self._names)
        texts = {name: self._text(file, content.encode()) for name, content in sources.items()}
        self._chunk(file, self.packer.rest())
        data = {"schema": 1, "sides": contents, "sources": texts, "starts": self.packer.starts}
        file.writelines(page.tail(data))

    def _side(self, file: IO[str], side: DumpIndex) -> dict[str, Any]:
        kernels = []
        compiled = binaries.read(side)
        for kernel in side.kernels:
            texts = {dump.number: self._dump(file, side, dump) for dump in side.of(kernel.name)}
            binary = compiled.get(kernel.name)
            machine = self._binary(file, side, binary) if binary else {}
            self._chunk(file, self.packer.chunk(between=True))
            lines = pipeline_table.rows(side, kernel.name)
            kernels.append(
                {
                    **vars(kernel),
                    "error": redact.hidden(kernel.error),
                    "totals": vars(pass_runs.totals(side, kernel.name)),
                    "dumps": list(texts.values()),
                    "rows": [_row(one, texts, lines) for one in pass_runs.of(side, kernel.name)],
                    "binary": machine or {"none": binaries.none_because(side, kernel.name)},
                }
            )
        return {
            "folder": side.folder.name,
            "command": redact.hidden(side.command),
            "triton": side.triton,
            "size": side.size,
            "kernels": kernels,
        }

    def _binary(self, file: IO[str], side: DumpIndex, binary: Binary) -> dict[str, Any]:
        texts = []
        for stage in binaries.TEXTS:
            if stage in binary.files:
                text = _content(side, binary.files[stage])
                texts.append([stage, self._text(file, text), text.count(b"\n"), len(text)])
        return {
            "gist": kernel_resources.gist(binary),
            "table": kernel_resources.table(binary),
            "instructions": list(binary.instructions.items()),
            "notes": list(binary.notes),
            "texts": texts,
        }

    def _dump(self, file: IO[str], side: DumpIndex, dump: Dump) -> int:
        _inside(side, dump.path)
        text = side.content(dump)
        self._names |= dict.fromkeys(python_sources.names(text))
        return self._text(file, text)

    def _text(self, file: IO[str], text: bytes) -> int:
        number = self.packer.add(text)
        self._chunk(file, self.packer.chunk())
        return number

    def _chunk(self, file: IO[str], content: str | None) -> None:
        if content is not None:
            file.write(page.chunk(self._chunks, content))
            self._chunks += 1


def _title(sides: Sequence[DumpIndex]) -> str:
    names = (", ".join(kernel.name for kernel in side.kernels[:3]) for side in sides)
    return f"{' against '.join(names)} - passes"


def _row(
    one: PassRun, texts: Mapping[int, int], lines: Sequence[pipeline_table.PipelineRow | None]
) -> dict[str, Any]:
    dump, counted = one.dump, lines[one.dump.number]
    return {
        **{name: value for name, value in vars(dump).items() if name not in _OMITTED},
        "counts": one.counts,
        "lines": counted and [counted.added, counted.removed],
        "file": dump.path,
        "before": _packed(one.before, texts),
        "after": _packed(one.after, texts),
    }


def _packed(dump: Dump | None, texts: Mapping[int, int]) -> list[int | str] | None:
    """Return a dump as the page has it: number of its text, language, lines, bytes."""
    return None if dump is None else [texts[dump.number], dump.language, dump.lines, dump.size]


def _content(side: DumpIndex, name: str) -> bytes:
    path = _inside(side, name)
    try:
        return untrusted.read_bytes(path, untrusted.OURS)
    except (OSError, ValueError) as error:
        what = "cannot read the compiled kernels of this dump"
        raise FactError(what, where=path, why=str(error)) from error


def _inside(side: DumpIndex, name: str) -> Path:
    """Return the path of a file of the dump.

    Raises:
        FactError: it is outside of the folder.
    """
    # The index may be untrusted, and the report must not include files from elsewhere.
    path = side.folder / name
    if not path.resolve().is_relative_to(side.folder.resolve()):
        raise FactError("a file of this dump is outside its folder", where=path)
    return path
