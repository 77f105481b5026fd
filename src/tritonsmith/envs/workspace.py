"""Where everything that the tool makes lies on disk."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import platformdirs

from tritonsmith.errors import SmithError
from tritonsmith.plan import Plan, files, ownership
from tritonsmith.plan.runner import Outcome, Runner, Tap
from tritonsmith.ui.progress import PhaseProgress


@dataclass(frozen=True)
class Workspace:
    """The folder of the tool's own; everything below it may be made again.

    Attributes:
        root: `$TRITONSMITH_HOME`, or the platform's data folder (`~/.local/share/tritonsmith`).
    """

    root: Path

    def env(self, name: str) -> EnvDir:
        """The folder of one environment."""
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
        """Clones and worktrees of the tool's own."""
        return self.root / "sources"

    @property
    def llvm(self) -> Path:
        """LLVM build trees and unpacked prebuilt LLVMs."""
        return self.root / "llvm"

    def triton_home(self, pin: str) -> Path:
        """`TRITON_HOME` of builds at an LLVM pin: in upstream's store two pins delete each other's LLVM.

        Args:
            pin: commit of LLVM; empty if it is not known.
        """
        return self.root / "triton-home" / (pin[:8] or "unpinned")

    @property
    def lock(self) -> Path:
        """The lock's file for what environments share."""
        return self.root / "lock"

    def log(self, task: str) -> Path:
        """A new log file for one run of a task."""
        now = datetime.now().astimezone()
        return self.root / "logs" / f"{now:%Y%m%d-%H%M%S}-{task}-{os.getpid()}.log"

    def run(
        self,
        plan: Plan,
        task: str,
        *,
        quiet: bool = False,
        log: Path | None = None,
        environ: Mapping[str, str] | None = None,
        tap: Tap | None = None,
    ) -> Outcome:
        """Run a plan on behalf of a task.

        Args:
            plan: the steps.
            task: whose name the log bears.
            quiet: show no progress.
            log: the file; a new one if None.
            environ: the environment that steps change; the process's own if None.
            tap: gets what a program at the terminal writes to standard error.
        """
        progress = PhaseProgress(live=False if quiet else None, silent=quiet)
        return Runner(log or self.log(task), progress, environ, tap).run(plan)

    def claim(self) -> None:
        """Create the folder if need be, and mark it.

        Raises:
            SmithError: it cannot be written to, or belongs to someone else.
        """
        with _writable(self.root):
            ownership.mark(self.root)


@dataclass(frozen=True)
class EnvDir:
    """The folder of one environment.

    Attributes:
        path: the folder.
        root: the workspace that it lies in.
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
        """Where Triton is configured only to see what it takes of an LLVM that is not built yet."""
        return self.path / "llvm-closure"

    @property
    def lock(self) -> Path:
        """The lock's file."""
        return self.path / "lock"

    def receipt(self, task: str) -> Path:
        """The receipt of a task's last success."""
        return self.path / "receipts" / f"{task}.json"

    def make(self) -> None:
        """Create the folder if need be.

        Raises:
            SmithError: it cannot be made.
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
            hints=["set TRITONSMITH_HOME to a folder that you can write to"],
        ) from error


def default() -> Workspace:
    """The workspace that the environment variables and the platform name.

    Raises:
        SmithError: neither names a folder: a user without a home.
    """
    home = os.environ.get("TRITONSMITH_HOME")
    try:
        return Workspace(
            Path(home).expanduser().absolute() if home else platformdirs.user_data_path("tritonsmith")
        )
    except RuntimeError as error:
        raise SmithError(
            "this user has no home folder, so there is no place for the workspace",
            why=str(error),
            hints=["export TRITONSMITH_HOME=/a/folder/of/yours"],
        ) from error
