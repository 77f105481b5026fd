"""Stores, trees and environments for tests."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.unit.facts import fakes
from tritonsmith.build.store import describe_tree
from tritonsmith.build.store.entry import Abi, Compiler, Key, StoreManifest
from tritonsmith.build.store.store import Store, open_store
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.plan import Plan, Step
from tritonsmith.core.plan.runner import Runner
from tritonsmith.core.ui.progress import PhaseProgress
from tritonsmith.facts import llvm_tree
from tritonsmith.facts.machine import Machine

COMMIT = "0123456789abcdef0123456789abcdef01234567"
TRITON = "46550ab18e8f7314107cf591b9cf902b290fd45d"
HERE = Abi("Linux", "x86_64", "2.36", "3.4.30", cxx11=True)
MACHINE = Machine("Linux", "x86_64", 2, 8 << 30, "debian", "2.36", "3.4.30")
FILES = ("lib/cmake/mlir/MLIRConfig.cmake", "bin/FileCheck", "bin/mlir-tblgen", "lib/libLLVMSupport.a")


def store_in(space: Workspace, folder: str = "") -> Store:
    """A store that exists."""
    space.claim()
    store = open_store(space, folder)
    store.claim()
    return store


def act(space: Workspace, *steps: Step) -> None:
    """Run steps."""
    Runner(space.log("test"), PhaseProgress(live=False, silent=True)).run(Plan("test", steps))


def manifest(name: str = "one", **changes: Any) -> StoreManifest:
    """A complete Release build at the commit, with assertions."""
    plain = StoreManifest(
        name=name,
        kind="built",
        tree=name,
        commit=COMMIT,
        version="19.1.7",
        build_type="Release",
        assertions=True,
        targets=("AMDGPU", "NVPTX", "X86"),
        packages=("lld", "mlir"),
        tools=("FileCheck", "mlir-tblgen"),
        compiler=Compiler("/usr/bin/clang++", "Clang", "19.1.7"),
        abi=HERE,
        made="2026-01-01T00:00:00+00:00",
    )
    return replace(plain, **changes)


def tree(path: Path, files: Iterable[str] = FILES, **values: str) -> Path:
    """An LLVM's files."""
    fakes.llvm(path, files=tuple(files), **values)
    return path


def put(store: Store, space: Workspace, name: str = "one", **changes: Any) -> StoreManifest:
    """A published entry."""
    written = manifest(name, **changes)
    if written.kind == "adopted":
        written = replace(written, looks=describe_tree.looks(Path(written.tree)))
    else:
        tree(store.path(name))
    act(space, *store.publish(written))
    return written


def receipt(space: Workspace, env: str, prefix: Path, task: str = "setup-mlir", key: str = "prefix") -> Path:
    """A receipt of an environment that names an LLVM."""
    path = space.env(env).receipt(task)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"schema": 1, key: str(prefix)}), encoding="utf-8")
    return path


def age(path: Path, seconds: float) -> None:
    """Make a file, or a folder, older."""
    about = path.stat()
    os.utime(path, (about.st_atime - seconds, about.st_mtime - seconds))


def described(path: Path) -> StoreManifest:
    """The manifest of a tree, as an adopted one's."""
    return describe_tree.manifest("it", "adopted", llvm_tree.read(path), MACHINE, tree_name=str(path))


def key(**changes: Any) -> Key:
    """A key."""
    plain = Key(COMMIT, "", "Release", True, (("LLVM_TARGETS_TO_BUILD", "X86"),))
    return replace(plain, **changes)
