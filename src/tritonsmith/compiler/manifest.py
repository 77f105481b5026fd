"""The output folder of a compiled kernel: its manifest, its name, and its lock.

OUT/manifest.json
OUT/<point>/<kernel>.<stage>        one folder per point: a target with one choice of options and constants
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

from tritonsmith.compiler import source_tree, targets
from tritonsmith.compiler.request import CompilePoint
from tritonsmith.compiler.targets import Target
from tritonsmith.core import untrusted
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.core.plan import Step, Write, digest, files, locks
from tritonsmith.worker.border import text_of
from tritonsmith.worker.messages import CompiledRow, CompileHead, LedgerNews

FILE = "manifest.json"
SCHEMA = 1
# Web apps and browser extensions have a file of this name, too; none of theirs has all of these keys.
_OURS = frozenset({"schema", "kernel", "points"})
# `RuntimeError: PassManager::run failed` is the last line of every failed pass, and explains nothing.
_EXPLAINS = re.compile(r"(?<![A-Za-z])(error|ERROR)\s*:|Assertion")
_COLONS = 2  # of a target
# A manifest may come from a stranger. The name of a kernel becomes a part of paths, its symbol and its
# numbers become C code.
_KERNEL = re.compile(r"[^-./\x00-\x1f\x7f][^/\x00-\x1f\x7f]*")
_SYMBOL = re.compile(r"[^\W\d][\w$.]*")
_NUMBERS = (
    "shared",
    "num_warps",
    "num_ctas",
    "warp_size",
    "tmem_size",
    "global_scratch_size",
    "profile_scratch_size",
)
# Seconds to wait for another command that compiles the same kernel into a folder of the workspace.
_READERS = 60.0
_FOREIGN = re.compile(r"[^\w.,=+-]")
# Characters; file systems allow 255 bytes, and the digest of a longer name comes on top.
_LONGEST = 200
# `lost`: no compiler saw it, as no worker of a cluster could run it; the kernel may be fine.
Status = Literal["ok", "failed", "crashed", "timeout", "lost"]


@dataclass(frozen=True)
class Stage:
    """One form of a compiled kernel.

    Attributes:
        path: its file, relative to the output folder.
        size: its size in bytes.
        sha256: its digest, as 64 hex digits.
    """

    path: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Point:
    """One compile.

    Attributes:
        id: name of its folder: the target, and the values that differ between points.
        target: `cuda:90:32`, `hip:gfx942:64`.
        signature: parameter to type, as Triton spells it: `*fp32`, `i32`, `constexpr`.
        constexprs: parameter to value.
        hints: parameter to a fact about its value: 16 (divisible by it) or 1 (equal to it).
        options: the backend options of the request.
        status: the outcome of the compile.
        seconds: wall time of the compile.
        stages: name (`ttir`, `ptx`, `cubin`, `hsaco`, `sass` ...) to file.
        metadata: Triton's metadata: shared (bytes), num_warps, name of the symbol ...
        error: the compiler's message; empty if there is none.
        log: its standard error.
        remarks: ptxas's remarks on its code: `(C7510) Potential Performance Loss: ...`; None if they were not
            recorded, or if ptxas did not run.
        surgery: changes to the pipelines: skipped passes, the last one ...; None for none.
        passes: those that the backend requested, in order, and how often each was added; None if not counted.
        cpu_seconds: CPU seconds of each stage of a compile that succeeded, and `rest`; ptxas
            is included.
        shared: the stages that did not run, as another compile had made them: see `SharedStages`.
    """

    id: str
    target: str
    signature: Mapping[str, str]
    constexprs: Mapping[str, Any]
    hints: Mapping[str, int]
    options: Mapping[str, Any]
    status: Status
    seconds: float
    stages: Mapping[str, Stage] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""
    log: str = ""
    remarks: Sequence[str] | None = None
    surgery: Mapping[str, Any] | None = None
    passes: Sequence[Mapping[str, Any]] | None = None
    cpu_seconds: Mapping[str, float] = field(default_factory=dict)
    shared: tuple[str, ...] = ()

    @property
    def backend(self) -> str:
        """The backend: `cuda` or `hip`."""
        return self.target.partition(":")[0]

    @property
    def arch(self) -> str:
        """The architecture: `90`, `gfx942`."""
        return self.target.split(":")[1]

    @property
    def gist(self) -> str:
        """The error in one line: the text after the source excerpt and caret, or MLIR's or LLVM's message."""
        # Triton's CompilationError prints an excerpt of the source with a caret below it, and then the
        # reason. The error of a called function follows that of its caller, so the last caret counts.
        lines = [line.strip() for line in self.error.splitlines() if line.strip()]
        after = lines[len(lines) - lines[::-1].index("^") :] if "^" in lines else []
        explanation = [line for line in after if not line.startswith("at ")]
        messages = [line for line in lines if _EXPLAINS.search(line)]
        return (explanation or messages or lines or [""])[0]


@dataclass(frozen=True)
class Manifest:
    """An output folder.

    Attributes:
        folder: its path.
        kernel: name of the function.
        file: the Python file that defines it.
        file_sha256: the digest of that file's content.
        triton: version that compiled it.
        origin: folder of that Triton's package.
        python: version of the interpreter.
        command: the command that makes it again, for a shell.
        points: all compiles, including failed ones.
        stand_ins: full name of each object that was not installed, and was replaced while the file was
            loaded, to FILE:LINE of its first use.
        warnings: reasons to doubt that a machine with all packages would compile the same code.
        sources: digest of that file and its own imports before the compile; empty if it was not recorded.
        reads: all other files that loading it has read, each with the digest of its content; empty for one
            that changed meanwhile. Those of a kept result are relative to the root of the kernel's sources.
    """

    folder: Path
    kernel: str
    file: str
    file_sha256: str
    triton: str
    origin: str
    python: str
    command: str
    points: tuple[Point, ...]
    stand_ins: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    sources: str = ""
    reads: Mapping[str, str] = field(default_factory=dict)

    def path(self, point: Point, stage: str) -> Path | None:
        """Return the file of a stage; None if the point has none.

        Raises:
            FactError: it is outside of the folder.
        """
        entry = point.stages.get(stage)
        try:
            return untrusted.path_in(self.folder, entry.path) if entry else None
        except untrusted.UnreadableError as error:
            what = "a file of this manifest is outside its folder"
            raise FactError(what, where=self.folder / FILE, why=str(error)) from error

    def render(self, indent: int | None = 2) -> str:
        """Return the text of `manifest.json`; on one line for None."""
        # Not `asdict`, which copies each leaf: a process that keeps thousands of results renders them all.
        content = {"schema": SCHEMA, **vars(self)}
        # A folder may be moved; readers know where they found it.
        del content["folder"]
        # Only batches record sources, and most kernels read nothing: other manifests have no such keys.
        for name in ("sources", "reads"):
            if not content[name]:
                del content[name]
        return json.dumps(content, indent=indent, default=vars) + "\n"


def read(folder: Path) -> Manifest:
    """Read an output folder.

    Raises:
        FactError: it has no manifest, or one that cannot be read.
    """
    path = folder / FILE
    hints = ["`invoke kernel.compile --out DIR` writes one"]
    try:
        content = untrusted.read_json(path, untrusted.OURS)
    except FileNotFoundError as error:
        raise FactError(
            "this folder has no manifest of a compiled kernel", where=path, hints=hints
        ) from error
    except (OSError, ValueError) as error:
        raise FactError("cannot read this manifest", where=path, why=str(error)) from error
    return parse(content, folder)


def parse(content: object, folder: Path) -> Manifest:
    """Return the manifest that a `manifest.json` of a folder holds.

    Raises:
        FactError: it is not one of this version.
    """
    path = folder / FILE
    hints = ["`invoke kernel.compile --out DIR` writes one"]
    if not isinstance(content, dict) or not content.keys() >= _OURS:
        what = f"the {FILE} in this folder was not written by kernel.compile"
        raise FactError(what, where=path, hints=hints)
    if content.pop("schema") != SCHEMA:
        raise FactError(
            "this manifest was written by another version of tritonsmith",
            where=path,
            hints=["compile the kernel again"],
        )
    try:
        points = tuple(_point(row) for row in content.pop("points"))
        manifest = untrusted.shaped(Manifest, content, folder=folder, points=points)
        if manifest.kernel and not _KERNEL.fullmatch(manifest.kernel):
            raise ValueError(f"{manifest.kernel[:80]!r} is not the name of a kernel")  # noqa: TRY301 - one error for all
        return replace(manifest, warnings=tuple(manifest.warnings))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        why = f"{type(error).__name__}: {error}"
        raise FactError(
            "this manifest is incomplete or malformed",
            where=path,
            why=why,
            hints=["compile the kernel again"],
        ) from error


def _point(content: dict[str, Any]) -> Point:
    """Return a checked point.

    Raises:
        ValueError: a path, the target or a number in it is invalid.
    """
    # The folder may be a stranger's: reading a stage that is `/dev/zero` would never end.
    stages = {name: untrusted.shaped(Stage, stage) for name, stage in content.pop("stages").items()}
    for stage in stages.values():
        untrusted.place_in(stage.path)
    point = untrusted.shaped(Point, content, stages=stages)
    if point.target.count(":") != _COLONS:
        raise ValueError(f"{point.target!r} is not a target")
    if "/" in untrusted.place_in(point.id):
        raise ValueError(f"{point.id!r} is not the name of a folder")
    symbol = point.metadata.get("name")
    if symbol is not None and not (isinstance(symbol, str) and _SYMBOL.fullmatch(symbol)):
        raise ValueError(f"{str(symbol)[:80]!r} is not the name of a kernel")
    for name in _NUMBERS:
        if not isinstance(point.metadata.get(name), int | None):
            raise ValueError(f"{name} is not a number")  # noqa: TRY004 - told like the others
    return replace(point, shared=tuple(point.shared))


def from_results(
    head: CompileHead,
    rows: Sequence[CompiledRow],
    folder: Path,
    kernel: str,
    file: Path,
    points: Sequence[CompilePoint],
    flags: str,
) -> Manifest:
    """Return the manifest of a run of the worker.

    Args:
        head: the worker's row about Triton.
        rows: the worker's rows about points.
        folder: the output folder.
        kernel: name of the function.
        file: the kernel's file, or the IR's.
        points: the points, in the order of the manifest.
        flags: words and flags of the command that makes it again.
    """
    # Rows come in the order in which processes end; the manifest has the order of the request.
    by_id = {row.id: row for row in rows}
    news = [head.news, *(row.news for row in rows)]
    variables = "".join(f"{name}={shlex.quote(value)} " for name, value in head.variables.items())
    return Manifest(
        folder=folder,
        kernel=kernel,
        file=str(file),
        file_sha256=head.file_sha256,
        triton=head.triton,
        origin=head.origin,
        python=head.python,
        command=f"{variables}tritonsmith kernel.compile {flags}",
        points=tuple(
            _compiled(by_id[point.id], point.target, head.triton) for point in points if point.id in by_id
        ),
        stand_ins=stand_ins(news),
        warnings=warnings(news),
        reads=all_reads([head.reads, *(row.reads for row in rows)]),
    )


def _compiled(row: CompiledRow, target: Target, triton: str) -> Point:
    known: dict[str, Any] = {attribute.name: getattr(row, attribute.name) for attribute in fields(Point)}
    known["stages"] = {name: Stage(**vars(stage)) for name, stage in row.stages.items()}
    # Lists, as they are when the manifest is read again: both manifests must be equal.
    for name in ("remarks", "passes"):
        known[name] = None if known[name] is None else list(known[name])
    known["surgery"] = json.loads(text_of(row.surgery)) if row.surgery else None
    known["error"] = source_tree.name_cells(targets.explained(row.error, target, triton))
    return Point(**known)


def all_reads(every: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Return the files that any of several loads has read; without a digest if they read another content."""
    merged: dict[str, str] = {}
    for reads in every:
        for name, content in reads.items():
            merged[name] = content if merged.get(name, content) == content else ""
    return merged


