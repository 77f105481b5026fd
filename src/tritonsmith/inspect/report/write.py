"""Write an output folder of `passes.dump` as one HTML file: `passes.show --page`."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import struct
import sys
import time
import zlib
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from operator import sub
from pathlib import Path, PurePath
from typing import IO, Any

from tritonsmith.compiler.dump import binaries, pass_runs
from tritonsmith.compiler.dump.binaries import Binary
from tritonsmith.compiler.dump.index import Dump, DumpIndex
from tritonsmith.compiler.dump.pass_runs import PassRun
from tritonsmith.compiler.resources.measure import COLUMNS
from tritonsmith.core import redact, untrusted
from tritonsmith.core.errors import FactError, SmithError, UsageError
from tritonsmith.core.plan import files
from tritonsmith.inspect import pipeline_table
from tritonsmith.inspect.show import unescaped

_FULL = 4 * 2**20  # bytes of distinct lines; a browser unpacks this in some 30 ms
_ENOUGH = 2**20  # bytes of text, from which on the next kernel gets a chunk of its own


@dataclass
class Packer:
    """A packer of many nearly equal texts: it takes them one by one, and returns chunks as they fill up.

    A chunk, before it is deflated (all numbers are little-endian, of 4 bytes):

        size of the lines    lines, in UTF-8, with a line feed between them
        for each text: its number of lines, and then for each the step from the line before it, less one

    So a text whose lines are all new is a row of zeros.

    Attributes:
        texts: the number of texts; equal ones count once.
        size: the size of all texts in bytes; equal ones count each time.
        starts: the number of the first text of each chunk.
    """

    # Deflate alone looks back 32 KiB, less than one dump, so it cannot see that the next dump has the
    # same text. With each distinct line stored once it can, and a browser unpacks that without extra
    # code (DecompressionStream) and searches distinct lines, instead of all texts written out.

    texts: int = 0
    size: int = 0
    starts: list[int] = field(default_factory=list)
    _known: dict[bytes, int] = field(default_factory=dict)
    _lines: dict[bytes, int] = field(default_factory=dict)
    _steps: list[bytes] = field(default_factory=list)
    _distinct: int = 0
    _taken: int = 0
    _last: int = -1

    def add(self, text: bytes) -> int:
        """Add a text, and return its number; an equal text keeps the first one's number."""
        self.size += len(text)
        digest = hashlib.sha256(text).digest()
        if digest in self._known:
            return self._known[digest]
        if not self._steps:
            self.starts.append(self.texts)
        number = self._known[digest] = self.texts
        self.texts += 1
        self._taken += len(text)
        self._steps.append(self._encoded(text.split(b"\n")))
        return number

    def chunk(self, *, between: bool = False) -> str | None:
        """Return the chunk in base64 if it is full, else None; between kernels, less is enough."""
        if self._distinct >= _FULL or (between and self._taken >= _ENOUGH):
            return self.rest()
        return None

    def rest(self) -> str | None:
        """Return the texts that are not in a chunk yet, in base64; None if there are none."""
        if not self._steps:
            return None
        lines = b"\n".join(self._lines)
        content = b"".join((struct.pack("<I", len(lines)), lines, *self._steps))
        self._lines, self._steps = {}, []
        self._distinct, self._taken, self._last = 0, 0, -1
        # With zlib's head and checksum: that is what DecompressionStream calls "deflate".
        return base64.b64encode(zlib.compress(content, 9)).decode()

    def _encoded(self, lines: list[bytes]) -> bytes:
        before = len(self._lines)
        # This sees every line of every dump: hence one look-up per line, and map and array instead of a
        # clearer loop.
        following = count(before)
        known = self._lines
        numbers = [
            known[line] if line in known else known.setdefault(line, next(following)) for line in lines
        ]
        if len(known) > before:
            self._distinct += sum(len(line) + 1 for line in _from(known, before))
        expected = [self._last + 1, *(number + 1 for number in numbers[:-1])]
        steps = array("i", [len(lines), *map(sub, numbers, expected)])
        self._last = numbers[-1]
        if sys.byteorder == "big":
            steps.byteswap()
        return steps.tobytes()


def _from(known: dict[bytes, int], first: int) -> Iterator[bytes]:
    """Yield the last lines, without a walk over all of them."""
    backwards = reversed(known)
    for _ in range(len(known) - first):
        yield next(backwards)


_SUFFIXES = (".html", ".htm")
# Fields of a dump that the page does not need, or has in another form.
_OMITTED = ("kernel", "path", "size", "lines", "sha256", "offset", "banner", "against")


@dataclass(frozen=True)
class WrittenReport:
    """A report.

    Attributes:
        path: the file.
        size: the file's size, in bytes.
        dumped: the size of the IR in it, in bytes.
        passes: the number of passes that ran.
        seconds: the time that it took to write.
    """

    path: Path
    size: int
    dumped: int
    passes: int
    seconds: float


