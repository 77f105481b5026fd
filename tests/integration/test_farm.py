"""A farm over real commits of mini-Triton: what is built, compiled, kept and said."""

from __future__ import annotations

import json
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from tests.integration.dask_cluster import running
from tests.integration.farm_clone import INIT, MAIN, REFUSES, RULE, TEST, Farm
from tests.integration.harness import capture, commit, git, wait_for
from tritonsmith.core.errors import EXIT_UNDECIDED

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("farm")]


def test_a_commit_that_changes_tests_alone_is_the_same_compiler(farm: Farm) -> None:
    built = farm.libraries
    done = farm.smith(*farm.words, "--base", "main", "--head", "tests")
    short = {name: value[:12] for name, value in farm.hashes.items()}
    assert done.out == f"main {short['base']} -> tests {short['tests']}: the same compiler\n"
    comment = farm.smith.root / "same.md"
    told = farm.told("--head", "tests", "--comment", comment, code=0)
    assert comment.read_text(encoding="utf-8").endswith(": the same compiler\n")
    assert (told["verdict"], told["sure"], told["findings"]) == ("the same compiler", True, [])
    assert farm.libraries == built


def test_a_change_in_python_shares_the_libraries(farm: Farm) -> None:
    dry = farm.smith(*farm.words, "--head", "python", "--dry-run").out
    assert dry.count("to be built first") == 2
    assert dry.count("tritonsmith kernel.compile") == 4
    assert farm.libraries == 0
    told = farm.told("--head", "python")
    assert (told["from"], told["to"]) == (
        f"main {farm.hashes['base'][:12]}",
        f"python {farm.hashes['python'][:12]}",
    )
    assert (told["compiled"], told["kept"], told["findings"]) == (4, 0, [])
    assert farm.libraries == 1
    again = farm.told("--head", "python")
    assert (again["compiled"], again["kept"]) == (0, 4)


def test_libraries_that_come_out_the_same_are_the_same_compiler(farm: Farm) -> None:
    """A comment is built, since only the build tells that it changes nothing; no kernel is compiled."""
    farm.told("--head", "python")
    built = farm.libraries
    told = farm.told("--head", "comment", code=0)
    assert (told["verdict"], told["sure"], told["compiled"]) == ("the same compiler", True, 0)
    assert farm.libraries == built + 1
    assert farm.smith(*farm.words, "--head", "comment").out.endswith(": the same compiler\n")


def test_a_change_in_c_is_found(farm: Farm) -> None:
    comment = farm.smith.root / "worse.md"
    told = farm.told("--head", "native", "--comment", comment, code=1)
    assert "does not compile any more" in comment.read_text(encoding="utf-8")
    (finding,) = told["findings"]
    assert (finding["finding"], finding["kernel"]) == ("does not compile any more", "is_refused")
    assert f"--source '{farm.clone}'" in finding["search"]
    assert f"--good {farm.hashes['base']} --bad {farm.hashes['native']}" in finding["search"]
    status = farm.smith(*farm.words, "--head", "native", "--status").out
    assert "finished: 1 finding" in status
    assert "is_refused native" in status


def test_pages_of_commits_use_what_a_farm_has_kept(farm: Farm) -> None:
    farm.told("--head", "native", code=1)
    words = ("farm", "--site", *farm.words[1:], "--triton", "main,native", "--out", farm.smith.root / "site")
    assert "to be built first" not in farm.smith(*words, "--dry-run").out
    built = farm.libraries
    told = json.loads(farm.smith(*words, "--json").out)
    assert (told["state"], farm.libraries) == ("findings", built)
    (refused,) = (row for row in told["rows"] if row["kernel"] == "is_refused")
    assert [finding["finding"] for finding in refused["findings"]] == ["does not compile any more"]
    page = (farm.smith.root / "site" / "index.html").read_text(encoding="utf-8")
    assert str(farm.smith.root) not in page
    assert farm.hashes["native"][:12] in page


def test_results_are_those_of_a_commits_content(farm: Farm) -> None:
    """A commit on top of another one that changes its tests alone is not even built."""
    farm.told("--head", "python")
    git(farm.clone, "checkout", "--quiet", "--detach", farm.hashes["python"])
    (farm.clone / TEST).write_text("// other\n", encoding="utf-8")
    later = commit(farm.clone, "its tests").strip()
    git(farm.clone, "checkout", "--quiet", "main")
    told = farm.told("--head", later)
    assert (told["to"], told["compiled"], told["kept"]) == (later[:12], 0, 4)
    assert not [*farm.smith.home.glob(f"envs/*/commits/*/{later[:12]}")]


def test_workers_on_a_shared_workspace_compile_commits(farm: Farm, tmp_path: Path) -> None:
    git(farm.clone, "checkout", "--quiet", "--detach", farm.hashes["base"])
    path = farm.clone / INIT
    path.write_text(path.read_text(encoding="utf-8").replace("tt.func @", "tt.func   @"), encoding="utf-8")
    head = commit(farm.clone, "by workers").strip()
    git(farm.clone, "checkout", "--quiet", "main")
    farm.told("--head", "python")  # so that the base is kept
    with running(tmp_path, farm.smith.environ, [farm.smith.home]) as cluster:
        told = farm.told("--head", head, "--scheduler", cluster.address)
    assert (told["compiled"], told["kept"], told["findings"]) == (2, 2, [])
    assert {row["to"]["status"] for row in told["kernels"]} == {"ok"}
    again = farm.told("--head", head)
    assert (again["compiled"], again["kept"]) == (0, 4)


