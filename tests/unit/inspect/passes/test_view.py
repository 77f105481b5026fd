"""The viewer that `passes.show DIR` opens: rows, texts, search and source, by its keys, at two sizes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from textual.geometry import Region
from textual.pilot import Pilot
from textual.widgets import Static

from tests.unit.compiler.dump.streams import HEAD, banner, module, split
from tritonsmith.compiler.dump.index import DumpIndex
from tritonsmith.core.errors import FactError
from tritonsmith.inspect import pipeline_table, show_passes
from tritonsmith.inspect.show import SourceLine
from tritonsmith.inspect.show_passes import DumpView
from tritonsmith.inspect.view_passes import LinePane, PassViewer, python_lines
from tritonsmith.ir.normalize import diff

pytestmark = pytest.mark.usefixtures("home")

SMALL, LARGE = (80, 24), (200, 50)
LOAD = "%0 = tt.load %arg0 : !tt.ptr<f32>"
AGAIN = "%1 = tt.load %arg0 : !tt.ptr<f32>"
STORE = "tt.store %arg0, %0 : !tt.ptr<f32>"
LAYOUT = "%2 = ttg.convert_layout %1 : tensor<4xf32, #blocked> -> tensor<4xf32, #blocked1>"


@pytest.fixture
def dump(tmp_path: Path) -> DumpIndex:
    """Five passes of one kernel, two of them without a change, and one pass of another kernel."""
    source = tmp_path / "add.py"
    source.write_text("".join(f"line {number}\n" for number in range(1, 10)))
    parts = [
        ("InlinerPass", "inline", module(LOAD, STORE)),
        ("CSEPass", "cse", module(LOAD, STORE)),
        ("Coalesce", "tritongpu-coalesce", module(LOAD, AGAIN, LAYOUT, STORE, head=HEAD)),
        ("CSEPass", "cse", module(LOAD, AGAIN, STORE, head=HEAD)),
        ("Last", "last", module(LOAD, AGAIN, STORE, head=HEAD)),
        ("InlinerPass", "inline", module(LOAD, kernel="other")),
    ]
    stream = "".join(banner(name, word) + text for name, word, text in parts)
    return split(stream.replace("/somewhere/add.py", str(source)), tmp_path / "out", triton="3.9.0")


def run(
    viewer: PassViewer, scenario: Callable[[Pilot[Any]], Awaitable[None]], size: tuple[int, int] = LARGE
) -> None:
    """Run the viewer without a terminal, and press its keys."""

    async def running() -> None:
        async with viewer.run_test(size=size) as pilot:
            await settled(pilot)
            await scenario(pilot)

    asyncio.run(running())


async def settled(pilot: Pilot[Any]) -> None:
    """Wait until all threads have delivered what the last key asked of them."""
    viewer = pilot.app
    assert isinstance(viewer, PassViewer)
    loop = asyncio.get_running_loop()
    for worker in (viewer._counts, viewer._texts):
        # A job that has not begun would be dropped for ours.
        while worker._jobs.qsize():
            await pilot.pause()
        done = asyncio.Event()
        worker.put(partial(loop.call_soon_threadsafe, done.set))
        await done.wait()
        await pilot.pause()


async def press(pilot: Pilot[Any], *keys: str) -> None:
    """Press keys, each after what the one before it asked for has been shown."""
    for key in keys:
        await pilot.press(key)
        # A job may lead to another one: a match in another pass, or the source of a text.
        for _ in range(3):
            await settled(pilot)


def pane(viewer: PassViewer, name: str) -> LinePane:
    return viewer.query_one(f"#{name}", LinePane)


def written(viewer: PassViewer, name: str) -> str:
    return str(viewer.query_one(f"#{name}", Static).render())


def drawn(viewer: PassViewer, name: str) -> list[str]:
    """The lines of a pane that are on the screen."""
    lines = pane(viewer, name)
    return [lines.render_line(y).text.rstrip() for y in range(lines.scrollable_content_region.height)]


def on_screen(viewer: PassViewer) -> list[str]:
    return [strip.text for strip in viewer.screen._compositor.render_strips()]


def test_the_rows_are_those_of_passes_list(dump: DumpIndex) -> None:
    view = DumpView(dump, dump.kernels[0])
    counted = pipeline_table.pass_changes(dump, "add")
    listed = pipeline_table.as_json(dump, dump.kernels[0], counted)["passes"]
    assert [row.run.dump.number for row in view.rows if row.run] == [row["number"] for row in listed]
    assert tuple(view.count().values()) == counted


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_each_pass_shows_the_diff_of_passes_diff(dump: DumpIndex, size: tuple[int, int]) -> None:
    viewer = PassViewer(dump, "add")

    async def scenario(pilot: Pilot[Any]) -> None:
        await press(pilot, "g")
        for number in range(4):
            assert viewer.place == number
            before, after = show_passes.before_and_after(dump, dump.of("add")[number])
            lines = diff.of(dump.text(before), dump.text(after), "mlir").lines
            assert viewer.shown is not None
            assert tuple(viewer.shown.lines) == (lines or ("nothing changed but locations and names",))
            await press(pilot, "j")
        assert viewer.shown is not None
        assert viewer.shown.about == "the output of Last is not in this dump"
        assert viewer.shown.lines == show_passes.printable_lines(dump.text(dump.of("add")[4]))

    run(viewer, scenario, size)


def test_it_opens_at_the_first_pass_that_changed_much(dump: DumpIndex) -> None:
    viewer = PassViewer(dump)

    async def scenario(pilot: Pilot[Any]) -> None:
        assert viewer.place == 1
        assert "tritongpu-coalesce" in drawn(viewer, "list")[2]
        await press(pilot, "n")
        assert viewer.place == 2
        await press(pilot, "n", "n")
        assert viewer.place == 4  # whether the last one changed something is unknown
        assert "no later pass changed something" in written(viewer, "status")
        await press(pilot, "p", "p")
        assert viewer.place == 1

    run(viewer, scenario)


def test_unchanged_passes_are_hidden_and_shown_again(dump: DumpIndex) -> None:
    viewer = PassViewer(dump)

    async def scenario(pilot: Pilot[Any]) -> None:
        await press(pilot, "u")
        assert [int(line.split()[0]) for line in drawn(viewer, "list") if line] == [1, 2, 4]
        await press(pilot, "u")
        assert [int(line.split()[0]) for line in drawn(viewer, "list") if line] == [0, 1, 2, 3, 4]

    run(viewer, scenario)


def test_a_search_goes_from_pass_to_pass(dump: DumpIndex) -> None:
    viewer = PassViewer(dump)

    async def scenario(pilot: Pilot[Any]) -> None:
        await pilot.press("slash", *"convert_layout")
        await press(pilot, "enter")
        assert viewer.matches == {1: (0, 1), 2: (1, 0)}
        assert "in 2 passes" in written(viewer, "status")
        assert viewer.place == 1
        assert "convert_layout" in viewer._lines()[pane(viewer, "text").cursor]
        assert drawn(viewer, "list")[1].endswith("0\u21921")
        await press(pilot, "n")
        assert viewer.place == 2
        assert viewer._lines()[pane(viewer, "text").cursor].startswith("-")
        await press(pilot, "n")
        assert "no later pass has 'convert_layout'" in written(viewer, "status")
        await press(pilot, "N")
        assert viewer.place == 1
        await press(pilot, "G", "slash", *"convert_layout", "enter")
        assert viewer.place == 1  # there is none behind the last pass
        await press(pilot, "escape", "n")
        assert (viewer.sought, viewer.place) == ("", 2)

    run(viewer, scenario)


def test_a_match_outside_of_the_diff_is_shown_in_the_text(dump: DumpIndex) -> None:
    viewer = PassViewer(dump)

    async def scenario(pilot: Pilot[Any]) -> None:
        await press(pilot, "g", "slash", *"tt.store", "enter")
        assert (viewer.place, viewer.view) == (0, "after")  # a pass without a change: its diff has no line
        assert "tt.store" in viewer._lines()[pane(viewer, "text").cursor]

    run(viewer, scenario)


def test_the_whole_text_before_and_after(dump: DumpIndex) -> None:
    viewer = PassViewer(dump)

    async def scenario(pilot: Pilot[Any]) -> None:
        assert viewer.shown is not None
        for about, number in (("the output", 2), ("the input", 1)):
            await press(pilot, "d")
            assert viewer.shown.about == about
            assert viewer.shown.lines == show_passes.printable_lines(dump.text(dump.of("add")[number]))
        await press(pilot, "d")
        assert viewer.shown.is_diff

    run(viewer, scenario)


def test_the_source_of_a_line(dump: DumpIndex, tmp_path: Path) -> None:
    viewer = PassViewer(dump)
    python_lines.cache_clear()

    async def scenario(pilot: Pilot[Any]) -> None:
        await press(pilot, "enter", "s")
        lines = viewer._lines()
        place = next(place for place, line in enumerate(lines) if line.startswith("+") and "tt.load" in line)
        await press(pilot, *"j" * place)
        assert viewer.origin == SourceLine(str(tmp_path / "add.py"), 6)
        assert written(viewer, "place") == f"{tmp_path}/add.py:6"
        assert "    6 line 6" in drawn(viewer, "source")
        assert pane(viewer, "source").cursor == 5
        await press(pilot, "s")
        assert not pane(viewer, "source").display

    run(viewer, scenario)


def test_the_editor_opens_at_the_line(
    dump: DumpIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = tmp_path / "note"
    editor = tmp_path / "editor"
    editor.write_text(f'#!/bin/sh\necho "$@" > {note}\n')
    editor.chmod(0o755)
    monkeypatch.setenv("EDITOR", str(editor))
    python_lines.cache_clear()
    viewer = PassViewer(dump)
    monkeypatch.setattr(viewer, "suspend", nullcontext)  # there is no terminal

    async def scenario(pilot: Pilot[Any]) -> None:
        place = next(place for place, line in enumerate(viewer._lines()) if "tt.load" in line)
        await press(pilot, "tab", *"j" * place, "e")

    run(viewer, scenario)
    assert note.read_text() == f"+6 {tmp_path}/add.py\n"


def test_another_kernel(dump: DumpIndex) -> None:
    viewer = PassViewer(dump)

    async def scenario(pilot: Pilot[Any]) -> None:
        assert "add" in written(viewer, "head")
        await press(pilot, "right_square_bracket")
        assert written(viewer, "head").startswith("other  (2 of 2 kernels)")
        await press(pilot, "left_square_bracket")
        assert "(1 of 2 kernels)" in written(viewer, "head")

    run(viewer, scenario)


@pytest.mark.parametrize("size", [SMALL, LARGE, (40, 12)])
def test_no_pane_covers_another(dump: DumpIndex, size: tuple[int, int]) -> None:
    viewer = PassViewer(dump)

    async def scenario(pilot: Pilot[Any]) -> None:
        await press(pilot, "s")
        regions: list[Region] = []
        for name in ("head", "list", "title", "text", "place", "source", "status"):
            region = viewer.query_one(f"#{name}").region
            assert region.area, name
            assert viewer.screen.region.contains_region(region), name
            assert not any(region.overlaps(other) for other in regions), name
            regions.append(region)

    run(viewer, scenario, size)


def test_the_hints_and_the_keys_fit_a_small_screen(dump: DumpIndex) -> None:
    viewer = PassViewer(dump)

    async def scenario(pilot: Pilot[Any]) -> None:
        assert written(viewer, "status").endswith("q quit")
        assert len(written(viewer, "status")) <= SMALL[0]
        await press(pilot, "question_mark")
        keys = viewer.screen.query_one("#keys")
        assert viewer.screen.region.contains_region(keys.region)
        assert any("quit" in line for line in on_screen(viewer))
        await press(pilot, "x")
        await press(pilot, "q")

    run(viewer, scenario, SMALL)
    assert viewer.return_code == 0


def test_ctrl_c_ends_with_130(dump: DumpIndex) -> None:
    viewer = PassViewer(dump)

    async def scenario(pilot: Pilot[Any]) -> None:
        await pilot.press("ctrl+c")

    run(viewer, scenario)
    assert viewer.return_code == 130


def test_files_that_are_gone_are_named(dump: DumpIndex) -> None:
    for entry in dump.dumps[1:]:
        dump.path(entry).unlink(missing_ok=True)
    viewer = PassViewer(dump, "add")

    async def scenario(pilot: Pilot[Any]) -> None:
        await press(pilot, "j", "n")
        assert viewer.shown is not None
        assert viewer.shown.about == "cannot read a file of this dump"
        assert any(f"where: {dump.folder}" in line for line in viewer.shown.lines)
        await press(pilot, "slash", "x", "enter")
        assert "cannot read a file of this dump" in written(viewer, "status")

    run(viewer, scenario, (200, 24))


def test_texts_that_were_damaged_are_named(dump: DumpIndex) -> None:
    for entry in dump.dumps[1:]:
        dump.path(entry).write_text("x\n", encoding="utf-8")
    viewer = PassViewer(dump, "add")

    async def scenario(pilot: Pilot[Any]) -> None:
        await press(pilot, "j", "n")
        assert viewer.shown is not None
        assert viewer.shown.about == "this file is not what passes.dump wrote"

    run(viewer, scenario, (200, 24))


def test_nothing_of_a_dump_reaches_the_terminal_unescaped(tmp_path: Path) -> None:
    evil = "[red]x[/red] \x1b]0;title\x07"
    text = module(f'"{evil}"() : () -> ()') + banner("Last", "last") + module(LOAD)
    dump = split(banner("[bold]A", "a[/]b") + text, tmp_path / "out")
    viewer = PassViewer(dump)

    async def scenario(pilot: Pilot[Any]) -> None:
        for _ in range(3):
            screen = on_screen(viewer)
            assert not any("\x1b" in line or "\x07" in line for line in screen)
            assert any("[red]x[/red] \\x1b]0;title\\x07" in line for line in screen) or viewer.view == "after"
            await press(pilot, "d")
        assert any("a[/]b" in line for line in drawn(viewer, "list"))

    run(viewer, scenario)


def test_a_kernel_without_passes_is_no_kernel(dump: DumpIndex) -> None:
    empty = DumpIndex(dump.folder, kernels=dump.kernels)
    with pytest.raises(FactError, match="this dump has no passes"):
        PassViewer(empty)


def test_each_line_of_a_normal_form_has_its_place_in_the_text() -> None:
    text = module(LOAD, AGAIN, STORE)
    lines = text.split("\n")
    places = diff.printed_lines(text, "mlir")
    assert [lines[place].strip().partition(" ")[0] for place in places if place is not None] == [
        "module", "tt.func", "%0", "%1", "tt.store", "tt.return", "}", "}",
    ]  # fmt: skip


def test_the_lines_of_a_diff_are_numbered_by_side() -> None:
    lines = ("@@ -3,3 +5,3 @@", " a", "-b", "+c", " d")
    assert list(diff.numbered(lines)) == [None, ("+", 4), ("-", 3), ("+", 5), ("+", 6)]
