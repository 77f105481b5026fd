"""Files of a repository as they were when a version of Triton was released."""

from __future__ import annotations

from pathlib import Path

from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.facts import eras, git_history


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
            with git_history.opened(self._path):
                pass
        except FactError as error:
            hints = ["give a clone of Triton with its history"]
            raise UsageError("--source is not a git repository", where=self._path, hints=hints) from error

    def content(self, version: str, name: str) -> str:
        """A file as it was.

        Raises:
            UsageError: the commit of that version is unknown.
            FactError: the clone lacks that commit, or the commit that file.
        """
        if not version and not self._ref:
            hints = ["--source CLONE@REF uses one commit for all versions"]
            raise UsageError("--source needs the Triton version, which is unknown", hints=hints)
        ref = self._ref or eras.release(version).commit
        with git_history.opened(self._path) as repository:
            commit = git_history.resolve(repository, ref)
            content = git_history.text_at(repository, commit, name) if commit else None
        if not commit:
            hints = [
                "fetch more of its history: git fetch --unshallow",
                "or use one commit for all versions: --source CLONE@REF",
            ]
            raise FactError(f"this clone has no commit {ref}", where=self._path, hints=hints)
        if content is None:
            raise FactError(f"no file {name} at {ref}, for Triton {version}", where=self._path)
        return content
