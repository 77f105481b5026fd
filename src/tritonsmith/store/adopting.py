"""`store.adopt` and `store.forget`: an LLVM that somebody built, on the list, and off it."""

from __future__ import annotations

import re
from pathlib import Path

from tritonsmith.errors import FactError, UsageError
from tritonsmith.facts import llvm_tree
from tritonsmith.facts.llvm_tree import LlvmTree
from tritonsmith.facts.machine import Machine
from tritonsmith.plan import Plan, Remove
from tritonsmith.plan.steps import digest
from tritonsmith.store import describe
from tritonsmith.store.entry import Entry, Manifest, is_name
from tritonsmith.store.shelf import PHASE, Store


def adopt(store: Store, path: Path, machine: Machine, name: str = "") -> tuple[Manifest, Plan]:
    """Plan to put an LLVM on the list. Its files stay where they are, and are never changed or deleted.

    Args:
        store: which.
        path: build folder or install prefix.
        machine: this one.
        name: for the list; empty for one that tells what it is.

    Raises:
        FactError: there is no LLVM there, or it is not built.
        UsageError: it is on the list, or the name is taken.
    """
    if name and not is_name(name):
        raise UsageError(f"{name!r} is no name for an entry", hints=["letters, digits, dots and dashes"])
    tree = llvm_tree.read(path)
    if tree.prefix.resolve().is_relative_to(store.root.resolve()):
        raise UsageError("this is in the store already", where=tree.prefix)
    if not describe.libraries(tree.prefix):
        raise FactError("this LLVM is configured, and not built", where=tree.prefix)
    manifest = describe.manifest(name or _name(tree), "adopted", tree, machine, tree_name=str(tree.prefix))
    for entry in store.entries():
        have = entry.manifest
        if have and have.kind == "adopted" and Path(have.tree).resolve() == tree.prefix.resolve():
            if entry.name == manifest.name:
                continue
            hints = [f"`invoke store.forget {entry.name}` takes it off"]
            raise UsageError(f"this is on the list as {entry.name}", where=tree.prefix, hints=hints)
        if entry.name == manifest.name:
            raise UsageError(
                f"the name {entry.name!r} is taken", where=entry.path, hints=["--name gives it another"]
            )
    return manifest, Plan(f"adopt {tree.prefix}", store.publish(manifest))


def forget(store: Store, entry: Entry) -> Plan:
    """Plan to take an adopted LLVM off the list.

    Raises:
        UsageError: the entry is one of the store's own.
    """
    if entry.manifest is None or entry.manifest.kind != "adopted":
        raise UsageError(
            f"{entry.name} is the store's own",
            where=entry.path,
            hints=[f"`invoke store.gc --name {entry.name}` deletes it"],
        )
    paths = (store.manifest(entry.name), store.root / f"{entry.name}.used")
    return Plan(f"forget {entry.name}", (Remove(paths, store.owner, phase=PHASE),))


def _name(tree: LlvmTree) -> str:
    """Like those of builds, with what tells one prefix from another."""
    source = tree.commit[:12] or f"{tree.prefix.name}-{tree.version}"
    asserts = "-asserts" if tree.assertions else ""
    plain = f"{source}-{tree.build_type or 'any'}{asserts}-{digest(str(tree.prefix.resolve()))[:8]}"
    return re.sub(r"[^A-Za-z0-9._+]+", "-", plain).strip("-.")
