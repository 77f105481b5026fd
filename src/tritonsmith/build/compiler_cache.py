"""The compiler cache that launches each compile; its settings also apply to a bare `ninja`.

Folders must not matter, or worktrees could not share results. ccache makes paths below its
`base_dir` relative to the build folder, but the way from there to a checkout holds the checkout's name. So
each build folder has a link `source` to its checkout, and `through_link.sh` spells the checkout's paths
through it: `source/lib/Foo.cpp` is the same everywhere. `-fdebug-compilation-dir=.` keeps the build folder
out of the debug info, so ccache may leave it out of the key (`hash_dir`); debuggers learn it from files in
the build folder (`debuggers`).

clang writes absolute paths into a precompiled header. `relocatable` makes those below the build folder
relative to it, so that all worktrees make, find and share the same one; the bindings' headers in the
environment's `venv` are spelled through a link there, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from tritonsmith.build.precompiled_headers import SLOPPINESS
from tritonsmith.core import redact
from tritonsmith.core.envs.settings import SPLIT_DWARF, CacheSettings, DebugInfo
from tritonsmith.core.errors import ConfigError, FactError
from tritonsmith.core.plan import Link, Step, digest
from tritonsmith.core.text import version_key
from tritonsmith.facts.tools import Compilers, Tool

SCHEMES = ("redis", "http", "file")
_SCRIPT = Path(__file__).with_name("through_link.sh")
_OLDEST_WITH_REMOTE = (4, 4)  # ccache's NEWS: HTTP, Redis and `read-only` came with 4.4
_REMOTE_STORAGE = (4, 7)  # the name since; before, and as an alias after, it is `secondary_storage`
_SYSROOT = "-Xclang=-isysroot"  # one word, so that ccache can leave it out of the key
_SHARED = "env files are shared, logged and committed"

Problem = tuple[str, str, str]  # id, what, remedy


@dataclass(frozen=True)
class Folders:
    """The folders of a compile, named so that compiles in other folders can reuse its results.

    Attributes:
        source: the sources.
        build: the build folder, in which compiles run.
        base: the workspace, which holds the build folder and the tool's other folders that it includes.
    """

    source: Path
    build: Path
    base: Path

    @property
    def link(self) -> Path:
        """The link through which compiles reach the sources."""
        return self.build / "source"


def shared(compilers: Compilers, system: str, folders: Folders) -> Folders | None:
    """Return the folders if compiles there can be shared with others; None otherwise.

    Darwin gets None too: debuggers and relative debug info were not tried there.
    """
    ccache = compilers.launcher is not None and compilers.launcher.name == "ccache"
    clang = compilers.cxx is not None and "clang" in compilers.cxx.path.name
    return folders if ccache and clang and system == "Linux" else None


def launcher(
    settings: CacheSettings,
    compilers: Compilers,
    folders: Folders | None = None,
    *,
    precompiled_headers: bool = False,
    relocated: bool = False,
) -> tuple[str, ...]:
    """Return the words before each compile, for `CMAKE_<LANG>_COMPILER_LAUNCHER`; none without a cache.

    `folders` is from `shared`; None leaves paths and keys as they are. Set `relocated` if precompiled headers
    are built with the options of `relocatable`.

    Raises:
        ConfigError: `remote` is not a storage that an env file may name, or the launcher has none.
        FactError: this ccache is too old for it.
    """
    _check(settings)
    tool = compilers.launcher
    if tool is None:
        return ()
    if tool.name != "ccache":  # sccache and recc take their settings from the environment
        return (str(tool.path),)
    variables = {
        **(_relative(folders) if folders else {}),
        **({"CCACHE_SLOPPINESS": ",".join(SLOPPINESS)} if precompiled_headers else {}),
        **({"CCACHE_IGNOREOPTIONS": f"{_SYSROOT}*"} if relocated and folders else {}),
        **(_remote(settings, tool) if settings.remote else {}),
        **({"CCACHE_PREFIX": settings.distribute} if settings.distribute else {}),
    }
    words = [f"{name}={value}" for name, value in variables.items()]
    through = ("sh", str(_SCRIPT), str(folders.source), str(folders.link)) if folders else ()
    return (*(("env", *words) if words else ()), *through, str(tool.path))


def flags(folders: Folders | None) -> tuple[str, ...]:
    """Return compiler flags that keep the build folder out of the compiler's output."""
    # By `-Xclang`, because icecc passes the real folder to the remote machine by `-Xclang` too, which would
    # win over the driver's own option (icecc 1.4).
    return ("-Xclang", "-fdebug-compilation-dir=.") if folders else ()


def relocatable(folders: Folders | None) -> tuple[str, ...]:
    """Return the options under which a precompiled header is identical in every build folder.

    Files that use it need them too.
    """
    if not folders:
        return ()
    build = folders.build
    return (
        # Such a header is read relative to the reader's sysroot, which on Linux serves nothing
        # else in clang's frontend.
        "SHELL:-Xclang -relocatable-pch",
        f"{_SYSROOT}{build}",
        # The map makes the absolute paths of debug information relative.
        f"-fdebug-prefix-map={build}=.",
        # Other paths, above all the LLVM's, stay absolute: the define keeps the
        # header from other workspaces.
        f"-DTRITONSMITH_WORKSPACE_{digest(str(folders.base))}",
    )


