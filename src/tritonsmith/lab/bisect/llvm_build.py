"""The llc of a commit of LLVM: one build tree, which moves from commit to commit.

Neither MLIR nor Triton is built. The user's clone is only read: sources lie in a clone of the tool's own,
which borrows the user's objects.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tritonsmith.build import cmake
from tritonsmith.build.llvm import setup_mlir
from tritonsmith.build.llvm import source as llvm_source
from tritonsmith.build.llvm.request import LlvmRequest
from tritonsmith.build.prepared_build import PreparedBuild
from tritonsmith.build.triton import commands
from tritonsmith.compiler.tritons import Triton
from tritonsmith.core import configs
from tritonsmith.core.envs import receipts, session
from tritonsmith.core.envs.schema import LlvmSettings, Settings
from tritonsmith.core.envs.workspace import EnvDir, Workspace
from tritonsmith.core.plan import MakeDir, Plan, Run, Step, digest, locks
from tritonsmith.facts.triton_history import TritonCommit
from tritonsmith.lab.bisect.build import borrowed_clone
from tritonsmith.lab.bisect.cost import LlvmState

_TASK = "setup-mlir"  # what builds of LLVM are to receipts and logs
_SHORT = 12  # digits of a commit


@dataclass(frozen=True)
class LlcBuilds:
    """Builds the llc of commits of one clone.

    Attributes:
        clone: the user's.
        settings: of the environment whose compiler, linker, cache and jobs are used.
        space: the workspace, in which everything goes.
        targets: the code generators: `NVPTX`.
        programs: that are built: the llc, and whatever else is tested with it.
    """

    clone: Path
    settings: Settings
    space: Workspace
    targets: tuple[str, ...]
    programs: tuple[str, ...] = ("llc",)

    @property
    def source(self) -> Path:
        """The clone of the tool's own, at the commit that was built last."""
        return self.space.sources / f"bisect-llvm-{digest(str(self.clone))[:8]}"

    @property
    def env(self) -> EnvDir:
        """The folder of receipts, logs and the build tree."""
        return self.space.env(f"{self.source.name}-{'-'.join(self.targets)}")

    @property
    def tree(self) -> Path:
        """The build tree."""
        return self.env.path / "llvm"

    def llvm_state(self, _pin: str) -> LlvmState:
        """There is no other LLVM to wait for."""
        return "ready"

    def last(self, _pin: str) -> str:
        """The commit that was built last; empty if none was, or not all of the programs."""
        receipt = receipts.read(self.env.receipt(_TASK)) or {}
        return str(receipt.get("commit", "")) if {*self.programs} <= {*receipt.get("programs", ())} else ""

    def built(self, commit: TritonCommit) -> dict[str, Any] | None:
        """The receipt of the last build, if it was of this commit."""
        return receipts.read(self.env.receipt(_TASK)) if self.last("") == commit.commit else None

    def make(self, commit: TritonCommit) -> Triton:
        """Build the llc of a commit; it is there until the next one is built, and named as an interpreter is.

        Raises:
            SmithError: it cannot be built; a StepError is the commit's own.
        """
        self.space.claim()
        with (
            locks.hold(self.source.with_suffix(".lock"), purpose="bisect"),
            session.opened(_TASK, self.env.name) as running,
        ):
            running.run_unseen(
                (*borrowed_clone(self.clone, self.source, self.space), *self._move(commit.commit))
            )
            made = {"commit": commit.commit, "targets": self.targets, "programs": self.programs}
            commands.execute(PreparedBuild(Plan("an llc", self._build()), (), made), running)
        return Triton(f"llc {commit.commit[:_SHORT]}", python=str(self.tree / "bin" / "llc"))

    def _move(self, commit: str) -> tuple[Step, ...]:
        folders = (
            folder for folder in configs.load("triton-eras")["llvm-source"]["folders"] if folder != "mlir"
        )
        calls = (("sparse-checkout", "set", *folders), ("checkout", "--quiet", "--force", "--detach", commit))
        phase = llvm_source.PHASE_SOURCES
        return tuple(Run(("git", *call), cwd=self.source, phase=phase) for call in calls)

    def _build(self) -> tuple[Step, ...]:
        llvm = LlvmSettings(**configs.load("bisect")["llvm"]["settings"], targets=self.targets)
        settings = replace(
            self.settings, llvm=replace(llvm, precompiled_headers=self.settings.llvm.precompiled_headers)
        )
        means = setup_mlir.build_tools(settings)
        request = LlvmRequest(None, frozenset(), "", settings.llvm)
        variables = llvm_source.cache_variables(request, means) | configs.load("bisect")["llvm"]["cmake"]
        phase = llvm_source.PHASE_CONFIGURE
        return (
            MakeDir(self.tree, phase=phase),
            *cmake.configure(
                self.source / "llvm", self.tree, variables, means.tools, phase=phase, root=self.space.root
            ),
            cmake.build_targets(
                self.tree,
                means.tools,
                targets=self.programs,
                jobs=means.jobs.compile,
                phase=llvm_source.PHASE_BUILD,
            ),
        )
