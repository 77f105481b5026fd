"""The index of a dump: which pass saw which IR, in which order. The IR itself is in files next to it.

OUT/index.json
OUT/<kernel>/012-tritongpu-coalesce.mlir    the input of a pass
OUT/output.log                              everything else that was printed
OUT/compiled/                               the binary of each kernel, if this run compiled it: see `binaries`

A dump that equals the one before it is a hard link to the same file. Each banner with the IR below it, in
the order of the index, and the pieces of output.log in the gaps that the offsets leave, give the original
stream again: see `DumpIndex.pieces`.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from pathlib import Path
from typing import Any

from tritonsmith.core import untrusted
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, UsageError, did_you_mean
from tritonsmith.core.plan import Step, Write, digest
from tritonsmith.ir.banners import When

FILE = "index.json"
OUTPUT = "output.log"
COMPILED = "compiled"  # folder of what the compiles left
KEPT = "list.json"  # what `passes.list` counted
CHECKED = "check.json"  # the last answer of `passes.check`
UNFINISHED = ".unfinished"  # exists from before the first change of a folder until its index is written
# Names in the folder that are no kernel's: a kernel of this name gets a number.
BESIDE = (FILE, OUTPUT, KEPT, CHECKED, "report.html", "reproducers", COMPILED)
SCHEMA = 1


# Slots, as a long dump has hundreds of thousands.
@dataclass(frozen=True, slots=True)
class Dump:
    """One piece of IR that the compiler printed.

    Attributes:
        number: order in its kernel, from 0.
        kernel: the run of the pipelines that it belongs to: a `DumpedKernel.name`.
        stage: the product of the pipeline: `ttir`, `ttgir`, `llir`; `llvm` for LLVM's own passes.
        name: the pass's class, as the banner spells it: `TritonGPUCoalesce`.
        argument: the pass on a command line: `tritongpu-coalesce`; empty if the banner has none.
        pipeline: the same with its options: `tritongpu-F32DotTC{emu-tf32=true}`.
        operation: the operation that the pass ran on: `builtin.module`, `tt.func`.
        symbol: name of the function, if it ran on one: `matmul_kernel`; empty for a module.
        when: printed before the pass, after it, or after it failed.
        path: the IR's file, relative to the output folder.
        size: its size in bytes.
        lines: number of lines.
        sha256: the digest of the file, as 64 hex digits.
        changed: whether the pass changed its IR, locations aside; None if no later dump can tell.
        seconds: duration of the pass; None if it was not measured.
        whole: False if the stream ended inside it.
        offset: the offset of its banner in the stream.
        banner: its banner line; bytes that are not UTF-8 are surrogates.
        inside: printed by the previously announced pass while that ran; the result of that pass comes later.
        against: place in `DumpIndex.dumps` of the dump to compare with, to see what the pass did: the one
            that followed a `before`, the one that came before an `after`; None if there is none.
    """

    number: int
    kernel: str
    stage: str
    name: str
    argument: str
    pipeline: str
    operation: str
    symbol: str
    when: When
    path: str
    size: int
    lines: int
    sha256: str
    changed: bool | None
    seconds: float | None
    whole: bool
    offset: int = 0
    banner: str = ""
    inside: bool = False
    against: int | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the dump as JSON."""
        return dict(zip(_FIELDS, _values(self), strict=True))

    @property
    def label(self) -> str:
        """The name of the pass on a command line, or else its class."""
        return self.argument or self.name

    @property
    def kind(self) -> str:
        """The suffix of its file: `mlir`, `ll`, `mir`, `ptx`, `amdgcn`."""
        return self.path.rpartition(".")[2]

    @property
    def language(self) -> str:
        """The language of the text: `mlir`, `llvm`, `mir`, `ptx`, `amdgcn`."""
        return "llvm" if self.kind == "ll" else self.kind


_FIELDS = tuple(each.name for each in fields(Dump))
_values = attrgetter(*_FIELDS)
_TOGETHER = 256  # dumps of the index that are JSON at the same time


@dataclass(frozen=True)
class DumpedKernel:
    """One run of the pipelines.

    Attributes:
        name: key, unique in the index: the function's name, with `-2` and so on if it occurs again.
        function: name of the function; empty if the IR has none.
        target: `cuda:90`, `hip:gfx942`, as the IR says; empty if it does not.
        failed: name of the pass that failed, or that ran when the stream ended; empty if none did.
        error: the compiler's message.
    """

    name: str
    function: str
    target: str
    failed: str = ""
    error: str = ""