def check_name(out: Path) -> None:
    """Check that a report may have this name, before anything is read.

    Raises:
        UsageError: it is a folder, or not the name of a page, so that another kind of file could be
            overwritten.
    """
    if out.suffix.lower() not in _SUFFIXES or out.is_dir():
        raise UsageError("a report needs the suffix .html", where=out, hints=["--out report.html"])


def write_report(index: DumpIndex, out: Path, against: DumpIndex | None = None) -> WrittenReport:
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
    return WrittenReport(out, size, writing.packer.size, passes, time.perf_counter() - began)


class _Writing:
    """A writer that holds one text at a time in memory, and the chunk that is being filled."""

    def __init__(self, packer: Packer) -> None:
        self.packer = packer
        self._chunks = 0
        self._names: dict[str, None] = {}  # in order

    def write(self, file: IO[str], sides: Sequence[DumpIndex]) -> None:
        file.write(page_head(_title(sides)))
        # Chunks are written while dumps are read, so that memory does not grow with the dump. What refers to
        # them can only come last.
        contents = [self._side(file, side) for side in sides]
        sources = read_python(self._names)
        texts = {name: self._text(file, content.encode()) for name, content in sources.items()}
        self._chunk(file, self.packer.rest())
        data = {"schema": 1, "sides": contents, "sources": texts, "starts": self.packer.starts}
        file.writelines(page_tail(data))

    def _side(self, file: IO[str], side: DumpIndex) -> dict[str, Any]:
        kernels = []
        compiled = binaries.read(side)
        for kernel in side.kernels:
            texts = {dump.number: self._dump(file, side, dump) for dump in side.of(kernel.name)}
            binary = compiled.get(kernel.name)
            machine = self._binary(file, side, binary) if binary else {}
            self._chunk(file, self.packer.chunk(between=True))
            lines = pipeline_table.pass_changes(side, kernel.name)
            kernels.append(
                {
                    **vars(kernel),
                    "error": redact.hidden(kernel.error),
                    "totals": vars(pass_runs.totals(side, kernel.name)),
                    "dumps": list(texts.values()),
                    "rows": [_row(run, texts, lines) for run in pass_runs.of(side, kernel.name)],
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
            "gist": resources_gist(binary),
            "table": resources_table(binary),
            "instructions": list(binary.instructions.items()),
            "notes": list(binary.notes),
            "texts": texts,
        }

    def _dump(self, file: IO[str], side: DumpIndex, dump: Dump) -> int:
        text = side.content(dump)
        self._names |= dict.fromkeys(python_files(text))
        return self._text(file, text)

    def _text(self, file: IO[str], text: bytes) -> int:
        number = self.packer.add(text)
        self._chunk(file, self.packer.chunk())
        return number

    def _chunk(self, file: IO[str], content: str | None) -> None:
        if content is not None:
            file.write(page_chunk(self._chunks, content))
            self._chunks += 1


def _title(sides: Sequence[DumpIndex]) -> str:
    names = (", ".join(kernel.name for kernel in side.kernels[:3]) for side in sides)
    return f"{' against '.join(names)} - passes"


def _row(
    pass_run: PassRun, texts: Mapping[int, int], lines: Sequence[pipeline_table.PipelineRow | None]
) -> dict[str, Any]:
    dump, counted = pass_run.dump, lines[pass_run.dump.number]
    return {
        **{name: value for name, value in dump.as_json().items() if name not in _OMITTED},
        "counts": pass_run.counts,
        "lines": counted and [counted.added, counted.removed],
        "file": dump.path,
        "before": _packed(pass_run.before, texts),
        "after": _packed(pass_run.after, texts),
    }


def _packed(dump: Dump | None, texts: Mapping[int, int]) -> list[int | str] | None:
    """Return a dump as the page has it: number of its text, language, lines, bytes."""
    return None if dump is None else [texts[dump.number], dump.language, dump.lines, dump.size]


def _content(side: DumpIndex, name: str) -> bytes:
    path = side.file(name)
    try:
        return untrusted.read_bytes(path, untrusted.OURS)
    except (OSError, ValueError) as error:
        what = "cannot read the compiled kernels of this dump"
        raise FactError(what, where=path, why=str(error)) from error


# Everything from a dump is data: JSON or base64 in elements that no browser runs, and the page's script
# shows it as text, never as HTML. The page's policy allows one script, by its hash, and no connection.
_BUILT = Path(__file__).parent / "built"


def page_head(title: str) -> str:
    """Return the HTML before the data."""
    style = _built("report.css")
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src '{_digest(_script())}'",
            "style-src 'unsafe-inline'",  # CodeMirror makes its style sheets at run time
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width">\n'
        '<meta name="color-scheme" content="light dark">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>{html.escape(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        "<noscript>This page needs JavaScript; it has all of it inside, and loads nothing.</noscript>\n"
        '<main id="app"></main>\n'
    )


