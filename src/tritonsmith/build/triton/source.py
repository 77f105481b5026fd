"""Locate Triton's sources, tell what LLVM they need, and follow their pin when it moves.

Sources are named by a flag, the env file, or the current folder; otherwise they are cloned.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritonsmith.core.command_line import command
from tritonsmith.core.envs.settings import Settings
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError
from tritonsmith.core.plan import (
    GitFetch,
    MakeDir,
    Plan,
    Run,
    stamped,
)
from tritonsmith.facts import checkout, llvm_tree
from tritonsmith.facts import checkout as checkouts
from tritonsmith.facts.checkout import LlvmPin, TritonCheckout
from tritonsmith.facts.llvm_tree import LlvmRequest, LlvmTree

PHASE = "Triton sources"
# A release by its number, its tag or its branch: 3.4, v3.4.0, release/3.4.x.
_VERSION = re.compile(r"^(?:v|release/)?(\d+\.\d+)(?:\.[\dx]+)?$")
_SHORT = 12  # digits of a commit


@dataclass(frozen=True)
class TritonSource:
    """The location of Triton's sources, and the plan that fetches them.

    Attributes:
        root: folder of the checkout.
        fetch: plan that fetches it; empty for an existing checkout.
    """

    root: Path
    fetch: Plan


def locate(settings: Settings, workspace: Workspace, cwd: Path) -> TritonSource:
    """Find the checkout. Order: `--source`, a path in the env file, the one around `cwd`, a clone.

    Args:
        settings: settings of the env.
        workspace: workspace for a clone.
        cwd: the current folder.

    Raises:
        FactError: no checkout and no URL is named.
    """
    source = settings.triton.source
    from_flag = dict(settings.origin).get("triton.source") == "command line"
    is_url = "://" in source or source.startswith("git@")
    around = checkouts.enclosing(cwd)
    if source and not is_url:
        return TritonSource(Path(source).expanduser().absolute(), Plan("Triton's sources are present"))
    # A URL on the command line is a request for a clone; one in the env file only says where to get it.
    if around and not (is_url and from_flag):
        return TritonSource(around, Plan("Triton's sources are present"))
    if not source:
        raise FactError(
            f"environment {settings.name!r} has no Triton source, and this folder is not in a checkout",
            where=cwd,
            hints=[
                "run this in a checkout, or give one: --source PATH",
                "or use another environment: --env dev",
            ],
        )
    return _clone(source, settings.triton.revision, settings.name, workspace)


def _clone(url: str, revision: str, name: str, workspace: Workspace) -> TritonSource:
    repository = workspace.sources / f"triton-{name}"
    git = ("git", "-C", str(repository))
    steps = (
        MakeDir(workspace.sources, phase=PHASE),
        # With the contents: a build reads nearly all files, and bumps of the pin are looked up in the
        # history.
        GitFetch(repository, (url,), revision, phase=PHASE, blobless=False),
        Run((*git, "checkout", "--quiet", "--detach", "FETCH_HEAD"), cwd=workspace.sources, phase=PHASE),
    )
    done = workspace.sources / f".triton-{name}.done"
    # From then on the clone is the user's: only they move it, by `git pull`.
    fetched = done.exists() and repository.is_dir()
    return TritonSource(
        repository, Plan(f"Triton {revision} from {url}", () if fetched else stamped(steps, done, repository))
    )


def request_for(settings: Settings, checkout: TritonCheckout) -> LlvmRequest:
    """Return this checkout's requirements for an LLVM."""
    return LlvmRequest(checkout.pin, checkout.features, checkout.version, settings.llvm)


def request_for_revision(settings: Settings) -> LlvmRequest | None:
    """Return a release's requirements for an LLVM, without a checkout; None if the revision is no version."""
    match = _VERSION.match(settings.triton.revision)
    if not match:
        return None
    row = checkout.triton_release(match[1])
    pin = LlvmPin(row.llvm, f"configs/triton-eras.toml, Triton {row.version}") if row.llvm else None
    return LlvmRequest(pin, checkout.features_of(row.version), row.version, settings.llvm)


def right_llvm(
    tree: LlvmTree,
    request: LlvmRequest,
    receipt: Mapping[str, Any],
    stored: Callable[[], Iterable[Path]],
    env: str,
) -> LlvmTree:
    """Return the LLVM to build against: that of `setup-mlir`, or one at the new pin if the pin has moved.

    Args:
        tree: the LLVM from `setup-mlir`.
        request: current requirements of the checkout.
        receipt: receipt of `setup-mlir`.
        stored: returns prefixes of finished LLVMs in the store; called only if needed.
        env: name of the environment.

    Raises:
        FactError: the pin moved, and no available LLVM matches it.
    """
    pin, before = request.pin, str(receipt.get("pin") or "")
    # An LLVM that was not at the earlier pin either was a deliberate choice, and stays.
    was_at_pin = llvm_tree.same_commit(str(receipt.get("commit") or tree.commit), before)
    if pin is None or not was_at_pin or request.fit(tree.commit) == "pin" or pin.commit == before:
        return tree
    for prefix in stored():
        try:
            other = llvm_tree.read(prefix)
        except FactError:
            continue
        if request.fit(other.commit) == "pin" and not request.lacks(other):
            return other
    raise FactError(
        f"the checkout's LLVM pin changed from {before[:_SHORT]} to {request.describe_pin()}, "
        f"and no available LLVM matches it",
        where=tree.prefix,
        why=f"environment {env!r} has LLVM {tree.version} at {tree.commit[:_SHORT] or before[:_SHORT]}",
        hints=[
            f"run `{command('setup-mlir', env=env)}`, which finds or builds the right LLVM",
            f"or keep the current LLVM deliberately: --llvm-dir {tree.prefix}",
        ],
    )


def newer_archive(receipt: Mapping[str, Any] | None, request: LlvmRequest, env: str) -> Iterator[str]:
    """Yield a note if upstream rebuilt the archive of the same commit since it was unpacked.

    Args:
        receipt: receipt of `setup-mlir`; None if there is none.
        request: current requirements of the checkout.
        env: name of the environment.
    """
    had, pin = receipt or {}, request.pin
    before = had.get("pin_build")
    # Receipts of older versions of the tool, and most pins, have no build number: then nothing is known.
    if pin is None or had.get("kind") != "prebuilt" or None in (before, pin.build) or before == pin.build:
        return
    if llvm_tree.same_commit(pin.commit, str(had.get("pin") or "")):
        yield (
            f"upstream rebuilt the archive of this LLVM pin: {pin.file} names build {pin.build}, here is "
            f"build {before}; `{command('setup-mlir', env=env)}` installs the new one"
        )


def pin_notes(last: Mapping[str, Any] | None, request: LlvmRequest, tree: LlvmTree) -> Iterator[str]:
    """Yield notes about changes since the last build.

    Args:
        last: the receipt of that build; None if there was none.
        request: current requirements of the checkout.
        tree: the LLVM to build against.
    """
    if last is None:
        return
    before, pin = str(last.get("pin") or ""), request.pin
    if pin and before and not llvm_tree.same_commit(pin.commit, before):
        yield f"the checkout's LLVM pin changed from {before[:_SHORT]} to {request.describe_pin()}"
    if (prefix := str(last.get("llvm") or "")) and Path(prefix) != tree.prefix:
        yield f"the LLVM changed: {prefix} -> {tree.prefix}"
