"""`clear-cache` and `cache.list` on caches of real Tritons, between compiles and during them."""

from __future__ import annotations

import getpass
import json
import os
import pty
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.integration.harness import SMITH, Smith, oldest_triton
from tests.unit.doctor.caches import made
from tritonsmith.compiler import up
from tritonsmith.core.envs.workspace import Workspace

OLD = oldest_triton("3.2")
NAMELESS = OLD == "3.2.0"  # names in base64url, no version in its metadata
OF_OLD = {"": "base64url"} if NAMELESS else {OLD: "base32"}
KERNEL, FILL = up.FILE, Path(__file__).with_name("fill_cache.py")
_NONE: Mapping[str, str] = {}
PIP = (sys.executable, "-m", "pip")
PATIENCE = 120.0  # seconds


@pytest.fixture(scope="module")
def smith(with_wheel: Smith, tmp_path_factory: pytest.TempPathFactory) -> Smith:
    """The tool with an environment that has the newest Triton, and a cache, as earlier versions left one."""
    root = tmp_path_factory.mktemp("caches of mine")
    found = Smith(root, cwd=root)
    Workspace(found.home).claim()  # of the shared one only this: other tests work in the rest of it
    passing = shutil.ignore_patterns("*.pyc.*", "kernels")  # another `up` writes these now
    old, new = with_wheel.env("wheel"), found.env("wheel")
    shutil.copytree(old, new, ignore=passing, symlinks=True, copy_function=os.link)
    env = found.env("wheel")
    compile_into(env / "triton-cache", env / "venv" / "bin" / "python", found)
    return found


@pytest.fixture(scope="module")
def newest(smith: Smith) -> Path:
    """Its interpreter."""
    return smith.env("wheel") / "venv" / "bin" / "python"


@pytest.fixture(scope="module")
def version(smith: Smith) -> str:
    """Its version."""
    return str(smith.receipt("up", "wheel")["answer"]["triton"])


@pytest.fixture(scope="module")
def older(smith: Smith) -> Path:
    """An interpreter with an older Triton, in a virtual environment of its own."""
    venv = smith.root / "older"
    for argv in (
        (sys.executable, "-m", "venv", "--without-pip", venv),
        (*PIP, "--python", venv, "install", "--quiet", "--no-deps", f"triton=={OLD}", "setuptools<80"),
    ):
        subprocess.run(argv, env=smith.environ, check=True, capture_output=True, timeout=600)
    return venv / "bin" / "python"


def compile_into(
    cache: Path, python: Path, smith: Smith, *, block: int = 1024, more: Mapping[str, str] = _NONE
) -> None:
    """Compile the bundled kernel for one GPU, anew; everything in the cache is an hour old then."""
    argv = (python, FILL, KERNEL, "-", str(block))
    environ = {**smith.environ, "TRITON_CACHE_DIR": str(cache), **more}
    subprocess.run(argv, env=environ, check=True, capture_output=True, timeout=PATIENCE)
    make_old(cache)


def fill(cache: Path, python: Path, smith: Smith, *, block: int = 1024) -> None:
    """The same, but what was compiled for another test is copied, with the names that Triton writes here."""
    made_before = smith.root / "compiled" / f"{python.parents[1].name} {block}"
    if not made_before.exists():
        compile_into(made_before, python, smith, block=block)
    shutil.copytree(made_before, cache, dirs_exist_ok=True)
    for index in cache.glob("*/__grp__*"):
        text = index.read_text(encoding="utf-8")
        index.write_text(text.replace(str(made_before), str(cache)), encoding="utf-8")
    make_old(cache)


def make_old(cache: Path) -> int:
    """Set finished entries back by an hour, as if nobody had compiled them just now; how many there are."""
    finished = {index.parent for index in cache.glob("*/__grp__*")}
    for entry in finished:
        made.age(entry, 3600)
    return len(finished)


