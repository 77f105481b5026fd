"""Extract tar archives: nothing is written outside the destination, which appears only when complete."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tritonsmith.core.errors import DownloadError
from tritonsmith.core.plan.compression import DamagedError, Decompressed, Progress, limits
from tritonsmith.core.plan.confined_tree import FreshTree
from tritonsmith.core.plan.tarball import Tarball, TarMember
from tritonsmith.core.untrusted import UnreadableError


def extract(
    archive: Path, dest: Path, *, only: tuple[str, ...] = (), strip: int = 1, progress: Progress
) -> None:
    """Extract a tar archive, compressed or plain, to `DEST.partial`, then rename it; neither may exist yet.

    `strip` leading components are dropped; `only` names the first ones that are wanted then, all if empty.

    Raises:
        DownloadError: not a tar archive, truncated, an entry that points outside, or more than is allowed.
        OSError: the disk is full, or cannot be written.
    """
    partial = dest.with_name(f"{dest.name}.partial")
    with opened(archive, progress) as tarball, FreshTree(partial) as tree:
        for member in tarball:
            if len(member.parts) > strip and (not only or member.parts[strip] in only):
                add(tree, member, tarball, strip)
        tree.finish()
        if not any(partial.iterdir()):
            raise DownloadError(
                "the archive contains none of the required files",
                where=archive,
                why=f"looked for {', '.join(only) or 'any file'}",
                hints=["is it a source archive of llvm-project?"],
            )
    partial.rename(dest)


@contextmanager
def opened(archive: Path, progress: Progress | None = None) -> Iterator[Tarball]:
    """Open a tar archive, compressed or plain, to read it from start to end.

    Raises:
        DownloadError: whatever the body finds damaged.
    """
    allowed = limits()
    try:
        with archive.open("rb") as raw:
            yield Tarball(Decompressed(raw, allowed, progress), allowed)
    except UnreadableError as error:
        raise DownloadError(
            "cannot extract this archive", where=archive, why=str(error), hints=error.hints
        ) from error


def add(tree: FreshTree, member: TarMember, tarball: Tarball, strip: int) -> None:
    """Add the entry that came last to a tree, without its `strip` leading components."""
    parts = member.parts[strip:]
    if member.kind == "folder":
        tree.folder(parts)
    elif member.kind == "link":
        tree.link(parts, member.target)
    elif member.kind == "hard link":
        linked = tuple(part for part in member.target.split("/") if part not in ("", "."))
        if member.target.startswith("/") or ".." in linked:
            raise DamagedError(f"link {member.name!r} points outside, to {member.target!r}")
        if linked[:strip] != member.parts[:strip]:
            raise DamagedError(f"link {member.name!r} points to {member.target!r}, which is not unpacked")
        tree.hard_link(parts, linked[strip:])
    else:
        content = tarball.content()
        tree.file(parts, content, member.size, executable=member.executable, mtime=member.mtime)
