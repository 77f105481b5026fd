"""What the store does, in a process that can be killed in the middle of it.

Run as a program it reads lines of JSON, one for each operation, and does each in a child of its own:
`[name, root, at, limit]`. An audit hook counts what the child changes below the root, and kills it before its
change number `at`; a negative one means no death. `limit` is how large a file may become; 0 for any size. It
answers with the child's exit status and how many changes there were.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import zstandard  # noqa: F401 - before the fork, as everything else

from tests.unit.build.store import made
from tests.unit.core.plan import thin
from tritonsmith.build.store import describe_tree, housekeeping, transfer
from tritonsmith.build.store import transfer as store_adopt
from tritonsmith.build.store import transfer as store_export
from tritonsmith.build.store.housekeeping import GcLimits
from tritonsmith.build.store.store import Store, register_user, this_user
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.plan import Plan
from tritonsmith.core.plan.runner import Runner
from tritonsmith.core.ui.progress import PhaseProgress
from tritonsmith.facts import llvm_tree

CHANGES = {
    "os.rename",
    "os.remove",
    "os.mkdir",
    "os.rmdir",
    "os.link",
    "os.symlink",
    "os.truncate",
    "os.chmod",
}
WRITES = os.O_WRONLY | os.O_RDWR
OBJECTS = {"obj/A.cpp.o": b"a" * 300_001, "obj/B.cpp.o": os.urandom(70_000)}


def run(space: Workspace, plan: Plan) -> None:
    Runner(space.root.parent / "log", PhaseProgress(live=False, silent=True)).run(plan)


def world(root: Path) -> tuple[Workspace, Store]:
    space = Workspace(root / "space")
    return space, made.store_in(space, str(root / "a store"))


def a_build(path: Path) -> Path:
    """An LLVM with a thin archive, a program, a text that names its place, and a link."""
    if not llvm_tree.is_tree(path):
        shutil.rmtree(path, ignore_errors=True)
        made.tree(path)
    for file in ("lib/cmake/mlir/MLIRConfig.cmake", "bin/mlir-tblgen"):
        (path / file).parent.mkdir(parents=True, exist_ok=True)
        (path / file).touch()
    (path / "lib" / "cmake" / "mlir" / "MLIRConfig.cmake").write_text(f'set(X "{path}/lib")\n')
    thin.write(path / "lib" / "libLLVMSupport.a", OBJECTS)
    if not (path / "bin" / "tblgen").is_symlink():
        (path / "bin" / "tblgen").symlink_to("mlir-tblgen")
    return path


def publish(root: Path) -> None:
    """As `setup-mlir` does: build, publish, register."""
    space, store = world(root)
    with store.hold("built", purpose="setup-mlir"):
        if not store.manifest("built").exists():
            tree = llvm_tree.read(a_build(store.path("built")))
            run(
                space,
                Plan("publish", store.publish(describe_tree.manifest("built", "built", tree, made.MACHINE))),
            )
        user = this_user(space.env("dev"), None, "built")
        run(space, Plan("register", register_user(store, user)))
        made.receipt(space, "dev", store.path("built"))


def archive(root: Path) -> Path:
    """An archive of an entry of another store."""
    there = root / "elsewhere"
    space, store = Workspace(there / "space"), made.store_in(Workspace(there / "space"))
    tree = llvm_tree.read(a_build(store.path("far")))
    run(space, Plan("far", store.publish(describe_tree.manifest("far", "built", tree, made.MACHINE))))
    target = root / "far.tar.zst"
    run(space, store_export.prepare_export(store.entry("far"), str(target), space, made.MACHINE).plan)
    return target


def bring(root: Path) -> None:
    """`store.import`."""
    space, store = world(root)
    source = transfer.locate(str(root / "far.tar.zst"), space)
    with store.hold("far", purpose="store.import"):
        run(space, transfer.prepare_import(source, store, space, made.MACHINE).plan)


def export(root: Path) -> None:
    """`store.export`."""
    space, store = world(root)
    found = store_export.prepare_export(store.entry("built"), str(root / "out.tar.zst"), space, made.MACHINE)
    run(space, found.plan)


def gc(root: Path) -> None:
    """`store.gc` of everything that is not in use."""
    space, store = world(root)
    later = time.time() + 10 * 86400
    run(space, housekeeping.prepare_gc(housekeeping.list_entries(store, space, later), GcLimits()).plan)


def gc_now(root: Path) -> None:
    """`store.gc --older-than 0s`."""
    space, store = world(root)
    found = housekeeping.list_entries(store, space, time.time())
    run(space, housekeeping.prepare_gc(found, GcLimits(older_than=0.0)).plan)


def use(root: Path) -> None:
    """As `setup-mlir` does that found an entry: it registers, and fails if the entry is gone by then."""
    space, store = world(root)
    run(space, Plan("use", register_user(store, this_user(space.env("late"), None, "far"))))


def adopt(root: Path) -> None:
    """`store.adopt`."""
    space, store = world(root)
    theirs = root / "theirs"
    if not theirs.exists():
        a_build(theirs)
    run(space, store_adopt.adopt(store, theirs, made.MACHINE, "adopted")[1])


def forget(root: Path) -> None:
    """`store.forget`."""
    space, store = world(root)
    if store.manifest("adopted").exists():
        run(space, store_adopt.forget(store, store.entry("adopted")))


OPERATIONS: dict[str, Callable[[Path], Any]] = {
    operation.__name__: operation
    for operation in (publish, archive, bring, export, gc, gc_now, use, adopt, forget)
}


def _die_at(at: int, root: Path, counter: Path) -> Callable[[], int]:
    """Kill this process before its change number `at` below the root."""
    count = 0
    inside = str(root)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal count
        writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITES
        if not (writes or event in CHANGES):
            return
        place = arguments[0]
        by_descriptor = isinstance(place, str) and not place.startswith("/")  # as archives are unpacked
        if not (by_descriptor or str(place).startswith(inside)):
            return
        if count == at:
            os.kill(os.getpid(), signal.SIGKILL)
        count += 1

    sys.addaudithook(hook)
    return lambda: counter.write_text(str(count))


def _child(name: str, root: Path, at: int, limit: int, counter: Path) -> int:
    report = _die_at(at, root, counter)
    if limit:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    try:
        OPERATIONS[name](root)
    except Exception as error:  # noqa: BLE001 - told to the test
        print(json.dumps({"error": f"{type(error).__name__}: {error}"}), file=sys.stderr, flush=True)
        return 1
    finally:
        report()
    return 0


def main() -> None:
    counter = Path(sys.argv[1])
    for line in sys.stdin:
        name, root, at, limit = json.loads(line)
        counter.write_text("-1")
        child = os.fork()
        if child == 0:
            code = 3
            try:
                code = _child(name, Path(root), at, limit, counter)
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        print(json.dumps([os.waitstatus_to_exitcode(status), int(counter.read_text())]), flush=True)


if __name__ == "__main__":
    main()
