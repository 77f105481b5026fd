"""Archives that were signed by their maker, and mean ill: what `store.import` makes of them."""

from __future__ import annotations

import hashlib
import json
import os
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support import as_plain_user
from tests.unit.build.store import made, operations
from tests.unit.build.store.test_moving import Files, bring, entry, head, pack
from tests.unit.core.plan import bombs
from tritonsmith.build.store import describe_tree, housekeeping, transfer
from tritonsmith.build.store.store import Store
from tritonsmith.core import configs
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import DownloadError, FactError, SmithError, StepError
from tritonsmith.core.plan import archive, download
from tritonsmith.core.plan.steps import pack as steps_pack
from tritonsmith.core.plan.steps import store_entry
from tritonsmith.core.plan.steps.store_entry import RemoveLeftovers
from tritonsmith.facts import llvm_tree

UP = "/".join([".."] * 30)
DEEP = "tree/" + "/".join(["d"] * 30)
SYM, HARD = tarfile.SYMTYPE, tarfile.LNKTYPE


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    folder = tmp_path / "victim"
    folder.mkdir()
    (folder / "file").write_text("precious")
    return folder


def snapshot(store: Store) -> dict[str, str]:
    """Everything in a store, and what links say."""
    return {
        str(path.relative_to(store.root)): str(path.readlink()) if path.is_symlink() else ""
        for path in store.root.rglob("*")
        if not path.name.endswith((".lock", ".holder"))
    }


def links(victim: Path) -> dict[str, Files]:
    out = f"{UP}{victim}/file"
    new = f"{UP}{victim}/new"
    return {
        "a hard link to a link, where the checksums go": {
            f"{DEEP}/link": entry(f"{DEEP}/link", SYM, out),
            "tree/x": entry(f"tree/{steps_pack.CHECKSUMS}", HARD, f"{DEEP}/link"),
        },
        "a hard link to a link, where the mark goes": {
            f"{DEEP}/link": entry(f"{DEEP}/link", SYM, new),
            "tree/x": entry(f"tree/{steps_pack.ARRIVED}", HARD, f"{DEEP}/link"),
        },
        "a hard link to a link that stays inside": {
            "tree/a/link": entry("tree/a/link", SYM, "b"),
            "tree/a/b": b"x",
            "tree/c": entry("tree/c", HARD, "tree/a/link"),
            steps_pack.SUMS: f"{hashlib.sha256(b'x').hexdigest()}  a/b\n".encode(),
        },
        "a link where the checksums go": {
            "tree/x": entry(f"tree/{steps_pack.CHECKSUMS}", SYM, "../users/new"),
        },
        "a link into the store": {"tree/sib": entry("tree/sib", SYM, "../users")},
        "a link to the tree's own parent": {"tree/d/up": entry("tree/d/up", SYM, "../..")},
        "the tree is a link": {"tree": entry("tree", SYM, "users")},
        "the tree is a link, and has files": {"tree": entry("tree", SYM, "users"), "tree/a": b"x"},
        "a file where the checksums go": {f"tree/{steps_pack.CHECKSUMS}": b"{}"},
        "another folder": {"users/me.json": b"{}"},
        "the head twice": {"tree/a": b"x", f"./{steps_pack.HEAD}": head()},
    }  # fmt: skip


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("name", links(Path("/v")))
def test_nothing_outside_of_the_entry(
    store: Store, space: Workspace, tmp_path: Path, victim: Path, name: str, plain: bool
) -> None:
    files = {steps_pack.HEAD: head(), **links(victim)[name]}
    path = pack(
        tmp_path / "evil.tar.zst", files if steps_pack.SUMS in files else {**files, steps_pack.SUMS: b""}
    )
    if plain:
        import zstandard

        with zstandard.open(path) as packed:
            path.write_bytes(packed.read())
        steps_pack.checksum_file(path).write_text(download.sha256_of(path))
    before = snapshot(store)
    with pytest.raises(DownloadError, match="cannot extract"):
        bring(store, space, str(path))
    assert {child.name: child.read_text() for child in victim.iterdir()} == {"file": "precious"}
    assert snapshot(store) == before
    assert store.entries() == ()


@pytest.mark.parametrize("name", ["users", "USERS", "one.json", "one.lock", "one.lock.holder", "n" * 201])
def test_names_that_mean_something_else_in_a_store(
    store: Store, space: Workspace, tmp_path: Path, name: str
) -> None:
    manifest = {**json.loads(made.manifest().render()), "name": name}
    path = pack(tmp_path / "a.tar.zst", {steps_pack.HEAD: head(manifest=manifest), "tree/a": b"x"})
    with pytest.raises(DownloadError, match="not an archive of a store"):
        bring(store, space, str(path))


@pytest.mark.parametrize(
    ("limit", "files", "words"),
    [
        ("head", {steps_pack.HEAD: head()}, "not a file of at most 100 bytes"),
        (
            "sums",
            {steps_pack.HEAD: head(), steps_pack.SUMS: b"0" * 64 + b"  " + b"a" * 40 + b"\n"},
            "at most 100",
        ),
    ],
)
def test_what_is_read_into_memory_is_small(
    store: Store, space: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    limit: str, files: Files, words: str,
) -> None:  # fmt: skip
    path = pack(tmp_path / "a.tar.zst", files)
    monkeypatch.setitem(configs.load("archives")["limits"], limit, 100)
    with pytest.raises(DownloadError, match=words):
        bring(store, space, str(path))


