"""Definitions that were read once: equal to what is read, and never older than the files."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.unit.atlas.planted import plant
from tritonsmith.atlas import command, source_files, tablegen
from tritonsmith.atlas.index import FrontEnd, Index
from tritonsmith.atlas.source_files import Definition, KeptDefinitions, SourceFiles
from tritonsmith.core.plan import files


class Reader:
    """Reads the definitions of a tree, and counts how often."""

    def __init__(self, root: Path, folder: Path | None) -> None:
        self.root, self.kept, self.reads = root, KeptDefinitions(folder), 0

    def __call__(self) -> tuple[Definition, ...]:
        def make() -> tuple[Definition, ...]:
            self.reads += 1
            return tablegen.read_td(SourceFiles(self.root))

        return self.kept.get(("text", self.root), [self.root], make)


@pytest.fixture
def read(tmp_path: Path) -> Reader:
    return Reader(plant(tmp_path / "triton"), tmp_path / "kept")


def test_what_is_kept_equals_what_was_read(read: Reader) -> None:
    first = read()
    assert any(definition.options and definition.statistics for definition in first)
    assert any(definition.arguments for definition in first)
    assert read() == first
    assert read.reads == 1


@pytest.mark.parametrize("change", ["edited", "same size", "added", "removed"])
def test_a_change_of_any_file_is_read(read: Reader, change: str) -> None:
    first = read()
    file = read.root / "include/triton/Dialect/TritonGPU/Transforms/Passes.td"
    text = file.read_text(encoding="utf-8")
    assert "Number of loops" in text
    if change == "edited":
        file.write_text(text.replace("Number of loops", "Number of all loops"), encoding="utf-8")
    elif change == "same size":
        file.write_text(text.replace("Number of loops", "Number of LOOPS"), encoding="utf-8")
    elif change == "added":
        file.with_name("More.td").write_text(text, encoding="utf-8")
    else:
        file.unlink()
    assert read() == tablegen.read_td(SourceFiles(read.root)) != first
    assert read.reads == 2


@pytest.mark.parametrize("name", ["Passes.td", "Shared.inc"])
def test_a_change_that_keeps_size_and_time_is_read_through_a_link_too(read: Reader, name: str) -> None:
    real = read.root / "include/triton/Dialect/TritonGPU/Transforms"
    (elsewhere := read.root.parent / "elsewhere").mkdir()
    file = real.rename(elsewhere / "Transforms") / name
    real.symlink_to(elsewhere / "Transforms")
    (elsewhere / "Transforms" / "back").symlink_to(read.root)  # a walk that follows links must end
    file.write_text(file.read_text(encoding="utf-8") if file.is_file() else "AAAA", encoding="utf-8")
    times = (file.stat().st_atime_ns, file.stat().st_mtime_ns)
    read()
    assert (read(), read.reads)[1] == 1
    file.write_text(file.read_text(encoding="utf-8").replace("A", "B"), encoding="utf-8")
    os.utime(file, ns=times)
    read()
    assert read.reads == 2


INCLUDED = ("include/linked/Shared.def", "lib/Shared.inc", "outside/Shared.inc")


@pytest.mark.parametrize("included", INCLUDED)
def test_tablegen_reads_again_what_a_file_includes_by_any_name_in_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, included: str
) -> None:
    root, llvm, elsewhere = plant(tmp_path / "triton"), tmp_path / "llvm", tmp_path / "elsewhere"
    for file in (llvm / "bin" / "llvm-tblgen", llvm / "include/mlir/IR/OpBase.td", elsewhere / "Shared.def"):
        file.parent.mkdir(parents=True)
        file.write_text("A", encoding="utf-8")
    (root / "include" / "linked").symlink_to(elsewhere)
    shared = root / included
    shared.parent.mkdir(exist_ok=True)
    shared.write_text('include "lib/../lib/Last.inc"\n', encoding="utf-8")
    (root / "lib" / "Last.inc").write_text(f'include "{included}"\n', encoding="utf-8")  # in a circle
    reads: list[str] = []

    def read_exact(_tree: SourceFiles, file: str, _llvm: Path) -> tuple[Definition, ...]:
        reads.append(file)
        return ()

    monkeypatch.setattr(tablegen, "read_exact", read_exact)
    first = Index(SourceFiles(root), llvm).definitions[0].file
    including = f'// none: \ninclude "{included.removeprefix("include/")}"\n'
    (root / first).write_text(including + (root / first).read_text(encoding="utf-8"), encoding="utf-8")

    def ask() -> int:
        index = Index(SourceFiles(root), llvm, KeptDefinitions(tmp_path / "kept"))
        index.exact(index.definitions[0])
        # An answer is not kept if something counts that nobody looks at before the next one.
        assert index.certain is ("outside" not in included)
        return len(reads)

    assert (ask(), ask()) == (1, 1)
    shared.write_text(shared.read_text(encoding="utf-8") + "B", encoding="utf-8")
    assert (ask(), ask()) == (2, 2)
    (root / "lib" / "Last.inc").write_text("C", encoding="utf-8")
    assert (ask(), ask()) == (3, 3)


def test_tablegen_does_not_read_files_of_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, llvm = plant(tmp_path / "triton"), tmp_path / "llvm"
    (llvm / "include/mlir/IR").mkdir(parents=True)
    (llvm / "include/mlir/IR/OpBase.td").touch()
    program = llvm / "bin" / "llvm-tblgen"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n[ ! -e Passes.td ] && echo '{\"!instanceof\": {}}'\n", encoding="utf-8")
    program.chmod(0o755)
    (tmp_path / "Passes.td").touch()
    monkeypatch.chdir(tmp_path)
    file = "include/triton/Dialect/TritonGPU/Transforms/Passes.td"
    assert tablegen.read_exact(SourceFiles(root), file, llvm) == ()
    assert tablegen.read_exact(SourceFiles(Path("triton")), file, Path("llvm")) == ()


@pytest.mark.parametrize("damage", ["", "[]", "{}", '{"state": 1, "definitions": []}', "\0"])
def test_a_damaged_file_is_not_trusted(read: Reader, tmp_path: Path, damage: str) -> None:
    first = read()
    (kept,) = (tmp_path / "kept").iterdir()
    kept.write_text(damage, encoding="utf-8")
    assert read() == first
    assert read.reads == 2


def test_a_question_keeps_nothing_where_no_workspace_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("TRITONSMITH_HOME", str(home))
    root = plant(tmp_path / "triton")
    answer = command.explain(command.index_of(root, []), "tritongpu-pipeline")
    assert not home.exists()
    files.mark(home)
    for _ in range(2):
        assert command.explain(command.index_of(root, []), "tritongpu-pipeline") == answer
    assert len([*(home / "atlas").iterdir()]) == 2  # definitions, and functions


def test_functions_of_the_language_are_read_once_and_again_after_a_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree, kept = SourceFiles(plant(tmp_path / "triton")), KeptDefinitions(tmp_path / "kept")
    first = FrontEnd(tree).functions
    assert first
    assert any(function.semantic for function in first.values())
    assert Index(tree, kept=kept).functions == first
    with monkeypatch.context() as unread:
        unread.setattr(FrontEnd, "functions", property(lambda _: pytest.fail("read once more")))
        assert Index(tree, kept=kept).functions == first
    file = tree.root / next(iter(first.values())).place.file
    file.write_text(f"\n{file.read_text(encoding='utf-8')}", encoding="utf-8")
    assert Index(SourceFiles(tree.root), kept=kept).functions != first


def test_a_folder_that_takes_the_name_of_another_is_a_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Files that were written within one tick of the clock have the same times.
    def timeless(path: str) -> SimpleNamespace:
        status = Path(path).stat()
        fields = {name: getattr(status, name) for name in ("st_mode", "st_ino", "st_dev", "st_size")}
        return SimpleNamespace(**fields, st_mtime_ns=1, st_ctime_ns=1)

    monkeypatch.setattr(source_files, "os", SimpleNamespace(stat=timeless, scandir=os.scandir))
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "same.td").write_text(f"// {name}\n", encoding="utf-8")
    before = source_files.state_of([tmp_path])
    (tmp_path / "a").rename(tmp_path / "c")
    (tmp_path / "b").rename(tmp_path / "a")
    (tmp_path / "c").rename(tmp_path / "b")
    assert source_files.state_of([tmp_path]).digest != before.digest
