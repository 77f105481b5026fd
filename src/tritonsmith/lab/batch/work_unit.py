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
        asked: its file has the path that it has here.
        side: whose Triton compiles: a release, or what has the same name or path there.
        timeout: seconds for one point; None for the usual.
        env: of a side that names no Triton.
        main: the kernel's file.
        files: that, and what it imports of its own package and of modules beside it: name to content.
    """

    asked: CompileRequest
    side: Triton
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


def compile_here(asked: CompileRequest, place: Interpreter, out: Path) -> Manifest | SmithError:
    """Compile in a folder of this attempt's own, and copy what came out: a killed attempt leaves nothing.

    Returns:
        What was compiled, without a manifest file in `out`; or why nothing could be.
    """
    try:
        with _scratch(place.space) as scratch:
            made = _compiled(asked, place, scratch)
            _run(place.space, Copy(made.folder, out, tree=True, phase=_PHASE))
            return replace(made, folder=out)
    except SmithError as error:
        return plain(error)


def pack(asked: CompileRequest, side: Triton, timeout: int | None, env: str) -> RemoteJob:
    """A unit for another machine: see `RemoteJob`.

    Raises:
        SmithError: a file cannot be read, or they are too many.
    """
    if asked.from_ir:
        sent = [(asked.file.name, _content(asked.file))]
        return RemoteJob(asked, side, timeout, env, asked.file.name, tuple(sent))
    tree = source_tree.of(asked.file, asked.kernel)
    sent = [(name, _content(tree.root / name)) for name, _ in tree.sums]
    return RemoteJob(asked, side, timeout, env, tree.main, tuple(sent))


def _content(file: Path) -> bytes:
    try:
        return untrusted.read_bytes(file)
    except OSError as error:
        raise FactError("cannot read this file", where=file, why=error.strerror) from error


def compile_there(parcel: RemoteJob) -> RemoteResult | SmithError:
    """Compile on a cluster worker, in its own workspace and environment."""
    try:
        place = tritons.place_of(parcel.side, 1, parcel.timeout, parcel.env)
        with _scratch(place.space) as scratch:
            for name, content in parcel.files:
                files.make_folder((scratch / name).parent)
                files.write(scratch / name, content)
            file = scratch / parcel.main
            try:
                made = _compiled(replace(parcel.asked, file=file), place, scratch)
            except SmithError as error:
                return _told_otherwise(plain(error), file, parcel.asked.file)
            points = tuple(
                replace(one, error=one.error.replace(str(file), str(parcel.asked.file)))
                for one in made.points
            )
            return RemoteResult(replace(made, file=str(parcel.asked.file), points=points), _tar(made.folder))
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


def _compiled(asked: CompileRequest, place: Interpreter, scratch: Path) -> Manifest:
    prepared = run.prepare(asked, place, scratch / "out")
    try:
        made = run.execute(prepared, place, silent=True).manifest
    finally:
        _run(place.space, Remove((prepared.work,), place.space.root, phase=_PHASE))
    _run(place.space, Remove((made.folder / FILE,), place.space.root, phase=_PHASE))
    return made


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


def _told_otherwise(error: SmithError, there: Path, here: Path) -> SmithError:
    """An error about the copy there, told of the file here."""
    where, why = (text and text.replace(str(there), str(here)) for text in (error.where, error.why))
    return type(error)(error.what, where=where, why=why, hints=error.hints)


def plain(error: SmithError) -> SmithError:
    """One that can be sent between processes: those with more in them are told by what they say."""
    if type(error).__init__ is SmithError.__init__:
        return error
    return SmithError(error.what, where=error.where, why=error.why, hints=error.hints)
