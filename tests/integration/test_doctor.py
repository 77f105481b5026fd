"""`doctor` as a person runs it: on a real build that is broken in real ways, and mended."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.integration.harness import LLVM, SMITH, Done, Smith, capture, commit, git, plant
from tests.support import require

NAME = "compile_commands.json"
HASH = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def fresh(tmp_path: Path) -> Smith:
    """The tool in a checkout, with a workspace that does not exist yet. Spaces in every path."""
    require("git")
    root = tmp_path / "a folder"
    root.mkdir()
    return Smith(root, cwd=plant("mini_triton", root / "my checkout"))


def findings(done: Done) -> dict[str, dict[str, Any]]:
    """The findings of `--json`, the last of each check."""
    report = json.loads(done.out)
    assert report["schema"] == 2
    return {row["id"]: row for row in report["findings"]}


def test_a_newcomer_is_told_what_is_there_and_nothing_is_made(fresh: Smith) -> None:
    done = fresh("doctor", "--only", "machine,tools,sources,builds", code=None)  # clang++ may be missing
    for group in ("machine", "tools", "sources", "builds"):
        assert f"\n{group}\n" in done.out
    assert "Triton 3.6.0" in done.out
    assert str(fresh.cwd) in done.out
    assert done.out.splitlines()[-1].startswith("doctor: ")
    assert "environment dev" in done.err
    assert not fresh.home.exists()
    assert git(fresh.cwd, "status", "--porcelain") == ""


def test_no_check_crashes_here(fresh: Smith) -> None:
    done = subprocess.run(
        (SMITH, "doctor", "--json"), cwd=fresh.root, env=fresh.environ, capture_output=True, check=False
    )
    report = json.loads(done.stdout)
    assert [row for row in report["findings"] if row["status"] == "crashed"] == []
    assert done.returncode == (1 if report["worst"] == "error" else 0)


def test_the_list_of_checks(fresh: Smith) -> None:
    listed = fresh("doctor", "--list").out
    for name in ("machine.memory", "tools.cmake", "sources.branches", "builds.cmake-paths"):
        assert name in listed
    assert not fresh.home.exists()


def test_checks_are_chosen_by_name(fresh: Smith) -> None:
    found = findings(fresh("doctor", "--only", "builds.llvm,machine", "--json"))
    assert {name.partition(".")[0] for name in found if name != "builds.llvm"} == {"machine"}
    assert found["builds.llvm"]["status"] == "not applicable"


def test_a_check_that_does_not_exist_is_a_usage_error(fresh: Smith) -> None:
    error = fresh("doctor", "--only", "builds.cmake-pahts", code=2).error
    assert "no such check: 'builds.cmake-pahts'" in error
    assert "did you mean 'builds.cmake-paths'?" in error


def test_an_interpreter_of_ones_own(fresh: Smith) -> None:
    done = fresh("doctor", "--only", "tools.lit", "--python", os.path.realpath("/usr/bin/env"))
    assert "/env" in done.err
    assert "no such interpreter" in fresh("doctor", "--python", fresh.cwd, code=2).error


# --- sources that mislead


def test_a_branch_that_is_named_like_a_commit_is_an_error(fresh: Smith) -> None:
    head = git(fresh.cwd, "rev-parse", "HEAD")
    git(fresh.cwd, "checkout", "--quiet", "-b", HASH)  # where `git checkout HASH` was meant
    done = fresh("doctor", "--only", "sources", code=1)
    assert f"the branch {HASH[:12]} is at {head[:12]}" in done.out
    assert "doctor --explain sources.branches\n" in done.out
    shown = findings(fresh("doctor", "--only", "sources", "--json", code=1))["sources.branches"]
    rename = f"git -C '{fresh.cwd}' branch -m {HASH} was-{HASH[:8]}"
    assert shown["commands"][0] == rename
    subprocess.run(("sh", "-c", rename), check=True)
    fresh("doctor", "--only", "sources")


def test_worktrees_with_other_pins_on_one_slot(fresh: Smith) -> None:
    two = fresh.root / "another worktree"
    git(fresh.cwd, "worktree", "add", "--quiet", "-b", "two", str(two))
    (two / "cmake" / "llvm-hash.txt").write_text(HASH, encoding="utf-8")
    commit(two, "another pin")
    (fresh.root / "shared" / ".triton" / "llvm").mkdir(parents=True)
    shared = replace(fresh, more={"TRITON_HOME": str(fresh.root / "shared")})
    found = findings(shared("doctor", "--only", "sources.worktrees", "--json"))["sources.worktrees"]
    assert found["status"] == "warning"
    assert f"{two} pins {HASH[:12]}" in found["seen"]
    apart = replace(fresh, more={"TRITON_HOME": str(fresh.root / "own")})
    found = findings(apart("doctor", "--only", "sources.worktrees", "--json"))["sources.worktrees"]
    assert found["status"] == "ok"


@pytest.mark.parametrize("debug_info", ["-g", "-g0"])
def test_what_it_advises_makes_worktrees_share_compiles(fresh: Smith, debug_info: str) -> None:
    compiler = LLVM / "bin" / "clang++"
    require("ccache", str(compiler))
    git(fresh.cwd, "worktree", "add", "--quiet", "--detach", str(fresh.root / "two"))
    trees = (fresh.cwd, fresh.root / "two")
    for tree in trees:
        (tree / "build").mkdir()
        (tree / "x.cpp").write_text("int f() { return 1; }\n", encoding="utf-8")

    def compile_in_each() -> tuple[int, int]:
        """Hits and misses so far."""
        for tree in trees:
            argv = ("ccache", compiler, debug_info, "-c", tree / "x.cpp", "-o", "x.o")
            capture(*argv, cwd=tree / "build", env=fresh.environ)
        counted = fresh.ccache()
        return counted["direct_cache_hit"] + counted["preprocessed_cache_hit"], counted["cache_miss"]

    assert compile_in_each() == (0, 2)
    found = findings(fresh("doctor", "--only", "tools.ccache-base-dir", "--json"))["tools.ccache-base-dir"]
    assert found["status"] == "note"
    for command in found["commands"]:
        capture("sh", "-c", command, env=fresh.environ)
    assert compile_in_each() == (1, 3)
    fine = findings(fresh("doctor", "--only", "tools.ccache-base-dir", "--json"))["tools.ccache-base-dir"]
    assert fine["status"] == "ok"


# --- a real build


def test_a_good_build_has_no_error(built: Smith) -> None:
    built("build-triton", "--debug")  # nothing to do; but another environment may have been built since
    done = built("doctor", "--env", "dev", "--only", "sources,builds", "--json")
    found = findings(done)
    wanted = ("builds.llvm", "builds.triton", "builds.cmake-paths", "builds.cmake-llvm", "builds.libtriton")
    assert {name: found[name]["status"] for name in wanted} == dict.fromkeys(wanted, "ok")
    assert found["builds.cmake-llvm"]["seen"] == f"the one in {LLVM}"
    kind = built.receipt("build-triton")["build_type"]
    assert found["builds.libtriton"]["seen"] == f"{kind}, by environment 'dev'"


def test_a_second_library_is_an_error(built: Smith) -> None:
    (library,) = (built.cwd / "python" / "triton" / "_C").glob("libtriton.*so")
    other = library.with_name("libtriton.cpython-39-x86_64-linux-gnu.so")
    other.write_bytes(library.read_bytes())
    try:
        done = built("doctor", "--env", "dev", "--only", "builds.libtriton", code=1)
    finally:
        other.unlink()
    assert "2 of them" in done.out


def test_a_checkout_that_moved_on_is_a_warning(built: Smith) -> None:
    git(built.cwd, "commit", "--quiet", "--allow-empty", "--message", "more")
    try:
        done = built("doctor", "--env", "dev", "--only", "builds.triton")
    finally:
        git(built.cwd, "reset", "--quiet", "--soft", "HEAD~1")
    assert "the code that runs is not the code in the checkout" in done.out
    assert "tritonsmith build-triton --env dev --source" in done.out


@pytest.fixture
def broken(built: Smith) -> Iterator[Smith]:
    """The build with a compiler that is gone in CMake's cache, and a link to a database that is gone."""
    built("link-compile-commands")
    link = built.cwd / NAME
    link.unlink()
    link.symlink_to(built.cwd / "build" / "gone" / NAME)
    cache = built.build() / "CMakeCache.txt"
    text = cache.read_text(encoding="utf-8")
    assert f"CMAKE_CXX_COMPILER:STRING={LLVM}/bin/clang++\n" in text
    gone = "CMAKE_CXX_COMPILER:STRING=/usr/lib/llvm-7/bin/clang++\n"
    cache.write_text(text.replace(f"CMAKE_CXX_COMPILER:STRING={LLVM}/bin/clang++\n", gone), encoding="utf-8")
    yield built
    link.unlink()
    for stale in (path for path in built.build().iterdir() if path.suffix == ".stale"):
        stale.unlink()


