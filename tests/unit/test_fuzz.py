"""Damaged and hostile files: each is refused in words or read, and never ends in a traceback.

A few of each kind, the same ones every time. `TRITONSMITH_FUZZ=6000` makes so many of each, from
`TRITONSMITH_FUZZ_SEED` on: a failure names its number, which as a seed comes first.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import stat
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.unit.build.store import made, operations
from tests.unit.compiler.kernels.test_tritonparse_trace import TUNED, compiled, launched
from tests.unit.core.plan.bombs import END, header
from tests.unit.core.plan.conftest import tools
from tests.unit.facts import fakes, installs
from tests.unit.mutations import mutated
from tritonsmith.build.store import describe_tree, housekeeping, transfer
from tritonsmith.build.store import entry as entries
from tritonsmith.build.store.store import Store
from tritonsmith.compiler import manifest as kernel_manifest
from tritonsmith.compiler import source_tree
from tritonsmith.compiler.dump import index as pass_index
from tritonsmith.compiler.kernels import kernel_list, kernels_file
from tritonsmith.core import untrusted
from tritonsmith.core.envs import receipts, settings
from tritonsmith.core.envs.settings import Settings
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import SmithError
from tritonsmith.core.plan.steps import pack
from tritonsmith.core.plan.steps.pack import Unpack
from tritonsmith.doctor import history, saved_report, snapshot
from tritonsmith.doctor.check import DoctorContext
from tritonsmith.facts import (
    build_folder,
    checkout,
    git,
    installed_tritons,
    llvm_tree,
    package_owners,
)

COUNT = int(os.environ.get("TRITONSMITH_FUZZ", "0"))
SEED = int(os.environ.get("TRITONSMITH_FUZZ_SEED", "0"))
SECONDS = 20  # of CPU that one may take; most take a few thousandths
_WAITS = 600  # seconds that one may wait; a busy machine gives a process little


def chances(few: int) -> Iterator[random.Random]:
    """Sources of chance, one for each case."""
    for number in range(SEED, SEED + (COUNT or few)):
        with timed():
            yield random.Random(number)  # noqa: S311 - the same each time


@contextmanager
def timed() -> Iterator[None]:
    """Fail what takes or waits for ever; a KeyboardInterrupt would end the run of all tests."""

    def too_long(*_: object) -> None:
        pytest.fail(f"it takes more than {SECONDS} s of CPU, or waits")  # no `except Exception` takes that

    limits = ((signal.ITIMER_PROF, signal.SIGPROF, SECONDS), (signal.ITIMER_REAL, signal.SIGALRM, _WAITS))
    old = {number: signal.signal(number, too_long) for _, number, _ in limits}
    for timer, _, seconds in limits:
        signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        for timer, number, _ in limits:
            signal.setitimer(timer, 0)
            signal.signal(number, old[number])


def refused(body: Callable[..., object], *arguments: object, number: object = "") -> str:
    """What a function says that refuses; empty if it does not."""
    try:
        body(*arguments)
    except SmithError as error:
        return str(error)
    except BaseException as error:
        error.add_note(f"case {number}")
        raise
    return ""


def one_of(files: dict[Path, bytes], chance: random.Random) -> None:
    """Write all files, one or two of them damaged."""
    victims = chance.sample(sorted(files), min(len(files), chance.choice((1, 1, 2))))
    for path, content in files.items():
        path.write_bytes(mutated(content, chance) if path in victims else content)


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and not path.is_symlink()}


# archives


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small export, with links, a thin archive and a text that names its place."""
    root = tmp_path_factory.mktemp("elsewhere")
    small = {"obj/A.cpp.o": b"a" * 301, "obj/B.cpp.o": b"b" * 70}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(operations, "OBJECTS", small)
        return operations.archive(root)


