"""Locate Triton's caches: its own, dumps and overrides, those of the tool's environments, TorchInductor's."""

from __future__ import annotations

import getpass
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from tritonsmith.core.envs.workspace import Workspace

RootKind = Literal["jit", "dump", "override", "env", "inductor", "named"]


@dataclass(frozen=True)
class Root:
    """A folder whose subfolders are entries.

    Attributes:
        kind: `jit` is Triton's own cache, `env` that of an environment of the tool's, `named` was asked for.
        path: as the variable or the default names it.
        source: its origin: a variable, a default, an environment.
        current: whether a Triton started here would use it.
    """

    kind: RootKind
    path: Path
    source: str
    current: bool = False

    @cached_property
    def real(self) -> Path:
        """The resolved path: the folder may be a link to another disk."""
        return self.path.resolve()

    @property
    def label(self) -> str:
        """A few words for a table: `jit`, `env wheel`, `inductor 0`."""
        part = {"env": self.path.parent.name, "inductor": self.path.name}.get(self.kind, "")
        return f"{self.kind} {part}".rstrip()


def find(environ: Mapping[str, str], space: Workspace) -> tuple[Root, ...]:
    """Return all existing caches of this user and in the workspace, and Triton's own in any case."""
    roots: dict[Path, Root] = {}
    folders = sorted((space.root / "envs").glob("*/triton-cache"))
    tools = (Root("env", path, f"environment {path.parent.name}") for path in folders)
    for root in (*_own(environ), *tools, *_inductor(environ)):
        if root.current or root.path.is_dir():
            roots.setdefault(root.real, root)
    return tuple(roots.values())


def inductor_folder(environ: Mapping[str, str]) -> Path:
    """Return TorchInductor's cache folder: torch/_inductor/runtime/cache_dir_utils.py at 9a48faad96."""
    if named := environ.get("TORCHINDUCTOR_CACHE_DIR"):
        return Path(named).absolute()
    try:
        user = re.sub(r'[\\/:*?"<>|]', "_", getpass.getuser())
    except (KeyError, OSError):  # a number without a name, as in containers: TorchInductor itself gives up
        user = str(os.getuid())
    return _temporary(environ) / f"torchinductor_{user}"


def _temporary(environ: Mapping[str, str]) -> Path:
    """Return the folder that `tempfile.gettempdir` finds in such an environment."""
    # That function itself writes a file into each candidate, and remembers the answer for the whole process.
    named = (environ.get(name) for name in ("TMPDIR", "TEMP", "TMP"))
    places = [Path(place) for place in (*named, "/tmp", "/var/tmp", "/usr/tmp") if place]  # noqa: S108
    return next((place for place in places if os.access(place, os.W_OK)), places[0])


def _own(environ: Mapping[str, str]) -> Iterator[Root]:
    """Yield Triton's own folders; before 3.2 it has no TRITON_HOME (f962f4be78, #4152), no dump variables."""
    home = Path(environ.get("HOME") or Path.home())
    parents = [(home, "the default")]
    if named := environ.get("TRITON_HOME", "").strip():
        parents.insert(0, (Path(named).absolute(), "TRITON_HOME"))
    kinds: tuple[tuple[RootKind, str, str], ...] = (
        ("jit", "cache", "TRITON_CACHE_DIR"),
        ("dump", "dump", "TRITON_DUMP_DIR"),
        ("override", "override", "TRITON_OVERRIDE_DIR"),
    )
    for kind, folder, variable in kinds:
        candidates = [(parent / ".triton" / folder, source) for parent, source in parents]
        if named := environ.get(variable, "").strip():
            # The older defaults stay in the list: what lies there is still on the
            # disk, though nobody reads it.
            candidates.insert(0, (Path(named).absolute(), variable))
        for number, (path, source) in enumerate(candidates):
            yield Root(kind, path, source, current=kind == "jit" and number == 0)


def _inductor(environ: Mapping[str, str]) -> Iterator[Root]:
    """Yield one folder per device, in the layout of Triton's own, unless TRITON_CACHE_DIR is set."""
    variable = "TORCHINDUCTOR_CACHE_DIR"
    source = variable if environ.get(variable) else "TorchInductor's default"
    for path in sorted((inductor_folder(environ) / "triton").glob("*")):
        yield Root("inductor", path, source)
