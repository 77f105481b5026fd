"""Create, write, link, copy, rename, remove and patch files and folders."""

from __future__ import annotations

import difflib
import os
import shlex
import shutil
import stat
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

from tritonsmith.core import untrusted
from tritonsmith.core.errors import OwnershipError, StepError
from tritonsmith.core.plan import files
from tritonsmith.core.plan.steps.base import Step, StepTools, make_parent, quote

_COMPARED = 1 << 18  # bytes
_COPIED = 1 << 20


@dataclass(frozen=True)
class MakeDir(Step):
    """Create a folder and its parents; no error if it exists."""

    noun: ClassVar[str] = ""

    path: Path

    def shell(self) -> list[str]:
        return [f"mkdir -p {quote(self.path)}"]

    def act(self, tools: StepTools) -> None:
        self.path.mkdir(parents=True, exist_ok=True)


@dataclass(frozen=True)
class Write(Step):
    """Write a text file atomically, unless it already has this text (then its time stamp stays)."""

    noun: ClassVar[str] = "written file"

    path: Path
    text: str

    def shell(self) -> list[str]:
        parent, path = make_parent(self.path), quote(self.path)
        *lines, rest = self.text.split("\n")
        if rest or not lines:
            return [parent, f"printf %s {shlex.quote(self.text)} > {path}"]
        end = "EOF"
        while end in lines:
            end += "_"
        return [parent, f"cat > {path} <<'{end}'", *lines, end]

    def act(self, tools: StepTools) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # A time stamp that moves would let CMake configure again, and Ninja rebuild what includes the file.
        if not self.path.is_file() or self.path.read_bytes() != self.text.encode():
            files.write_atomically(self.path, self.text)


@dataclass(frozen=True)
class Link(Step):
    """Make `path` a symbolic link to `target`; replaces an older link, but never a file or a folder."""

    noun: ClassVar[str] = "link"

    path: Path
    target: Path

    def shell(self) -> list[str]:
        path = quote(self.path)
        return [
            make_parent(self.path),
            f"[ -L {path} ] || [ ! -e {path} ]",
            f"ln -sfn {quote(self.target)} {path}",
        ]

    def act(self, tools: StepTools) -> None:
        if self.path.exists() and not self.path.is_symlink():
            raise OwnershipError(
                "refusing to replace a file or folder with a link",
                where=self.path,
                hints=["move it to another place"],
            )
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # A link cannot be changed in place; replacing it leaves no moment without one, in
        # which a build would fail.
        fresh = self.path.with_name(f".{self.path.name}.tritonsmith")
        fresh.unlink(missing_ok=True)
        fresh.symlink_to(self.target)
        fresh.replace(self.path)


@dataclass(frozen=True)
class Copy(Step):
    """Copy a file, or merge a folder into another; identical files stay untouched.

    Attributes:
        source: what is copied.
        dest: its new path, not the folder that it goes into.
        tree: it is a folder.
        root: a folder that nothing may be written outside of: a link in it that leads out is refused.
    """

    noun: ClassVar[str] = "copied file"

    source: Path
    dest: Path
    tree: bool = False
    root: Path | None = None

    def shell(self) -> list[str]:
        folder = self.dest if self.tree else self.dest.parent
        # `/.` copies the content of the folder also where the destination exists already.
        source = f"-RL {quote(self.source)}/." if self.tree else quote(self.source)
        return [f"mkdir -p {quote(folder)}", f"cp {source} {quote(self.dest)}"]

    def act(self, tools: StepTools) -> None:
        copy = _copy_changed if self.root is None else partial(_copy_inside, self.root.resolve())
        if self.root:
            _check_inside(self.root.resolve(), self.dest)
        self.dest.parent.mkdir(parents=True, exist_ok=True)
        if self.tree:
            shutil.copytree(self.source, self.dest, copy_function=copy, dirs_exist_ok=True)
        else:
            copy(str(self.source), str(self.dest))


@dataclass(frozen=True)
class Move(Step):
    """Rename `source` to `dest`: gives a finished folder its name, or a file its backup name."""

    noun: ClassVar[str] = "moved file"

    source: Path
    dest: Path

    def shell(self) -> list[str]:
        return [f"mv {quote(self.source)} {quote(self.dest)}"]

    def act(self, tools: StepTools) -> None:
        self.source.replace(self.dest)


@dataclass(frozen=True)
class Remove(Step):
    """Remove paths below a folder that the tool marked as its own; links are unlinked, not followed.

    Attributes:
        paths: what goes; those that do not exist are passed over.
        root: the marked folder that all of them must lie in.
    """

    noun: ClassVar[str] = "removed path"

    paths: tuple[Path, ...]
    root: Path

    @property
    def count(self) -> int:
        return len(self.paths)

    def shell(self) -> list[str]:
        return [f"rm -rf -- {' '.join(quote(path) for path in self.paths)}"]

    def act(self, tools: StepTools) -> None:
        for path in self.paths:
            files.remove_owned(path, self.root)