def state(smith: Smith) -> tuple[bool, bool, str]:
    """The cache is where CMake looks, it was moved aside, and where the link leads."""
    cache = smith.build() / "CMakeCache.txt"
    return (
        cache.is_file(),
        cache.with_name("CMakeCache.txt.stale").is_file(),
        str((smith.cwd / NAME).readlink()),
    )


def test_what_is_broken_is_shown_mended_and_built_again(broken: Smith) -> None:
    fix = ("doctor", "--env", "dev", "--only", "builds", "--fix")
    before = state(broken)
    assert before[:2] == (True, False)
    logs = len(list((broken.home / "logs").iterdir()))

    shown = broken("doctor", "--env", "dev", "--only", "builds", code=1).out
    assert "CMAKE_CXX_COMPILER is /usr/lib/llvm-7/bin/clang++, which no longer exists" in shown
    assert "clangd finds no commands" in shown

    script = broken(*fix, "--dry-run").out
    assert script.startswith("#!/bin/sh\n")
    assert "CMakeCache.txt.stale" in script
    assert f"ln -sfn '{broken.env('dev') / NAME}'" in script

    refused = broken(*fix, code=1)
    assert script in refused.out  # the plan comes before the question
    assert "there is no terminal to ask in" in refused.error

    assert _answered(broken, "n\n", *fix) == 1
    assert state(broken) == before
    assert len(list((broken.home / "logs").iterdir())) == logs

    done = broken(*fix, "--yes")
    assert done.out.index(script) < done.out.index("done; check again")
    assert state(broken) == (False, True, str(broken.env("dev") / NAME))

    again = broken(*fix, "--yes")
    assert "nothing can be fixed automatically" in again.err
    found = findings(broken("doctor", "--env", "dev", "--only", "builds", "--json"))
    assert found["builds.compile-commands"]["status"] == "ok"
    assert found["builds.cmake-paths"]["status"] == "not applicable"

    broken("build-triton", "--debug")
    assert "## configure Triton: cmake" in broken.log("build-triton")
    found = findings(broken("doctor", "--env", "dev", "--only", "builds", "--json"))
    assert {row["status"] for row in found.values()} == {"ok"}


def _answered(smith: Smith, typed: str, *argv: str) -> int:
    """The exit code of a run on a terminal, at which somebody types."""
    ours, theirs = pty.openpty()
    try:
        with subprocess.Popen(
            (SMITH, *argv),
            cwd=smith.cwd,
            env=smith.environ,
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            os.write(ours, typed.encode())
            _, err = process.communicate(timeout=60)
            assert "Apply these fixes? [y/N]" in err
            return process.returncode
    finally:
        os.close(ours)
        os.close(theirs)
