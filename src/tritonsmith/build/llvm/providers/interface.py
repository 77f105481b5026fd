"""The inputs and the result of a provider of LLVM."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from tritonsmith.build.llvm.closure import Consumer
from tritonsmith.build.llvm.source import BuildTools, LlvmSource
from tritonsmith.build.store.entry import StoreEntry, StoreManifest
from tritonsmith.build.store.store import Store
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.plan import Plan, Step
from tritonsmith.facts.llvm_tree import LlvmTree


@dataclass(frozen=True)
class ProviderInputs:
    """Everything that the choice of a provider depends on.

    Attributes:
        workspace: workspace for builds and archives.
        means: the machine and the tools of a build.
        installed: installed LLVMs, the one named by flag or variable first.
        source: origin of LLVM's sources.
        reachable: returns why a URL cannot be fetched from here, or None if it can.
        store: the store of LLVMs.
        entries: entries of the store.
        consumer: the Triton that needs the LLVM; None if its sources are not available.
        again: configure even if nothing changed.
    """

    workspace: Workspace
    means: BuildTools
    installed: tuple[LlvmTree, ...]
    source: LlvmSource
    reachable: Callable[[str], str | None]
    store: Store
    entries: tuple[StoreEntry, ...] = ()
    consumer: Consumer | None = None
    again: bool = False

    @property
    def triton(self) -> str:
        """The key of the closure of the consuming Triton; empty if it is unknown."""
        return self.consumer.closure if self.consumer else ""


@dataclass(frozen=True)
class ProviderChoice:
    """The LLVM that exists once the plan has run.

    Attributes:
        provider: name of the provider.
        prefix: value for `LLVM_SYSPATH`.
        commit: its commit, as far as it is known.
        plan: plan that builds or fetches it.
        warnings: problems that may occur later.
        refused: provider to the reason for its refusal.
        entry: name in the store; empty for an installed one.
        describe: reads the finished tree for its manifest; None if nothing is built.
        kind: kind of the entry: built, prebuilt ...; empty for an installed one.
    """

    provider: str
    prefix: Path
    commit: str
    plan: Plan
    warnings: tuple[str, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()
    entry: str = ""
    describe: Callable[[], StoreManifest] | None = None
    kind: str = ""


class RefusedError(Exception):
    """A provider does not fit; the message has the reason."""


def require_writable(store: Store) -> None:
    """Check that the store is writable, for a provider that builds or extracts something.

    Raises:
        RefusedError: the store is read-only.
    """
    if not store.writable:
        raise RefusedError(f"{store.root} is read-only: set another `store` under [llvm], or none")


def taken(
    entry: StoreEntry, manifest: StoreManifest, provider: str, warnings: tuple[str, ...]
) -> ProviderChoice:
    """Return the choice of an entry as it is."""
    plan = Plan(f"LLVM {manifest.version} from the store in {entry.path}")
    return ProviderChoice(
        provider, entry.path, manifest.commit, plan, warnings, entry=entry.name, kind=manifest.kind
    )


def grown(
    entry: StoreEntry,
    manifest: StoreManifest,
    provider: str,
    warnings: tuple[str, ...],
    steps: tuple[Step, ...],
    describe_it: Callable[[], StoreManifest],
) -> ProviderChoice:
    """Return the choice of an entry in which more will be built, with its existing configuration."""
    plan = Plan(f"the rest of LLVM {manifest.version} in {entry.path}", steps)
    return replace(taken(entry, manifest, provider, warnings), plan=plan, describe=describe_it)