@pytest.fixture
def cache(smith: Smith) -> Iterator[Path]:
    """An empty folder for a cache."""
    folder = smith.root / "a cache"
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def here(smith: Smith, cache: Path) -> Smith:
    """The tool where that is the cache in use."""
    return replace(smith, more={"TRITON_CACHE_DIR": str(cache)})


def listed(smith: Smith, *flags: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(smith("cache.list", "--json", *flags).out)
    return answer


# --- what is there


@pytest.mark.slow
def test_entries_of_two_tritons_are_told_apart(
    here: Smith, cache: Path, newest: Path, older: Path, version: str
) -> None:
    fill(cache, newest, here)
    fill(cache, older, here)
    entries = {entry["triton"]: entry for entry in listed(here, "--root", str(cache))["entries"]}
    assert {triton: entry["era"] for triton, entry in entries.items()} == {version: "base32", **OF_OLD}
    for entry in entries.values():
        assert (entry["kernel"], entry["target"]) == ("vector_add", "cuda:90:32")
        assert {"ttir", "ttgir", "llir", "ptx", "cubin"} <= set(entry["stages"])
        assert entry["options"] == {}
        assert entry["bytes"] == sum(file.stat().st_size for file in (cache / entry["name"]).iterdir())
    table, old = here("cache.list").out, "(3.2)" if NAMELESS else OLD
    for text in ("vector_add", "cuda:90", "to cubin", version, old, "TRITON_CACHE_DIR", "env wheel"):
        assert text in table


@pytest.mark.slow
def test_stale_is_what_the_older_one_made(
    here: Smith, cache: Path, newest: Path, older: Path, version: str
) -> None:
    for python in (newest, older):
        fill(cache, python, here)
    done = here("clear-cache", "--stale", "--yes")
    assert f"installed: {version}" in done.err
    assert "cleared 1 entry" in done.out
    assert [entry["triton"] for entry in listed(here, "--root", str(cache))["entries"]] == [version]


@pytest.mark.slow
def test_both_are_installed_so_nothing_is_stale(here: Smith, cache: Path, older: Path) -> None:
    compile_into(cache, older, here)
    active = replace(here, more={**here.more, "VIRTUAL_ENV": str(older.parents[1])})
    done = active("clear-cache", "--stale", "--yes")
    assert "nothing to clear" in done.out
    assert ("undecided, and not counted as stale: 1 entry" in done.err) is NAMELESS


# --- clearing


@pytest.mark.slow
def test_a_cleared_cache_is_compiled_anew(here: Smith, cache: Path, newest: Path) -> None:
    compile_into(cache, newest, here)
    before = {path.name for path in cache.iterdir()}
    here("clear-cache", "--yes")
    assert list(cache.iterdir()) == []
    compile_into(cache, newest, here)
    assert {path.name for path in cache.iterdir()} == before


@pytest.mark.slow
def test_filters_choose_and_the_rest_stays(here: Smith, cache: Path, newest: Path) -> None:
    for block in (256, 512, 1024):
        fill(cache, newest, here, block=block)
    assert listed(here, "--root", str(cache), "--keep-newest", "1")["chosen"]["entries"] == 2
    assert "nothing to clear" in here("clear-cache", "--yes", "--kernel", "matmul*").out
    assert "nothing to clear" in here("clear-cache", "--yes", "--older-than", "2h").out
    assert "nothing to clear" in here("clear-cache", "--yes", "--target", "mi300x").out
    here("clear-cache", "--yes", "--keep-newest", "1", "--target", "h100", "--older-than", "30m")
    assert len(list(cache.iterdir())) == 1


def test_the_printed_plan_does_the_same(here: Smith, cache: Path, newest: Path) -> None:
    fill(cache, newest, here)
    (cache / "notes.txt").write_text("precious")
    done = here("clear-cache", "--dry-run")
    assert len(list(cache.iterdir())) == 2
    subprocess.run(("/bin/sh", "-c", done.out), check=True)
    assert [path.name for path in cache.iterdir()] == ["notes.txt"]
    assert "skipped: 1 in" in done.err


@pytest.mark.slow
def test_dumps_go_when_they_are_named_and_overrides_only_by_name(
    here: Smith, cache: Path, newest: Path, tmp_path: Path
) -> None:
    dump, override = tmp_path / "dump", tmp_path / "override"
    more = {"TRITON_DUMP_DIR": str(dump), "TRITON_OVERRIDE_DIR": str(override)}
    compile_into(cache, newest, here, more={**more, "TRITON_KERNEL_DUMP": "1"})
    shutil.copytree(dump, override)
    for entry in (*dump.iterdir(), *override.iterdir()):
        made.age(entry, 3600)
    with_dumps = replace(here, more={**here.more, **more})
    assert {entry["kind"] for entry in listed(with_dumps)["entries"]} >= {"kernel", "dump", "override"}
    assert "not inspected: " in with_dumps("clear-cache", "--yes").err
    assert (len(list(cache.iterdir())), len(list(dump.iterdir()))) == (0, 1)
    with_dumps("clear-cache", "--yes", "--dump")
    assert list(dump.iterdir()) == []
    with_dumps("clear-cache", "--yes", "--all", "--kernel", "vector_*")
    assert len(list(override.iterdir())) == 1
    with_dumps("clear-cache", "--yes", "--override")
    assert list(override.iterdir()) == []


def test_torchinductors_kernels(here: Smith, newest: Path, tmp_path: Path) -> None:
    folder = tmp_path / f"torchinductor_{getpass.getuser()}"
    fill(folder / "triton" / "0", newest, here)
    (folder / "fxgraph").mkdir()
    theirs = replace(here, more={**here.more, "TMPDIR": str(tmp_path)})
    assert [root["path"] for root in listed(theirs)["roots"] if root["kind"] == "inductor"] == [
        str(folder / "triton" / "0")
    ]
    theirs("clear-cache", "--yes", "--inductor")
    assert list((folder / "triton" / "0").iterdir()) == []
    assert (folder / "fxgraph").is_dir()


def test_the_caches_of_environments(smith: Smith, cache: Path) -> None:
    mine = replace(smith, more={"TRITON_CACHE_DIR": str(cache)})
    theirs = mine.env("wheel") / "triton-cache"
    kept = shutil.copytree(theirs, mine.root / "kept", copy_function=shutil.copy2)
    make_old(theirs)
    mine("clear-cache", "--yes", "--envs")
    assert list(theirs.iterdir()) == []
    theirs.rmdir()
    kept.rename(theirs)


# --- what is never cleared


def test_the_default_root_is_the_cache_and_not_what_lies_beside_it(smith: Smith, newest: Path) -> None:
    triton = smith.root / ".triton"
    beside = [triton / name for name in ("llvm", "nvidia", "json", "archives")]
    for folder in beside:
        folder.mkdir(parents=True)
        (folder / "version.txt").write_text("precious")
    fill(triton / "cache", newest, smith)
    smith("clear-cache", "--yes")
    assert list((triton / "cache").iterdir()) == []
    assert all((folder / "version.txt").read_text() == "precious" for folder in beside)


@pytest.mark.parametrize("place", ["/", "home", "above"])
def test_roots_that_are_refused(smith: Smith, place: str) -> None:
    path = {"/": Path("/"), "home": smith.root, "above": smith.root.parent}[place]
    entry = made.kernel(smith.root) if place == "home" else None
    for flags in (("--yes",), ("--dry-run",)):
        assert "refusing to clear this folder" in smith("clear-cache", *flags, "--root", path, code=1).error
    if entry:
        assert (entry / "vector_add.cubin").is_file()
        shutil.rmtree(entry)


def test_a_root_that_is_a_link_is_shown_where_it_leads(smith: Smith, newest: Path, tmp_path: Path) -> None:
    fill(tmp_path / "disk", newest, smith)
    (tmp_path / "alias").symlink_to(tmp_path / "disk")
    linked = replace(smith, more={"TRITON_CACHE_DIR": str(tmp_path / "alias")})
    assert str(tmp_path / "disk") in linked("clear-cache", "--yes").out
    assert list((tmp_path / "disk").iterdir()) == []


# --- asking


def test_without_a_terminal_it_wants_a_yes(here: Smith, cache: Path, newest: Path) -> None:
    fill(cache, newest, here)
    assert "--yes" in here("clear-cache", code=1).error
    assert len(list(cache.iterdir())) == 1


@pytest.mark.parametrize(("answer", "left", "code"), [("y", 0, 0), ("n", 1, 1), ("", 1, 1)])
def test_on_a_terminal_it_asks(
    here: Smith, cache: Path, newest: Path, answer: str, left: int, code: int
) -> None:
    fill(cache, newest, here)
    mine, theirs = pty.openpty()
    os.write(mine, f"{answer}\n".encode())
    done = subprocess.run(
        (SMITH, "clear-cache"),
        cwd=here.cwd,
        env=here.environ,
        stdin=theirs,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    os.close(mine)
    os.close(theirs)
    assert done.returncode == code, done.stderr
    assert "Clear 1 entry, " in done.stderr
    assert len(list(cache.iterdir())) == left


def test_wrong_flags(smith: Smith) -> None:
    assert "is not an age" in smith("cache.list", "--older-than", "soon", code=2).error
    assert "did you mean 'h100'" in smith("clear-cache", "--target", "h10", code=2).error
    assert "--keep-newest cannot be" in smith("clear-cache", "--keep-newest", "x", code=2).error
    assert "no such folder" in smith("cache.list", "--root", "/nowhere", code=2).error
    assert "selects a single cache" in smith("clear-cache", "--root", "/", "--all", code=2).error


# --- while kernels are being compiled


@contextmanager
def compiling(python: Path, smith: Smith, cache: Path, *blocks: int) -> Iterator[subprocess.Popen[str]]:
    """A process that compiles into a cache all the time; at the end none of its compiles may have failed."""
    folder = cache.parent / f"loop {blocks[0]}"
    folder.mkdir()
    argv = (str(python), str(FILL), str(KERNEL), str(folder), *map(str, blocks))
    environ = {**smith.environ, "TRITON_CACHE_DIR": str(cache)}
    process = subprocess.Popen(argv, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        yield process
        rounds = folder / "rounds"
        while process.poll() is None and not (rounds.is_file() and rounds.read_text() not in ("", "1")):
            time.sleep(0.01)
        (folder / "stop").touch()
        said, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, said
        assert int((folder / "rounds").read_text()) > 1
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(folder)


def wait_for_entries(cache: Path, count: int, process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + PATIENCE
    while len(list(cache.glob("*/__grp__*"))) < count:
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < until, "these entries never came"
        time.sleep(0.01)


@pytest.mark.slow
@pytest.mark.parametrize("which", ["newest", "older"])
def test_no_compile_fails_while_its_entries_are_cleared(
    here: Smith, cache: Path, which: str, request: pytest.FixtureRequest
) -> None:
    python = request.getfixturevalue(which)
    cleared = 0
    with compiling(python, here, cache, 64, 128, 256, 512) as process:
        for _ in range(60):
            if cleared == 6:
                break
            wait_for_entries(cache, 4, process)
            make_old(cache)
            done = here("clear-cache", "--yes")  # keeps what a slow machine has not finished by now
            cleared += "cleared 4 entries" in done.out
    assert cleared == 6


@pytest.mark.slow
def test_entries_that_are_being_made_are_kept(here: Smith, cache: Path, newest: Path) -> None:
    with (
        compiling(newest, here, cache, 64, 128, 256) as one,
        compiling(newest, here, cache, 128, 64, 256),
    ):
        said = []
        while one.poll() is None and len(list(cache.glob("*/__grp__*"))) < 3:
            said.append(here("clear-cache", "--yes"))
        said.append(here("clear-cache", "--yes"))
        assert all("nothing to clear" in done.out for done in said)
        assert "kept, in use: 3 entries" in said[-1].err
        assert "has Triton loaded" in said[-1].err
