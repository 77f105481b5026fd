"""Takes out of a text what says who and where somebody is: names, home, hosts, folders, passwords."""

from __future__ import annotations

import getpass
import os
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_SYSTEM = ("/bin", "/dev", "/etc", "/lib", "/lib64", "/nix/store", "/opt", "/proc", "/sbin", "/sys", "/usr")
# Where a path begins: not in the rest of one, nor in a URL, but behind -I and file://.
_START = r"(?:(?<![\w~$./<>*…-])|(?<=-[FIL])|(?<=file://))/(?!/)"
_PATH = re.compile(_START + r"[^\s'\"`,;:|()<>]+")
_HOMES = (Path("/home"), Path("/Users"))
_SHORT = 3  # letters; a shorter name occurs in other words


@dataclass(frozen=True)
class Redactor:
    """What stands for what.

    Attributes:
        folders: a folder to the name that stands for it, the longest first.
        names: words that never appear, to what stands for them.
    """

    folders: tuple[tuple[str, str], ...] = ()
    names: tuple[tuple[str, str], ...] = ()

    def __call__(self, text: str) -> str:
        """The text without them."""
        text = re.sub(r"://[^/\s@]+@", "://***@", text)
        for folder, label in self.folders:
            text = re.sub(rf"{re.escape(folder)}(?![\w.-])", label, text)
        text = _PATH.sub(_last_part, text)
        for name, label in self.names:
            text = re.sub(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", label, text)
        return text


def redactor(folders: Mapping[Path, str]) -> Redactor:
    """One for this machine and user.

    Args:
        folders: more folders that have a name of their own: the workspace, the checkout.
    """
    home, node = Path.home(), platform.node()
    places = {home: "~", **folders}
    known = {str(form): label for folder, label in places.items() for form in (folder, folder.resolve())}
    listed = sorted(known.items(), key=lambda item: -len(item[0]))
    names = {_user(): "<user>", node: "<host>", node.partition(".")[0]: "<host>"}
    names |= {home.name: "<user>"} if home.parent in _HOMES else {}
    shown = [(name, label) for name, label in names.items() if len(name) >= _SHORT and name not in _COMMON]
    return Redactor(tuple(item for item in listed if item[0] != "/"), tuple(shown))


# Say nothing about anybody, and stand in a report for something else.
_COMMON = frozenset({"root", "user", "dev", "ubuntu", "runner", "triton", "localhost"})


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        return os.environ.get("USER", "")


def _last_part(match: re.Match[str]) -> str:
    path = match[0].rstrip("/")
    if Path(path).parent in _HOMES:
        return "…/<user>"
    if any(path == root or path.startswith(f"{root}/") for root in _SYSTEM):
        return match[0]
    return f"…/{path.rpartition('/')[2]}"