def stand_ins(news: Iterable[LedgerNews]) -> dict[str, str]:
    """Merge the stand-ins of all rows: full name to the place of its first use."""
    places: dict[str, str] = {}
    for each in news:
        places |= each.stand_ins
    # Triton 3.0 imports setuptools for its launchers (python/triton/runtime/build.py), which no compile
    # makes.
    return {
        name: source_tree.name_cells(place)
        for name, place in places.items()
        if name.partition(".")[0] != "setuptools"
    }


def warnings(news: Iterable[LedgerNews]) -> tuple[str, ...]:
    """Return the doubtful decisions of stand-ins and the unknown GPU properties, each once."""
    texts: dict[str, None] = {}
    for each in news:
        for name, place in each.gone.items():
            texts[f"{place}: {name} is not installed; without it, the code takes another path"] = None
        texts |= dict.fromkeys(each.doubts)
    return tuple(map(source_tree.name_cells, texts))


def record_triton(manifest: Manifest, space: Workspace) -> Step:
    """Return a step that records a Triton as one that has compiled here, so that its ptxas may be run."""
    return Write(_triton_record(manifest.origin, space), f"{manifest.origin}\n", phase="manifest")


def trusted_package(manifest: Manifest, space: Workspace) -> Path | None:
    """Return the package of the Triton that compiled a manifest; None if its programs may not be run."""
    # The manifest may be foreign, and name any folder. Trusted are the folders of environments, and of
    # interpreters that have compiled something here.
    origin = Path(manifest.origin)
    ours = origin.is_relative_to(space.root / "envs") and ".." not in origin.parts
    trusted = ours or _triton_record(manifest.origin, space).is_file()
    return origin if origin.is_absolute() and trusted else None