def page_chunk(number: int, content: str) -> str:
    """Return the element of a chunk of packed texts, in base64."""
    return f'<script type="application/octet-stream" id="chunk-{number}">{content}</script>\n'


def page_tail(data: dict[str, Any]) -> Iterator[str]:
    """Yield the HTML after the chunks: the pipelines, and the script."""
    # `_json` escapes `<`: even inside a JSON string it could end the element, or open a comment in it.
    yield f'<script type="application/json" id="data">{_json(data)}</script>\n'
    yield f'<script type="text/plain" id="licenses">{_built("LICENSES.txt")}</script>\n'
    yield f"<script>{_script()}</script>\n</body>\n</html>\n"


def _json(data: dict[str, Any]) -> str:
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")


def _script() -> str:
    return _built("report.js")


def _built(name: str) -> str:
    return (_BUILT / name).read_text(encoding="utf-8")


def _digest(script: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


_Values = Mapping[str, object]


def resources_gist(binary: Binary) -> str:
    """Return the most important numbers, in one line."""
    if binary.error:
        return f"resources unknown: {binary.error}"
    values = binary.values
    words = _amd(values) if "vgprs_per_lane" in values else _nvidia(values)
    return " \u00b7 ".join(words)


def resources_table(binary: Binary) -> list[tuple[str, str, str]]:
    """Return all numbers with their names and units."""
    return [
        (column.head.replace("-\n", "").replace("\n", " "), _spelled(binary.values[column.key]), column.unit)
        for column in COLUMNS
        if binary.values.get(column.key) is not None
    ]


def _nvidia(values: _Values) -> Iterator[str]:
    yield f"{_of(values, 'registers_per_thread')} registers"
    stores, loads = values.get("spill_store_bytes"), values.get("spill_load_bytes")
    if stores is None or loads is None:
        yield "spills unknown"
    else:
        yield f"spills {stores} B stored, {loads} B loaded" if stores or loads else "no spills"
    parts = (values.get("shared_static_bytes"), values.get("shared_dynamic_bytes"))
    yield f"{_size(sum(part for part in parts if isinstance(part, int)))} shared"
    yield from _occupancy(values)


def _amd(values: _Values) -> Iterator[str]:
    yield f"{_of(values, 'vgprs_per_lane')} VGPRs, {_of(values, 'sgprs_per_wave')} SGPRs"
    lanes, waves = values.get("vgpr_spills"), values.get("sgpr_spills")
    if lanes is None or waves is None:
        yield "spills unknown"
    else:
        yield f"{lanes} VGPRs, {waves} SGPRs spilled" if lanes or waves else "no spills"
    lds = values.get("lds_bytes")
    yield f"{_size(lds) if isinstance(lds, int) else '?'} LDS"
    yield from _occupancy(values)


def _occupancy(values: _Values) -> Iterator[str]:
    percent = values.get("occupancy_percent")
    if percent is not None:
        yield f"{_spelled(percent)} % occupancy"


def _of(values: _Values, key: str) -> str:
    value = values.get(key)
    return "?" if value is None else _spelled(value)


def _size(count: int) -> str:
    return f"{count / 1024:g} KiB" if count and not count % 256 else f"{count} B"


def _spelled(value: object) -> str:
    return f"{round(value, 2):g}" if isinstance(value, float) else str(value)


# Python files as MLIR, LLVM's debug info and assembly name them.
_NAMES = re.compile(rb'"((?:[^"\\\n]|\\.)+\.py)"')
_DEBUG = re.compile(rb'!DIFile\(filename: "([^"\n]+\.py)", directory: "([^"\n]+)"')
_TABLE = re.compile(rb'^\s*\.file\s+\d+\s+"([^"\n]+)"\s+"([^"\n]+\.py)"', re.MULTILINE)
_LARGEST = 2**20  # bytes; a longer file was generated by a program


def python_files(text: bytes) -> list[str]:
    """Return the Python files in the locations of a text, in the order of the text: the kernel's first."""
    located = [match[1] for match in _NAMES.finditer(text)]
    located += [b"/".join((match[2], match[1])) for match in _DEBUG.finditer(text)]
    located += [b"/".join((match[1], match[2])) for match in _TABLE.finditer(text)]
    return [name.decode("utf-8", "replace") for name in dict.fromkeys(located)]


def read_python(names: Iterable[str]) -> dict[str, str]:
    """Return the texts of existing files, by their names in the IR; relative names are left out."""
    # The IR does not tell the folder that a relative name belongs to.
    texts = {}
    for name in names:
        # Only .py: the dump may come from a stranger, and the page must not carry other files of this
        # machine away.
        path = Path(unescaped(name))
        if not PurePath(name).is_absolute() or path.suffix != ".py":
            continue
        try:
            texts[name] = untrusted.read_text(path, _LARGEST)
        except (OSError, ValueError):  # ValueError: half of a surrogate pair in the name
            continue
    return texts
