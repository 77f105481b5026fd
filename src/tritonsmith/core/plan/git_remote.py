"""A git remote with a password or a token in its URL: git gets the URL through its environment.

In a command line `ps` shows the URL to every user, and `git fetch --filter` writes it to `.git/config`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from tritonsmith.core import redact

_WEB = ("http", "https")  # the login of another URL, `ssh://git@host`, is no secret


@dataclass(frozen=True)
class GitRemote:
    """A remote.

    Attributes:
        url: without its secrets: for command lines, and what git may write down.
        env: change of the environment by which git takes the whole URL where it reads that one.
    """

    url: str
    env: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, url: str) -> GitRemote:
        """Remove the secrets from a URL."""
        bare = _bare(url)
        if bare == url:
            return cls(url)
        change = {
            "GIT_CONFIG_COUNT": "1",
            # `insteadOf` replaces the harmless URL where git reads it, so the whole one is in no command
            # line, which `ps` shows to every user, and in no `.git/config`.
            "GIT_CONFIG_KEY_0": f"url.{url}.insteadOf",
            "GIT_CONFIG_VALUE_0": bare,
        }
        return cls(bare, tuple(change.items()))

    def tidy(self, repository: Path) -> None:
        """Remove the secrets from FETCH_HEAD too, where git writes the whole query."""
        head = repository / ".git" / "FETCH_HEAD"
        if self.env and head.is_file():
            head.write_text(redact.hidden(head.read_text(encoding="utf-8")), encoding="utf-8")


def _bare(url: str) -> str:
    scheme = url.partition("://")[0]
    if scheme not in _WEB:
        return url
    parts = urlsplit(url)
    _, at, host = parts.netloc.rpartition("@")
    kept = "&".join(
        word for word in parts.query.split("&") if word and redact.hidden(f"?{word}") == f"?{word}"
    )
    if not at and kept == parts.query:
        return url
    return urlunsplit((parts.scheme, host, parts.path, kept, parts.fragment))
