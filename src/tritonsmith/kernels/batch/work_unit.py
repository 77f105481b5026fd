"""One unit of work: points of a kernel for one Triton, compiled locally or on another machine."""

from __future__ import annotations

import ast
import io
import tarfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import zstandard

from tritonsmith.envs import workspace
from tritonsmith.envs.workspace import Workspace
from tritonsmith.errors import SmithError, UsageError
from tritonsmith.kernels.batch import wheel_env
from tritonsmith.kernels.batch.spec import CompilerSpec
from tritonsmith.kernels.compile import run, source
from tritonsmith.kernels.compile.manifest import FILE, Manifest
from tritonsmith.kernels.compile.request import CompileRequest
from tritonsmith.kernels.compile.run import Toolchain
from tritonsmith.plan import Copy, Extract, MakeDir, Plan, Remove, files

_PHASE = "unit"


@dataclass(frozen=True)
class RemoteJob:
    """A unit with everything that another machine needs.

    Attributes:
        asked: its file has the path that it has here.
        side: whose Triton compiles: a release, or what has the same name or path there.
        timeout: seconds for one point; None for the usual.
        env: of a side that names no Triton.
        files: the kernel's, and modules beside it that it imports: name to content.
    """

    asked: CompileRequest
    side: CompilerSpec
    timeout: int | None
    env: str
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


def compile_here(asked: CompileRequest, place: Toolchain, out: Path) -> Manifest | SmithError:
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
        return _plain(error)


def pack(asked: CompileRequest, side: CompilerSpec, timeout: int | None, env: str) -> RemoteJob:
    """A unit for another machine: see `RemoteJob`.

    Raises:
        SmithError: the file cannot be read, or imports a package beside it, which cannot be sent.
    """
    return RemoteJob(asked, side, timeout, env, tuple(_files(asked)))


def compile_there(parcel: RemoteJob) -> RemoteResult | SmithError:
    """Compile on a cluster worker, in its own workspace and environment."""
    try:
        place = wheel_env.place_of(parcel.side, 1, parcel.timeout, parcel.env)
        with _scratch(place.space) as scratch:
            for name, content in parcel.files:
                files.write(scratch / name, content)
            file = scratch / parcel.asked.file.name
            try:
                made = _compiled(replace(parcel.asked, file=file), place, scratch)
            except SmithError as error:
                return _told_otherwise(_plain(error), file, parcel.asked.file)
            points = tuple(
                replace(one, error=one.error.replace(str(file), str(parcel.asked.file)))
                for one in made.points
            )
            return RemoteResult(replace(made, file=str(parcel.asked.file), points=points), _tar(made.folder))
    except SmithError as error:
        return _plain(error)


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


def _compiled(asked: CompileRequest, place: Toolchain, scratch: Path) -> Manifest:
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


def _files(asked: CompileRequest) -> Iterator[tuple[str, bytes]]:
    """The kernel's file and, again and again, the modules beside it that what is found imports."""
    folder = asked.file.parent
    waiting, found = [asked.file], {asked.file}
    while waiting:
        file = waiting.pop()
        yield file.name, file.read_bytes() if file.suffix != ".py" else source.read(file).encode()
        for name in () if asked.from_ir else _imports(source.read(file)):
            if (folder / name / "__init__.py").is_file():
                raise UsageError(
                    f"{file.name} imports the package {name}; packages are not sent to other machines",
                    where=folder / name,
                    hints=[
                        "install the package on the workers",
                        "or put the code that the kernel needs into one file",
                    ],
                )
            module = folder / f"{name}.py"
            if module.is_file() and module not in found:
                found.add(module)
                waiting.append(module)


def _imports(text: str) -> frozenset[str]:
    """First names of all modules that a file imports, wherever in it."""
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError):  # of a newer Python, perhaps: the worker tells
        return frozenset()
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom) and not node.level]
    return frozenset(name.partition(".")[0] for name in names)


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


def _plain(error: SmithError) -> SmithError:
    """One that can be sent between processes: those with more in them are told by what they say."""
    if type(error).__init__ is SmithError.__init__:
        return error
    return SmithError(error.what, where=error.where, why=error.why, hints=error.hints)