def test_a_first_entry_of_many_zeros_is_not_read(store: Store, space: Workspace, tmp_path: Path) -> None:
    import tracemalloc

    path = bombs.write(tmp_path, "a first entry of many zeros", steps_pack.HEAD)
    steps_pack.checksum_file(path).write_text(download.sha256_of(path))
    tracemalloc.start()
    try:
        with pytest.raises(DownloadError, match="not an archive of a store"):
            bring(store, space, str(path))
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "sums",
    [b"\xff\xfe\x00", b"no checksum\n", b"0" * 64 + b"  a\n" + b"1" * 64 + b"  a\n", b"\xe9" * 70 + b"\n"],
)
def test_checksums_that_are_none(store: Store, space: Workspace, tmp_path: Path, sums: bytes) -> None:
    path = pack(tmp_path / "a.tar.zst", {steps_pack.HEAD: head(), "tree/a": b"x", steps_pack.SUMS: sums})
    with pytest.raises(DownloadError):
        bring(store, space, str(path))
    assert store.entries() == ()


def test_a_name_in_latin_1_is_kept(store: Store, space: Workspace, tmp_path: Path) -> None:
    name = b"caf\xe9"
    line = hashlib.sha256(b"x").hexdigest().encode() + b"  " + name + b"\n"
    files: Files = {steps_pack.HEAD: head(), f"tree/{os.fsdecode(name)}": b"x", steps_pack.SUMS: line}
    bring(store, space, str(pack(tmp_path / "a.tar.zst", files)))
    assert (store.path("evil") / os.fsdecode(name)).read_text() == "x"


def locked(tmp_path: Path) -> Path:
    """An archive with a folder that nobody may enter."""
    folder = entry("tree/d", tarfile.DIRTYPE)
    folder.mode = 0
    return pack(
        tmp_path / "locked.tar.zst", {steps_pack.HEAD: head(), "tree/d": folder, steps_pack.SUMS: b"oops\n"}
    )


def test_one_bad_archive_does_not_wedge_a_store(store: Store, space: Workspace, tmp_path: Path) -> None:
    def attack() -> None:
        for _ in range(2):
            with pytest.raises(DownloadError):
                bring(store, space, str(locked(tmp_path)))
        made.act(space, RemoveLeftovers(store.root, store.owner, phase="sweep"))

    as_plain_user(attack)
    assert store_entry.leftovers(store.root) == ()


def test_left_overs_of_before_go_with_the_next_run(store: Store, space: Workspace, tmp_path: Path) -> None:
    """As an older version of the tool left them."""
    (store.root / ".import-evil" / "unpacked" / "d").mkdir(parents=True)
    (store.root / ".import-evil" / "unpacked" / "d").chmod(0)
    (store.root / ".trash-gone-1" / "d").mkdir(parents=True)
    (store.root / ".trash-gone-1" / "d").chmod(0)
    path = pack(tmp_path / "a.tar.zst", {steps_pack.HEAD: head(), steps_pack.SUMS: b""})
    as_plain_user(lambda: bring(store, space, str(path)))
    assert store_entry.leftovers(store.root) == ()


def test_what_others_left_stops_nobody_and_is_named(
    store: Store, space: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another user's: its folder cannot be opened by us."""
    theirs, ours = store.root / ".trash-theirs-1", store.root / ".trash-ours-1"
    (theirs / "d").mkdir(parents=True)
    (theirs / "d").chmod(0)
    ours.mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: 12345)  # so that none of it is ours to open
    path = pack(tmp_path / "a.tar.zst", {steps_pack.HEAD: head(), steps_pack.SUMS: b""})

    def try_it() -> None:
        bring(store, space, str(path))
        with pytest.raises(StepError, match="leftovers of stopped runs") as caught:
            made.act(space, RemoveLeftovers(store.root, store.owner, phase="sweep"))
        assert str(theirs) in str(caught.value)

    monkeypatch.undo()
    real = os.geteuid

    def with_other_files() -> None:
        monkeypatch.setattr(os, "geteuid", lambda: real() + 1)
        try:
            try_it()
        finally:
            monkeypatch.undo()

    as_plain_user(with_other_files)
    assert store.entry("evil").name == "evil"
    assert not ours.exists()


def test_an_entry_that_another_user_cannot_read(store: Store, space: Workspace, tmp_path: Path) -> None:
    """Made under umask 077: it is whole, and nothing that is unfinished is in the place."""
    path = pack(tmp_path / "a.tar.zst", {steps_pack.HEAD: head(), steps_pack.SUMS: b""})
    bring(store, space, str(path))
    store.manifest("evil").chmod(0)

    def look() -> None:
        assert store.entry("evil").problem == "cannot read its manifest: Permission denied"
        with pytest.raises(FactError, match="cannot be read") as caught:
            bring(store, space, str(path))
        assert "umask 002" in str(caught.value)
        assert "unfinished" not in str(caught.value)

    as_plain_user(look)


