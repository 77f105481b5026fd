"""Lists, searches and single dumps of an output folder; logs that are imported."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from rich.console import Console

from tests.unit.compiler.dump.streams import HEAD, banner, module, split, texts
from tritonsmith.compiler.dump import import_log, pass_runs
from tritonsmith.compiler.dump import index as indexes
from tritonsmith.compiler.dump.index import KEPT, DumpIndex
from tritonsmith.core.errors import FactError, SmithError, UsageError
from tritonsmith.inspect import pipeline_table
from tritonsmith.inspect import show_passes as show

pytestmark = pytest.mark.usefixtures("home")

LOAD = "%0 = tt.load %arg0 : !tt.ptr<f32>"
AGAIN = "%1 = tt.load %arg0 : !tt.ptr<f32>"
STORE = "tt.store %arg0, %1 : !tt.ptr<f32>"
LAYOUT = "%2 = ttg.convert_layout %1 : tensor<4xf32, #blocked> -> tensor<4xf32, #blocked1>"


@pytest.fixture
def made(tmp_path: Path) -> DumpIndex:
    """Four passes: nothing, one operation more, another, both gone."""
    parts = [
        ("InlinerPass", "inline", module(LOAD)),
        ("CSEPass", "cse", module(LOAD)),
        ("Coalesce", "tritongpu-coalesce", module(LOAD, AGAIN, LAYOUT, head=HEAD)),
        ("CSEPass", "cse", module("%9 = tt.load %arg0 : !tt.ptr<f32>", LAYOUT, LAYOUT, head=HEAD)),
        ("Last", "last", module(STORE, head=HEAD)),
    ]
    return split("".join(banner(name, word) + text for name, word, text in parts), tmp_path / "out")


def test_a_row_says_which_lines_and_operations_came_and_went(made: DumpIndex) -> None:
    rows = pipeline_table.pass_changes(made, "add")
    assert rows[0] == pipeline_table.PipelineRow(0, 0, {})
    assert rows[1] is not None
    assert rows[1].operations == {"tt.load": 1, "ttg.convert_layout": 1}
    assert (rows[1].added, rows[1].removed) == (3, 1)  # and the module's head
    assert rows[2] == pipeline_table.PipelineRow(1, 1, {"tt.load": -1, "ttg.convert_layout": 1})
    assert rows[4] is None


def test_rows_are_counted_once(made: DumpIndex) -> None:
    rows = pipeline_table.pass_changes(made, "add")
    for dump in made.dumps:
        made.path(dump).unlink(missing_ok=True)
    assert pipeline_table.pass_changes(made, "add") == rows


def test_what_was_counted_of_another_dump_does_not_count(made: DumpIndex, tmp_path: Path) -> None:
    pipeline_table.pass_changes(made, "add")
    other = split(banner("CSEPass", "cse") + module(LOAD), tmp_path / "other")
    (made.folder / KEPT).replace(other.folder / KEPT)
    assert pipeline_table.pass_changes(other, "add") == (None,)


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: [],
        lambda kept: {**kept, "kernels": []},
        lambda kept: {**kept, "kernels": {"add": [None]}},
        lambda kept: {**kept, "kernels": {"add": [[]] * 5}},
        lambda kept: {**kept, "kernels": {"add": [{"added": "1"}] * 5}},
    ],
)
def test_a_damaged_list_is_counted_again(made: DumpIndex, damage: Callable[[Any], Any]) -> None:
    rows, path = pipeline_table.pass_changes(made, "add"), made.folder / KEPT
    path.write_text(json.dumps(damage(json.loads(path.read_text()))))
    assert pipeline_table.pass_changes(made, "add") == rows


def test_a_folder_that_cannot_be_written_to_is_read_all_the_same(made: DumpIndex) -> None:
    (made.folder / KEPT).mkdir()
    assert len(pipeline_table.pass_changes(made, "add")) == 5


def test_the_table_has_a_line_for_each_pass_and_dims_those_that_did_nothing(made: DumpIndex) -> None:
    kernel = indexes.choose_kernel(made, "")
    rows = pipeline_table.pass_changes(made, "add")
    table = pipeline_table.table(made, kernel, rows, {"cse": "common things go"})
    assert len(table.rows) == 5
    assert table.styles[:2] == ("dim", "")
    assert "common things go" in [str(row[-1]) for row in table.rows]
    assert len(pipeline_table.table(made, kernel, rows, changed=True).rows) == 4
    assert json.loads(json.dumps(pipeline_table.as_json(made, kernel, rows)))["passes"][2]["removed"] == 1


@pytest.mark.parametrize("width", [40, 60, 80, 100, 140])
def test_a_table_for_a_narrow_terminal_has_the_numbers_and_the_names(made: DumpIndex, width: int) -> None:
    rows = pipeline_table.pass_changes(made, "add")
    table = pipeline_table.table(made, indexes.choose_kernel(made, ""), rows)
    console = Console(width=width, file=io.StringIO())
    console.print(table)
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert max(map(len, lines)) <= width
    assert any(
        line.split()[:1] == ["2"] and "tritongpu-co" in line and "+1 -1" in line for line in lines[3:-1]
    )
    assert ("convert_layout" in "".join(lines)) == (width >= 80)


def test_a_text_is_born_multiplies_and_dies(made: DumpIndex) -> None:
    found = show.find_text(made, "add", "convert_layout")
    assert [(event.dump.number, event.before, event.after, event.what) for event in found.events] == [
        (1, 0, 1, "born"),
        (2, 1, 2, "multiplied"),
        (3, 2, 0, "died"),
    ]
    assert (found.first, found.last, found.dumps) == (0, 0, 2)
    assert [event["what"] for event in show.events_as_json(found)["events"]] == ["born", "multiplied", "died"]
    table = show.events_table(found, "convert_layout")
    assert len(table.rows) == 3
    console = Console(width=52, file=io.StringIO())
    console.print(table)
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert [line.split()[0] for line in shown.splitlines()[-4:-1]] == ["1", "2", "3"]
    assert "tritongpu-c…" in shown
    assert max(map(len, shown.splitlines())) <= 52


def test_the_translation_to_llvm_counts_as_a_pass(tmp_path: Path) -> None:
    ir = "define void @add() {{\n  {}\n}}\n"
    stream = banner("Last", "last") + module(LOAD, head=HEAD)
    stream += "".join(
        f"; *** IR Dump After {name} on add ***\n{ir.format(line)}"
        for name, line in (("A", "load i8"), ("B", "load i8"), ("C", "ret void"))
    )
    made = split(
        stream + "// -----// NVPTX Dump //----- //\n.version 8.4\n.entry add(\n)\n", tmp_path / "out"
    )
    found = {text: show.find_text(made, "add", text).events for text in ("load i8", "ret void", "tt.load")}
    assert {text: [(event.dump.name, event.what) for event in events] for text, events in found.items()} == {
        "load i8": [("A", "born"), ("C", "died")],
        "ret void": [("C", "born"), ("ptx", "died")],
        "tt.load": [("A", "died")],
    }


def test_an_empty_text_is_not_searched(made: DumpIndex) -> None:
    with pytest.raises(UsageError, match="empty"):
        show.find_text(made, "add", "")


def test_locations_are_not_searched(made: DumpIndex) -> None:
    assert show.find_text(made, "add", "somewhere").dumps == 0


def test_regular_expressions(made: DumpIndex) -> None:
    found = show.find_text(made, "add", r"^ +tt\.store", regex=True)
    assert [(event.dump.name, event.what) for event in found.events] == [("CSEPass", "born")]
    assert (
        show.find_text(made, "add", "tt.load").first
        == show.find_text(made, "add", r"tt\.load", regex=True).first
    )
    with pytest.raises(UsageError, match="regular"):
        show.find_text(made, "add", "(", regex=True)


def test_a_dump_is_chosen_by_number_or_name(made: DumpIndex) -> None:
    assert indexes.choose_dump(made, "add", "2").name == "Coalesce"
    assert indexes.choose_dump(made, "add", "tritongpu-coalesce").number == 2
    assert indexes.choose_dump(made, "add", "Coalesce").number == 2
    for word, said in (("cse", "more than once"), ("5", "0 to 4"), ("coalesc", "did you mean")):
        with pytest.raises(UsageError) as caught:
            indexes.choose_dump(made, "add", word)
        assert said in str(caught.value)


def test_a_kernel_is_chosen_by_name_if_there_are_several(made: DumpIndex, tmp_path: Path) -> None:
    assert indexes.choose_kernel(made, "").name == "add"
    stream = banner("A", "a") + module(LOAD) + banner("A", "a") + module(LOAD, kernel="mul")
    two = split(stream, tmp_path / "two")
    assert indexes.choose_kernel(two, "mul").name == "mul"
    for name, said in (("", "several"), ("mull", "did you mean 'mul'")):
        with pytest.raises(UsageError) as caught:
            indexes.choose_kernel(two, name)
        assert said in str(caught.value)
    with pytest.raises(FactError, match="no IR"):
        indexes.choose_kernel(split("hello\n", tmp_path / "none"), "")


def test_what_a_pass_found_and_what_it_left(made: DumpIndex) -> None:
    dump = indexes.choose_dump(made, "add", "2")
    assert show.dump_text(made, dump) == texts(made)[2]
    assert show.after_pass(made, dump).number == 3
    assert "loc(" not in show.dump_text(made, dump, plain=True)
    assert show.highlighted(made, dump).plain == texts(made)[2]
    with pytest.raises(SmithError, match="output of Last is not in this dump"):
        show.after_pass(made, indexes.choose_dump(made, "add", "last"))


def test_the_overview_has_a_line_for_each_kernel(made: DumpIndex, capsys: pytest.CaptureFixture[str]) -> None:
    pass_runs.show_summary(made)
    out = capsys.readouterr().out
    assert "5 dumps" in out
    assert str(made.folder) in out.replace("\n", "")
    assert out.splitlines()[-1].startswith("next: ")
    assert f"passes.list {made.folder}" in out.replace("\n", "")
    pass_runs.show_summary(made, json=True)
    assert json.loads(capsys.readouterr().out)["schema"] == 1


PASSES = """
def TritonGPUCoalesce: Pass<"tritongpu-coalesce", "mlir::ModuleOp"> {
  let summary = "coalesce";
  let description = [{ let summary = "no"; }];
}
def Second : InterfacePass<"second", "FunctionOpInterface"> {
  let summary = "one part, "
                "and another";
}
def Third : Pass<"third"> {
  let summary = [{
     in a
     block
  }];
}
def Fourth : Pass<"fourth"> { let description = "none"; }
"""


def test_summaries_are_those_of_tablegen(tmp_path: Path) -> None:
    path = tmp_path / "include" / "triton" / "Passes.td"
    path.parent.mkdir(parents=True)
    path.write_text(PASSES)
    assert pipeline_table.requested_summaries([str(tmp_path)], requested=True) == {
        "tritongpu-coalesce": "coalesce",
        "second": "one part, and another",
        "third": "in a block",
    }
    assert pipeline_table.requested_summaries(None, requested=False) is None
    with pytest.raises(UsageError, match="--summary"):
        pipeline_table.requested_summaries(None, requested=True)
    with pytest.raises(UsageError, match="no such checkout"):
        pipeline_table.requested_summaries([str(tmp_path / "nowhere")], requested=True)


# ---------------------------------------------------------------- logs from elsewhere

STREAM = f"hello\n{banner('A', 'a')}{module(LOAD)}{banner('B', 'b')}{module(STORE)}".encode()


@pytest.mark.parametrize("packed", [STREAM, gzip.compress(STREAM), zstandard.compress(STREAM)])
def test_logs_are_read_packed_or_not(packed: bytes, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(packed)
    seen: list[int] = []
    made = import_log.read(str(log), tmp_path / "out", progress=lambda done, _: seen.append(done))
    assert b"".join(made.pieces()) == STREAM
    assert made.command == str(log)
    assert seen == [len(STREAM)]


def test_standard_input_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(STREAM)))
    assert len(import_log.read("-", tmp_path / "out").dumps) == 2


@pytest.mark.parametrize(
    "packed", [gzip.compress(STREAM)[:-20], b"\x1f\x8b rubbish", b"\x28\xb5\x2f\xfd rubbish"]
)
def test_half_a_packed_log_is_an_error(packed: bytes, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(packed)
    with pytest.raises(FactError, match="cannot read"):
        import_log.read(str(log), tmp_path / "out")
    assert indexes.read(tmp_path / "out").size <= len(STREAM)


def test_a_log_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FactError, match="cannot read"):
        import_log.read(str(tmp_path / "none"), tmp_path / "out")


def test_an_older_dump_gives_way_and_nothing_else_does(made: DumpIndex, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(STREAM)
    pipeline_table.pass_changes(made, "add")
    again = import_log.read(str(log), made.folder)
    assert sorted(path.name for path in made.folder.rglob("*")) == sorted(
        ["add", "000-a.mlir", "001-b.mlir", "index.json", "output.log"]
    )
    (again.folder / "add" / "mine.txt").write_text("mine")
    with pytest.raises(UsageError, match="do not belong to the dump"):
        import_log.read(str(log), again.folder)
    assert (again.folder / "add" / "mine.txt").read_text() == "mine"


def test_a_folder_with_something_else_is_refused(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(STREAM)
    with pytest.raises(UsageError, match="not empty"):
        import_log.read(str(log), tmp_path)
    assert log.read_bytes() == STREAM


def test_paths_of_an_index_that_lead_elsewhere_are_not_removed(tmp_path: Path) -> None:
    mine = tmp_path / "mine.txt"
    mine.write_text("mine")
    made = split(STREAM, tmp_path / "out")
    path = made.folder / indexes.FILE
    content = json.loads(path.read_text())
    content["reproducers"] = ["../mine.txt", str(mine)]
    path.write_text(json.dumps(content))
    with pytest.raises(FactError, match="cannot read this index"):
        import_log.empty(made.folder)
    assert mine.read_text() == "mine"


def test_an_index_that_is_broken(tmp_path: Path) -> None:
    with pytest.raises(FactError, match="its index is missing"):
        indexes.read(tmp_path)
    (tmp_path / indexes.FILE).write_text('{"schema": 99}')
    with pytest.raises(FactError, match="cannot read"):
        indexes.read(tmp_path)


def test_a_folder_is_no_log(made: DumpIndex, tmp_path: Path) -> None:
    with pytest.raises(FactError, match="it is a folder") as caught:
        import_log.read(str(made.folder), tmp_path / "new")
    assert "passes.list" in str(caught.value)
    assert not (tmp_path / "new").exists()


def test_a_log_from_ci_is_taken_apart_without_its_times(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = (banner("A", "a") + module(LOAD) + banner("B", "b") + module(STORE)).splitlines(keepends=True)
    log = tmp_path / "log"
    log.write_text("".join(f"2026-11-21T10:00:0{at % 10}.5Z {line}" for at, line in enumerate(lines)))
    made = import_log.read(str(log), tmp_path / "new")
    assert texts(made) == [module(LOAD), module(STORE)]
    assert [kernel.function for kernel in made.kernels] == ["add"]
    assert "2026-11-21T10:00:00.5Z" in capsys.readouterr().err


def test_a_log_without_a_dump(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"hello\n")
    with pytest.raises(SmithError, match="MLIR_ENABLE_DUMP"):
        import_log.check(import_log.read(str(tmp_path / "log"), tmp_path / "new"))


def test_a_file_that_is_gone_is_named(made: DumpIndex) -> None:
    dump = made.dumps[2]
    made.path(dump).unlink()
    tries = (
        lambda: pipeline_table.pass_changes(made, "add"),
        lambda: show.find_text(made, "add", "x"),
        lambda: show.dump_text(made, dump),
        lambda: made.text(dump),
    )
    for one in tries:
        with pytest.raises(FactError) as caught:
            one()
        assert str(made.path(dump)) in str(caught.value)
        assert "recreate the folder with `invoke passes.dump`" in str(caught.value)


def test_lines_that_end_as_on_windows_are_shown_as_lines(tmp_path: Path) -> None:
    made = split((banner("A", "a") + module(LOAD)).replace("\n", "\r\n"), tmp_path / "out")
    assert show.dump_text(made, made.dumps[0]).strip() == module(LOAD).strip()


@pytest.mark.parametrize("name", ["../outside", "..", ".", "/outside", "link"])
def test_an_index_that_names_folders_elsewhere(made: DumpIndex, name: str, tmp_path: Path) -> None:
    """An older dump's folders go when another takes its place; those that somebody's index names do not."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (made.folder / "link").symlink_to(outside)
    name = name.replace("/outside", str(outside)) if name.startswith("/") else name
    path = made.folder / indexes.FILE
    content = json.loads(path.read_text())
    content["kernels"][0]["name"] = name
    path.write_text(json.dumps(content))
    with contextlib.suppress(SmithError):
        import_log.empty(made.folder)
    assert outside.is_dir()


