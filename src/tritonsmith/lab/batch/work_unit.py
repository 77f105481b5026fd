"""Compile or disassemble one unit of a pool's work, in a process of this machine or on a cluster's worker.

Functions that end in `_there` run on the worker, which gets everything that it needs, and returns files.
"""

from __future__ import annotations

import functools
import io
import tarfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import zstandard

from tritonsmith import __version__
from tritonsmith.compiler import call, run, source_tree, tritons
from tritonsmith.compiler import manifest as manifests
from tritonsmith.compiler.interpreter import Interpreter, UnavailableError
from tritonsmith.compiler.manifest import FILE, Manifest
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.compiler.tritons import Triton
from tritonsmith.core import untrusted
from tritonsmith.core.envs import workspace
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, SmithError
from tritonsmith.core.plan import Copy, Extract, MakeDir, Plan, Remove, digest, files
from tritonsmith.lab.batch import kept, kept_files, pool
from tritonsmith.lab.batch.kept_files import PackedPart, ReadCode, UnreadCode

UNIT = "unit"  # phase of the steps of one unit of work

# Of each process of the pool, which compiles one unit after the other: `import triton` and what a new process
# asks every ptxas take longer than most compiles.
_WORKERS = call.WarmWorkers()

Result = Manifest | SmithError


class UnfitWorkerError(UnavailableError):
    """A worker lacks the Triton that compiles, or has another one at its place.

    Attributes:
        worker: its address.
    """

    worker = ""


@dataclass(frozen=True)
class RemoteJob:
    """A unit with everything that another machine needs.

    Attributes:
        request: its file has the path that it has here.
        triton: the Triton that compiles: a release, or what has the same name or path there.
        timeout: seconds for one point; None for the usual.
        env: of a Triton that names none.
        main: the kernel's file.
        files: name to content of that file, of the modules of its package that it imports, and of modules in
            its folder.
        fingerprint: of that Triton, which must be the same there; empty if it is not compared.
        tool: a key of the part of this tool that compiles, which must be the same there.
        root: the folder that the files are from.
        shares: stages may be shared: see `worker.compile_point.SharedStages`.
        packs: the answer is a `PackedResult`.
    """

    request: CompileRequest
    triton: Triton
    timeout: int | None
    env: str
    main: str
    files: tuple[tuple[str, bytes], ...]
    fingerprint: str
    tool: str
    root: str
    shares: bool
    packs: bool


@dataclass(frozen=True)
class RemoteCode:
    """Kept results of one kernel with everything that another machine needs to disassemble them.

    Attributes:
        triton: as in `RemoteJob`, and so are the next four.
        timeout: seconds for one point; None for the usual.
        env: of a Triton that names none.
        fingerprint: of that Triton.
        tool: a key of this tool.
        parts: the results, target by target.
    """

    triton: Triton
    timeout: int | None
    env: str
    fingerprint: str
    tool: str
    parts: tuple[UnreadCode, ...]


@dataclass(frozen=True)
class RemoteResult:
    """The result of a remote job.

    Attributes:
        manifest: its folder is one of the other machine's.
        files: of that folder, as a tar archive.
    """

    manifest: Manifest
    files: bytes


@dataclass(frozen=True)
class PackedResult:
    """The result of a unit whose files go to the database.

    Attributes:
        manifest: its folder is gone.
        parts: the files, and what was measured of them.
    """

    manifest: Manifest
    parts: tuple[PackedPart, ...]


def compile_here(
    request: CompileRequest,
    place: Interpreter,
    out: Path,
    shared: Path | None = None,
    *,
    packs: bool = False,
) -> Result | PackedResult:
    """Compile a unit in a process of this machine.

    Args:
        request: the part of a job.
        place: the interpreter.
        out: the folder of the files.
        shared: see `compiler.run.worker_request`.
        packs: write no files, and return a `PackedResult`.

    Returns:
        The manifest, which is no file in `out`; or the reason why nothing could be compiled.
    """
    try:
        # In a folder of this attempt's own, and copied from there: a killed attempt leaves nothing in `out`.
        with scratch_folder(place.space) as scratch:
            manifest = _compiled(request, place, scratch, shared)
            if packs:  # here and not in the process that all results come to, which is one
                return PackedResult(manifest, kept_files.pack(manifest, code=request.disassemble))
            run_steps(place.space, Copy(manifest.folder, out, tree=True, phase=UNIT))
            return replace(manifest, folder=out)
    except SmithError as error:
        return plain(error)


