"""One unit of work: points of a kernel for one Triton, compiled locally or on another machine."""

from __future__ import annotations

import io
import tarfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import zstandard

from tritonsmith.compiler import run, source_tree, tritons
from tritonsmith.compiler.interpreter import Interpreter
from tritonsmith.compiler.manifest import FILE, Manifest
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.compiler.tritons import Triton
from tritonsmith.core import untrusted
from tritonsmith.core.envs import workspace
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, SmithError
from tritonsmith.core.plan import Copy, Extract, MakeDir, Plan, Remove, files

_PHASE = "unit"


@dataclass(frozen=True)
class RemoteJob:
    """A unit with everything that another machine needs.

    Attributes:
        request: its file has the path that it has here.
        triton: the Triton that compiles: a release, or what has the same name or path there.
        timeout: seconds for one point; None for the usual.
        env: of a Triton that names none.
        main: the kernel's file.
        files: that, and what it imports of its own package and of modules beside it: name to content.
    """

    request: CompileRequest
    triton: Triton
    timeout: int | None
    env: str
    main: str
    files: tuple[tuple[str, bytes], ...]


@dataclass(frozen=True)
class RemoteResult:
    """The result of a remote job.

    Attributes:
        manifest: its folder is one of the other machine's.
        files: of that folder, as a tar archive.
    """

    manifest: Manifest
    files: bytes


def compile_here(request: CompileRequest, place: Interpreter, out: Path) -> Manifest | SmithError:
    """Compile a unit in a process of this machine.

    Returns:
        What was compiled, without a manifest file in `out`; or why nothing could be.
    """
    try:
        # In a folder of this attempt's own, and copied from there: a killed attempt leaves nothing in `out`.
        with _scratch(place.space) as scratch:
            manifest = _compiled(request, place, scratch)
            _run(place.space, Copy(manifest.folder, out, tree=True, phase=_PHASE))
            return replace(manifest, folder=out)
    except SmithError as error:
        return plain(error)


def pack(request: CompileRequest, triton: Triton, timeout: int | None, env: str) -> RemoteJob:
    """Return a unit for another machine: see `RemoteJob`.

    Raises:
        SmithError: a file cannot be read, or they are too many.
    """
    if request.from_ir:
        sent = [(request.file.name, _content(request.file))]
        return RemoteJob(request, triton, timeout, env, request.file.name, tuple(sent))
    tree = source_tree.of(request.file, request.kernel)
    sent = [(name, _content(tree.root / name)) for name, _ in tree.sums]
    return RemoteJob(request, triton, timeout, env, tree.main, tuple(sent))


def _content(file: Path) -> bytes:
    try:
        return untrusted.read_bytes(file)
    except OSError as error:
        raise FactError("cannot read this file", where=file, why=error.strerror) from error


def compile_there(job: RemoteJob) -> RemoteResult | SmithError:
    """Compile on a cluster worker, in its own workspace and environment."""
    try:
        place = tritons.place_of(job.triton, 1, job.timeout, job.env)
        with _scratch(place.space) as scratch:
            for name, content in job.files:
                files.make_folder((scratch / name).parent)
                files.write(scratch / name, content)
            # Messages name the copy, which nobody has; the sender's path takes its place.
            file, original = scratch / job.main, job.request.file
            try:
                manifest = _compiled(replace(job.request, file=file), place, scratch)
            except SmithError as error:
                return _about_file_here(plain(error), file, original)
            points = tuple(
                replace(point, error=point.error.replace(str(file), str(original)))
                for point in manifest.points
            )
            return RemoteResult(replace(manifest, file=str(original), points=points), _tar(manifest.folder))
    except SmithError as error:
        return plain(error)


def unpack(answer: RemoteResult, out: Path) -> Manifest:
    """Put the files of an answer into a folder here.

    Raises:
        SmithError: they are damaged, or point outside, or `out` cannot be written.
    """
    space = workspace.default()
    with _scratch(space) as scratch:
        archive = scratch / "answer.tar.zst"
        files.write(archive, answer.files)
        unpacked = scratch / "files"
        _run(
            space,
            Extract(archive, unpacked, space.root, strip=0, phase=_PHASE),
            Copy(unpacked, out, tree=True, phase=_PHASE),
        )
    return replace(answer.manifest, folder=out)


def _compiled(request: CompileRequest, place: Interpreter, scratch: Path) -> Manifest:
    prepared = run.prepare(request, place, scratch / "out")
    try:
        manifest = run.execute(prepared, place, silent=True).manifest
    finally:
        _run(place.space, Remove((prepared.work,), place.space.root, phase=_PHASE))
    # The folder of the job has other parts, too: its manifest is written when all of them are there.
    _run(place.space, Remove((manifest.folder / FILE,), place.space.root, phase=_PHASE))
    return manifest


@contextmanager
def _scratch(space: Workspace) -> Iterator[Path]:
    space.claim()
    folder = space.root / "kernels" / "units" / uuid.uuid4().hex
    _run(space, MakeDir(folder, phase=_PHASE))
    try:
        yield folder
    finally:
        _run(space, Remove((folder,), space.root, phase=_PHASE))


def _run(space: Workspace, *steps: Copy | Extract | MakeDir | Remove) -> None:
    space.run(Plan("unit", steps), "kernel.unit", quiet=True)


def _tar(folder: Path) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for path in sorted(folder.iterdir()):
            tar.add(path, path.name)
    return zstandard.ZstdCompressor().compress(stream.getvalue())


def _about_file_here(error: SmithError, there: Path, here: Path) -> SmithError:
    """Return an error about the copy there as an error about the file here."""
    where, why = (text and text.replace(str(there), str(here)) for text in (error.where, error.why))
    return type(error)(error.what, where=where, why=why, hints=error.hints)


def plain(error: SmithError) -> SmithError:
    """Return an error that can be sent between processes."""
    # pickle rebuilds an exception from its `args`, which does not fit classes with parameters of their own.
    if type(error).__init__ is SmithError.__init__:
        return error
    return SmithError(error.what, where=error.where, why=error.why, hints=error.hints)
