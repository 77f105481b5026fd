"""What a provider of LLVM is given, and what it answers."""

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
        workspace: where builds and archives go.
        means: what a build would be made with, and the machine.
        installed: LLVMs that are there, the one named by flag or variable first.
        source: where LLVM's sources come from.
        reachable: why a URL cannot be fetched from here, or None if it can.
        store: where LLVMs are kept.
        entries: what is in it.
        consumer: the Triton that it is for; None where its sources are not at hand.
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
        """What the closure of the Triton that it is for follows from; empty if that is not known."""
        return self.consumer.closure if self.consumer else ""


@dataclass(frozen=True)
class ProviderChoice:
    """The LLVM that exists once the plan has run.

    Attributes:
        provider: that gives it.
        prefix: what `LLVM_SYSPATH` wants.
        commit: as far as it is known.
        plan: what brings it there.
        warnings: what may hurt later.
        refused: provider to the reason why it was not taken.
        entry: name in the store; empty for an installed one.
        describe: reads the finished tree for its manifest; None where nothing is made.
        kind: of the entry: built, prebuilt ...; empty for an installed one.
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
    """A provider does not fit; the message says why."""


def require_writable(store: Store) -> None:
    """What a provider needs that builds or extracts something.

    Raises:
        RefusedError: the store is read-only.
    """
    if not store.writable:
        raise RefusedError(f"{store.root} is read-only: set another `store` under [llvm], or none")


def taken(
    entry: StoreEntry, manifest: StoreManifest, provider: str, warnings: tuple[str, ...]
) -> ProviderChoice:
    """An entry as it is."""
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
    """An entry in which more is built, as it was configured once."""
    plan = Plan(f"the rest of LLVM {manifest.version} in {entry.path}", steps)
    return replace(taken(entry, manifest, provider, warnings), plan=plan, describe=describe_it)
