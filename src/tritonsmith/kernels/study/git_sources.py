"""Files of a repository as they were when a version of Triton was released."""

from __future__ import annotations

from pathlib import Path

from git import Repo
from git.exc import BadName, GitCommandError, InvalidGitRepositoryError, NoSuchPathError

from tritonsmith.errors import FactError, UsageError
from tritonsmith.facts import eras, git_reader


class History:
    """A clone, and which of its commits a version stands for.

    Args:
        text: `CLONE` for the commit of each version (`configs/triton-eras.toml`), `CLONE@REF` for one commit.

    Raises:
        UsageError: there is no repository.
    """

    def __init__(self, text: str) -> None:
        path, _, self._ref = text.partition("@")
        self._path = Path(path).expanduser().absolute()
        try:
            self._open().close()
        except (InvalidGitRepositoryError, NoSuchPathError):
            raise UsageError(
                "--source names no git repository",
                where=self._path,
                hints=["a clone of Triton, with its history"],
            ) from None

    def _open(self) -> Repo:
        """For a `with`: processes of git answer until it is closed."""
        repo = Repo(self._path)
        repo.git.update_environment(**git_reader.environ(self._path))
        return repo

    def ref(self, version: str) -> str:
        """The commit for a version of Triton.

        Raises:
            UsageError: no such release line is known.
        """
        return self._ref or eras.release(version).commit

    def content(self, version: str, name: str) -> str:
        """A file as it was.

        Raises:
            UsageError: nobody knows which commit that is.
        FactError: the clone lacks that commit, or the commit that file.
        """
        if not version and not self._ref:
            hints = ["--source CLONE@REF takes one commit for all"]
            raise UsageError("--source has no commit for a Triton whose version nobody knows", hints=hints)
        ref = self.ref(version)
        try:
            with self._open() as repo:
                content: bytes = repo.commit(ref).tree.join(name).data_stream.read()
            return content.decode("utf-8")
        except (BadName, ValueError, GitCommandError) as error:
            raise FactError(
                f"this clone has no commit {ref}",
                where=self._path,
                why=str(error),
                hints=[
                    "fetch more of its history: git fetch --unshallow",
                    "or one commit for all: --source CLONE@REF",
                ],
            ) from error
        except KeyError:
            raise FactError(f"there is no {name} at {ref}, for Triton {version}", where=self._path) from None