def unpack(path: Path, store: Store) -> dict[str, str] | None:
    """What came of an archive: names and contents; None if it was refused."""
    pack.checksum_file(path).unlink(missing_ok=True)
    sha256 = _sha256(path)
    dest = store.path("entry")
    if dest.exists():
        shutil.rmtree(dest)
    step = Unpack(
        archive=path,
        sha256=sha256,
        dest=dest,
        scratch=store.root / ".import-entry",
        owner=store.owner,
        phase="unpack",
    )
    said = refused(pack.read_head, path) or refused(step.act, tools())
    assert not step.scratch.exists()
    if said:
        assert not dest.exists()
        return None
    found = {}
    for child in dest.rglob("*"):
        mode = child.lstat().st_mode
        assert stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)
        assert child.resolve().is_relative_to(dest.resolve()), child
        if not stat.S_ISDIR(mode) and child.name not in (pack.CHECKSUMS, pack.ARRIVED):
            name = str(child.relative_to(dest))
            found[name] = f"-> {child.readlink()}" if child.is_symlink() else child.read_bytes().hex()
    return found


def _sha256(path: Path) -> str:
    from tritonsmith.core.plan.download import sha256_of

    return sha256_of(path)


def test_truncated_and_flipped_archives(packed: Path, tmp_path: Path) -> None:
    """None is taken for what it is not; of those with a right checksum, at most the very same content."""
    store = made.store_in(Workspace(tmp_path / "space"))
    whole = packed.read_bytes()
    shutil.copy(packed, tmp_path / "a.tar.zst")
    good = unpack(tmp_path / "a.tar.zst", store)
    assert good
    accepted = 0
    for chance in chances(60):
        data = bytearray(whole)
        if chance.random() < 0.3:
            del data[chance.randrange(len(data)) :]
        for _ in range(chance.randint(1, 3)):
            if data:
                data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        (tmp_path / "a.tar.zst").write_bytes(data)
        found = unpack(tmp_path / "a.tar.zst", store)
        assert found in (None, good)
        accepted += found is not None
    print(f"{COUNT} archives, {accepted} accepted with the same content")


def _blocks(plain: bytes) -> list[bytes]:
    """Entries: header, content, padding."""
    found, at = [], 0
    while any(plain[at : at + 512]):
        size = int(plain[at + 124 : at + 135].strip(b"\0 ") or b"0", 8)
        end = at + 512 + size + -size % 512
        found.append(plain[at:end])
        at = end
    return found


def _reheaded(block: bytes, chance: random.Random, names: list[str]) -> bytes:
    """An entry with another name, kind, target or size, and a right checksum."""
    name = chance.choice([block[:100].rstrip(b"\0").decode(), *names])
    kind = chance.choice(
        [block[156:157], b"0", b"1", b"2", b"5", b"1", b"2", b"3", b"6", b"x", b"g", b"L", b"K", b"S", b"7"]
    )
    size = chance.choice([len(block) - 512, max(0, len(block) - 600), 0, 1, 511, 1 << 40])
    head = bytearray(header(name[:100], size, kind, chance.choice(names)[:100]))
    return bytes(head) + block[512:]


