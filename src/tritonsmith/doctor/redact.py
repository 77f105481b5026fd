"""Removes personal data from a text: names, home, hosts, folders, passwords."""

from __future__ import annotations

import getpass
import os
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.core import redact

_SYSTEM = ("/bin", "/dev", "/etc", "/lib", "/lib64", "/nix/store", "/opt", "/proc", "/sbin", "/sys", "/usr")
_SHARED_MEMORY = "/dev/shm/"  # noqa: S108 - as /tmp: anybody's folders
# The start of a path: not inside another one, nor in a URL, but after -I and file://.
_START = r"(?:(?<![\w~$./<>*…-])|(?<=-[FIL])|(?<=file://))/(?!/)"
_PATH = re.compile(_START + r"[^\s'\"`,;:|()<>]+")
# A quoted path is one path, whatever it contains: shlex.quote quotes paths with a space.
_QUOTED = re.compile(r"(?<=(['\"`]))/[^'\"`\n]+(?=\1)")
_BETWEEN = re.compile(r"(:|;|, )(?=/(?!/))")  # between the paths of a list
_HOMES = (Path("/home"), Path("/Users"))
_SOMEONES = re.compile(r"((?<![\w.])/(?:home|Users)/)[^/\s:;,'\"]+")
_SHORT = 3  # letters; shorter names occur in other words


@dataclass(frozen=True)
class Redactor:
    """Replaces personal data by placeholders.

    Attributes:
        folders: each folder with its placeholder, the longest first.
        names: words that must not appear, with their placeholders.
    """

    folders: tuple[tuple[str, str], ...] = ()
    names: tuple[tuple[str, str], ...] = ()

    def __call__(self, text: str) -> str:
        """Redact a text."""
        text = _QUOTED.sub(lambda match: self.path(match[0]), redact.hidden(text))
        for folder, label in self.folders:
            text = re.sub(rf"{re.escape(folder)}(?![\w.-])", label, text)
        return self._unnamed(_PATH.sub(lambda match: _last_part(match[0]), text))

    def in_place(self, text: str) -> str:
        """Redact only secrets, names and homes: comparisons need the whole path of `/opt/cuda-12/lib64`."""
        text = redact.hidden(text)
        for folder, label in self.folders:
            text = re.sub(rf"{re.escape(folder)}(?![\w.-])", label, text)
        return self._unnamed(_SOMEONES.sub(r"\1<user>", text))

    def path(self, text: str) -> str:
        """Redact a text that is one path, or a list of paths: a space does not end a path."""
        return "".join(self._whole(part) for part in _BETWEEN.split(redact.hidden(text)))

    def _whole(self, path: str) -> str:
        scheme = "file://" if path.startswith("file://") else ""
        path = path.removeprefix(scheme)
        known = next((item for item in self.folders if Path(path).is_relative_to(item[0])), None)
        if known:
            folder, label = known
            path = f"{label}{path.removeprefix(folder)}"
        elif path.startswith("/"):
            path = _last_part(path)
        else:
            return scheme + self(path)
        return scheme + self._unnamed(path)

    def _unnamed(self, text: str) -> str:
        for name, label in self.names:
            text = re.sub(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", label, text)
        return text


def redactor(folders: Mapping[Path, str]) -> Redactor:
    """Return the redactor for this machine and user, with more folders (the workspace) and placeholders."""
    home, node = _home(), platform.node()
    places = {home: "~", **folders}
    known = {str(form): label for folder, label in places.items() for form in (folder, folder.resolve())}
    # The longest first: the workspace is mostly below the home folder.
    listed = sorted(known.items(), key=lambda item: -len(item[0]))
    names = {_user(): "<user>", node: "<host>", node.partition(".")[0]: "<host>"}
    names |= {home.name: "<user>"} if home.parent in _HOMES else {}
    # A short name occurs in other words, and a common one identifies nobody.
    shown = [(name, label) for name, label in names.items() if len(name) >= _SHORT and name not in _COMMON]
    return Redactor(tuple(item for item in listed if item[0] != "/"), tuple(shown))


# These names identify nobody, and mean something else in a report.
_COMMON = frozenset({"root", "user", "dev", "ubuntu", "runner", "triton", "localhost"})


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:  # a container's user without a name, and no HOME
        return Path("/")


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        return os.environ.get("USER", "")


def _last_part(whole: str) -> str:
    path = whole.rstrip("/")
    if Path(path).parent in _HOMES:
        return "…/<user>"
    system = any(path == root or path.startswith(f"{root}/") for root in _SYSTEM)
    # System paths say something and identify nobody; what users choose may name them or their employer.
    if system and not path.startswith(_SHARED_MEMORY):
        return whole
    return f"…/{path.rpartition('/')[2]}"