def test_a_head_that_does_not_build_is_an_error(farm: Farm) -> None:
    error = farm.smith(*farm.words, "--head", "broken", code=1).error
    assert error.startswith(f"error: broken {farm.hashes['broken'][:12]} cannot be built: ")
    assert "amd.c" in error
    # Whatever was compiled before, a side that is missing is no verdict, and the next run says the same.
    assert farm.smith(*farm.words, "--head", "broken", "--json", code=1).out == ""


def test_the_working_tree_is_the_head_and_stays_as_it_is(farm: Farm) -> None:
    clone = farm.clone
    farm.told("--head", "native", code=1)
    (clone / MAIN).write_text((clone / MAIN).read_text().replace(RULE, REFUSES))
    (clone / "new file.c").write_text("int new;\n")
    try:
        before = state(clone)
        done = farm.smith("farm", farm.smith.root / "kernels.toml", *farm.words[2:], code=1)
        assert state(clone) == before
        label = f"HEAD {farm.hashes['base'][:12]} + changes"
        assert f"1 untracked file is not in {label}: new file.c" in done.err
        assert f"main {farm.hashes['base'][:12]} -> {label}: " in done.err
        # What was changed is what `native` has, whose results are there.
        assert "0 compiled now, 4 kept" in done.err
        assert len(done.out.splitlines()) <= 10
        assert "does not compile" in done.out
    finally:
        git(clone, "checkout", "--quiet", "--force", "main")
        (clone / "new file.c").unlink()


def state(clone: Path) -> dict[str, tuple[int, int]]:
    """Size and time of every file of a clone but for objects, the index and refs of git among them."""
    return {
        str(path): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in clone.rglob("*")
        if path.is_file() and "objects" not in path.parts
    }


def test_a_release_and_a_commit(farm: Farm) -> None:
    dry = farm.smith(*farm.words, "--base", "3.6.0", "--head", "python", "--dry-run", code=None)
    assert "triton==3.6.0" in dry.out


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT], ids=["SIGKILL", "SIGINT"])
def test_what_was_stopped_in_a_build_goes_on(farm: Farm, tmp_path: Path, how: signal.Signals) -> None:
    git(farm.clone, "checkout", "--quiet", "--detach", farm.hashes["base"])
    path = farm.clone / MAIN
    # Not a comment, which would give the same libraries.
    more_code = f'const char *was_stopped_by = "{how.name}";\n'
    path.write_text(path.read_text(encoding="utf-8") + more_code, encoding="utf-8")
    head = commit(farm.clone, how.name).strip()
    git(farm.clone, "checkout", "--quiet", "main")
    slow, marker = tmp_path / "ccache", tmp_path / "slow"
    which = capture("which", "ccache").strip()
    once = f'case "$*" in *main.c*) mkdir "{marker}" 2>/dev/null && sleep 300;; esac'
    slow.write_text(f'#!/bin/sh\n{once}\nexec {which} "$@"\n', encoding="utf-8")
    slow.chmod(0o755)
    more = {**farm.smith.more, "PATH": f"{tmp_path}:{farm.smith.environ['PATH']}"}
    smith = replace(farm.smith, more=more)
    built = farm.libraries
    with smith.running(*farm.words, "--head", head, "--json") as process:
        wait_for(marker.is_dir, process)
        process.send_signal(how)
        process.communicate(timeout=60)
    assert process.returncode == (-how if how is signal.SIGKILL else 130)
    assert farm.libraries == built
    told = json.loads(smith(*farm.words, "--head", head, "--json", code=EXIT_UNDECIDED).out)
    assert (told["compiled"] + told["kept"], told["findings"]) == (4, [])
    assert farm.libraries == built + 1


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("--base", "no-such-branch"), "--base: 'no-such-branch' is not a Triton"),
        (("--head", "gfx942"), "--head cannot be 'gfx942'"),
        (("--head", "wheel"), "--base is missing, as --head is no commit"),
        (("--head", "tests,wheel"), "--head names two Tritons: tests and wheel"),
        (("--head", "commit 0123456"), "--head: no commit 0123456"),
        (("--fail-on", "nonsense"), "nonsense"),
        (("--head", ""), "--head is empty"),
        (("--base", " "), "--base is empty"),
        (("--base", "3.6.0", "--head", "3.6.0"), "--base and --head are the same Triton"),
    ],
)
def test_wrong_flags(farm: Farm, words: tuple[str, ...], what: str) -> None:
    assert what in farm.smith(*farm.words, *words, code=2).error


def test_a_folder_that_is_no_clone_of_triton(farm: Farm, tmp_path: Path) -> None:
    command = ("farm", farm.smith.root / "kernels.toml", "--env", farm.env)
    error = farm.smith(*command, code=2).error
    assert "needs a clone of Triton" in error
    assert "--source is not a folder" in farm.smith(*command, "--source", tmp_path / "no", code=2).error
    assert "not a git repository" in farm.smith(*command, "--source", tmp_path, "--head", "x", code=1).error
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    error = farm.smith(*command, "--source", tmp_path, code=1).error
    assert "error: " in error
    (tmp_path / "file").write_text("")
    commit(tmp_path, "first")
    error = farm.smith(*command, "--source", tmp_path, code=1).error
    assert "this is no commit of Triton: it has no python/triton/__init__.py" in error