def steps(folders: Folders | None, *, phase: str, venv: Path | None = None) -> tuple[Step, ...]:
    """Return the links that a build folder needs before it compiles; `venv` has the bindings' headers."""
    if not folders:
        return ()
    link = Link(folders.link, folders.source, phase=phase)
    return (link, Link(folders.build / "venv", venv, phase=phase)) if venv else (link,)


def problems(
    settings: CacheSettings, compilers: Compilers, debug_info: DebugInfo, *, icecc: bool
) -> Iterator[Problem]:
    """Report settings of `[cache]` that would fail or have no effect, for the preflight.

    `icecc` tells whether that program is on PATH.
    """
    clang = compilers.cxx is not None and "clang" in compilers.cxx.path.name
    split = debug_info in SPLIT_DWARF
    if compilers.launcher and compilers.launcher.name == "sccache" and clang and split:
        yield (
            "sccache-split-dwarf",
            "sccache does not support clang's split debug info (mozilla/sccache#1593)",
            'set launcher = "ccache" under [cache], or debug-info = "full" under [llvm]',
        )
    if settings.distribute == "icecc" and not icecc:
        yield (
            "no-icecc",
            "icecc, which ccache would call for each compile, is not on PATH",
            "install icecc (Debian: apt install icecc), or remove distribute from [cache]",
        )
    if compilers.launcher is None and (settings.remote or settings.distribute):
        yield (
            "no-ccache",
            "remote and distribute under [cache] have no effect without ccache, which is not on PATH",
            "install ccache (Debian: apt install ccache)",
        )


def _relative(folders: Folders) -> dict[str, str]:
    return {
        "CCACHE_BASEDIR": str(folders.base),
        # The current folder is in the key as soon as there is debug information.
        "CCACHE_NOHASHDIR": "1",
        # Errors name files as everybody knows them, though the compile saw relative paths.
        "CCACHE_ABSSTDERR": "1",
    }


def _remote(settings: CacheSettings, ccache: Tool) -> dict[str, str]:
    """Return ccache's variables for remote storage."""
    version = version_key(ccache.version)
    if version and version < _OLDEST_WITH_REMOTE:
        raise FactError(
            f"ccache {ccache.version} has no remote storage",
            where=ccache.path,
            hints=["install ccache 4.4 or later", "or remove remote from [cache]"],
        )
    old = bool(version) and version < _REMOTE_STORAGE
    name = "CCACHE_SECONDARY_STORAGE" if old else "CCACHE_REMOTE_STORAGE"
    # Read-only by default: whoever may write there decides what everybody links, so only the
    # one trusted writer (CI) may.
    attribute = "" if settings.remote_write else "|read-only=true"
    # Compilers are identified by content: on several machines, the same compiler has different time stamps.
    return {name: f"{settings.remote}{attribute}", "CCACHE_COMPILERCHECK": "content"}


def _check(settings: CacheSettings) -> None:
    if not settings.remote:
        if settings.remote_write:
            raise ConfigError("[cache] remote-write = true needs a remote, and none is set")
        option = "distribute" if settings.distribute else ""
    else:
        option = "remote"
        check_remote(settings.remote)
    if option and settings.launcher != "ccache":
        raise ConfigError(
            f"[cache] {option} works through ccache, but the launcher is {settings.launcher!r}",
            hints=[f'remove {option}, or set launcher = "ccache"', "docs/scale-out.md lists the choices"],
        )


def check_remote(remote: str) -> None:
    """Check that an env file may name this storage as `[cache] remote`.

    Raises:
        ConfigError: it may not; passwords are not repeated.
    """
    shown = redact.hidden(remote)
    # The hints must not repeat the value: they are printed and logged.
    secret = [
        "put the whole value into CCACHE_REMOTE_STORAGE, or remote_storage in ccache.conf (mode 600)",
        'leave remote out of the env file, and set precompiled-headers = "off" under [llvm]',
    ]
    parts = urlsplit(remote)
    if "@" in parts.netloc:
        raise ConfigError(
            "[cache] remote contains a user name or a password", where=shown, why=_SHARED, hints=secret
        )
    if re.search(r"[\s|]", remote):
        raise ConfigError(
            "[cache] remote must be a single URL, without ccache attributes",
            where=re.split(r"[\s|]", shown)[0],
            why=f"an attribute may be a token; {_SHARED}",
            hints=secret,
        )
    if parts.scheme not in SCHEMES:
        hints = [f"one of {', '.join(f'{name}://' for name in SCHEMES)}"]
        if parts.scheme == "https":
            hints.append(
                "ccache supports only plain HTTP; run a tunnel or a proxy that adds TLS on this machine"
            )
        raise ConfigError("[cache] remote is not a storage that ccache supports", where=shown, hints=hints)
    if parts.scheme == "file" and not parts.path.startswith("/"):
        raise ConfigError("[cache] remote is not an absolute path", where=shown, hints=["file:///nfs/ccache"])
    if parts.scheme != "file" and not parts.hostname:
        raise ConfigError("[cache] remote has no host", where=shown, hints=["redis://cache.example.org"])
