"""`setup-mlir`: takes the first provider that fits, and says of each other why it was not taken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.build import llvm_prebuilt, llvm_source
from tritonsmith.build.cmake import CmakeTools
from tritonsmith.build.jobs import Jobs
from tritonsmith.build.llvm_request import LlvmRequest
from tritonsmith.envs.workspace import Workspace
from tritonsmith.errors import FactError, UsageError
from tritonsmith.facts.llvm_tree import LlvmTree
from tritonsmith.facts.machine import Machine
from tritonsmith.facts.tools import Compilers
from tritonsmith.plan import Plan

ORDER = ("system", "prebuilt", "source")  # `auto`: quickest first


@dataclass(frozen=True)
class Facts:
    """Everything that the choice of a provider depends on.

    Attributes:
        machine: where it runs.
        installed: LLVMs that are there, the one named by flag or variable first.
        source: where LLVM's sources come from.
        compilers: what compiles and links.
        tools: CMake and Ninja.
        jobs: bounds of parallel work.
        reachable: why a URL cannot be fetched from here, or None if it can.
    """

    machine: Machine
    installed: tuple[LlvmTree, ...]
    source: llvm_source.LlvmSource
    compilers: Compilers
    tools: CmakeTools
    jobs: Jobs
    reachable: Callable[[str], str | None]


@dataclass(frozen=True)
class Choice:
    """The LLVM that will be there once the plan has run.

    Attributes:
        provider: that gives it.
        prefix: what `LLVM_SYSPATH` wants.
        commit: as far as it is known.
        plan: what brings it there.
        warnings: what may hurt later.
        refused: provider to the reason why it was not taken.
    """

    provider: str
    prefix: Path
    commit: str
    plan: Plan
    warnings: tuple[str, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()


class _RefusedError(Exception):
    """A provider does not fit; the text says why."""


def choose(request: LlvmRequest, facts: Facts, workspace: Workspace, *, again: bool = False) -> Choice:
    """Take a provider: the one that the settings name, or the first that fits.

    Args:
        request: what is asked for.
        facts: what there is.
        workspace: where builds and archives go.
        again: configure even if nothing changed.

    Raises:
        FactError: none fits.
        UsageError: the request contradicts itself.
    """
    providers: dict[str, Callable[[], Choice]] = {
        "system": lambda: _system(request, facts),
        "prebuilt": lambda: _prebuilt(request, facts, workspace),
        "source": lambda: _source(request, facts, workspace, again=again),
    }
    wanted = request.settings.provider
    names = ORDER if wanted == "auto" else (wanted,)
    refused: list[tuple[str, str]] = []
    for name in names:
        try:
            choice = providers[name]()
        except _RefusedError as reason:
            refused.append((name, str(reason)))
            continue
        return Choice(
            choice.provider, choice.prefix, choice.commit, choice.plan, choice.warnings, tuple(refused)
        )
    raise FactError(
        f"no LLVM that fits the pin {request.describe_pin()}",
        why="\n".join(f"{name}: {reason}" for name, reason in refused),
        hints=_hints(refused),
    )


def _system(request: LlvmRequest, facts: Facts) -> Choice:
    explicit = request.settings.provider == "system"
    if not facts.installed:
        raise _RefusedError("no installed LLVM was found under the usual prefixes")
    reasons: list[str] = []
    for tree in facts.installed:
        if missing := request.lacks(tree):
            reasons.append(f"{tree.prefix} ({tree.version}) lacks {'; '.join(missing)}")
            continue
        fit = request.fit(tree.commit)
        if fit == "pin" or explicit or request.settings.any_commit:
            warnings = () if fit == "pin" else (_near_the_pin(request, tree),)
            plan = Plan(f"installed LLVM {tree.version} in {tree.prefix}")
            return Choice("system", tree.prefix, tree.commit, plan, warnings)
        about = f"is at {tree.commit[:12]}" if tree.commit else "does not tell its commit"
        reasons.append(f"{tree.prefix} ({tree.version}) {about}; the pin is {request.describe_pin()}")
    raise _RefusedError("\n  ".join(reasons))


def _near_the_pin(request: LlvmRequest, tree: LlvmTree) -> str:
    about = f"commit {tree.commit[:12]}" if tree.commit else "its commit is not recorded"
    return (
        f"LLVM {tree.version} in {tree.prefix} is not the pin: {about}, "
        f"Triton wants {request.describe_pin()}. Files that use an API changed in between will not compile."
    )


def _prebuilt(request: LlvmRequest, facts: Facts, workspace: Workspace) -> Choice:
    archive = llvm_prebuilt.archive_for(request, facts.machine, request.settings.prebuilt_url)
    if request.pin is None:
        raise _RefusedError("nothing says which commit is wanted")
    if archive is None:
        raise _RefusedError(f"upstream builds none for {facts.machine.system} on {facts.machine.arch}")
    if not archive.sha256:
        raise _RefusedError(
            f"{request.pin.file} has no checksum for {archive.suffix}: give one with --sha256 HEX"
        )
    if not llvm_prebuilt.at_hand(archive, workspace) and (problem := facts.reachable(archive.url)):
        raise _RefusedError(f"{archive.url} cannot be reached: {problem}")
    plan = llvm_prebuilt.plan(archive, workspace)
    return Choice("prebuilt", workspace.llvm / archive.name, request.pin.commit, plan)


def _source(request: LlvmRequest, facts: Facts, workspace: Workspace, *, again: bool) -> Choice:
    try:
        tree = llvm_source.obtain(facts.source, request, workspace)
    except UsageError as error:
        if request.settings.provider == "source":
            raise
        raise _RefusedError(error.what) from error
    plan = llvm_source.plan(
        tree, request, workspace, facts.machine, facts.compilers, facts.tools, facts.jobs, again=again
    )
    prefix = llvm_source.build_dir(tree, request, workspace)
    warnings: tuple[str, ...] = ()
    if request.fit(tree.commit) != "pin":
        known = tree.commit[:12] or "unknown"
        warnings = (f"the sources' commit is {known}; Triton wants {request.describe_pin()}",)
    return Choice("source", prefix, tree.commit, plan, warnings)


def _hints(refused: list[tuple[str, str]]) -> list[str]:
    names = {name for name, _ in refused}
    hints = ["an installed LLVM near the pin may do: --provider system --llvm-dir /usr/lib/llvm-NN"]
    if "prebuilt" in names or "source" in names:
        hints.append("LLVM sources or a mirror that you have: --provider source --llvm-source PATH_OR_URL")
    if "source" not in names:
        hints.append("let the tool fetch and build LLVM: --provider source")
    return hints
