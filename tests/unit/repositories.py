"""Small repositories, made by git in as few processes as possible: some tests make dozens."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

Text = Mapping[str, str | None]


class Made:
    """A repository that a test makes commit by commit.

    Attributes:
        path: its folder.
    """

    def __init__(self, path: Path) -> None:
        from git import Repo

        self.path = path
        if not _EMPTY:
            _EMPTY.update(_init(path))
        (path / ".git").mkdir(parents=True, exist_ok=True)
        for name, content in _EMPTY.items():  # without a process, and the same files
            place = path / ".git" / name
            if content is None:
                place.mkdir(parents=True, exist_ok=True)
            else:
                place.write_bytes(content)
        self._repository = Repo(path)

    def commit(self, message: str, files: Text | None = None) -> str:
        """Commit what files say; a text that begins with `->` is a link, None removes the file."""
        for name, text in (files or {}).items():
            path = self.path / name
            path.unlink(missing_ok=True)
            path.parent.mkdir(parents=True, exist_ok=True)
            if text is not None and text.startswith("->"):
                path.symlink_to(text.removeprefix("->"))
            elif text is not None:
                path.write_text(text, encoding="utf-8")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        return self._repository.head.commit.hexsha  # as `git rev-parse` reads it, without a process

    def git(self, *argv: str) -> str:
        """Run git in it."""
        return str(self._repository.git.execute(["git", *argv])).strip()

    def close(self) -> None:
        self._repository.close()


_EMPTY: dict[
    str, bytes | None
] = {}  # path below .git to content, None for a folder; a folder before what is in it


def _init(path: Path) -> dict[str, bytes | None]:
    """Let git make an empty repository; return what is in its .git."""
    from git import Repo

    with Repo.init(path, initial_branch="main") as repository, repository.config_writer() as config:
        config.set_value("user", "name", "Somebody")
        config.set_value("user", "email", "somebody@example.invalid")
        config.set_value("commit", "gpgsign", "false")
        config.set_value("maintenance", "auto", "false")  # else each commit starts two more processes
        config.set_value("uploadpack", "allowFilter", "true")
        config.set_value("uploadpack", "allowAnySHA1InWant", "true")
    inner = path / ".git"
    shutil.rmtree(inner / "hooks", ignore_errors=True)  # a dozen samples
    entries = sorted(inner.rglob("*"))
    return {
        str(entry.relative_to(inner)): entry.read_bytes() if entry.is_file() else None for entry in entries
    }


Maker = Callable[[str], Made]
