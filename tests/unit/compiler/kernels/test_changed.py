"""Which kernels a change touches: by statements that they need, of their own file and of others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.facts.fakes import git
from tritonsmith.compiler.kernels import changed
from tritonsmith.core.errors import ConfigError, UsageError

HELPER = "SCALE = 2\n"
KERNELS = '''"""Kernels."""
import triton
import triton.language as tl
from helper import SCALE

LEFT_ALONE = 1


@triton.jit
def factor(x):
    return x * SCALE


@triton.jit
def scaled(x_ptr, n, BLOCK: tl.constexpr):
    """Scale."""
    at = x_ptr + tl.arange(0, BLOCK)
    tl.store(at, factor(tl.load(at)))


@triton.jit
def other(x_ptr):
    tl.store(x_ptr, 1)
'''
LIST = '[[kernel]]\nfile = "k.py"\nkernel = "scaled"\nsignature = "*fp32,i32,BLOCK=128"\n'


@pytest.fixture(autouse=True)
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with two kernels, of which a kernels file has one."""
    for name, text in (
        ("k.py", KERNELS),
        ("helper.py", HELPER),
        ("kernels.toml", LIST),
        ("host.py", "x = 1\n"),
    ):
        (tmp_path / name).write_text(text)
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "--quiet", "--message", "first")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PRE_COMMIT_FROM_REF", raising=False)
    return tmp_path


def edit(file: Path, change: Callable[[str], str]) -> None:
    file.write_text(change(file.read_text()))


@pytest.mark.parametrize(
    ("name", "old", "new", "listed", "unlisted"),
    [
        ("k.py", "return x * SCALE", "return SCALE * x", ["scaled"], []),  # what the kernel calls
        ("k.py", "tl.store(at, factor(", "tl.store(at, 1 + factor(", ["scaled"], []),
        ("k.py", "tl.store(x_ptr, 1)", "tl.store(x_ptr, 2)", [], ["other"]),
        ("helper.py", "SCALE = 2", "SCALE = 3", ["scaled"], []),  # what its file imports
        ("k.py", "LEFT_ALONE = 1", "LEFT_ALONE = 2", [], []),
        ("k.py", '    """Scale."""\n', "    # Scale.\n\n", [], []),
        ("k.py", "import SCALE", "import (\n    SCALE,\n)", [], []),
        ("host.py", "x = 1", "x = 2", [], []),
    ],
)
def test_statements_count_and_not_the_text(
    repository: Path, name: str, old: str, new: str, listed: list[str], unlisted: list[str]
) -> None:
    edit(repository / name, lambda text: text.replace(old, new))
    for words in ([], [name]):
        touched = changed.find(words, "", [])
        assert [kernel.place.kernel for kernel in touched.listed] == listed
        assert [place.kernel for place in touched.unlisted] == unlisted
        assert not touched.unread


def test_a_place_is_spelled_as_a_compiler_does(repository: Path) -> None:
    edit(repository / "k.py", lambda text: text.replace("* SCALE", "* 3"))
    (kernel,) = changed.find([], "", []).listed
    assert str(kernel.place) == "k.py:15: scaled"
    assert kernel.old == repository / "k.py"


def test_a_branch_is_compared_where_it_left_the_other(repository: Path) -> None:
    git(repository, "branch", "base")
    edit(repository / "k.py", lambda text: text.replace("* SCALE", "* 3"))
    git(repository, "commit", "--quiet", "--all", "--message", "second")
    assert not changed.find([], "HEAD", []).listed
    # What the base has got since is no change of this branch.
    git(repository, "checkout", "--quiet", "base")
    edit(repository / "k.py", lambda text: text.replace("tl.store(x_ptr, 1)", "tl.store(x_ptr, 5)"))
    git(repository, "commit", "--quiet", "--all", "--message", "theirs")
    git(repository, "checkout", "--quiet", "-")
    touched = changed.find([], "base", [])
    assert ([kernel.place.kernel for kernel in touched.listed], touched.unlisted) == (["scaled"], ())


