"""Small repositories, made by git."""

from __future__ import annotations

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
        self._repository = Repo.init(path, initial_branch="main")
        with self._repository.config_writer() as config:
            config.set_value("user", "name", "Somebody")
            config.set_value("user", "email", "somebody@example.invalid")
            config.set_value("commit", "gpgsign", "false")
            config.set_value("uploadpack", "allowFilter", "true")
            config.set_value("uploadpack", "allowAnySHA1InWant", "true")

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
        return self.git("rev-parse", "HEAD")

    def git(self, *argv: str) -> str:
        """Run git in it."""
        return str(self._repository.git.execute(["git", *argv])).strip()

    def close(self) -> None:
        self._repository.close()


Maker = Callable[[str], Made]