def test_signed_mutations_of_archives(packed: Path, tmp_path: Path) -> None:
    """As their maker would sign them: whatever the tar says, nothing lands outside, and links stay inside."""
    import zstandard

    store = made.store_in(Workspace(tmp_path / "space"))
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "file").write_text("precious")
    with zstandard.open(packed) as file:
        blocks = _blocks(file.read())
    inner = [block[:100].rstrip(b"\0").decode() for block in blocks]
    names = [
        *inner,
        "tree",
        "..",
        "tree/a",
        "tree/a/b",
        "users",
        "tree/../users",
        "../users",
        "../../..",
        "a",
    ]
    names += [f"../../{victim.name}/file", str(victim / "file"), "b/../c", "\xe9"]
    names += [f"tree/{pack.CHECKSUMS}", f"tree/{pack.ARRIVED}"]
    before = sorted(store.root.rglob("*"))
    outcomes = {True: 0, False: 0}
    for chance in chances(60):
        changed = list(blocks)
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(changed))
            kind = chance.randrange(5)
            if kind == 0:
                del changed[at]
            elif kind == 1:
                changed.insert(chance.randrange(len(changed) + 1), changed[at])
            elif kind == 2:
                changed.insert(chance.randrange(len(changed) + 1), _reheaded(changed[at], chance, names))
            elif kind == 3:
                changed[at] = _reheaded(changed[at], chance, names)
            else:
                changed[at] = changed[at][:512] + mutated(changed[at][512:], chance)
            changed = changed or list(blocks)
        plain = b"".join(changed) + END
        plain = plain if chance.random() < 0.5 else zstandard.ZstdCompressor().compress(plain)
        (tmp_path / "a.tar.zst").write_bytes(plain)
        found = unpack(tmp_path / "a.tar.zst", store)
        outcomes[found is not None] += 1
        shutil.rmtree(store.root / "entry", ignore_errors=True)
        assert {child.name: child.read_text() for child in victim.iterdir()} == {"file": "precious"}
        assert sorted(store.root.rglob("*")) == before
    print(f"refused and accepted: {outcomes}")


# manifests and records of a store


def test_manifests_and_records(tmp_path: Path) -> None:
    """A store with a damaged manifest, record or list of checksums can be listed, verified, exported from."""
    space = Workspace(tmp_path / "space")
    store = made.store_in(space)
    tree = llvm_tree.read(operations.a_build(store.path("good")))
    made.act(space, *store.publish(describe_tree.manifest("good", "built", tree, made.MACHINE)))
    for name in ("evil", "other"):
        made.put(store, space, name)
    (store.path("evil") / pack.CHECKSUMS).write_text('{"schema": 1, "sha256": {"bin/FileCheck": "00"}}')
    record = {
        "workspace": str(space.root),
        "env": "dev",
        "checkout": "",
        "entry": "evil",
        "user": "",
        "host": "x",
        "since": "",
    }
    (store.users / "a.json").write_text(json.dumps(record))
    made.receipt(space, "dev", store.path("evil"))
    files = {
        path: path.read_bytes()
        for path in (store.manifest("evil"), store.users / "a.json", store.path("evil") / pack.CHECKSUMS,
                     space.env("dev").receipt("setup-mlir"))
    }  # fmt: skip
    for number, chance in enumerate(chances(25)):
        one_of(files, chance)

        def look(number: int = number) -> None:
            found = housekeeping.list_entries(store, space, 0.0)
            assert {row.entry.name for row in found.rows} >= {"good", "other"}, number
            json.dumps(found.as_json())
            for row in found.rows:
                describe_tree.problems(row.entry)
            refused(
                transfer.prepare_export, store.entry("evil"), str(tmp_path / "x.tar.zst"), space, made.MACHINE
            )
            receipts.read(space.env("dev").receipt("setup-mlir"))

        assert not refused(look, number=number)


def test_manifests_with_other_values(store: Store, space: Workspace) -> None:
    """Valid JSON, with other types and values."""
    plain = json.loads(made.manifest("evil").render())
    made.put(store, space, "evil")
    values: list[Any] = [
        None,
        1,
        -1,
        1.5,
        True,
        "",
        "x",
        "\0",
        "\ud800",
        [],
        [[]],
        {},
        [1],
        ["a"],
        {"a": 1},
        10**30,
        "/",
        "~x/y",
        ["\0"],
    ]
    for number, chance in enumerate(chances(25)):
        changed = json.loads(json.dumps(plain))
        for _ in range(chance.randint(1, 3)):
            table = chance.choice([changed, changed.get("compiler"), changed.get("abi")])
            if isinstance(table, dict) and table:
                table[chance.choice(sorted(table))] = chance.choice(values)
        store.manifest("evil").write_text(json.dumps(changed))

        def look() -> None:
            found = housekeeping.list_entries(store, space, 0.0)
            json.dumps(found.as_json())
            for row in found.rows:
                describe_tree.problems(row.entry)
                refused(transfer.prepare_export, row.entry, "/nowhere/x.tar.zst", space, made.MACHINE)

        assert not refused(look, number=number)