@dataclass(frozen=True)
class DumpIndex:
    """An output folder of `passes.dump`.

    Attributes:
        folder: its path.
        command: the command that was run, for a shell; or the file that was imported.
        triton: version that printed it; empty if unknown.
        python: interpreter that has this Triton; empty if unknown.
        size: the size of the whole stream, in bytes.
        kernels: the kernels, in the order of the stream.
        dumps: all dumps, in the order of the stream.
        reproducers: files of crash reproducers, relative to the output folder.
        environ: environment variables that were set.
        output: file of the printed text that is not IR, relative to the output folder.
    """

    folder: Path
    command: str = ""
    triton: str = ""
    python: str = ""
    size: int = 0
    kernels: tuple[DumpedKernel, ...] = ()
    dumps: tuple[Dump, ...] = ()
    reproducers: tuple[str, ...] = ()
    environ: Mapping[str, str] = field(default_factory=dict)
    output: str = OUTPUT

    def of(self, kernel: str) -> tuple[Dump, ...]:
        """Return the dumps of one kernel, in order."""
        return tuple(dump for dump in self.dumps if dump.kernel == kernel)

    @property
    def digest(self) -> str:
        """The digest of its file, as 64 hex digits."""
        return hashlib.sha256(untrusted.read_bytes(self.folder / FILE, untrusted.OURS)).hexdigest()

    def file(self, name: str) -> Path:
        """Return the path of a file that the index names.

        Raises:
            FactError: it is outside of the folder.
        """
        try:
            return untrusted.path_in(self.folder, name)
        except untrusted.UnreadableError as error:
            what = "a file of this dump is outside its folder"
            raise FactError(what, where=self.folder / name, why=str(error)) from error

    def path(self, dump: Dump) -> Path:
        """Return the file of a dump.

        Raises:
            FactError: it is outside of the folder.
        """
        return self.file(dump.path)

    def content(self, dump: Dump, *, edited: bool = False) -> bytes:
        """Return the IR of a dump, as it was printed.

        Args:
            dump: the dump.
            edited: return what the file has now, for a command that runs texts which were edited by hand.

        Raises:
            FactError: its file cannot be read, or, unless `edited`, has another content than was printed.
        """
        path, hints = self.path(dump), ["recreate the folder with `invoke passes.dump`"]
        try:
            content = untrusted.read_bytes(path, untrusted.OURS)
        except OSError as error:
            why = error.strerror or str(error)
            raise FactError("cannot read a file of this dump", where=path, why=why, hints=hints) from error
        if edited:
            return content
        # All else in the index is about the printed text: whether a pass changed it, its lines, its equals.
        why = ""
        if len(content) != dump.size:
            why = f"it has {len(content):,} bytes, and {FILE} records {dump.size:,}"
        elif hashlib.sha256(content).hexdigest() != dump.sha256:
            why = f"its checksum is not the one in {FILE}"
        if why:
            hints.append("passes.check, passes.replay and reduce run a text that was edited by hand")
            raise FactError("this file is not what passes.dump wrote", where=path, why=why, hints=hints)
        return content

    def text(self, dump: Dump, *, edited: bool = False) -> str:
        """Return `content` as text, with line feeds as line ends."""
        # A terminal's log has carriage returns, which would make every line of a diff differ.
        return self.content(dump, edited=edited).decode("utf-8", "replace").replace("\r\n", "\n")

    def render(self, *, placed: bool = False) -> str:
        """Return the text of `index.json`; `placed` adds the path of the folder."""
        return "".join(self.rendered(placed=placed))

    def rendered(self, *, placed: bool = False) -> Iterator[str]:
        """Yield the text of `index.json`, as `render` returns it, in pieces."""
        content: dict[str, Any] = {"schema": SCHEMA, **vars(self), "dumps": []}
        # A folder may be moved, or copied to another machine, so its file does not name it.
        del content["folder"]
        if placed:
            content["folder"] = str(self.folder)
        content["kernels"] = [vars(kernel) for kernel in self.kernels]
        # In the texts of other values, quotation marks have a backslash before them.
        head, mark, tail = json.dumps(content, default=dict).partition('"dumps": [')
        yield head + mark
        # The text of all dumps at once would take more memory than all else of a long dump.
        for begin in range(0, len(self.dumps), _TOGETHER):
            rows = [dump.as_json() for dump in self.dumps[begin : begin + _TOGETHER]]
            yield (", " if begin else "") + json.dumps(rows)[1:-1]
        yield f"{tail}\n"

    def pieces(self) -> Iterator[bytes]:
        """Yield the original stream, piece by piece."""
        # Offsets count the whole stream: what lies between two dumps is the next part of the output.
        with untrusted.opened(self.file(self.output)) as output:
            at = 0
            for dump in self.dumps:
                yield output.read(dump.offset - at)
                banner = dump.banner.encode("utf-8", "surrogateescape")
                yield banner
                yield self.content(dump)
                at = dump.offset + len(banner) + dump.size
            yield output.read()


def read(folder: Path) -> DumpIndex:
    """Read an output folder.

    Raises:
        FactError: it has no index, or one that cannot be read.
    """
    path = folder / FILE
    try:
        content: Any = untrusted.read_json(path, untrusted.OURS)
        if not isinstance(content, dict):
            raise ValueError("not a JSON object")  # noqa: TRY301, TRY004 - one error for all
        if content.pop("schema") != SCHEMA:
            raise ValueError("written by another version of tritonsmith")  # noqa: TRY301 - one error for all
        kernels = tuple(untrusted.shaped(DumpedKernel, row) for row in content.pop("kernels"))
        dumps = tuple(untrusted.shaped(Dump, row) for row in content.pop("dumps"))
        index = untrusted.shaped(DumpIndex, content, folder=folder, kernels=kernels, dumps=dumps)
        _check(index)
        # JSON has lists only.
        return replace(index, reproducers=tuple(index.reproducers))
    except FileNotFoundError as error:
        hints = [
            "`invoke passes.dump --out DIR` or `invoke passes.dump --from-log FILE --out DIR` creates one"
        ]
        why = "the run that began it was killed" if (folder / UNFINISHED).is_file() else None
        what = "this folder is not a dump: its index is missing"
        raise FactError(what, where=path, why=why, hints=hints) from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise FactError("cannot read this index", where=path, why=str(error)) from error


