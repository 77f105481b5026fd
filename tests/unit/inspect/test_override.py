"""Stages that are changed by hand: which is meant, and where each version of Triton looks for it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tritonsmith.core.errors import FactError, SmithError, UsageError
from tritonsmith.inspect import override
from tritonsmith.inspect.override import Dumped, OverrideRun

KEY = "A" * 52


def never(_: object) -> None:
    pytest.fail("nothing may run")


def dumped(folder: Path, *names: str, key: str = KEY) -> tuple[Dumped, ...]:
    found = []
    for name in names:
        path = folder / key / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"of {name}\n", encoding="utf-8")
        found.append(Dumped(path))
    return tuple(found)


def test_the_only_kernel_needs_no_name(tmp_path: Path) -> None:
    here = dumped(tmp_path, "mm.ttir", "mm.ttgir")
    chosen = override.choose(here, "", "ttgir")
    assert (chosen.kernel, chosen.stage, chosen.key) == ("mm", "ttgir", KEY)


@pytest.mark.parametrize(
    ("kernel", "stage", "said"),
    [
        ("mn", "ttgir", "did you mean 'mm'?"),
        ("mm", "ttgr", "did you mean 'ttgir'?"),
        ("", "ttgir", "--name mm"),
        ("mm", "cubin", "cubin is a binary stage"),
    ],
)
def test_what_is_not_there_is_said(tmp_path: Path, kernel: str, stage: str, said: str) -> None:
    here = dumped(tmp_path, "mm.ttgir", "softmax.ttgir", "mm.cubin")
    here[-1].path.write_bytes(b"\x7fELF\0")
    with pytest.raises(UsageError) as caught:
        override.choose(here, kernel, stage)
    assert said in str(caught.value)


def test_a_kernel_that_was_compiled_twice_is_named_by_its_hash(tmp_path: Path) -> None:
    here = (*dumped(tmp_path, "mm.ttgir"), *dumped(tmp_path, "mm.ttgir", key="B" * 52))
    with pytest.raises(UsageError, match="--name AAAAAAAA"):
        override.choose(here, "mm", "ttgir")
    assert override.choose(here, "BBBBBBBB", "ttgir") == here[1]


def test_versions_before_3_2_look_below_home(tmp_path: Path) -> None:
    old = OverrideRun(tmp_path, "3.1.0", never)
    found = old.environment("before", override=False)
    assert found["HOME"] == str(tmp_path / "home" / "before")
    assert "TRITON_DUMP_DIR" not in found
    assert old.folder("before", "dump") == tmp_path / "home" / "before" / ".triton" / "dump"
    new = OverrideRun(tmp_path, "3.2.0", never)
    assert new.environment("before", override=False)["TRITON_DUMP_DIR"] == str(tmp_path / "before")
    assert new.folder("before", "dump") == tmp_path / "before"


def test_only_the_second_run_overrides_and_neither_finds_what_the_other_cached(tmp_path: Path) -> None:
    bench = OverrideRun(tmp_path, "3.9.0", never)
    before = bench.environment("before", override=False)
    after = bench.environment("after", override=True)
    assert "TRITON_KERNEL_OVERRIDE" not in before
    assert after["TRITON_KERNEL_OVERRIDE"] == "1"
    assert before["TRITON_CACHE_DIR"] != after["TRITON_CACHE_DIR"]


def test_a_command_that_compiles_nothing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FactError, match="no stage was dumped"):
        override.run_unchanged(OverrideRun(tmp_path, "3.9.0", lambda _: None))


def test_a_file_that_nobody_changed_is_not_compiled(tmp_path: Path) -> None:
    bench = OverrideRun(tmp_path, "3.9.0", never)
    (chosen,) = dumped(tmp_path / "before", "mm.ttgir")
    place = override.copy_for_editing(bench, chosen)
    assert place == tmp_path / "override" / KEY / "mm.ttgir"
    with pytest.raises(SmithError, match="the file was not changed"):
        override.run_changed(bench, chosen, place)


def test_changes_are_shown_from_the_edited_stage_on(tmp_path: Path) -> None:
    dumped(tmp_path / "before", "mm.ttir", "mm.ttgir", "mm.ptx")
    chosen = Dumped(tmp_path / "before" / KEY / "mm.ttgir")

    def again(change: object) -> None:
        assert isinstance(change, dict)
        dumped(tmp_path / "after", "mm.ttir", "mm.ttgir", "mm.ptx")
        (tmp_path / "after" / KEY / "mm.ptx").write_text("of mm.ptx\nadd.f32 %f1, %f2, %f3;\n")

    bench = OverrideRun(tmp_path, "3.9.0", again)
    place = override.copy_for_editing(bench, chosen)
    place.write_text("of mm.ttgir\nmore\n")
    found = {one.stage: (one.removed, one.added) for one in override.run_changed(bench, chosen, place)}
    assert found == {"ttgir": (0, 1), "ptx": (0, 1)}


def test_an_editor_is_words_and_its_failure_ends_it(tmp_path: Path) -> None:
    assert override.editor({"EDITOR": "code --wait", "VISUAL": ""}) == ("code", "--wait")
    with pytest.raises(UsageError, match="no terminal to open an editor in"):
        override.editor({}, terminal=False)
    assert override.editor({"EDITOR": "sed -i s/a/b/"}, terminal=False)[0] == "sed"
    file = tmp_path / "a file"
    file.write_text("x")
    override.edit(file, (sys.executable, "-c", "import sys; open(sys.argv[1], 'a').write('y')"))
    assert file.read_text() == "xy"
    with pytest.raises(SmithError, match="exit code 3"):
        override.edit(file, (sys.executable, "-c", "raise SystemExit(3)"))
    with pytest.raises(SmithError, match="removed the file"):
        override.edit(file, (sys.executable, "-c", "import os, sys; os.remove(sys.argv[1])"))
    with pytest.raises(UsageError, match="EDITOR cannot be"):
        override.editor({"EDITOR": "vi 'a"})
    with pytest.raises(UsageError, match="VISUAL cannot be") as caught:
        override.editor({"EDITOR": "vi", "VISUAL": "code 'a"})
    assert caught.value.hints[0] == "VISUAL=nano"


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    with pytest.raises(UsageError, match="not an empty folder"):
        override.prepare_folder(tmp_path, None)  # type: ignore[arg-type] # the workspace is not looked at
