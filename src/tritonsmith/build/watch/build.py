"""The build before a command runs again: only what it needs, in a folder that is already configured."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path

from tritonsmith.build import cmake, diagnose
from tritonsmith.build.jobs import bound
from tritonsmith.build.triton import ninja_targets
from tritonsmith.build.watch.outcome import RunOutcome
from tritonsmith.core import configs
from tritonsmith.core.envs import session
from tritonsmith.core.envs.schema import Purpose, Settings
from tritonsmith.core.envs.workspace import EnvDir, Workspace
from tritonsmith.core.errors import InterruptedRunError, SmithError
from tritonsmith.core.plan import Plan
from tritonsmith.core.plan.steps.base import CommandFailedError
from tritonsmith.core.ui import console
from tritonsmith.facts import cmake_cache, machine

GRAPH = "build.ninja"
_TASK = "watch"


@dataclass(frozen=True)
class WatchedBuild:
    """A build folder of Triton, and the targets that a command needs.

    Attributes:
        folder: CMake's build folder.
        source: the checkout that it builds.
        targets: Ninja's targets; all if empty.
        jobs: number of parallel compiles.
        space: the workspace.
    """

    folder: Path
    source: Path
    targets: tuple[str, ...]
    jobs: int
    space: Workspace

    @property
    def env(self) -> EnvDir:
        """The environment of the folder, if it is in one."""
        return self.space.env(self.folder.parent.name)

    def run(self) -> RunOutcome | None:
        """Build, and return the outcome of a failure. Ninja runs TableGen, and CMake again, if they are due.

        Raises:
            KeyboardInterrupt: ^C; all processes were stopped.
        """
        phase = f"build {' '.join(self.targets) or 'all'}"
        step = cmake.build_targets(
            self.folder, cmake.own_tools(), targets=self.targets, jobs=self.jobs, phase=phase
        )
        plan = Plan(f"{phase} in {self.folder}", (step,))
        try:
            if self.env.build == self.folder:
                with session.opened(_TASK, self.env.name) as running:
                    running.run(plan)
            else:
                self.space.claim()
                self.space.run(plan, _TASK)
        except InterruptedRunError:
            raise
        except CommandFailedError as failure:
            return _failed(diagnose.explain(failure))
        except SmithError as error:
            return _failed(error)
        return None


def of(folder: Path, purpose: Purpose, settings: Settings, space: Workspace) -> WatchedBuild | None:
    """Return the build of a folder for a purpose; None if the folder was never configured.

    Args:
        folder: the build folder.
        purpose: purpose, as for `build-triton --for`.
        settings: settings that bound the jobs.
        space: the workspace.
    """
    cache = cmake_cache.read(folder) if (folder / GRAPH).is_file() else None
    source = Path(cache.get("CMAKE_HOME_DIRECTORY")) if cache else None
    if source is None or not source.is_dir():
        return None
    targets = ninja_targets.resolve(replace(settings.triton, targets=(), for_=purpose), source)
    jobs = bound(machine.read(), settings.toolchain, settings.llvm.debug_info).compile
    return WatchedBuild(folder, source, targets, jobs, space)


def is_built(path: Path) -> bool:
    """Report whether a file is compiled, read by TableGen, or read by CMake."""
    return any(fnmatch(path.name, name) for name in configs.load("watch")["built"]["names"])


def stale(saved: Iterable[Path]) -> bool:
    """Report whether something must be built after these files were saved."""
    return any(map(is_built, saved))


def _failed(error: SmithError) -> RunOutcome:
    return RunOutcome(1, tuple(console.typed(f"error: {error}").splitlines()), what="build")