def pack(
    request: CompileRequest,
    triton: Triton,
    timeout: int | None,
    env: str,
    fingerprint: str = "",
    *,
    shares: bool = False,
    packs: bool = False,
) -> RemoteJob:
    """Return a unit for another machine: see `RemoteJob`.

    Raises:
        SmithError: a file cannot be read, or they are too many.
    """
    # IR imports nothing, so the one file is all.
    if request.from_ir:
        root, main = request.file.parent, request.file.name
        sent = [(main, _content(request.file))]
    else:
        tree = source_tree.of(request.file, request.kernel)
        root, main, sent = tree.root, tree.main, [(name, _content(tree.root / name)) for name, _ in tree.sums]
    return RemoteJob(
        request, triton, timeout, env, main, tuple(sent), fingerprint, tool_key(), str(root), shares, packs
    )


@functools.cache
def tool_key() -> str:
    """Return a key of the part of this tool that compiles."""
    return digest(__version__, call.source_text())


def _content(file: Path) -> bytes:
    try:
        return untrusted.read_bytes(file)
    except OSError as error:
        raise FactError("cannot read this file", where=file, why=error.strerror) from error


def compile_there(job: RemoteJob) -> RemoteResult | PackedResult | SmithError:
    """Compile on a cluster worker, in its own workspace and environment; runs there."""
    with pool.cancellable():
        return _compiled_there(job)


def _compiled_there(job: RemoteJob) -> RemoteResult | PackedResult | SmithError:
    try:
        place, state = _place_there(job)
        with scratch_folder(place.space) as scratch:
            # The sender's path may not exist here, or be another file of that name.
            for name, content in job.files:
                files.make_folder((scratch / name).parent)
                files.write(scratch / name, content)
            # Messages name the copy, which nobody has; the sender's path takes its place.
            file, original = scratch / job.main, job.request.file
            shared, sent = (stages_of(place), (str(scratch), job.root)) if job.shares else (None, ())
            try:
                request = replace(job.request, file=file)
                manifest = _compiled(request, place, scratch, shared, state, sent=sent)
            except SmithError as error:
                return _about_file_here(plain(error), file, original, scratch)
            points = tuple(
                replace(point, error=point.error.replace(str(file), str(original)))
                for point in manifest.points
            )
            reads = _elsewhere(manifest.reads, scratch)
            named = replace(manifest, file=str(original), points=points, reads=reads)
            if job.packs:
                return PackedResult(named, kept_files.pack(named, code=request.disassemble))
            return RemoteResult(named, _tar(manifest.folder))
    except SmithError as error:
        return plain(error)


def disassemble_there(job: RemoteCode) -> tuple[ReadCode, ...] | SmithError:
    """Disassemble on a cluster worker, by the programs of its own copy of the Triton; runs there."""
    with pool.cancellable():
        try:
            place, _ = _place_there(job)
            own = (manifests.trusted_package(code.part, place.space) for code in job.parts)
            packages = tuple(dict.fromkeys((*filter(None, own), tritons.package(place.python))))
            return tuple(kept_files.read_code(job.parts, packages))
        except SmithError as error:
            return plain(error)


def _place_there(job: RemoteJob | RemoteCode) -> tuple[Interpreter, str]:
    """Return the interpreter of a unit on this worker, and a key of what is imported by it.

    Raises:
        UnfitWorkerError: it is missing, cannot be made, or has another Triton than the sender.
    """
    try:
        # Results are kept by what compiled here: those of another worker would be taken for these for ever.
        if job.tool != tool_key():
            hints = [f"install tritonsmith {__version__} on all machines"]
            raise FactError(f"another tritonsmith ({__version__}) is there", hints=hints)
        # One compile at a time, as the worker has a unit for each of its threads.
        place = tritons.place_of(job.triton, 1, job.timeout, job.env)
        fingerprint = tritons.fingerprint(place.python)
        if job.fingerprint not in ("", fingerprint):
            version = tritons.installed(place.python)
            raise FactError(f"another Triton ({version}) is there", where=place.python)
    except SmithError as error:
        # Whatever it is, another worker may do better, and the kernel is not to blame.
        unfit = UnfitWorkerError(error.what, where=error.where, why=error.why, hints=error.hints)
        unfit.worker = pool.this_worker()
        raise unfit from error
    # A worker lives for days, in which its Triton may be built or installed again.
    return place, digest(fingerprint, tritons.changed(place.python))