def test_a_full_disk_tells_where(tmp_path: Path) -> None:
    """The error of a write names no file."""
    with (
        pytest.raises(SmithError, match="cannot write the dump") as caught,
        import_log.explaining_full_disk(tmp_path),
        Path("/dev/full").open("wb", buffering=0) as full,
    ):
        full.write(b"x")
    assert (caught.value.where, caught.value.why) == (str(tmp_path), "No space left on device")
    assert "--out DIR" in caught.value.hints[0]


ELSEWHERE = ("/dev/zero", "../secret", "add/../../x", "a\0b", "\ud800", "", 5)
STRANGE = ({"number": "x"}, {"size": "x"}, {"seconds": "x"}, {"against": 99}, {"against": -1}, {"kernel": 5})


@pytest.mark.parametrize(
    ("of_dump", "change"),
    [
        *(({"path": path}, {}) for path in ELSEWHERE),
        *((change, {}) for change in STRANGE),
        *(({}, change) for change in ({"command": 5}, {"reproducers": [5]}, {"output": "/dev/zero"})),
        ({}, {"environ": 5}),
    ],
)
def test_an_index_that_somebody_made_up(
    made: DumpIndex, of_dump: dict[str, object], change: dict[str, object]
) -> None:
    content = json.loads((made.folder / indexes.FILE).read_text(encoding="utf-8")) | change
    content["dumps"][0] |= of_dump
    (made.folder / indexes.FILE).write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(FactError, match="cannot read this index"):
        indexes.read(made.folder)


@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_a_dump_that_never_ends_is_refused(made: DumpIndex, kind: str) -> None:
    place = made.path(made.dumps[-1])
    place.unlink()
    os.mkfifo(place) if kind == "pipe" else place.symlink_to("/dev/zero")
    refusal = "cannot read a file of this dump" if kind == "pipe" else "outside its folder"
    with pytest.raises(FactError, match=refusal):
        made.content(made.dumps[-1])