WRONG: dict[str, Any] = {
    "name": 1, "kind": [], "tree": None, "commit": 5, "diff": {}, "version": ["19"], "build_type": 3,
    "assertions": "yes", "abi_breaking_checks": "no", "rtti": 1.5, "exceptions": None, "debug_info": 7,
    "targets": "X86", "projects": [1], "packages": {"a": 1}, "tools": [None], "libraries": 3, "scope": "most",
    "closures": [3], "shared": "x", "sanitizer": [], "compiler": "clang", "linker": 1, "abi": [1],
    "key": 1, "source": 1, "origin": 1, "made": 12, "tool": [], "bytes": "many", "looks": 0,
}  # fmt: skip
NESTED = {
    "compiler": {"path": 1}, "abi": {"cxx11": "yes"}, "closures": [{"triton": 1, "scope": "all"}],
}  # fmt: skip


@pytest.mark.parametrize(
    ("key", "value"), [*WRONG.items(), *NESTED.items(), ("closures", [{}]), ("closures", {})]
)
def test_a_manifest_with_values_of_the_wrong_type(
    store: Store, space: Workspace, tmp_path: Path, key: str, value: Any
) -> None:
    """Refused at import; one that got there stops nobody from seeing the others."""
    manifest = {**json.loads(made.manifest().render()), "name": "evil", key: value}
    path = pack(tmp_path / "a.tar.zst", {steps_pack.HEAD: head(manifest=manifest), steps_pack.SUMS: b""})
    with pytest.raises(DownloadError, match="not an archive of a store") as caught:
        bring(store, space, str(path))
    assert key in str(caught.value)
    made.put(store, space, "good")
    store.manifest("evil").write_text(json.dumps(manifest))
    rows = {row.entry.name: row.entry for row in housekeeping.list_entries(store, space, 0.0).rows}
    assert (rows["good"].status, rows["evil"].status) == ("ready", "unreadable")
    assert housekeeping.list_entries(store, space, 0.0).as_json()
    assert describe_tree.problems(rows["evil"])
    with pytest.raises(FactError):
        transfer.prepare_export(rows["evil"], str(tmp_path / "x.tar.zst"), space, made.MACHINE)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"schema": 1, "name": ' + "[" * 500 + "]" * 500 + "}",
        '{"schema": ' + "1" * 5001 + "}",
        '{"schema": 1, "bytes": 1' + "0" * 4200 + "}",
        "\0",
        "",
        "\ufeff{}",
        "null",
        '{"schema": 1, "name": "\\ud800"}',
    ],
)
def test_a_manifest_that_is_none(store: Store, space: Workspace, text: str) -> None:
    made.put(store, space, "good")
    store.manifest("evil").write_text(text)
    assert {entry.name: entry.status for entry in store.entries()} == {"good": "ready", "evil": "unreadable"}


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to(path)])
def test_a_manifest_that_is_no_file(store: Store, space: Workspace, make: Callable[[Path], object]) -> None:
    made.put(store, space, "good")
    make(store.manifest("evil"))
    assert {entry.name: entry.status for entry in store.entries()} == {"good": "ready", "evil": "unreadable"}


def test_an_export_that_fails_leaves_nothing(store: Store, space: Workspace, tmp_path: Path) -> None:
    tree = llvm_tree.read(operations.a_build(store.path("one")))
    made.act(space, *store.publish(describe_tree.manifest("one", "built", tree, made.MACHINE)))
    found = transfer.prepare_export(
        store.entry("one"), str(tmp_path / "out" / "one.tar.zst"), space, made.MACHINE
    )
    (store.path("one") / "bin" / "FileCheck").unlink()
    with pytest.raises(SmithError):
        made.act(space, *found.plan.steps)
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize(
    "sums",
    [
        [],
        {},
        1,
        {"/dev/zero": "0"},
        {"../..": 1},
        [["a", "b"]],
        {"a" * 5000: ""},
        {"\ud800": ""},
        {"a\0": ""},
    ],
)
def test_checksums_of_an_entry_that_name_something_else(store: Store, space: Workspace, sums: Any) -> None:
    """Nobody reads a device to its end."""
    made.put(store, space)
    (store.path("one") / steps_pack.CHECKSUMS).write_text(json.dumps({"schema": 1, "sha256": sums}))
    told = ("is no longer a file", "No such file or directory", "which is not a valid file name")
    problems = [
        one
        for one in describe_tree.problems(store.entry("one"))
        if one.endswith(told) or one.startswith("cannot read")
    ]
    assert bool(problems) == (sums not in ([], {}))


def test_an_object_archive_without_sizes(tmp_path: Path) -> None:
    path = tmp_path / "libLLVM.a"
    path.write_bytes(archive.AR_MAGIC + b"a.o/".ljust(48) + b"x".ljust(10) + b"`\n")
    with pytest.raises(archive.BadArchiveError, match="not a number"):
        archive.read_ar(path)