def _triton_record(origin: str, space: Workspace) -> Path:
    return space.root / "compiled" / digest(origin)


def check_output(out: Path) -> None:
    """Check that a manifest may be written into a folder: it has none, or one by kernel.compile.

    Raises:
        UsageError: it is not a folder, or its manifest was not written by kernel.compile.
    """
    if out.exists() and not out.is_dir():
        raise UsageError(
            "--out is a file, not a folder", where=out, hints=["choose another folder: --out DIR"]
        )
    path = out / FILE
    if not path.exists():
        return
    try:
        content = untrusted.read_json(path, untrusted.OURS)
    except (OSError, ValueError):
        content = None
    if not isinstance(content, dict) or not content.keys() >= _OURS:
        what = f"the {FILE} in this folder was not written by kernel.compile"
        raise UsageError(what, where=path, hints=["choose another folder: --out DIR"])


def folder_name(text: str) -> str:
    """Return a name that every file system accepts, and that cannot leave its folder."""
    name = _FOREIGN.sub("_", text.replace(" -> ", "--")).lstrip(".") or "_"
    return name if len(name) <= _LONGEST else f"{name[:_LONGEST]}-{digest(text)}"


def scratch_folder(out: Path, space: Workspace) -> Path:
    """Return the scratch folder of an output folder; the same for every link to that folder."""
    # Two folders of one name must not share a scratch folder. The bytes are hashed, because a path need not
    # be UTF-8.
    path_digest = hashlib.sha256(os.fsencode(out.resolve())).hexdigest()[:16]
    return space.root / "kernels" / "work" / path_digest


