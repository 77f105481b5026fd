from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import require
from tritonsmith.core.errors import StepError
from tritonsmith.core.plan import GitFetch, Plan, Run
from tritonsmith.core.plan.runner import Runner


@pytest.fixture
def remote(tmp_path: Path) -> tuple[str, str]:
    """URL of a repository with two commits, and the hash of the first."""
    require("git")
    from git import Actor, Repo

    folder = tmp_path / "remote"
    me = Actor("A", "a@example.invalid")
    with Repo.init(folder) as repo:
        hashes = []
        for text in ("one", "two"):
            (folder / "file").write_text(text)
            repo.index.add(["file"])
            hashes.append(repo.index.commit(text, author=me, committer=me).hexsha)
        with repo.config_writer() as config:
            config.set_value("uploadpack", "allowAnySHA1InWant", "true")
            config.set_value("uploadpack", "allowFilter", "true")
    return folder.as_uri(), hashes[0]


def checkout(repository: Path, ref: str) -> Run:
    return Run(("git", "-C", str(repository), "checkout", "-q", ref), cwd=repository, phase="p")


@pytest.mark.parametrize("blobless", [True, False])
def test_fetch_of_one_commit(runner: Runner, tmp_path: Path, remote: tuple[str, str], blobless: bool) -> None:
    url, commit = remote
    repository = tmp_path / "sub" / "clone"
    missing = (tmp_path / "nowhere").as_uri()
    fetch = GitFetch(repository, (missing, url), commit, blobless=blobless, phase="p")
    for _ in range(2):
        runner.run(Plan("x", (fetch, checkout(repository, commit))))
        assert (repository / "file").read_text() == "one"


def test_no_remote_has_it(runner: Runner, tmp_path: Path, remote: tuple[str, str]) -> None:
    url, _ = remote
    missing = (tmp_path / "nowhere").as_uri()
    fetch = GitFetch(tmp_path / "clone", (url, missing), "0" * 40, phase="p")
    with pytest.raises(StepError, match=f"no remote provides commit {'0' * 40}") as caught:
        runner.run(Plan("x", (fetch,)))
    assert f"{url}: " in str(caught.value)
    assert f"{missing}: " in str(caught.value)
    assert "--llvm-source" in str(caught.value)


def test_a_revision_that_looks_like_an_option_runs_nothing(
    runner: Runner, tmp_path: Path, remote: tuple[str, str]
) -> None:
    url, _ = remote
    revision = f"--upload-pack=touch {tmp_path}/evil;git-upload-pack"
    with pytest.raises(StepError):
        runner.run(Plan("x", (GitFetch(tmp_path / "clone", (url,), revision, phase="p"),)))
    assert not (tmp_path / "evil").exists()


def test_a_repository_that_cannot_be_made(runner: Runner, tmp_path: Path) -> None:
    require("git")
    (tmp_path / "clone").write_text("a file")
    with pytest.raises(StepError) as caught:
        runner.run(Plan("x", (GitFetch(tmp_path / "clone", ("u",), "0" * 40, phase="p"),)))
    assert "File exists" in str(caught.value)
