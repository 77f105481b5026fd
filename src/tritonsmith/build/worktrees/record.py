"""What the tool remembers of a worktree: a record and an env file of its name, in the workspace.

worktrees/NAME.json     which worktree of which repository; written first, removed last
worktrees/NAME.toml     its env file, which inherits from another environment
worktrees/NAME/         the worktree itself, if it is the tool's own
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tritonsmith.core import untrusted
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, UsageError, did_you_mean
from tritonsmith.core.plan import Run, Step

SCHEMA = 1
PHASE = "worktree"


@dataclass(frozen=True)
class WorktreeRecord:
    """A worktree.

    Attributes:
        name: of the worktree and of its environment.
        path: its folder, absolute.
        repository: git's folder that it belongs to, absolute.
        ref: what it was added for.
        commit: that this was, 40 hex digits.
        env: name or path of the environment that it inherits from.
        made: seconds since 1970.
    """

    name: str
    path: str
    repository: str
    ref: str
    commit: str
    env: str
    made: int

    @property
    def folder(self) -> Path:
        """Its folder."""
        return Path(self.path)

    @property
    def partial(self) -> Path:
        """The folder while it is not complete: being added, or being deleted."""
        return self.folder.with_name(f".{self.folder.name}.tritonsmith")

    def render(self) -> str:
        """The record's text."""
        return json.dumps({"schema": SCHEMA, **asdict(self)}, indent=2) + "\n"

    def env_text(self, *, wheel: bool, flags: Mapping[str, Any] | None = None) -> str:
        """The env file's text.

        Args:
            wheel: the environment that it inherits from is one of a wheel.
            flags: settings of that environment's last build that its file does not have.
        """
        triton = {"triton.source": self.path, **({"triton.wheel": ""} if wheel else {}), **(flags or {})}
        lines = [f"# worktree of Triton at {' '.join(self.ref.split())}", f"inherits = {_toml(self.env)}"]
        for section in dict.fromkeys(key.partition(".")[0] for key in triton):
            lines += ["", f"[{section}]"]
            lines += [
                f"{key.partition('.')[2]} = {_toml(value)}"
                for key, value in triton.items()
                if key.startswith(f"{section}.")
            ]
        return "\n".join(lines) + "\n"

    def git(self, *arguments: str) -> Step:
        """A step that runs git in the repository, without its hooks."""
        argv = ("git", "-C", self.repository, "-c", "core.hooksPath=/dev/null", *arguments)
        return Run(argv, cwd=Path(self.repository), phase=PHASE)


def _toml(value: str | bool | tuple[str, ...]) -> str:
    return json.dumps(value, ensure_ascii=False)  # of texts, lists and booleans, TOML has the same form


def file(space: Workspace, name: str) -> Path:
    """The record of a worktree."""
    return space.worktrees / f"{name}.json"


def env_file(space: Workspace, name: str) -> Path:
    """The env file of a worktree."""
    return space.worktrees / f"{name}.toml"


def records(space: Workspace) -> tuple[WorktreeRecord, ...]:
    """All worktrees that the tool remembers, by name.

    Raises:
        FactError: a record cannot be read.
    """
    return tuple(_read(path) for path in sorted(space.worktrees.glob("*.json")))


def find(space: Workspace, name: str) -> WorktreeRecord:
    """A worktree by its name, or by its folder.

    Raises:
        FactError: its record cannot be read.
        UsageError: no such worktree.
    """
    known = {one.name: one for one in records(space)}
    place = untrusted.real(Path(name).expanduser().absolute())
    for one in known.values():
        if name == one.name or ("/" in name and place == one.folder):
            return one
    hints = did_you_mean(name, known) if known else ("there is none yet: `invoke worktree.add REF`",)
    raise UsageError(f"no worktree named {name!r}", where=space.worktrees, hints=hints)


def _read(path: Path) -> WorktreeRecord:
    try:
        seen: dict[str, Any] = untrusted.read_json(path)
        found: WorktreeRecord = untrusted.typed(WorktreeRecord, seen)
        if f"{found.name}.json" != path.name or not found.folder.is_absolute():
            raise untrusted.UnreadableError("it is the record of another worktree")
    except (OSError, ValueError) as error:
        raise FactError(
            "cannot read the record of this worktree",
            where=path,
            why=str(error),
            hints=["`git worktree list` shows the worktree itself; delete the record by hand"],
        ) from error
    return found
