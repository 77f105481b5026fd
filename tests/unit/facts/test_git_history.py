from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.repositories import Maker
from tritonsmith.core.errors import FactError
from tritonsmith.facts import git_history

LLVM = "a" * 40


def test_what_is_no_repository(tmp_path: Path) -> None:
    for path, why in ((tmp_path, None), (tmp_path / "nowhere", "no such folder")):
        with pytest.raises(FactError, match="not a git repository") as caught, git_history.opened(path):
            pass
        assert caught.value.why == why


def test_without_git_on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import subprocess
    import sys

    monkeypatch.setenv("PATH", str(tmp_path))
    script = (
        "from pathlib import Path\n"
        "from tritonsmith.facts import git_history\n"
        "try:\n"
        "    with git_history.opened(Path('.')): pass\n"
        "except Exception as error: print(type(error).__name__, error)\n"
    )
    done = subprocess.run((sys.executable, "-c", script), capture_output=True, text=True, check=True)
    assert done.stdout.startswith("FactError no git on PATH")


def test_a_repository_of_somebody_else(make: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Git refuses it, and that is not the same as a commit that is missing."""
    made = make("triton")
    made.commit("x")
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    with pytest.raises(FactError, match="git cannot read") as caught, git_history.opened(made.path) as clone:
        git_history.resolve(clone, "HEAD")
    assert "safe.directory" in str(caught.value)


def test_names_of_commits(make: Maker, tmp_path: Path) -> None:
    from git import Repo

    made = make("triton")
    first = made.commit("first")
    made.git("tag", "-a", "v1", "-m", "x")
    made.git("branch", "release/1.x")
    second = made.commit("second")
    with Repo.clone_from(made.path, tmp_path / "clone"):
        pass
    with git_history.opened(tmp_path / "clone") as clone:
        assert git_history.resolve(clone, "v1") == git_history.resolve(clone, first[:8]) == first
        assert git_history.resolve(clone, "release/1.x") == first  # origin's
        assert git_history.resolve(clone, "main") == second
        for name in ("nope", "0" * 40, "--all", "", "HEAD:file"):
            assert git_history.resolve(clone, name) == ""
        assert not git_history.is_shallow(clone)


def test_a_shallow_clone(make: Maker, tmp_path: Path) -> None:
    from git import Repo

    made = make("triton")
    made.commit("first")
    made.commit("second")
    with Repo.clone_from(made.path.as_uri(), tmp_path / "clone", depth=1):
        pass
    with git_history.opened(tmp_path / "clone") as clone:
        assert git_history.is_shallow(clone)


def test_text_of_files_and_links(make: Maker) -> None:
    made = make("pytorch")
    commit = made.commit(
        "x",
        {
            "a/b.txt": "text\n",
            "c/link.txt": "->../a/b.txt",
            "c/again.txt": "->link.txt",
            "out.txt": "->../../secret",
            "circle.txt": "->circle.txt",
            "gone.txt": "->a/nothing.txt",
        },
    )
    with git_history.opened(made.path) as clone:
        for path in ("a/b.txt", "c/link.txt", "c/again.txt"):
            assert git_history.text_at(clone, commit, path) == "text\n"
        for path in ("a", "a/x.txt", "a/b.txt/c", "out.txt", "circle.txt", "gone.txt", "/etc/passwd"):
            assert git_history.text_at(clone, commit, path) is None


@pytest.mark.parametrize(
    ("files", "llvm"),
    [
        ({"cmake/llvm-info.json": json.dumps({"llvm_hash": LLVM}), "cmake/llvm-hash.txt": "b" * 40}, LLVM),
        ({"cmake/llvm-info.json": "{}"}, ""),
        ({"cmake/llvm-info.json": "[]"}, ""),
        ({"cmake/llvm-hash.txt": f"{LLVM}\n", "python/setup.py": "llvm-17.0.0-c5dede880d17"}, LLVM),
        ({"python/setup.py": "name = 'llvm-17.0.0-c5dede880d17'\n"}, "c5dede880d17"),
        ({"python/setup.py": "setup()"}, ""),
        ({"README.md": ""}, ""),
    ],
)
def test_llvm_at_a_commit(make: Maker, files: dict[str, str], llvm: str) -> None:
    made = make("triton")
    commit = made.commit("x", files)
    with git_history.opened(made.path) as clone:
        assert git_history.llvm_at(clone, commit) == llvm


def test_git_that_fails_later_is_one_error(make: Maker) -> None:
    made = make("triton")
    made.commit("x")
    with (
        pytest.raises(FactError, match="git cannot read this repository"),
        git_history.opened(made.path) as clone,
    ):
        clone.git.cat_file("-e", "0" * 40)


def test_a_file_whose_content_is_gone(make: Maker) -> None:
    made = make("pytorch")
    commit = made.commit("x", {"a.txt": "text\n"})
    blob = made.git("rev-parse", "HEAD:a.txt")
    (made.path / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    with (
        pytest.raises(FactError, match="content of this file is missing in the clone"),
        git_history.opened(made.path) as clone,
    ):
        git_history.text_at(clone, commit, "a.txt")