def test_pre_commit_may_compare_a_range(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edit(repository / "k.py", lambda text: text.replace("* SCALE", "* 3"))
    git(repository, "commit", "--quiet", "--all", "--message", "second")
    monkeypatch.setenv("PRE_COMMIT_FROM_REF", "HEAD^")
    assert len(changed.find(["k.py"], "", []).listed) == 1


def test_a_new_kernel_is_new(repository: Path) -> None:
    edit(repository / "k.py", lambda text: text.replace("def other(", "def another("))
    edit(repository / "kernels.toml", lambda text: f"{text}\n{text.replace('scaled', 'another')}")
    (kernel,) = changed.find([], "", []).listed
    assert (kernel.place.kernel, kernel.old) == ("another", None)


def test_a_renamed_file_is_followed(repository: Path) -> None:
    git(repository, "mv", "k.py", "moved.py")
    edit(repository / "kernels.toml", lambda text: text.replace("k.py", "moved.py"))
    assert not changed.find([], "", []).listed
    edit(repository / "moved.py", lambda text: text.replace("* SCALE", "* 3"))
    (kernel,) = changed.find([], "", []).listed
    assert (str(kernel.place), kernel.old) == ("moved.py:15: scaled", repository / "k.py")


def test_a_kernel_that_cannot_be_parsed_is_touched_where_that_fails(repository: Path) -> None:
    # Without a name in the list, only the old text shows which kernel it is.
    edit(repository / "k.py", lambda text: text.partition("@triton.jit\ndef other")[0])
    edit(repository / "kernels.toml", lambda text: text.replace('kernel = "scaled"\n', ""))
    git(repository, "commit", "--quiet", "--all", "--message", "one kernel")
    edit(repository / "k.py", lambda text: text.replace("return x * SCALE", "return x * ("))
    (kernel,) = changed.find([], "", []).listed
    assert (str(kernel.place), kernel.entry.kernel) == ("k.py:11: scaled", "scaled")
    git(repository, "checkout", "--quiet", "k.py")
    edit(repository / "helper.py", lambda text: f"{text}\nx = (\n")
    (kernel,) = changed.find([], "", []).listed
    assert str(kernel.place) == "helper.py:3: scaled"


def test_a_broken_file_that_no_list_has_is_named(repository: Path) -> None:
    (repository / "new.py").write_text("import triton\n\nx = (\n")
    assert list(changed.find([], "", []).notes()) == [
        "not looked at: new.py: this Python cannot parse line 3"
    ]


def test_what_the_change_deleted_is_named(repository: Path) -> None:
    edit(repository / "k.py", lambda text: text.replace("def scaled(", "def renamed("))
    touched = changed.find(["k.py"], "", [])
    assert not touched.listed
    assert "not looked at: scaled of kernels.toml: this file has no kernel 'scaled'" in touched.notes()
    (repository / "k.py").unlink()
    assert list(changed.find([], "", []).notes()) == ["not looked at: scaled of kernels.toml: no such file"]


def test_a_helper_that_the_change_deleted_touches_its_kernels(repository: Path) -> None:
    (repository / "host.py").unlink()
    assert not changed.find([], "", []).listed
    (repository / "helper.py").unlink()
    (kernel,) = changed.find([], "", []).listed
    assert (kernel.place.kernel, kernel.old) == ("scaled", repository / "k.py")


def test_entries_for_another_triton_are_named(repository: Path) -> None:
    edit(repository / "k.py", lambda text: text.replace("* SCALE", "* 3"))
    edit(repository / "kernels.toml", lambda text: f'{text}versions = ">=3.6"\n')
    touched = changed.find([], "", [])
    assert touched.fitting("3.7.0") == touched
    assert list(touched.fitting("3.5.0").notes()) == [
        "not looked at: k.py:15: scaled: its entries are for other Tritons than 3.5.0"
    ]


def test_a_list_may_lie_in_another_folder(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (repository / "tests").mkdir()
    (repository / "tests" / "mine.toml").write_text(LIST.replace("k.py", "../k.py"))
    edit(repository / "k.py", lambda text: text.replace("* SCALE", "* 3"))
    monkeypatch.chdir(repository / "tests")
    touched = changed.find(["../k.py"], "", ["../tests/mine.toml"])
    assert [str(kernel.place) for kernel in touched.listed] == ["../k.py:15: scaled"]
    assert not touched.unlisted


def test_a_list_that_the_change_breaks_is_an_error(repository: Path) -> None:
    edit(repository / "kernels.toml", lambda text: f"{text}[[[\n")
    with pytest.raises(ConfigError, match="not valid TOML"):
        changed.find([], "", [])
    git(repository, "commit", "--quiet", "--all", "--message", "broken")
    assert not changed.find([], "", []).listed  # nor is it part of a change now


def test_the_entry_of_the_commit_is_kept(repository: Path) -> None:
    edit(repository / "k.py", lambda text: text.replace("* SCALE", "* 3"))
    edit(repository / "kernels.toml", lambda text: text.replace("i32", "fp33"))
    (kernel,) = changed.find([], "", []).listed
    assert (kernel.entry.signature, kernel.old_entry.signature) == (
        "*fp32,fp33,BLOCK=128",
        "*fp32,i32,BLOCK=128",
    )


def test_what_is_not_looked_at_is_named(repository: Path) -> None:
    edit(repository / "k.py", lambda text: text.replace("tl.store(x_ptr, 1)", "tl.store(x_ptr, 2)"))
    edit(
        repository / "kernels.toml", lambda text: f'{text}\n{text.replace("k.py", "gone.py")}name = "gone"\n'
    )
    assert list(changed.find([], "", []).notes()) == [
        "k.py:22: other: not looked at, as no kernels file has its signature",
        "not looked at: gone of kernels.toml: no such file",
    ]


def test_a_jit_of_another_package_is_no_kernel(repository: Path) -> None:
    (repository / "numba_kernels.py").write_text("import numba\n\n\n@numba.jit\ndef f(x):\n    return x\n")
    assert not changed.find([], "", []).unlisted


def test_the_repository_names_its_lists(repository: Path) -> None:
    (repository / "kernels.toml").rename(repository / "mine.toml")
    assert changed.kernels_files(repository) == ()
    (repository / "pyproject.toml").write_text('[tool.tritonsmith]\nkernels = ["mine.toml"]\n')
    assert changed.kernels_files(repository) == (repository / "mine.toml",)
    (repository / "pyproject.toml").write_text('[tool.tritonsmith]\nkernels = "mine.toml"\n')
    with pytest.raises(ConfigError, match="not a list of files"):
        changed.kernels_files(repository)


def test_there_must_be_a_repository_and_the_commit(
    repository: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match="no commit, tag or branch 'mian'") as caught:
        changed.find(["k.py"], "mian", [])
    assert caught.value.hints == ("name the branch that this one will be merged into: --since origin/main",)
    shallow = tmp_path_factory.mktemp("shallow") / "clone"
    git(repository, "commit", "--quiet", "--allow-empty", "--message", "second")
    git(repository, "clone", "--quiet", "--depth", "1", f"file://{repository}", str(shallow))
    monkeypatch.chdir(shallow)
    with pytest.raises(UsageError, match="no commit") as caught:
        changed.find([], "mian", [])
    assert caught.value.hints[1:] == ("git fetch --unshallow",)
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    with pytest.raises(UsageError, match="no git repository"):
        changed.find([], "", [])
