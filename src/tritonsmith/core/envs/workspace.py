"""Locations on disk of everything that the tool creates."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import platformdirs

from tritonsmith.core.errors import SmithError
from tritonsmith.core.plan import Plan, files
from tritonsmith.core.plan.runner import PlanResult, Runner
from tritonsmith.core.plan.steps.base import Tap
from tritonsmith.core.ui.progress import PhaseProgress


@dataclass(frozen=True)
class Workspace:
    """The tool's folder; everything in it can be recreated.

    Attributes:
        root: `$TRITONSMITH_HOME`, or the platform's data folder (`~/.local/share/tritonsmith`).
    """

    root: Path

    def env(self, name: str) -> EnvDir:
        """Return the folder of one environment."""
        return EnvDir(self.root / "envs" / name, self.root)

    @property
    def downloads(self) -> Path:
        """Archives, each under its own name, verified."""
        return self.root / "downloads"

    @property
    def toolchain(self) -> Path:
        """Unpacked registry packages: CUDA headers, ptxas, JSON."""
        return self.root / "toolchain"

    @property
    def sources(self) -> Path:
        """The tool's own clones and worktrees."""
        return self.root / "sources"

    @property
    def worktrees(self) -> Path:
        """Env files and records of worktrees, and those worktrees that are the tool's own."""
        return self.root / "worktrees"

    @property
    def like(self) -> Path:
        """Env files that `up --like` made."""
        return self.root / "like"

    @property
    def llvm(self) -> Path:
        """LLVM build trees and unpacked prebuilt LLVMs."""
        return self.root / "llvm"

    def triton_home(self, pin: str) -> Path:
        """Return `TRITON_HOME` for builds at an LLVM pin."""
        # One for each pin: in upstream's one folder, two pins delete each other's LLVM (triton#10540).
        return self.root / "triton-home" / (pin[:8] or "unpinned")

    @property
    def lock(self) -> Path:
        """The lock file for what environments share."""
        return self.root / "lock"

    def log(self, task: str) -> Path:
        """Return a new log file for one run of a task."""
        now = datetime.now().astimezone()
        # Two runs of a task may start in one second, in two threads as well: the first one's id is that of
        # the process.
        return self.root / "logs" / f"{now:%Y%m%d-%H%M%S}-{task}-{threading.get_native_id()}.log"

    def run(
        self,
        plan: Plan,
        task: str,
        *,
        quiet: bool = False,
        log: Path | None = None,
        environ: Mapping[str, str] | None = None,
        tap: Tap | None = None,
    ) -> PlanResult:
        """Run a plan for a task.

        Args:
            plan: the steps.
            task: name of the task, for the log.
            quiet: show no progress.
            log: the file; a new one if None.
            environ: the environment that steps change; the process's own if None.
            tap: gets what a program at the terminal writes to standard error.
        """
        progress = PhaseProgress(live=False if quiet else None, silent=quiet)
        return Runner(log or self.log(task), progress, environ, tap).run(plan)

    def claim(self) -> None:
        """Create the folder if needed, and mark it.

        Raises:
            SmithError: it is not writable, or belongs to another user.
        """
        # Deletions are confined to marked folders, so the mark comes before the first file.
        with _writable(self.root):
            files.mark(self.root)


@dataclass(frozen=True)
class EnvDir:
    """The folder of one environment.

    Attributes:
        path: the folder.
        root: the workspace around it.
    """

    path: Path
    root: Path

    @property
    def name(self) -> str:
        """The environment's name."""
        return self.path.name

    @property
    def venv(self) -> Path:
        """Virtual environment in which Triton is installed and run."""
        return self.path / "venv"

    @property
    def python(self) -> Path:
        """The env's interpreter."""
        return self.venv / "bin" / "python"

    @property
    def build(self) -> Path:
        """CMake's build folder of Triton."""
        return self.path / "triton"

    @property
    def probe(self) -> Path:
        """The folder where Triton is only configured, to find its needs of an LLVM that is not built yet."""
        return self.path / "llvm-closure"

    @property
    def lock(self) -> Path:
        """The lock file."""
        return self.path / "lock"

    @property
    def history(self) -> Path:
        """The setups that the doctor has seen, oldest first."""
        return self.path / "doctor-history.json"

    def receipt(self, task: str) -> Path:
        """Return the receipt of a task's last success."""
        return self.path / "receipts" / f"{task}.json"

    def make(self) -> None:
        """Create the folder if needed.

        Raises:
            SmithError: it cannot be created.
        """
        with _writable(self.path):
            files.make_folder(self.path)


@contextmanager
def _writable(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SmithError(
            "cannot write to the workspace",
            where=folder,
            why=error.strerror,
            hints=["set TRITONSMITH_HOME to a writable folder"],
        ) from error


@functools.lru_cache(maxsize=1)
def _at(home: str) -> Workspace:
    # Asked for by each of thousands of results.
    return Workspace(Path(home).absolute())


def default() -> Workspace:
    """Return the workspace given by environment variables and the platform.

    Raises:
        SmithError: neither gives a folder: a user without a home.
    """
    home = os.environ.get("TRITONSMITH_HOME")
    if home and home.startswith("/"):
        return _at(home)
    # `~` cannot be expanded in a container whose user number has no entry in /etc/passwd.
    try:
        return Workspace(
            Path(home).expanduser().absolute() if home else platformdirs.user_data_path("tritonsmith")
        )
    except RuntimeError as error:
        raise SmithError(
            "cannot create the workspace: this user has no home folder",
            why=str(error),
            hints=["export TRITONSMITH_HOME=/path/to/a/folder"],
        ) from error