def unpack(answer: RemoteResult, out: Path) -> Manifest:
    """Put the files of an answer into a folder here.

    Raises:
        SmithError: they are damaged, or point outside, or `out` cannot be written.
    """
    space = workspace.default()
    with scratch_folder(space) as scratch:
        archive = scratch / "answer.tar.zst"
        files.write(archive, answer.files)
        unpacked = scratch / "files"
        run_steps(
            space,
            Extract(archive, unpacked, space.root, strip=0, phase=UNIT),
            Copy(unpacked, out, tree=True, phase=UNIT),
        )
    return replace(answer.manifest, folder=out)


def _compiled(
    request: CompileRequest,
    place: Interpreter,
    scratch: Path,
    shared: Path | None = None,
    state: str = "",
    sent: tuple[str, ...] = (),
) -> Manifest:
    try:
        manifest = _executed(request, place, scratch, shared, state, sent, presume=True)
    except run.OtherParametersError:
        manifest = _executed(request, place, scratch, shared, state, sent, presume=False)
    # The folder of the job has other parts, too: its manifest is written when all of them are there.
    run_steps(place.space, Remove((manifest.folder / FILE,), place.space.root, phase=UNIT))
    return manifest


def _executed(
    request: CompileRequest,
    place: Interpreter,
    scratch: Path,
    shared: Path | None,
    state: str,
    sent: tuple[str, ...],
    *,
    presume: bool,
) -> Manifest:
    """Compile by a worker that stays; see `run.prepare` for `presume`."""
    out = scratch / "out"
    prepared = run.prepare(request, place, out, shared, sent, presume=presume).warm(_WORKERS, state)
    try:
        return run.execute(prepared, place, silent=True).manifest
    finally:
        run_steps(place.space, Remove((prepared.work,), place.space.root, phase=UNIT))


@contextmanager
def scratch_folder(space: Workspace) -> Iterator[Path]:
    """Yield a folder in the workspace for the body of a `with`."""
    space.claim()
    # Units of several processes, and of several machines, may share the workspace.
    folder = space.root / "kernels" / "units" / uuid.uuid4().hex
    run_steps(space, MakeDir(folder, phase=UNIT))
    try:
        yield folder
    finally:
        run_steps(space, Remove((folder,), space.root, phase=UNIT))


def run_steps(space: Workspace, *steps: Copy | Extract | MakeDir | Remove) -> None:
    """Run steps of a unit.

    Raises:
        SmithError: one fails.
    """
    space.run(Plan("unit", steps), "kernel.unit", quiet=True)


def _tar(folder: Path) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for path in sorted(folder.iterdir()):
            tar.add(path, path.name)
    return zstandard.ZstdCompressor().compress(stream.getvalue())


def _about_file_here(error: SmithError, there: Path, here: Path, scratch: Path) -> SmithError:
    """Return an error about the copy there as an error about the file here."""
    # The class stays the same, since it decides whether a refusal is final: see `_refusal`.
    where, why = (text and text.replace(str(there), str(here)) for text in (error.where, error.why))
    about_here = type(error)(error.what, where=where, why=why, hints=error.hints)
    about_here.reads = _elsewhere(error.reads, scratch)
    return about_here


def _elsewhere(reads: Mapping[str, str], scratch: Path) -> dict[str, str]:
    """Return the files that did not come with a unit: the sender knows the content of those that did."""
    own = scratch, scratch.resolve()
    return {name: content for name, content in reads.items() if not any(map(Path(name).is_relative_to, own))}


def plain(error: SmithError) -> SmithError:
    """Return an error that can be sent between processes."""
    # pickle rebuilds an exception from its `args`, which does not fit classes with parameters of their own.
    if type(error).__init__ is SmithError.__init__:
        return error
    same = SmithError(error.what, where=error.where, why=error.why, hints=error.hints)
    same.reads = error.reads
    return same


def stages_of(place: Interpreter) -> Path:
    """Return the folder of the stages that compiles share: see `worker.compile_point.SharedStages`."""
    return place.space.root / "kernels" / kept.STAGES
