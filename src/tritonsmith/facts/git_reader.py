"""Run git on an untrusted repository without starting programs that its settings name.

A clone brings no hooks or settings of others; an unpacked archive and a shared folder bring a whole `.git`.
Its `config` may name programs that git starts even for reading: a file system monitor, filters of
`.gitattributes`, hooks, and the transport that fetches contents which a partial clone lacks.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from tritonsmith.core.plan.process import CommandOutput, query

# What git sets for the hooks and commands that it runs; each would lead to that repository instead.
_ELSEWHERE = dict.fromkeys(
    ("GIT_COMMON_DIR", "GIT_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX", "GIT_WORK_TREE")
)
_OFFLINE = {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"}  # the first since git 2.45
_QUIET = ("core.fsmonitor=false", f"core.hooksPath={os.devnull}", "log.showSignature=false", "core.pager=cat")
_PATIENCE = 60.0  # seconds; a large tree on a network's disk
_OWN = ("local", "worktree")  # where a repository's own settings come from, what they include too
_FILTER = re.compile(r"filter\.(.+)\.(?:clean|smudge|process)", re.DOTALL)
_NO_FILTER = ("clean=", "smudge=", "process=", "required=false")
# With one of these a fetch may start a program, write a file, or ask another server than the one named.
_FETCHES = re.compile(
    r"core\.(?:sshcommand|gitproxy|askpass)|(?:credential|http|protocol|url)\..*|remote\..*\.(?:vcs|uploadpack)",
    re.DOTALL,
)


def look(root: Path, *arguments: str, files: bool = False) -> CommandOutput | None:
    """Run a read-only git command.

    Args:
        root: top folder of the repository.
        arguments: the command and its arguments.
        files: whether the command compares contents of files, for which git would start filters.

    Returns:
        Its result; None if git is missing or takes too long.
    """
    settings = [*_QUIET]
    if files:
        keys = _own_keys(root)
        names = {match[1] for key in keys or () if (match := _FILTER.fullmatch(key))}
        if keys is None or any("=" in name for name in names):  # `-c` could not name it
            return CommandOutput(128, "", "fatal: cannot determine which filters git would start")
        settings += [f"filter.{name}.{off}" for name in sorted(names) for off in _NO_FILTER]
    options = [word for setting in settings for word in ("-c", setting)]
    argv = ("git", "--no-optional-locks", "--no-pager", "-C", str(root), *options, *arguments)
    return query(argv, change=_ELSEWHERE | _OFFLINE, timeout=_PATIENCE)


def environ(root: Path) -> dict[str, str]:
    """Return the changes of the environment under which a library may read a repository by git.

    Contents missing in a partial clone are fetched, unless the repository's own settings influence how.
    """
    settings = [setting.partition("=")[::2] for setting in _QUIET]
    known = int(os.environ.get("GIT_CONFIG_COUNT") or 0)
    change = {"GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_COUNT": str(known + len(settings))}
    for number, (key, value) in enumerate(settings, known):
        change |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    keys = _own_keys(root)
    return change if keys is not None and not any(map(_FETCHES.fullmatch, keys)) else change | _OFFLINE


def _own_keys(root: Path) -> frozenset[str] | None:
    """Return the keys of a repository's own configuration, with included files; None if git cannot tell."""
    argv = ("git", "-C", str(root), "config", "--list", "--show-scope", "--name-only", "-z")  # git 2.26
    answer = query(argv, change=_ELSEWHERE | _OFFLINE, timeout=_PATIENCE)
    if answer is None or answer.code:
        return None
    words = answer.out.split("\0")
    pairs = zip(words[::2], words[1::2], strict=False)
    return frozenset(key for scope, key in pairs if scope in _OWN)
