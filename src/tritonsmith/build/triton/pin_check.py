"""Checkouts whose LLVM pin moved: select the matching LLVM, and explain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tritonsmith.build.llvm.request import LlvmRequest
from tritonsmith.core.command_line import command
from tritonsmith.core.errors import FactError
from tritonsmith.facts import llvm_tree
from tritonsmith.facts.llvm_tree import LlvmTree

_SHORT = 12  # digits of a commit


def right_llvm(
    tree: LlvmTree,
    request: LlvmRequest,
    receipt: Mapping[str, Any],
    stored: Callable[[], Iterable[Path]],
    env: str,
) -> LlvmTree:
    """Return the LLVM to build against: that of `setup-mlir`, or one at the new pin if the pin has moved.

    An LLVM that was not at the earlier pin either was a deliberate choice, and stays.

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
    if pin is None or had.get("kind") != "prebuilt" or None in (before, pin.build) or before == pin.build:
        return
    if llvm_tree.same_commit(pin.commit, str(had.get("pin") or "")):
        yield (
            f"upstream rebuilt the archive of this LLVM pin: {pin.file} names build {pin.build}, here is "
            f"build {before}; `{command('setup-mlir', env=env)}` installs the new one"
        )


def notes(last: Mapping[str, Any] | None, request: LlvmRequest, tree: LlvmTree) -> Iterator[str]:
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