@contextmanager
def hold_output(out: Path, space: Workspace, task: str) -> Iterator[None]:
    """Lock an output folder and its scratch folder for the body of a `with`, or longer: see `keep_locks`.

    Args:
        out: the output folder. Outside the workspace it is created, with a lock in it, because other
            workspaces may write to it, too.
        space: the workspace, which is claimed.
        task: name of the task, for the message to others.

    Raises:
        LockedError: another process holds it.
        UsageError: it cannot be created.
    """
    work = scratch_folder(out, space)
    files.make_folder(work)
    paths = [work / "lock"]
    if not out.is_relative_to(space.root):
        paths.append(out / ".lock")
        try:
            files.make_folder(out)
        except OSError as error:
            raise UsageError("cannot create the folder of --out", where=out, why=error.strerror) from error
    # Two commands that only want to read a result may both have to compile it first, and one waits for the
    # other. A folder that the user named is another matter: the other command may want something else in it.
    keeping = _keeping.get()
    patience = _READERS if keeping and out.is_relative_to(space.root) else 0.0
    with ExitStack() as stack:
        # A link to a folder whose lock is kept leads to the same lock.
        for path in (path.parent.resolve() / path.name for path in paths):
            if keeping and path in keeping.paths:
                continue
            lock = locks.hold(
                path,
                purpose=f"{task} --out {out}",
                busy="in this output folder",
                hints=[
                    "wait for it to end, or stop it with ^C in its terminal",
                    "choose another folder: --out DIR",
                ],
                patience=patience,
            )
            stack.enter_context(lock)
            # At once: the body may lock the same folder again.
            if keeping:
                keeping.paths.add(path)
                stack.callback(keeping.paths.discard, path)
        yield
        # Not after an error: the folder is then not worth reading, and another command may try.
        if keeping:
            keeping.stack.push(stack.pop_all())


@dataclass(frozen=True)
class _KeptLocks:
    """The locks that outlive their own `with`, and their paths."""

    stack: ExitStack
    paths: set[Path] = field(default_factory=set)


# Not a global: a thread starts without it, and only the command that asked for it keeps its locks.
_keeping: ContextVar[_KeptLocks | None] = ContextVar("keeping", default=None)


@contextmanager
def keep_locks() -> Iterator[None]:
    """Keep the locks that `hold_output` takes in the body of the `with` until that body ends.

    A command that compiles into a folder and then reads it is then not disturbed by a command that compiles
    the same kernel for another target.
    """
    with ExitStack() as stack:
        token = _keeping.set(_KeptLocks(stack))
        try:
            yield
        finally:
            _keeping.reset(token)


@contextmanager
def give_locks_back() -> Iterator[None]:
    """Give each lock back as soon as its own `with` ends, even in the body of `keep_locks`."""
    token = _keeping.set(None)
    try:
        yield
    finally:
        _keeping.reset(token)
