"""A corpus: what adding and removing does to its list and its sources."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from invoke.context import Context
from invoke.exceptions import Exit

from tests.unit.lab.compare import compiler
from tritonsmith.cli.tasks import compare as tasks
from tritonsmith.compiler import source_tree
from tritonsmith.compiler.kernels import kernel_list
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import LockedError, UsageError
from tritonsmith.lab import corpus
from tritonsmith.lab.corpus import Corpus, CorpusUpdate

LIST = """
[arguments]
N = "64"

[[kernel]]
file = "one.py"
name = "first"
arguments = { p = "*fp32:16" }
options = { num_warps = 8 }
targets = ["h100"]
versions = ">=3.4"
count = 3
grid = [[4, 1, 1], [2, 1, 1]]
where = ["run.py:3"]
configs = [{ N = 64, num_warps = 8 }, { N = 128, num_warps = 4 }]

[[kernel]]
file = "two.py"
kernel = "two"
signature = "*fp32,64"
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A list of two kernels, one of which imports a module beside it."""
    folder = tmp_path / "program"
    folder.mkdir()
    compiler.kernel(folder, "one")
    compiler.kernel(folder, "two").write_text(
        "import triton\nfrom near import helper\n\n@triton.jit\ndef two(p, N):\n    helper(p)\n"
    )
    (folder / "near.py").write_text("helper = 1\n")
    (folder / "list.toml").write_text(LIST)
    return folder / "list.toml"


def act(made: CorpusUpdate) -> dict[str, str]:
    """Change the corpus; names to states."""
    workspace.default().claim()
    workspace.default().run(made.plan, "test", quiet=True)
    return {one.name: one.state for one in made.changes}


def files(here: Corpus) -> list[str]:
    """Names of the files in it."""
    return sorted(path.name for path in here.folder.rglob("*") if path.is_file())


def copies(here: Corpus) -> set[str]:
    """The copied files, each relative to the root of its sources."""
    sources = here.folder / "sources"
    paths = [path.relative_to(sources) for path in sources.rglob("*") if path.is_file()]
    return {Path(*path.parts[1:]).as_posix() for path in paths}


@pytest.fixture
def here(tmp_path: Path) -> Corpus:
    return Corpus(tmp_path / "corpus")


def test_an_entry_has_all_that_its_list_says_and_a_copy(program: Path, here: Corpus) -> None:
    assert act(corpus.add(here, program)) == {"first": "new", "two": "new"}
    assert files(here) == ["kernels.toml", "near.py", "one.py", "two.py"]
    first, second = here.kernels()
    assert (first.signature, first.kernel) == ("p=*fp32:16,N=64", "one")
    before = kernel_list.read(program)[0]
    for name in ("name", "options", "targets", "versions", "count", "grids", "launched_from", "configs"):
        assert getattr(first, name) == getattr(before, name)
    assert first.sha256
    assert (here.folder / second.file).read_text() == (program.parent / "two.py").read_text()
    assert (here.folder / second.file).with_name("near.py").is_file()
    rows = map(kernel_list.row, here.kernels())
    assert kernel_list.render_kernels(rows, corpus._HEAD) == here.file.read_text()


def test_what_is_added_again_is_the_same_or_changed(program: Path, here: Corpus) -> None:
    act(corpus.add(here, program))
    text = here.file.read_text()
    assert act(corpus.add(here, program)) == {"first": "same", "two": "same"}
    assert here.file.read_text() == text
    (program.parent / "near.py").write_text("helper = 2\n")
    assert act(corpus.add(here, program)) == {"first": "same", "two": "changed"}
    assert files(here).count("near.py") == 1  # the old copy is gone
    assert here.kernels()[1].file in here.file.read_text()


def test_files_that_are_loaded_by_a_name_made_at_run_time_are_copied(program: Path, here: Corpus) -> None:
    vendor = program.parent / "vendor"
    for name in ("__init__.py", "_one/ops.py", "_one/tuned.yaml", "_one/__pycache__/ops.pyc", "_two.py"):
        (vendor / name).parent.mkdir(parents=True, exist_ok=True)
        (vendor / name).write_text("")
    (vendor / "_one" / "elsewhere.txt").symlink_to("/etc/hostname")
    (program.parent / "near.py").write_text("import vendor\nhelper = 1\n")
    act(corpus.add(here, program))
    loads = ["vendor/_one/**/*"]
    # The first kernel imports nothing that could load them.
    assert act(corpus.add(here, program, loads=loads)) == {"first": "same", "two": "changed"}
    names = {"vendor/__init__.py", "vendor/_one/ops.py", "vendor/_one/tuned.yaml"}
    assert copies(here) == {"one.py", "two.py", "near.py", *names}
    # They also go to a worker, and count for what is kept of the kernel.
    second = here.kernels()[1]
    copy = (here.folder / second.file).parent
    tree = source_tree.of(here.folder / second.file, "two", second.module)
    assert (tree.root, tree.main, tree.key) == (copy, "two.py", copy.name)
    (copy / "vendor" / "_one" / "tuned.yaml").write_text("warps: 8\n")
    assert source_tree.of(here.folder / second.file, "two").key != copy.name
    (copy / "vendor" / "_one" / "tuned.yaml").write_text("")
    lost = corpus.add(here, program, loads=["vendor/_three/*"]).changes[1]
    assert (lost.state, "no file of this package matches" in lost.why) == ("not added", True)
    # A file that a package imported as a module of its own has another root, and loads none of them.
    assert act(corpus.add(here, program, loads=["all/vendor/_one/*"])) == {"first": "same", "two": "changed"}
    act(corpus.remove(here, ["*"]))
    assert files(here) == []


def test_another_kernel_of_a_name_gets_a_name_of_its_own(program: Path, here: Corpus) -> None:
    act(corpus.add(here, program))
    program.write_text(
        LIST.replace("num_warps = 8 }\nt", "num_warps = 4 }\nt").replace("*fp32,64", "*fp16,64")
    )
    assert act(corpus.add(here, program)) == {"first-2": "new", "two-2": "new"}
    assert act(corpus.add(here, program)) == {"first-2": "same", "two-2": "same"}
    assert [one.name for one in here.kernels()] == ["first", "two", "first-2", "two-2"]
    assert files(here).count("one.py") == 1


def test_what_is_removed_takes_its_sources_along(program: Path, here: Corpus) -> None:
    act(corpus.add(here, program))
    folder = (here.folder / here.kernels()[1].file).parent
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "near.pyc").write_text("")
    with pytest.raises(UsageError, match="this corpus has no kernel 'tow'") as caught:
        corpus.remove(here, ["tow"])
    assert "did you mean 'two'?" in str(caught.value)
    assert act(corpus.remove(here, ["t*"])) == {"two": "removed"}
    assert files(here) == ["kernels.toml", "one.py"]
    assert not folder.exists()
    act(corpus.remove(here, ["first"]))
    assert files(here) == []
    assert here.kernels() == ()


def test_a_copy_that_somebody_changed_is_not_replaced(program: Path, here: Corpus) -> None:
    act(corpus.add(here, program))
    copy = here.folder / here.kernels()[1].file
    copy.write_text(copy.read_text() + "EDITED = 1\n")
    update = corpus.add(here, program)
    assert act(update) == {"first": "same", "two": "not added"}
    assert "was edited" in update.changes[1].why
    assert copy.read_text().endswith("EDITED = 1\n")
    copy.unlink()  # one that is not whole is completed
    assert act(corpus.add(here, program)) == {"first": "same", "two": "same"}
    assert copy.is_file()


def test_sources_that_somebody_changed_are_not_removed(program: Path, here: Corpus) -> None:
    act(corpus.add(here, program))
    mine = (here.folder / here.kernels()[1].file).with_name("near.py")
    mine.write_text("helper = 'mine'\n")
    act(corpus.remove(here, ["two"]))
    assert mine.read_text() == "helper = 'mine'\n"


def test_folders_that_are_added_to_a_copy_do_not_stop_its_removal(program: Path, here: Corpus) -> None:
    act(corpus.add(here, program))
    first, second = ((here.folder / entry.file).parent for entry in here.kernels())
    (first / "__pycache__" / "empty").mkdir(parents=True)
    (second / "linked").symlink_to(program.parent)
    act(corpus.remove(here, ["first"]))
    assert not first.exists()
    act(corpus.remove(here, ["two"]))
    assert files(here) == ["near.py", "two.py"]  # with the link, which somebody has made
    assert (program.parent / "near.py").exists()


def test_one_bad_entry_does_not_keep_the_others_out(
    program: Path, here: Corpus, capsys: pytest.CaptureFixture[str]
) -> None:
    (program.parent / "one.py").unlink()
    with pytest.raises(Exit) as caught:
        tasks.add(Context(), kernels=str(program), corpus=str(here.folder))
    assert caught.value.code == 1
    assert "1 new: two" in capsys.readouterr().out
    assert "1 of 2 kernels were not added" in str(caught.value)
    assert "first: no such file" in str(caught.value)
    assert [one.name for one in here.kernels()] == ["two"]


def test_list_and_dry_run(program: Path, here: Corpus, capsys: pytest.CaptureFixture[str]) -> None:
    flags = {"corpus": str(here.folder)}
    with pytest.raises(Exit) as caught:
        tasks.listing(Context(), **flags)
    assert caught.value.code == 2
    assert "compare --corpus-add captured.toml" in str(caught.value)
    tasks.add(Context(), kernels=str(program), dry_run=True, **flags)
    assert "two.py" in capsys.readouterr().out
    assert not here.folder.exists()
    tasks.add(Context(), kernels=str(program), json=True, **flags)
    assert [row["state"] for row in json.loads(capsys.readouterr().out)["changes"]] == ["new", "new"]
    tasks.listing(Context(), json=True, **flags)
    rows = json.loads(capsys.readouterr().out)["kernels"]
    assert [(row["name"], row["launches"], row["configs"]) for row in rows] == [
        ("first", 3, 2),
        ("two", 0, 0),
    ]
    tasks.listing(Context(), **flags)
    assert "two.py:two" in capsys.readouterr().out
    with pytest.raises(Exit, match="no terminal to ask in"):
        tasks.remove(Context(), kernel="two", **flags)
    assert [entry.name for entry in here.kernels()] == ["first", "two"]
    tasks.remove(Context(), kernel="two", yes=True, **flags)
    assert "1 removed: two" in capsys.readouterr().out


def test_one_change_at_a_time(program: Path, here: Corpus) -> None:
    with here.held("corpus.add"), pytest.raises(LockedError, match="busy in this corpus"), here.held("other"):
        corpus.add(here, program)
