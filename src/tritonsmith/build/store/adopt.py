"""`store.import --in-place` and `store --forget`: register an existing LLVM in the store, and unregister it.

The owner may change it: its state is recorded, and an LLVM in another state is not used.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from tritonsmith.build.explain import ninja_dry_run
from tritonsmith.build.store import describe_tree
from tritonsmith.build.store.describe_tree import Known
from tritonsmith.build.store.entry import StoreEntry, StoreManifest, is_name
from tritonsmith.build.store.store import PHASE, Store
from tritonsmith.core.command_line import command
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.core.plan import Plan, Remove, digest
from tritonsmith.facts import git, llvm_tree, tools
from tritonsmith.facts.llvm_tree import LlvmTree
from tritonsmith.facts.machine import Machine


def adopt(store: Store, path: Path, machine: Machine, name: str = "") -> tuple[StoreManifest, Plan]:
    """Plan to register an LLVM, whose files stay in place and are never changed or deleted.

    `path` is a build folder or an install prefix. Without a name, the entry gets a descriptive one.

    Raises:
        FactError: there is no LLVM, or it is not built.
        UsageError: it is registered already, or the name is taken.
    """
    if name and not is_name(name):
        raise UsageError(
            f"{name!r} is not a valid entry name", hints=["allowed: letters, digits, dots and dashes"]
        )
    tree = llvm_tree.read(path)
    if tree.prefix.resolve().is_relative_to(store.root.resolve()):
        raise UsageError("this is in the store already", where=tree.prefix)
    if not describe_tree.libraries(tree.prefix):
        raise FactError("this LLVM is configured, but not built", where=tree.prefix)
    # Before anything else is read, so that any change from now on is noticed.
    looks = describe_tree.looks(tree.prefix)
    known, notes = _known(tree)
    before = next((entry for entry in store.entries() if _is(entry, tree)), None)
    if before and name and name != before.name:
        hints = [f"`{command('store --forget', before.name)}` removes it from the store"]
        raise UsageError(
            f"this LLVM is already in the store as {before.name}", where=tree.prefix, hints=hints
        )
    if before and not before.name.endswith(_mark(tree)):
        name = before.name  # a user chose it
    name = name or _name(tree)
    if any(entry.name == name and entry != before for entry in store.entries()):
        hints = ["choose another with --name"]
        raise UsageError(f"the name {name!r} is taken", where=store.path(name), hints=hints)
    manifest = describe_tree.manifest(name, "adopted", tree, machine, known, str(tree.prefix))
    manifest = replace(manifest, looks=looks)
    another = before is not None and before.name != name  # the generated name then was of another LLVM
    gone = forget(store, before).steps if before and another else ()
    return manifest, Plan(f"adopt {tree.prefix}", (*gone, *store.publish(manifest)), notes)


def _is(entry: StoreEntry, tree: LlvmTree) -> bool:
    """Report whether an entry is this same tree, adopted."""
    have = entry.manifest
    return bool(have and have.kind == "adopted" and Path(have.tree).resolve() == tree.prefix.resolve())


def _known(tree: LlvmTree) -> tuple[Known, tuple[str, ...]]:
    """Return facts from a build tree's sources and Ninja, and notes on its limits.

    An installed LLVM counts as complete; its packages, programs and targets show what it lacks.
    """
    source = llvm_tree.source_of(tree.prefix)
    if source is None:
        return Known(), ()
    head = git.head(source)
    diff = (git.changes(source) or "unknown") if head.dirty else ""
    notes = []
    if diff:
        notes.append(f"its sources in {source} are modified, so no environment will use it")
    part = _why_a_part(tree.prefix)
    if part:
        notes.append(f"{part}. No environment will use it until the build is complete and adopted again")
    return Known(diff=diff, scope="python-module" if part else "all", source=str(source)), tuple(notes)


def _why_a_part(build: Path) -> str:
    """Return the reason why a build tree is incomplete; empty if Ninja has nothing left to build."""
    ninja = tools.own("ninja")
    if ninja is None:
        return "no Ninja to check what is built"
    try:
        left = ninja_dry_run.dry_run(ninja.path, build, ("all",))
    except FactError as error:
        return f"Ninja cannot check the build ({error.why or error.what})"
    if left.regeneration:
        return "CMake would reconfigure it"
    return f"build steps left: {len(left.steps)}" if left.steps else ""


def forget(store: Store, entry: StoreEntry) -> Plan:
    """Plan to unregister an adopted LLVM.

    Raises:
        UsageError: the entry was not adopted.
    """
    if entry.manifest is None or entry.manifest.kind != "adopted":
        raise UsageError(
            f"{entry.name} is not an adopted entry",
            where=entry.path,
            hints=[f"`{command('store.gc', name=entry.name)}` deletes it"],
        )
    paths = (store.manifest(entry.name), store.root / f"{entry.name}.used")
    return Plan(f"forget {entry.name}", (Remove(paths, store.owner, phase=PHASE),))


def _name(tree: LlvmTree) -> str:
    """Return a name like those of builds, with a mark of the prefix."""
    source = tree.commit[:12] or f"{tree.prefix.name}-{tree.version}"
    asserts = "-asserts" if tree.assertions else ""
    plain = f"{source}-{tree.build_type or 'any'}{asserts}{_mark(tree)}"
    return re.sub(r"[^A-Za-z0-9._+]+", "-", plain).strip("-.")


def _mark(tree: LlvmTree) -> str:
    """Return a mark that distinguishes prefixes in generated names."""
    return f"-{digest(str(tree.prefix.resolve()))[:8]}"