@dataclass(frozen=True)
class RemoveWritten(Step):
    """Remove files that the tool wrote into a user's folder, if they exist, then folders, empty by then."""

    noun: ClassVar[str] = "removed path"

    paths: tuple[Path, ...]
    folders: tuple[Path, ...]

    @property
    def count(self) -> int:
        return len(self.paths)

    def shell(self) -> list[str]:
        commands = [("rm -f --", self.paths), ("rmdir --", self.folders)]
        return [f"{how} {' '.join(map(quote, paths))}" for how, paths in commands if paths]

    def act(self, tools: StepTools) -> None:
        files.remove(self.paths, self.folders)


def _copy_changed(source: str, dest: str) -> str:
    """Copy one file unless the copy is identical."""
    place = Path(dest).resolve()
    # A device, such as /dev/stdout, is written to and not replaced.
    if place.exists() and not place.is_file():
        shutil.copy(source, place)
    # An untouched header rebuilds nothing.
    elif not (place.exists() and _same_content(source, dest)):
        # A build that runs beside reads the old file or the new one, never half of one.
        with Path(source).open("rb") as content, files.replacing(place) as copy:
            shutil.copyfileobj(content, copy, _COPIED)
            os.fchmod(copy.fileno(), stat.S_IMODE(os.fstat(content.fileno()).st_mode))
    return dest


def _copy_inside(root: Path, source: str, dest: str) -> str:
    _check_inside(root, Path(dest))
    return _copy_changed(source, dest)


def _check_inside(root: Path, path: Path) -> None:
    """Refuse links that lead out of the folder, also at the path itself."""
    # A copy would follow such a link, wherever a checkout has put it.
    if not path.resolve().is_relative_to(root):
        raise OwnershipError(
            "refusing to write through a link that leads out of the folder",
            where=path,
            why=f"the link leads to {path.resolve()}; the folder is {root}",
            hints=["remove the link if you did not create it"],
        )


def _same_content(source: str, dest: str) -> bool:
    """Return whether two files have the same content."""
    # Not `filecmp`: it reads 8 KiB at a time and trusts equal time stamps. ptxas alone has 30 MB, and
    # this runs in every build.
    if Path(source).stat().st_size != Path(dest).stat().st_size:
        return False
    with open(source, "rb", buffering=0) as first, open(dest, "rb", buffering=0) as second:  # noqa: PTH123
        while True:
            left, right = first.read(_COMPARED), second.read(_COMPARED)
            if left != right:
                return False
            if not left:
                return True


@dataclass(frozen=True)
class Patch(Step):
    """Replace the text of a file in a user's checkout, unless it has changed since the plan was made.

    The texts are `untrusted.exact_text`, so what is not changed stays byte for byte; so does the mode.

    Attributes:
        root: top folder of the checkout.
        name: the file, relative to it.
        before: the text that it must have.
        after: its new text.
    """

    root: Path
    name: str
    before: str
    after: str

    def shell(self) -> list[str]:
        old, new = _lines(self.before), _lines(self.after)
        diff = difflib.unified_diff(old, new, f"a/{self.name}", f"b/{self.name}", lineterm="")
        lines = "\n".join(diff).split("\n")
        end = "EOF"
        while end in lines:
            end += "_"
        return [f"git -C {quote(self.root)} apply <<'{end}'", *lines, end]

    def act(self, tools: StepTools) -> None:
        path = self.root / self.name
        check_unlinked(self.root, self.name)
        text = untrusted.exact_text(path)
        if text == self.after:
            return
        # An editor may have saved the file between the plan that the user agreed to and this step.
        if text != self.before:
            raise StepError(
                "this file has changed since the plan was made",
                where=path,
                hints=["look at the change, and start again"],
            )
        files.write_atomically(path, untrusted.exact_bytes(self.after))


def check_unlinked(root: Path, name: str) -> None:
    """Check that neither a file nor a folder on the way to it is a link: it may lead out of the checkout.

    Raises:
        OwnershipError: one of them is a link.
    """
    for path in (root / name, *(root / name).parents):
        if path == root:
            break
        # A checkout of somebody else's may have a link at any place, and a write would follow
        # it to the user's own files.
        if path.is_symlink():
            hints = [f"make it a file, or a folder, of {root}"]
            raise OwnershipError("refusing to write through a link", where=path, hints=hints)


def _lines(text: str) -> list[str]:
    """Return lines as a diff has them; one without an end is marked as git marks it."""
    lines = text.split("\n")
    last = lines.pop()
    return [*lines, f"{last}\n\\ No newline at end of file"] if last else lines


@dataclass(frozen=True)
class RunSql(Step):
    """Run statements on a database of SQLite that exists.

    Attributes:
        path: its file.
        sql: the statements.
    """

    path: Path
    sql: str

    def shell(self) -> list[str]:
        return [f"sqlite3 {quote(self.path)} {shlex.quote(self.sql)}"]

    def act(self, tools: StepTools) -> None:
        import sqlite3  # noqa: PLC0415 - only this step needs it

        # `rw`: without the file there is nothing to do, and none is made.
        base = sqlite3.connect(f"{self.path.absolute().as_uri()}?mode=rw", uri=True, timeout=60.0)
        try:
            base.executescript(self.sql)
        except sqlite3.Error as error:
            raise StepError("cannot change this database", where=self.path, why=str(error)) from error
        finally:
            base.close()