# env files


ENV = """\
# an environment
[triton]
source = "https://example.org/triton"
revision = "main"
build-type = "Debug"
backends = ["nvidia", "amd"]
cmake-args = ["-DA=B"]
[llvm]
provider = "auto"
assertions = true
debug-libraries = ["MLIRTransforms"]
store = "~/llvm"
[python]
interpreter = "3.11"
[cache]
launcher = "ccache"
"""
KERNELS = """\
[arguments]
x = "*fp32"
[[kernel]]
file = "k.py"
kernel = "add"
signature = "*fp32,i32"
versions = ">=3.0"
"""


def test_env_files(tmp_path: Path) -> None:
    path = tmp_path / "my.toml"
    for number, chance in enumerate(chances(100)):
        path.write_bytes(mutated(ENV.encode(), chance))

        def look() -> None:
            found = settings.load(str(path))
            assert list(settings.explain(found))
            settings.available()

        refused(look, number=number)


def test_lists_of_kernels(tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text("import triton\n@triton.jit\ndef add(x, n):\n    pass\n")
    path = tmp_path / "my.toml"
    for number, chance in enumerate(chances(25)):
        path.write_bytes(mutated(KERNELS.encode(), chance))
        refused(kernel_list.read, path, number=number)


def test_traces_of_tritonparse(tmp_path: Path) -> None:
    path = tmp_path / "t.ndjson"
    events = (compiled("a", TUNED), compiled("b", TUNED, num_warps=8), launched("a", 3))
    text = "".join(f"{json.dumps(one)}\n" for one in events).encode()
    for number, chance in enumerate(chances(200)):
        path.write_bytes(mutated(text, chance))
        refused(kernels_file.read_trace, path, tmp_path / "sources", number=number)


def test_reports_and_histories_of_the_doctor(tmp_path: Path) -> None:
    space = Workspace(tmp_path / "space")
    subject = DoctorContext(Settings("dev"), space, environ={}, cwd=tmp_path)
    setup = {
        "triton": "3.4.0",
        "torch": "2.8.0+cpu",
        "python": "3.11.7",
        "$TRITON_HOME": "~/t",
        "ptxas": "12.8",
    }
    history.keep(subject, (), setup)
    found = [{"id": "tools.cmake", "status": "ok"}]
    whole = {
        "schema": 2,
        "when": "2026-11-20T00:00:00+00:00",
        "env": "dev",
        "findings": found,
        "setup": setup,
    }
    report = tmp_path / "report.json"
    files = {report: json.dumps(whole).encode(), subject.env.history: subject.env.history.read_bytes()}
    for number, chance in enumerate(chances(100)):
        one_of(files, chance)

        def look() -> None:
            read = saved_report.read(report)
            text = saved_report.resolve(read, subject).env_file(read)
            assert set(tomllib.loads(text)) == {"triton", "python"}
            snapshot.changes_table(snapshot.changes_between(read.setup, setup), read.title, "now").as_json()

        refused(look, number=number)
        refused(history.answer_since, "last-good", subject, setup, number=number)
        history.keep(subject, (), setup)


def test_notebooks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITONSMITH_HOME", str(tmp_path / "home"))
    path = tmp_path / "n.ipynb"
    cells = [{"cell_type": "code", "source": ["%%time\n", "x = (1\n", "%ls\n"]}, {"cell_type": "markdown"}]
    text = json.dumps({"cells": cells, "metadata": {"kernelspec": {"language": "python"}}}).encode()
    for number, chance in enumerate(chances(50)):
        path.write_bytes(mutated(text, chance))

        def look() -> None:
            made = source_tree.as_python(path)
            source_tree.name_cells(f"where: {made}\nline 3\nat {made}:4, {made}:99999")

        refused(look, number=number)


# build trees


def test_llvms(tmp_path: Path) -> None:
    """CMake packages, caches and headers of an LLVM."""
    tree = operations.a_build(tmp_path / "tree")
    cache = f"""\
# This is the CMakeCache file.
CMAKE_HOME_DIRECTORY:INTERNAL={tmp_path}/src/llvm
CMAKE_CACHEFILE_DIR:INTERNAL={tree}
CMAKE_CXX_COMPILER:FILEPATH=/usr/bin/clang++
LLVM_DIR:PATH=/opt/llvm/lib/cmake/llvm
LLVM_ENABLE_PROJECTS:STRING=mlir;lld
CMAKE_BUILD_TYPE:STRING=Debug
LLVM_USE_SPLIT_DWARF:BOOL=ON
"""
    fakes.cmake_cache(tree)
    (tree / "CMakeCache.txt").write_text(cache)
    header_ = tree / "include" / "llvm" / "Support" / "VCSRevision.h"
    header_.parent.mkdir(parents=True, exist_ok=True)
    header_.write_text(f'#define LLVM_REVISION "{made.COMMIT}"\n')
    (header_.parent.parent / "Config").mkdir(exist_ok=True)
    (header_.parent.parent / "Config" / "abi-breaking.h").write_text(
        "#define LLVM_ENABLE_ABI_BREAKING_CHECKS 1\n"
    )
    files = {path: content for path, content in contents(tree).items() if path.suffix != ".o"}
    for number, chance in enumerate(chances(25)):
        one_of(files, chance)

        def look() -> None:
            found = llvm_tree.read(tree)
            assert found.major >= 0
            written = describe_tree.manifest("it", "adopted", found, made.MACHINE, tree_name=str(tree))
            refused(entries.parse, written.render())
            if known := build_folder.read_cmake_cache(tree):
                list(known.gone())
            describe_tree.problems(entries.StoreEntry("it", tree, "ready", written))
            git.worktrees(tree)

        refused(look, number=number)


def test_checkouts(tmp_path: Path) -> None:
    for era in ("2.1", max(fakes.ERAS)):
        root = fakes.checkout(tmp_path / era, era)
        files = {path: content for path, content in contents(root).items() if ".git" not in path.parts}
        for number, chance in enumerate(chances(10)):
            one_of(files, chance)
            refused(checkout.pin_of, root, number=number)
            refused(checkout.read, root, number=number)


def test_worktrees(tmp_path: Path) -> None:
    """Files of git, as far as they are read without git."""
    main, tree = tmp_path / "main", tmp_path / "tree"
    for name, text in {
        "main/.git/worktrees/tree/gitdir": f"{tree}/.git\n",
        "main/.git/worktrees/tree/commondir": "../..\n",
        "main/.git/packed-refs": f"{made.COMMIT} refs/heads/main\n",
        "main/.git/refs/heads/other": f"{made.COMMIT}\n",
        "tree/.git": f"gitdir: {main}/.git/worktrees/tree\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    files = contents(tmp_path)
    for number, chance in enumerate(chances(100)):
        one_of(files, chance)
        for root in (main, tree):
            refused(git.worktrees, root, number=number)
            refused(git.branches, root, number=number)


# installed packages


def test_records_and_their_neighbours(tmp_path: Path) -> None:
    site = installs.site_of(tmp_path / "venv")
    source = installs.checkout(tmp_path / "source")
    installs.triton(site)
    more = {
        "direct_url.json": json.dumps({"url": f"file://{source}", "dir_info": {"editable": True}}),
        "top_level.txt": "triton\n",
    }
    needs = "Requires-Dist: triton (==3.5.0) ; platform_system == 'Linux'"
    torch = f"Metadata-Version: 2.1\nName: torch\nVersion: 2.9.0\n{needs}\n"
    installs.install(site, "pytorch_triton", "3.4.0+gitf7888497", {"triton/a.py": ""}, more=more)
    installs.install(site, "torch", "2.9.0", {"torch/__init__.py": ""}, more={"METADATA": torch})
    installs.editable(site, source, "triton_dev", finder=True)
    installs.put(site, {
        "old_triton-2.0.egg-info/PKG-INFO": "Name: triton\nVersion: 2.0\n",
        "old_triton-2.0.egg-info/top_level.txt": "triton\n",
        "old_triton-2.0.egg-info/installed-files.txt": "../triton/__init__.py\n",
        "dev.egg-link": f"{source}/python\n../\n",
        "easy-install.pth": f"{source}/python\n",
    })  # fmt: skip
    files = contents(site)
    for number, chance in enumerate(chances(25)):
        one_of(files, chance)

        def look() -> None:
            found = package_owners.read([site])
            for one in found:
                package_owners.listed(one)
                for path in package_owners.recorded(one):
                    untrusted.is_file(path)
                package_owners.required_triton(one, "3.11")
                if one.editable and one.editable.package:
                    one.editable.package.is_dir()
            package_owners.owners(found)
            package_owners.leftovers(site)
            installed_tritons.orphans(site, found)
            package_owners.forsaken_hooks(site, ())
            installed_tritons.resolve_import(
                [site, *package_owners.pth_folders(site / "easy-install.pth")],
                installed_tritons.import_finders([site], found),
            )

        assert not refused(look, number=number)


# what the tool wrote


def test_indexes_of_dumps_and_kernels(tmp_path: Path) -> None:
    point = '{"schema": 1, "points": [{"stages": {"ttir": {"file": "a", "bytes": 1}}}], "triton": "3.5.0"}'
    index = '{"schema": 1, "kernels": [{"name": "a"}], "dumps": [{"pass": "a"}], "reproducers": ["x"]}'
    for number, chance in enumerate(chances(100)):
        (tmp_path / kernel_manifest.FILE).write_bytes(mutated(point.encode(), chance))
        (tmp_path / pass_index.FILE).write_bytes(mutated(index.encode(), chance))
        assert refused(kernel_manifest.read, tmp_path, number=number)
        assert refused(pass_index.read, tmp_path, number=number)
        refused(kernel_manifest.check_output, tmp_path, number=number)


@pytest.mark.parametrize("text", ["null", "[]", "1", '""', '{"schema": 1, "kernels": 3, "points": 3}'])
def test_what_is_json_and_no_index(tmp_path: Path, text: str) -> None:
    """Nor a manifest."""
    for name, read in ((kernel_manifest.FILE, kernel_manifest.read), (pass_index.FILE, pass_index.read)):
        (tmp_path / name).write_text(text)
        assert refused(read, tmp_path)


@pytest.mark.parametrize("make", ["pipe", "folder", "loop", "device"])
def test_what_is_no_file(tmp_path: Path, make: str) -> None:
    """Nobody waits for a pipe's other end, nor reads a device for ever."""
    path = tmp_path / "my.toml"
    if make == "pipe":
        os.mkfifo(path)
    elif make == "folder":
        path.mkdir()
    else:
        path.symlink_to(path if make == "loop" else "/dev/zero")
    with timed():
        assert refused(kernel_list.read, path) or make == "loop"
        assert path.is_file() or refused(settings.load, str(path))
    tree = made.tree(tmp_path / "tree")
    config = tree / "lib" / "cmake" / "llvm" / "LLVMConfig.cmake"
    config.unlink()
    path.rename(config) if make != "device" else config.symlink_to("/dev/zero")
    with timed():
        assert refused(llvm_tree.read, tree)


def test_an_import_names_what_is_wrong(tmp_path: Path) -> None:
    """The whole way of `store.import`, once."""
    space = Workspace(tmp_path / "space")
    path = tmp_path / "a.tar.zst"
    path.write_bytes(b"x")
    pack.checksum_file(path).write_text(_sha256(path))
    store = made.store_in(space)
    assert "not an archive of a store" in refused(
        lambda: transfer.prepare_import(transfer.locate(str(path), space), store, space, made.MACHINE)
    )


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "work space")


@pytest.fixture
def store(space: Workspace) -> Store:
    return made.store_in(space)
