"""The tool's memory of a worktree: a record and an env file of its name, in the workspace.

worktrees/NAME.json  the worktree and its repository; written first, removed last
worktrees/NAME.toml     its env file, which inherits from another environment
worktrees/NAME/   the worktree itself, if it belongs to the tool
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
    """The record of a worktree.

    Attributes:
        name: name of the worktree and of its environment.
        path: its folder, absolute.
        repository: git's folder of its repository, absolute.
        ref: ref for which it was added.
        commit: commit of that ref then, 40 hex digits.
        env: name or path of the environment that it inherits from.
        made: time of creation, in seconds since 1970.
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
        """The folder of the worktree."""
        return Path(self.path)

    @property
    def partial(self) -> Path:
        """The temporary folder during addition and deletion."""
        return self.folder.with_name(f".{self.folder.name}.tritonsmith")

    def render(self) -> str:
        """Return the record's text."""
        return json.dumps({"schema": SCHEMA, **asdict(self)}, indent=2) + "\n"

    def env_text(self, *, wheel: bool, flags: Mapping[str, Any] | None = None) -> str:
        """Return the env file's text.

        Args:
            wheel: whether the inherited environment uses a wheel.
            flags: settings of that environment's last build that its file lacks.
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
        """Return a step that runs git in the repository, without its hooks."""
        argv = ("git", "-C", self.repository, "-c", "core.hooksPath=/dev/null", *arguments)
        return Run(argv, cwd=Path(self.repository), phase=PHASE)


def _toml(value: str | bool | tuple[str, ...]) -> str:
    # TOML writes texts, lists and booleans like JSON.
    return json.dumps(value, ensure_ascii=False)


def file(space: Workspace, name: str) -> Path:
    """Return the path of a worktree's record."""
    return space.worktrees / f"{name}.json"


def env_file(space: Workspace, name: str) -> Path:
    """Return the path of a worktree's env file."""
    return space.worktrees / f"{name}.toml"


def records(space: Workspace) -> tuple[WorktreeRecord, ...]:
    """Return all worktrees that the tool remembers, by name.

    Raises:
        FactError: a record cannot be read.
    """
    return tuple(_read(path) for path in sorted(space.worktrees.glob("*.json")))


def find(space: Workspace, name: str) -> WorktreeRecord:
    """Find a worktree by its name or its folder.

    Raises:
        FactError: its record cannot be read.
        UsageError: there is no such worktree.
    """
    known = {record.name: record for record in records(space)}
    place = untrusted.real(Path(name).expanduser().absolute())
    for record in known.values():
        if name == record.name or ("/" in name and place == record.folder):
            return record
    hints = did_you_mean(name, known) if known else ("there is none yet: `invoke worktree add REF`",)
    raise UsageError(f"no worktree named {name!r}", where=space.worktrees, hints=hints)


def _read(path: Path) -> WorktreeRecord:
    try:
        data: dict[str, Any] = untrusted.read_json(path)
        record: WorktreeRecord = untrusted.typed(WorktreeRecord, data)
        if f"{record.name}.json" != path.name or not record.folder.is_absolute():
            raise untrusted.UnreadableError("it is the record of another worktree")
    except (OSError, ValueError) as error:
        raise FactError(
            "cannot read the record of this worktree",
            where=path,
            why=str(error),
            hints=["`git worktree list` shows the worktree itself; delete the record by hand"],
        ) from error
    return record
