"""Restrict deletions to folders that the tool marked as its own."""

from __future__ import annotations

import os
import re
import shutil
import stat
from pathlib import Path

from tritonsmith.core.errors import OwnershipError

# https://bford.info/cachedir/: backup programs pass over folders that hold this file.
CACHEDIR_SIGNATURE = "Signature: 8a477f597d28d172789f06886806bc55"
_TAG = "CACHEDIR.TAG"
_MARKER = "tritonsmith-owned"
_BEGUN = re.compile(rf"{re.escape(_TAG)}(\.\d+)?")


def mark(root: Path) -> None:
    """Mark `root` as a folder of the tool. Refuses a folder that holds other files.

    A run that is killed between writing the tag and the marker leaves the tag alone.

    Raises:
        OwnershipError: the folder exists, is not empty and carries no mark.
    """
    if is_marked(root):
        return
    # A run that was killed between the tag and the marker leaves the tag alone, which is no foreign file.
    foreign = root.is_dir() and any(not is_begun(entry) for entry in root.iterdir())
    # Asked again: another process may have marked it between the two looks.
    if foreign and not is_marked(root):
        raise OwnershipError(
            "refusing to use a folder that already contains files",
            where=root,
            why="later commands may delete everything in the workspace",
            hints=["set TRITONSMITH_HOME to an empty or new folder"],
        )
    root.mkdir(parents=True, exist_ok=True)
    # Whoever marks the folder at the same time sees no half tag.
    fresh = root / f"{_TAG}.{os.getpid()}"
    fresh.write_text(f"{CACHEDIR_SIGNATURE}\n# This folder belongs to tritonsmith.\n", encoding="ascii")
    fresh.replace(root / _TAG)
    (root / _MARKER).write_text("schema = 1\n", encoding="ascii")


def is_begun(path: Path) -> bool:
    """Return whether an entry of a folder belongs to a process that marks the folder, or was killed then."""
    return bool(_BEGUN.fullmatch(path.name)) and not path.is_symlink()


def is_marked(root: Path) -> bool:
    """Return whether `root` has a valid tag and marker, neither of them a link."""
    tag, marker = root / _TAG, root / _MARKER
    # A link may lead to the marker of another folder.
    if tag.is_symlink() or marker.is_symlink() or not marker.is_file() or not tag.is_file():
        return False
    return tag.read_bytes().startswith(CACHEDIR_SIGNATURE.encode())


def check_owned(path: Path, root: Path) -> Path:
    """Check that a path may be deleted: it lies below a marked root.

    The parent is resolved and the last component is not, so that the link itself is deleted and never its
    target.

    Raises:
        OwnershipError: the path is elsewhere, or must not be deleted.
    """
    problem = _problem(path, root)
    if problem:
        raise OwnershipError(
            f"refusing to delete this: {problem}",
            where=path,
            why=f"deletions are confined to {root}",
            hints=["delete it by hand if you are sure"],
        )
    return path.parent.resolve() / path.name


def _problem(path: Path, root: Path) -> str | None:
    if not path.is_absolute() or ".." in path.parts or not path.name:
        return "the path is relative, empty or contains .."
    if root.resolve() in {Path("/"), Path.home().resolve()}:
        return "the root is the home folder or /"
    if not is_marked(root):
        return "the root has no marker of tritonsmith"
    target = path.parent.resolve() / path.name
    if not target.is_relative_to(root.resolve()) or target == root.resolve():
        return "the path lies outside the root"
    return None if target.is_symlink() else _held(target)


def _held(target: Path) -> str | None:
    """Return the content of a folder that must not be deleted; None if there is none."""
    if Path.home().resolve().is_relative_to(target):
        return "the folder contains the home folder"
    # A disk that is mounted inside, or a bind mount of a container, holds what is not ours.
    if os.path.ismount(target) or any(mount.is_relative_to(target) for mount in _mount_points()):
        return "the folder is, or contains, a mount point"
    return None


def _mount_points() -> list[Path]:
    """Mount points, including bind mounts, which `os.path.ismount` does not detect."""
    import psutil  # noqa: PLC0415 - only deletions look

    return [Path(part.mountpoint) for part in psutil.disk_partitions(all=True)]


def remove(path: Path, root: Path) -> None:
    """Delete one path that `check_owned` accepts: links are unlinked, folders deleted with their content."""
    target = check_owned(path, root)
    if target.is_symlink() or target.is_file():
        target.unlink()
    elif target.is_dir():
        remove_tree(target)


def remove_tree(folder: Path) -> None:
    """Delete a folder and its content, including folders without permissions.

    Raises:
        OSError: a path cannot be deleted; the error names its full path.
    """
    try:
        shutil.rmtree(folder)
    except PermissionError:
        _unlock(folder)
        # A build may have made folders read-only (Go's module cache, Nix). A second try tells
        # which path is in the way.
        shutil.rmtree(folder, onerror=_named)


def _unlock(folder: Path) -> None:
    """Make a folder and its subfolders accessible where we own them; links are not followed."""
    for place, folders, _, handle in os.fwalk(folder.parent, follow_symlinks=False):
        here = Path(place)
        folders[:] = [folder.name] if here == folder.parent else folders
        for name in folders:
            about = os.stat(name, dir_fd=handle, follow_symlinks=False)
            locked = stat.S_ISDIR(about.st_mode) and about.st_mode & stat.S_IRWXU != stat.S_IRWXU
            if locked and about.st_uid == os.geteuid():
                os.chmod(name, stat.S_IRWXU, dir_fd=handle)


def _named(_: object, path: str, failure: tuple[object, BaseException, object]) -> None:
    """Add the full path to an error of `shutil.rmtree`, which works with names below descriptors."""
    error = failure[1]
    raise OSError(error.errno, error.strerror, path) if isinstance(error, OSError) else error
