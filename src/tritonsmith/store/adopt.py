"""`store.adopt` and `store.forget`: an LLVM that somebody built, on the list, and off it.

It can change under the store: how it looked is written down, and one that looks otherwise is not given out.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from tritonsmith.errors import FactError, UsageError
from tritonsmith.facts import git, llvm_tree, ninja_dry_run, tools
from tritonsmith.facts.llvm_tree import LlvmTree
from tritonsmith.facts.machine import Machine
from tritonsmith.plan import Plan, Remove
from tritonsmith.plan.steps import digest
from tritonsmith.store import describe_tree
from tritonsmith.store.describe_tree import Known
from tritonsmith.store.entry import StoreEntry, StoreManifest, is_name
from tritonsmith.store.store import PHASE, Store


def adopt(store: Store, path: Path, machine: Machine, name: str = "") -> tuple[StoreManifest, Plan]:
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
    if not describe_tree.libraries(tree.prefix):
        raise FactError("this LLVM is configured, and not built", where=tree.prefix)
    looks = describe_tree.looks(tree.prefix)  # before the rest: what changes from now on shows
    known, notes = _known(tree)
    before = next((entry for entry in store.entries() if _is(entry, tree)), None)
    if before and name and name != before.name:
        hints = [f"`invoke store.forget {before.name}` takes it off"]
        raise UsageError(f"this is on the list as {before.name}", where=tree.prefix, hints=hints)
    if before and not before.name.endswith(_mark(tree)):
        name = before.name  # somebody chose it
    name = name or _name(tree)
    if any(entry.name == name and entry != before for entry in store.entries()):
        hints = ["--name gives it another"]
        raise UsageError(f"the name {name!r} is taken", where=store.path(name), hints=hints)
    manifest = describe_tree.manifest(name, "adopted", tree, machine, known, str(tree.prefix))
    manifest = replace(manifest, looks=looks)
    another = before is not None and before.name != name  # it was another LLVM then
    gone = forget(store, before).steps if before and another else ()
    return manifest, Plan(f"adopt {tree.prefix}", (*gone, *store.publish(manifest)), notes)


def _is(entry: StoreEntry, tree: LlvmTree) -> bool:
    """Whether an entry is this very tree, adopted."""
    have = entry.manifest
    return bool(have and have.kind == "adopted" and Path(have.tree).resolve() == tree.prefix.resolve())


def _known(tree: LlvmTree) -> tuple[Known, tuple[str, ...]]:
    """What a build tree's sources and Ninja tell, and sentences about what it will not be taken for.

    An installed LLVM is all that there will be of it; what it lacks, its packages, programs and targets tell.
    """
    source = llvm_tree.source_of(tree.prefix)
    if source is None:
        return Known(), ()
    head = git.head(source)
    diff = (git.changes(source) or "unknown") if head.dirty else ""
    notes = []
    if diff:
        notes.append(f"its sources in {source} are changed, so no environment is given it")
    part = _why_a_part(tree.prefix)
    if part:
        notes.append(f"{part}. No environment is given it until all of it is built, and it is adopted again")
    return Known(diff=diff, scope="python-module" if part else "all", source=str(source)), tuple(notes)


def _why_a_part(build: Path) -> str:
    """Why a build tree is not taken for a whole one; empty if Ninja has nothing left to do in it."""
    ninja = tools.own("ninja")
    if ninja is None:
        return "there is no Ninja to ask what is built"
    try:
        left = ninja_dry_run.read(ninja.path, build, ("all",))
    except FactError as error:
        return f"Ninja cannot tell whether it is built ({error.why or error.what})"
    if left.regeneration:
        return "CMake would configure it anew"
    return f"steps that are left to build in it: {len(left.steps)}" if left.steps else ""


def forget(store: Store, entry: StoreEntry) -> Plan:
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
    plain = f"{source}-{tree.build_type or 'any'}{asserts}{_mark(tree)}"
    return re.sub(r"[^A-Za-z0-9._+]+", "-", plain).strip("-.")


def _mark(tree: LlvmTree) -> str:
    """What tells one prefix from another in a name that nobody chose."""
    return f"-{digest(str(tree.prefix.resolve()))[:8]}"
