"""Worktrees as a person uses them: built side by side, removed, killed at every change."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.integration.harness import LLVM, SMITH, Smith, commit, git, plant, preloaded, ready, require_llvm
from tritonsmith.core.plan import locks

_PATIENCE = 120.0  # seconds
_MOST = 200  # changes of a run


@pytest.fixture
def smith(tmp_path: Path) -> Smith:
    clone = plant("mini_triton", tmp_path / "some clone é")
    git(clone, "tag", "v3.4.0")
    return Smith(tmp_path, cwd=clone)


def listed(smith: Smith) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(smith("worktree.list", "--json").out)["worktrees"]
    return found


@pytest.mark.slow
def test_two_worktrees_share_the_store_and_the_compiler_cache(
    smith: Smith, tmp_path_factory: pytest.TempPathFactory
) -> None:
    require_llvm()
    mine = smith.root / "config" / "tritonsmith" / "envs" / "mine.toml"
    mine.parent.mkdir(parents=True)
    looser = 'any-commit = true\nassertions = false\ndebug-info = "none"\n'  # for Debian's LLVM
    mine.write_text(f'inherits = "dev"\n[llvm]\n{looser}', encoding="utf-8")
    assert "next: tritonsmith setup-mlir --env wt-3.4.0" in smith("worktree.add", "3.4.0").out
    smith("worktree.remove", "--yes", "wt-3.4.0")

    ready(smith, tmp_path_factory, "wt-3.4.0", "wt-main")
    smith("store.adopt", LLVM)
    (smith.cwd / "lib" / "Extra.txt").touch()
    commit(smith.cwd, "another")
    hits = []
    for ref in ("3.4.0", "main"):
        name = f"wt-{ref}"
        assert (
            f"next: tritonsmith build-triton --env {name}" in smith("worktree.add", ref, "--env", "mine").out
        )
        assert listed(smith)[-1]["llvm"] == "ready"
        before = smith.ccache()
        smith("build-triton", "--env", name)
        after = smith.ccache()
        hits.append(after["direct_cache_hit"] - before["direct_cache_hit"])
    assert hits[1] >= hits[0] + 6
    assert after["cache_miss"] == before["cache_miss"]
    assert [row["built"] for row in listed(smith)] == ["built", "built"]
    shown = smith("env.explain", "--env", "wt-main", "--json").out
    assert str(mine) in shown
    assert str(smith.home / "worktrees" / "wt-main.toml") in shown

    commit(smith.cwd.with_name(f"{smith.cwd.name}-wt-main"), "mine")
    assert [row["built"] for row in listed(smith)] == ["built", "outdated"]
    assert "mine" in smith("worktree.remove", "--yes", "wt-main", code=1).error
    smith("worktree.remove", "--yes", "wt-main", "--discard")
    smith("worktree.remove", "--yes", "wt-3.4.0")
    assert listed(smith) == []
    assert list((smith.home / "envs").iterdir()) == []
    assert smith.build().parent.exists() is False


def test_the_dry_runs_do_nothing(smith: Smith) -> None:
    script = smith("worktree.add", "3.4.0", "--dry-run").out
    assert "worktree add --detach" in script
    assert not smith.home.exists()
    smith("worktree.add", "3.4.0")
    assert "rm -rf" in smith("worktree.remove", "wt-3.4.0", "--dry-run").out
    assert len(listed(smith)) == 1


def test_a_removal_is_shown_and_asks_first(smith: Smith) -> None:
    smith("worktree.add", "3.4.0", "--path", smith.root / "here")
    refused = smith("worktree.remove", "wt-3.4.0", code=1)
    assert f"to remove: {smith.root / 'here'} (worktree)" in refused.out
    assert "there is no terminal to ask in" in refused.error
    commit(smith.root / "here", "mine")
    refused = smith("worktree.remove", "wt-3.4.0", "--discard", code=1)
    assert "lost for good" in refused.err
    assert "mine" in refused.err
    assert (smith.root / "here" / "setup.py").is_file()
    assert len(listed(smith)) == 1
    smith("worktree.remove", "wt-3.4.0", "--discard", "--yes")
    assert listed(smith) == []


def test_a_run_in_the_worktree_is_not_disturbed(smith: Smith) -> None:
    smith("worktree.add", "3.4.0", "--path", smith.root / "here")
    with locks.hold(smith.env("wt-3.4.0") / "lock", purpose="build-triton"):
        error = smith("worktree.remove", "--yes", "wt-3.4.0", "--discard", code=1).error
    assert "another run is busy" in error
    smith("worktree.remove", "--yes", smith.root / "here")
    assert listed(smith) == []


@pytest.mark.slow
def test_killed_while_it_changes_something(smith: Smith) -> None:
    """Whatever is left is listed, completed by `add`, and removed by `remove`."""
    for name in ("worktree.add", "worktree.remove"):
        argument = "3.4.0" if name == "worktree.add" else "wt-3.4.0"
        for at in range(0, _MOST, 3):
            if name == "worktree.remove":
                smith("worktree.add", "3.4.0")
            done = preloaded().run(
                (SMITH, name, argument, *(("--yes",) if name == "worktree.remove" else ())),
                cwd=smith.cwd,
                env=smith.environ,
                timeout=_PATIENCE,
                death=(at, smith.root),
            )
            assert done.returncode in (0, -9), done.stderr
            listed(smith)
            if at % 2 == 0 and name == "worktree.add":
                smith("worktree.add", "3.4.0")
                assert listed(smith)[0]["problem"] == ""
            if (smith.home / "worktrees" / "wt-3.4.0.json").exists():
                smith("worktree.remove", "--yes", "wt-3.4.0")
            beside = {path.name for path in smith.root.iterdir()}
            assert not any("wt-3.4.0" in path for path in beside), beside
            assert git(smith.cwd, "worktree", "list").count("\n") == 0
            if done.returncode == 0:
                break
        else:
            pytest.fail("it never came to its end")
        assert at > 5


def test_an_installed_llvm_is_taken_for_the_same_pin_only(
    smith: Smith, tmp_path_factory: pytest.TempPathFactory
) -> None:
    require_llvm()
    ready(smith, tmp_path_factory, "dev", "wt-3.4.0", "wt-main")
    smith("setup-mlir", "--provider", "system", "--llvm-dir", LLVM, "--any-commit")
    added = smith("worktree.add", "3.4.0").out
    assert "next: tritonsmith build-triton --env wt-3.4.0" in added
    given = json.loads((smith.env("wt-3.4.0") / "receipts" / "setup-mlir.json").read_text())
    assert (given["provider"], Path(given["prefix"])) == ("system", LLVM)

    (smith.cwd / "cmake" / "llvm-hash.txt").write_text("9" * 40 + "\n", encoding="utf-8")
    commit(smith.cwd, "another LLVM")
    assert "next: tritonsmith setup-mlir --env wt-main" in smith("worktree.add", "main").out
    assert not (smith.env("wt-main") / "receipts" / "setup-mlir.json").exists()

    smith("worktree.remove", "--yes", "wt-3.4.0")
    wanted = smith.root / "config" / "tritonsmith" / "envs" / "picky.toml"
    wanted.parent.mkdir(parents=True)
    wanted.write_text('inherits = "dev"\n[llvm]\nprovider = "store"\n', encoding="utf-8")
    assert "next: tritonsmith setup-mlir" in smith("worktree.add", "3.4.0", "--env", "picky").out
