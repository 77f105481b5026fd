"""Tar archives: nothing lands outside the destination, and half an archive has no name."""

from __future__ import annotations

import copy
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from tarfile import EOFHeaderError, HeaderError, ReadError, TarFile  # type: ignore[attr-defined] # the first
from typing import IO, Self

from tritonsmith.errors import DownloadError

_CHUNK = 1 << 20  # bytes
_ZSTD = b"\x28\xb5\x2f\xfd"  # begins a file; https://www.rfc-editor.org/rfc/rfc8878

Progress = Callable[[int, int | None], None]


class _Entry(tarfile.TarInfo):
    """An entry whose header is right: tarfile takes a damaged one for the end of the archive."""

    @classmethod
    def fromtarfile(cls, tarfile: TarFile) -> Self:
        """The next entry of an archive."""
        try:
            return super().fromtarfile(tarfile)
        except EOFHeaderError:
            raise  # the end, as it should be
        except HeaderError as error:
            raise ReadError(f"damaged or truncated: {error}") from None


def extract(
    archive: Path, dest: Path, *, only: tuple[str, ...] = (), strip: int = 1, progress: Progress
) -> None:
    """Extract a tar archive to `dest`, by way of `DEST.partial`.

    Args:
        archive: compressed or plain tar.
        dest: a folder that does not exist yet, nor does `DEST.partial`.
        only: first components, after stripping, that are wanted; all if empty.
        strip: leading components to drop.
        progress: called with bytes read and the archive's size.

    Raises:
        DownloadError: not a tar archive, truncated, or an entry that points outside.
    """
    partial = dest.with_name(f"{dest.name}.partial")
    partial.mkdir(parents=True)
    size = archive.stat().st_size
    try:
        with archive.open("rb") as raw, opened(raw) as tar:
            tar.extraction_filter = lambda member, _path: member  # `_safe` did it; 3.12 wants to be told
            root = partial.resolve()
            for member in _wanted(tar, only, strip):
                _check_inside(member, root)
                tar.extract(member, partial, set_attrs=not member.issym())
                progress(raw.tell(), size)
            while tar.fileobj and tar.fileobj.read(_CHUNK):
                pass  # up to the checksum of gzip and xz
    except Exception as error:  # zlib, lzma and tarfile raise what they like for a damaged archive
        raise DownloadError(
            "cannot extract this archive",
            where=archive,
            why=str(error) or type(error).__name__,
            hints=["download it again: it may be truncated", "check the free space of the disk"],
        ) from error
    if not any(partial.iterdir()):
        raise DownloadError(
            "the archive holds nothing of what is needed",
            where=archive,
            why=f"looked for {', '.join(only) or 'any file'}",
            hints=["is it a source archive of llvm-project?"],
        )
    partial.rename(dest)


@contextmanager
def opened(raw: IO[bytes]) -> Iterator[tarfile.TarFile]:
    """A tar archive, compressed or not; one by zstd can only be read from its beginning to its end.

    Args:
        raw: the file, at its beginning.
    """
    packed = raw.read(len(_ZSTD)) == _ZSTD
    raw.seek(0)
    if not packed:
        with tarfile.open(fileobj=raw, mode="r:*", tarinfo=_Entry) as tar:
            yield tar
        return
    import zstandard  # noqa: PLC0415 - most archives do without

    with (
        zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True) as plain,
        tarfile.open(fileobj=plain, mode="r|", tarinfo=_Entry) as tar,
    ):
        yield tar
        while plain.read(_CHUNK):
            pass  # up to the checksum


def _wanted(tar: tarfile.TarFile, only: tuple[str, ...], strip: int) -> Iterator[tarfile.TarInfo]:
    for member in tar:
        parts = PurePosixPath(member.name).parts
        if not member.name.startswith("/") and len(parts) <= strip:
            continue
        inner = "/".join(parts[strip:])
        if only and parts[strip] not in only:
            continue
        yield _safe(member, inner, strip)


def _safe(member: tarfile.TarInfo, inner: str, strip: int) -> tarfile.TarInfo:
    """The entry under its new name. Python 3.11.2's tarfile has no `data` filter, so the check is ours."""
    if member.name.startswith("/") or ".." in PurePosixPath(member.name).parts:
        raise tarfile.TarError(f"entry {member.name!r} lies outside the archive's folder")
    if not (member.isfile() or member.isdir() or member.issym() or member.islnk()):
        raise tarfile.TarError(f"entry {member.name!r} is a device or a pipe")
    safe = copy.copy(member)
    safe.name, safe.mode = inner, member.mode & 0o755
    safe.uid, safe.gid, safe.uname, safe.gname = 0, 0, "", ""
    if member.islnk():
        linked = PurePosixPath(member.linkname).parts
        if ".." in linked or member.linkname.startswith("/"):
            raise tarfile.TarError(f"link {member.name!r} points outside, to {member.linkname!r}")
        safe.linkname = "/".join(linked[strip:])
    return safe


def _check_inside(member: tarfile.TarInfo, root: Path) -> None:
    """Where the entry, and what it links to, really lie: earlier links may change what a name means."""
    place = root / member.name
    paths = [place.parent, place.parent / member.linkname] if member.issym() else [place]
    if member.islnk():
        paths.append(root / member.linkname)
    if not all(path.resolve().is_relative_to(root) for path in paths):
        link = f", a link to {member.linkname!r}," if member.linkname else ""
        raise tarfile.TarError(f"entry {member.name!r}{link} leads outside")