def _check(index: DumpIndex) -> None:
    """Check an index that may be untrusted.

    Raises:
        ValueError: it names files outside its folder, or dumps that it does not have.
    """
    # Besides leaking a file's content, a path such as `/dev/zero` would never end.
    for name in (index.output, *index.reproducers, *(dump.path for dump in index.dumps)):
        untrusted.place_in(name)
    for dump in index.dumps:
        if dump.against is not None and not 0 <= dump.against < len(index.dumps):
            raise ValueError(f"there is no dump {dump.against}")


def choose_kernel(index: DumpIndex, name: str) -> DumpedKernel:
    """Return a kernel by name, or the only one.

    Raises:
        UsageError: there is no such kernel, or none is named and there are several.
        FactError: the dump has none.
    """
    known = [entry.name for entry in index.kernels]
    if not known:
        raise FactError("this dump contains no IR", where=index.folder / index.output)
    if not name and len(known) > 1:
        hints = [f"choose one: --kernel {candidate}" for candidate in known[:8]]
        raise UsageError("this dump has several kernels", hints=hints)
    match = next((entry for entry in index.kernels if entry.name == (name or known[0])), None)
    if match is None:
        raise UsageError(f"no kernel {name!r} in this dump", hints=did_you_mean(name, known))
    return match


def choose_dump(index: DumpIndex, name: str, word: str) -> Dump:
    """Return a dump of a kernel by its number, or by the name of a pass that ran once.

    Args:
        index: the dump folder's index.
        name: the kernel.
        word: `12`, `tritongpu-coalesce` or `TritonGPUCoalesce`.

    Raises:
        UsageError: there is no such dump, or there are several.
    """
    dumps = index.of(name)
    # A number first: no pass has a name of digits.
    if word.isdecimal():
        if int(word) < len(dumps):
            return dumps[int(word)]
        raise UsageError(f"no pass {word}", hints=[f"passes of {name}: 0 to {len(dumps) - 1}"])
    matches = [entry for entry in dumps if word in (entry.argument, entry.name)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        numbers = ", ".join(str(entry.number) for entry in matches)
        raise UsageError(f"{word} ran more than once", hints=[f"choose one by its number: {numbers}"])
    names = {entry.label for entry in dumps}
    raise UsageError(f"no pass {word!r} in this dump", hints=did_you_mean(word, names))


def record_origin(made_by: str, python: str, space: Workspace, phase: str) -> Step:
    """Return a step that records a dump as made here, by the command and the interpreter of its index."""
    # An index may be a stranger's, and it names an interpreter and a kernel's file. Only a dump that was made
    # here names what may be run, so the record is in the workspace, outside of the dump.
    return Write(_origin_record(made_by, python, space), f"{python}\n{made_by}\n", phase=phase)


def require_own(index: DumpIndex, space: Workspace) -> None:
    """Check that the programs which a dump names may be run.

    Raises:
        FactError: the dump was not made here.
    """
    if not _origin_record(index.command, index.python, space).is_file():
        raise FactError(
            "this dump was not made here: the programs that it names are not run",
            where=index.folder,
            why=f"it comes from: {index.command}",
            hints=["dump the kernel here: invoke passes.dump FILE:KERNEL --signature ... --target ..."],
        )


def own_interpreter(index: DumpIndex, space: Workspace) -> Path | None:
    """Return the interpreter that a dump names; None if it names none, or one that may not be run.

    Only an interpreter of an environment may be run, or the one of a dump that was made here.
    """
    python = Path(index.python)
    # Without the check for `..`, a path that begins in the workspace could end anywhere.
    ours = python.is_relative_to(space.root / "envs") and ".." not in python.parts
    known = index.python and (ours or _origin_record(index.command, index.python, space).is_file())
    return python if known else None


def no_interpreter(index: DumpIndex) -> FactError:
    """Return the error for a dump that names no interpreter that may be run."""
    named, what = index.python, "the dump does not record which Triton printed it"
    if named:
        what = "this dump was not made here: the interpreter that it names is not run"
    hints = [f"if you trust it: --python {shlex.quote(named)}"] if named else []
    return FactError(
        what,
        where=index.folder,
        hints=[
            *hints,
            "give an interpreter with that Triton: --python PATH",
            "or use a build: --triton-opt PATH, --env NAME",
        ],
    )


def _origin_record(made_by: str, python: str, space: Workspace) -> Path:
    return space.root / "dumped" / digest(python, made_by)
