"""`passes.report`, opened in a real Chromium."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.integration import chromium
from tests.integration.chromium import Page
from tests.integration.harness import Smith
from tests.support import require
from tests.unit.inspect.report.folders import folder
from tritonsmith.compiler import up
from tritonsmith.compiler.dump import index
from tritonsmith.compiler.dump.index import DumpedKernel, DumpIndex
from tritonsmith.inspect import pipeline_table
from tritonsmith.inspect.show_passes import find_text

SIGNATURE = "*fp16:16,*fp16:16,*fp32:16,i32:16,i32:16,i32:16,TILE_M=64,TILE_N=64,TILE_K=32"
EVIL = '</script><img src=x onerror="document.title=1"><!--<script>'
WIDE = (1700, 900)  # both texts fit side by side
MATMUL = Path(up.__file__).parent / "examples" / "tiled_matmul.py"

# Each value is renamed, one line goes, one operand changes; the layout has another number; places move.
BEFORE = """\
#blocked = #ttg.blocked<{order = [0]}>
#blocked1 = #ttg.blocked<{order = [1, 0]}>
#loc = loc("/nowhere/kernel.py":1:1)
#loc1 = loc("/nowhere/kernel.py":2:1)
module {
  tt.func @k(%arg0: i32 loc("x"(#loc))) {
    %0 = arith.constant 1 : i32 loc(#loc1)
    %1 = arith.addi %arg0, %arg0 : tensor<4xi32, #blocked1> loc(#loc1)
    %2 = arith.muli %1, %arg0 : tensor<4xi32, #blocked1> loc(#loc1)
    %3 = arith.subi %2, %1 : tensor<4xi32, #blocked1> loc(#loc1)
    tt.return loc(#loc)
  }
}
"""
AFTER = """\
#blocked = #ttg.blocked<{order = [1, 0]}>
#loc = loc("/nowhere/kernel.py":9:1)
module {
  tt.func @k(%arg0: i32 loc("x"(#loc))) {
    %0 = arith.addi %arg0, %arg0 : tensor<4xi32, #blocked> loc(#loc)
    %1 = arith.muli %0, %arg0 : tensor<4xi32, #blocked> loc(#loc)
    %2 = arith.subi %0, %1 : tensor<4xi32, #blocked> loc(#loc)
    tt.return loc(#loc)
  }
}
"""
RELOCATED = AFTER.replace(":9:1", ":7:7")


@dataclass(frozen=True)
class Dumped:
    """A matrix product for two GPUs.

    Attributes:
        index: of the dump for the first.
        said: what `passes.dump` said of it.
        alone: its report.
        both: the report of both dumps.
    """

    index: DumpIndex
    said: str
    alone: Path
    both: Path


@pytest.fixture(scope="module")
def dumped(with_wheel: Smith, tmp_path_factory: pytest.TempPathFactory) -> Dumped:
    root = tmp_path_factory.mktemp("passes report")
    smith = with_wheel.beside(root)
    said = {}
    for target, flags in {"90": ["--backend"], "80": []}.items():
        where: list[str | Path] = ["--target", f"cuda:{target}", *flags, "--out", root / target]
        said[target] = smith("passes.dump", MATMUL, "--signature", SIGNATURE, *where).out
    smith("passes.report", root / "90")
    both = root / "both.html"
    smith("passes.report", root / "90", "--against", root / "80", "--out", both)
    return Dumped(index.read(root / "90"), said["90"], root / "90" / "report.html", both)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    require(chromium.found())
    with chromium.page(tmp_path_factory.mktemp("profile")) as made:
        made.size(*WIDE)
        yield made


@pytest.fixture
def page(browser: Page) -> Iterator[Page]:
    """A tab; what a test left in it is no news for the next one, and no test may leave an error."""
    browser.errors.clear()
    browser.prefer("light")
    yield browser
    browser.js("localStorage.clear()")
    assert browser.errors == []


def texts(page: Page, selector: str) -> list[str]:
    found: list[str] = page.js(f"[...document.querySelectorAll({selector!r})].map(one => one.textContent)")
    return found


def address(page: Page) -> str:
    return str(page.js("decodeURIComponent(location.hash)"))


def press(page: Page, key: str) -> str:
    """Press a key that leads to another pass; its number."""
    before = page.js("document.body.dataset.shown")
    page.key(key)
    page.wait(f"document.body.dataset.shown !== {json.dumps(before)}")
    return str(page.js("document.body.dataset.shown"))


def show(page: Page, path: Path, fragment: str = "") -> None:
    """Open a report, and wait until all is counted."""
    page.open(path, fragment)
    page.wait("document.body.dataset.counted !== undefined")


def test_it_shows_the_pipeline_and_asks_the_network_for_nothing(page: Page, dumped: Dumped) -> None:
    show(page, dumped.alone)
    (kernel,) = dumped.index.kernels
    names = [dump.argument or dump.name for dump in dumped.index.of(kernel.name)]
    assert "SoftwarePipeliner: LowerLoops" in names
    names.append("SASS")
    assert [text.partition("@")[0] for text in texts(page, ".entry .name")] == names
    same = [dump.number for dump in dumped.index.dumps if dump.changed is False]
    assert texts(page, ".entry.same .number") == [str(number) for number in same]
    assert len(texts(page, ".timeline g.bar")) == len(names) - 1
    assert texts(page, ".entry .time") != [""] * len(names)
    assert page.requests == [dumped.alone.as_uri()]


def test_its_numbers_are_those_of_the_other_tasks(page: Page, dumped: Dumped, with_wheel: Smith) -> None:
    """One definition of a pass, and of a change, for passes.dump, passes.list, passes.find and the page."""
    folder_ = dumped.index.folder
    (kernel,) = dumped.index.kernels
    listed = pipeline_table.as_json(
        dumped.index, kernel, pipeline_table.pass_changes(dumped.index, kernel.name)
    )
    totals = listed["totals"]
    dumps = len(dumped.index.dumps)
    # Of the dumps two were printed while a pass ran, and one is PTX.
    expected = {
        "passes": dumps - 3,
        "changed": sum(row["changed"] is True and not row["inside"] for row in listed["passes"]),
        "unknown": 1,  # the last one: nothing was printed after it
        "dumps": dumps,
    }
    assert totals == expected
    words = f"{totals['passes']} passes, {totals['changed']} changed something (1 may have); {dumps} dumps"
    assert words in with_wheel("passes.list", folder_).out
    row = next(line.split() for line in dumped.said.splitlines() if "tiled_matmul" in line.split())
    assert row[2:5] == [str(totals[name]) for name in ("passes", "changed", "dumps")]

    show(page, dumped.alone)
    assert texts(page, ".summary") == [
        f"{totals['passes']} passes, {totals['changed']} changed; {dumps} dumps"
    ]
    figures = {
        str(row["number"]): [f"+{row['added']}"] * bool(row["added"])
        + [f"\u2212{row['removed']}"] * bool(row["removed"])
        + ["\u00b10"] * (not row["added"] and not row["removed"])
        for row in listed["passes"]
        if row["changed"]
    }
    shown = page.js(
        "Object.fromEntries([...document.querySelectorAll('.entry')].map(one => [one.dataset.id,"
        " [...one.querySelectorAll('.counts b')].map(figure => figure.textContent)]))"
    )
    assert {number: found for number, found in shown.items() if found} == figures

    for text in ("convert_layout", "loc", "tiled_matmul", "tt.func public", "no such text"):
        page.key("/")
        page.js("document.querySelector('input.search').value = ''")
        page.type(text)
        page.wait(f"document.body.dataset.searched === {json.dumps(text)}")
        found = find_text(dumped.index, "tiled_matmul", text)
        assert texts(page, ".found span") == [f"in {found.dumps or 'none'} of {found.of} dumps"], text
        assert found.of == dumps
    page.key("Escape")


def test_it_opens_at_the_first_pass_that_changed_much(page: Page, with_wheel: Smith, tmp_path: Path) -> None:
    """Not at one of a function that the kernel calls, nor at one that changed two lines of fifty."""
    lines = [f"op{number}" for number in range(50)]
    two, half = "\n".join([*lines[2:], "a", "b"]), "\n".join(lines[:25])
    made = folder(
        tmp_path / "dump",
        {"k": [("A", "\n".join(lines)), ("B", two), ("C", "\n".join(lines[:4])), ("D", half), ("E", "x")]},
    )
    helper = [replace(one, symbol="helper") if one.name == "B" else one for one in made.dumps]
    (made.folder / index.FILE).write_text(replace(made, dumps=tuple(helper)).render())
    with_wheel.beside(tmp_path)("passes.report", made.folder)
    show(page, made.folder / "report.html")
    assert page.js("document.body.dataset.shown") == "2"


@pytest.mark.parametrize("width", [900, 1280, 1920])
def test_figures_lie_on_nothing(page: Page, with_wheel: Smith, tmp_path: Path, width: int) -> None:
    many = "\n".join(f"line{number}.x" for number in range(23_456))
    passes = [("A" * 40, "a"), ("B" * 40, many), ("C", f"{many[::-1]}"), ("D", "end")]
    made = folder(tmp_path / "dump", {"k": passes})
    slow = [replace(one, seconds=123.4) for one in made.dumps]
    (made.folder / index.FILE).write_text(replace(made, dumps=tuple(slow)).render())
    with_wheel.beside(tmp_path)("passes.report", made.folder)
    page.size(width, 800)
    try:
        show(page, made.folder / "report.html")
        counts = texts(page, ".entry .counts")
        assert counts[1] == "+23456\u221223456"
        boxes = page.js(
            "[...document.querySelectorAll('.entry')].map(one => ['.name', '.counts', '.time']"
            ".map(part => one.querySelector(part)).map(part => { const range = document.createRange();"
            " range.selectNodeContents(part); const text = range.getBoundingClientRect();"
            " const own = part.getBoundingClientRect();"
            " const cut = getComputedStyle(part).overflow === 'hidden';"
            " return cut ? [own.left, own.right] : [text.left, text.right]; }))"
        )
        for name, count, time in boxes[:3]:
            assert name[1] <= count[0]
            assert count[1] <= time[0] or time == [0, 0]  # hidden where there is no room
    finally:
        page.size(*WIDE)


def test_the_width_chooses_the_view(page: Page, dumped: Dumped) -> None:
    wrapped = "document.querySelector('.cm-content').classList.contains('cm-lineWrapping')"
    number = next(dump.number for dump in dumped.index.dumps if dump.argument == "tritongpu-coalesce")
    show(page, dumped.alone, f"#tiled_matmul/{number}")
    assert len(texts(page, ".pane")) == 2
    assert not page.js(wrapped)
    try:
        page.size(1280, 800)
        page.wait("document.querySelectorAll('.pane').length === 1")
        assert page.js(wrapped)
        scroller = "document.querySelector('.cm-scroller')"
        assert page.js(f"{scroller}.scrollWidth === {scroller}.clientWidth")
        page.key("w")
        page.wait(f"!{wrapped}")
        page.key("s")  # the reader knows better
        page.wait("document.querySelectorAll('.pane').length === 2")
        page.size(*WIDE)
        page.size(900, 800)
        assert len(texts(page, ".pane")) == 2
    finally:
        page.size(*WIDE)


def test_a_search_marks_all_matches_and_goes_through_them(
    page: Page, with_wheel: Smith, tmp_path: Path
) -> None:
    lines = [f"line{number}" for number in range(300)]
    lines[3], lines[200] = "needle and needle", "a needle"  # the second one is folded
    one, two = "\n".join(lines), "\n".join([*lines, "more"])
    folder(tmp_path / "dump", {"k": [("A", one), ("B", two), ("C", two), ("D", "last needle"), ("E", "end")]})
    with_wheel.beside(tmp_path)("passes.report", tmp_path / "dump")
    show(page, tmp_path / "dump" / "report.html", "#k/0")
    page.key("/")
    page.type("needle")
    page.wait("document.body.dataset.searched === 'needle'")
    assert texts(page, ".matches span") == ["\u2013 of 3 here"]
    seen: list[str] = []
    for key in ("Enter", "Enter", "Enter"):
        page.key(key)
        page.wait(f"document.querySelector('.matches span').textContent === '{len(seen) + 1} of 3 here'")
        page.wait("document.querySelectorAll('.pane.after .match.current').length === 1")
        seen.append(page.js("document.querySelector('.match.current').closest('.cm-line').textContent"))
    assert seen == ["needle and needle", "needle and needle", "a needle"]
    page.js("document.activeElement.blur()")
    page.key("N")
    page.wait("document.querySelector('.matches span').textContent === '2 of 3 here'")
    assert len(texts(page, ".ruler .hit")) == 2
    page.key("n")
    page.key("n")  # none after it: on to the next pass that has any
    page.wait("document.body.dataset.shown === '1'")
    page.wait("document.querySelector('.matches span').textContent === '1 of 3 here'")
    page.key("N")  # and back, to the last one there
    page.wait("document.body.dataset.shown === '0'")
    page.wait("document.querySelector('.matches span').textContent === '3 of 3 here'")
    page.key("Escape")
    page.wait("document.querySelectorAll('.match').length === 0")
    assert page.js("document.querySelector('.matches').hidden")


def test_the_source_opens_at_the_kernel(page: Page, with_wheel: Smith, tmp_path: Path) -> None:
    file = tmp_path / "kernel.py"
    licence = ["# Of the licence a line"] * 120
    file.write_text(
        "\n".join([*licence, "@triton.jit", "def helper():", *licence, "@triton.jit", "def k(x):"])
        + "\n" * 90
    )
    text = BEFORE.replace("/nowhere/kernel.py", str(file))
    folder(tmp_path / "dump", {"k": [("A", text), ("B", text.replace("addi", "muli"))]})
    with_wheel.beside(tmp_path)("passes.report", tmp_path / "dump")
    show(page, tmp_path / "dump" / "report.html", "#k/0")
    page.key("p")
    page.wait("document.querySelector('section.source .cm-line') !== null")
    page.wait(
        "(() => { const {top} = document.querySelector('section.source .body').getBoundingClientRect();"
        " const line = [...document.querySelectorAll('section.source .cm-line')]"
        ".find(one => one.getBoundingClientRect().bottom > top + 5);"
        " return line?.textContent === '@triton.jit' && line.nextSibling.textContent === 'def k(x):' })()"
    )


def test_the_compiled_kernel_is_on_the_page(page: Page, dumped: Dumped) -> None:
    kept = json.loads((dumped.index.folder / "compiled" / "binaries.json").read_text())
    binary = kept["kernels"]["tiled_matmul"]
    values = binary["values"]
    show(page, dumped.alone)
    (gist,) = texts(page, "nav .takes")
    assert gist.startswith(f"{values['registers_per_thread']} registers \u00b7 no spills \u00b7 ")
    page.js("document.querySelector('nav .takes a').click()")
    page.wait("document.body.dataset.shown === 'sass'")
    assert texts(page, ".diff .title b") == ["SASS"]
    assert f"registers {values['registers_per_thread']} per thread" in texts(page, ".diff .takes span")
    assert f"all {binary['instructions']['all']}" in texts(page, ".diff .takes span")
    code = [text.split() for text in texts(page, ".pane .cm-line")]
    assert code[0] == ["tiled_matmul:"]
    assert all(line[-1] == ";" for line in code[1:])
    sass = (dumped.index.folder / binary["files"]["sass"]).read_text()
    assert " ".join(code[1]) in " ".join(sass.split())
    assert texts(page, ".gutter-place .cm-gutterElement")[3].startswith(":")
    page.key("/")
    page.type(code[1][0])
    page.wait(f"document.body.dataset.searched === {json.dumps(code[1][0])}")
    assert texts(page, ".match")
    page.key("Escape")


def test_a_log_has_no_machine_code_and_the_page_says_what_to_run(
    page: Page, dumped: Dumped, with_wheel: Smith, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"".join(dumped.index.pieces()))
    smith = with_wheel.beside(tmp_path)
    smith("passes.import", log, "--out", tmp_path / "dump")
    smith("passes.report", tmp_path / "dump")
    show(page, tmp_path / "dump" / "report.html")
    assert texts(page, "nav .takes") == [
        "no machine code: logs do not contain it; passes.dump compiles the kernel and keeps it"
    ]
    assert texts(page, '.entry[data-stage="compiled"]') == []


def test_passes_are_walked_by_keys(page: Page, dumped: Dumped) -> None:
    (kernel,) = dumped.index.kernels
    begin = next(dump.number for dump in dumped.index.dumps if dump.changed)
    show(page, dumped.alone, f"#{kernel.name}/{begin}")
    first, second, third = [str(dump.number) for dump in dumped.index.dumps if dump.changed][:3]
    assert page.js("document.body.dataset.shown") == first
    assert press(page, "j") == second
    assert press(page, "ArrowDown") == third
    assert address(page) == f"#{kernel.name}/{third}"
    assert press(page, "k") == second
    assert press(page, "J") == str(int(second) + 1)
    assert press(page, "K") == second
    assert texts(page, ".entry[aria-selected=true] .number") == [second]


@pytest.mark.parametrize("width", [390, 800, 900, 1280, 1400])
def test_all_of_it_is_on_a_small_screen(page: Page, dumped: Dumped, width: int) -> None:
    page.size(width, 900)
    try:
        show(page, dumped.both)
        edges = page.js(
            "[...document.querySelectorAll('header *')].map(one => one.getBoundingClientRect().right)"
        )
        assert max(edges) <= width
        assert page.js("document.documentElement.scrollWidth") == width
        assert page.js("document.querySelector('.texts').clientWidth") > width / 2
    finally:
        page.size(*WIDE)


def test_an_address_leads_to_a_pass(page: Page, dumped: Dumped) -> None:
    number = next(dump.number for dump in dumped.index.dumps if dump.argument == "tritongpu-coalesce")
    show(page, dumped.alone, f"#tiled_matmul/{number}")
    assert texts(page, ".diff .title b")[0] == "tritongpu-coalesce"
    assert any("ttg.blocked" in line for line in texts(page, ".pane.after .cm-line.added"))


def test_the_view_is_chosen_by_keys_and_remembered(page: Page, dumped: Dumped) -> None:
    number = next(dump.number for dump in dumped.index.dumps if dump.argument == "tritongpu-coalesce")
    show(page, dumped.alone, f"#tiled_matmul/{number}")
    assert len(texts(page, ".cm-editor")) == 2
    folds = len(texts(page, ".pane.after .fold"))
    assert folds > 0
    page.key("u")
    page.wait("document.querySelectorAll('.cm-editor').length === 1")
    assert {"+", "\u2212"} <= set(texts(page, ".gutter-sign .cm-gutterElement"))
    page.key("f")
    page.wait("document.querySelectorAll('.fold').length === 0")
    assert not any("loc(" in line for line in texts(page, ".cm-line"))
    page.key("r")
    page.wait("[...document.querySelectorAll('.cm-line')].some(line => line.textContent.includes('loc('))")
    page.key("h")
    assert page.js("getComputedStyle(document.querySelector('.entry.same')).display") == "none"
    show(page, dumped.alone)
    assert len(texts(page, ".cm-editor")) == 1
    page.key("u")  # chosen again: as the width says
    page.wait("document.querySelectorAll('.cm-editor').length === 2")
    page.key("?")
    assert page.js("document.querySelector('dialog.help').open")


def test_a_search_says_where_a_text_was_born_and_where_it_died(page: Page, dumped: Dumped) -> None:
    show(page, dumped.alone)
    page.key("/")
    page.type("convert_layout")
    page.wait("document.body.dataset.searched === 'convert_layout'")
    dumps = dumped.index.dumps
    having = [dumped.index.path(dump).read_text().count("convert_layout") for dump in dumps]
    born = next(place for place, count in enumerate(having) if count) - 1
    died = max(place for place, count in enumerate(having) if count)
    assert f"born in {born}" in texts(page, ".found a")
    assert f"gone after {died}" in texts(page, ".found a")
    assert texts(page, f'.entry[data-id="{born}"] .hits') == [f"0 \u2192 {having[born + 1]}"]
    without = len(texts(page, ".entry.without"))
    assert without == sum(
        not (here or there) for here, there in zip(having, [*having[1:], having[-1]], strict=True)
    ) + len(["SASS"])
    page.key("Enter")  # nothing in this pass, so the next one that has it
    page.wait("document.querySelectorAll('.cm-line .match').length > 0")
    assert set(texts(page, ".cm-line .match")) == {"convert_layout"}
    page.key("Escape")
    page.wait("document.querySelectorAll('.entry.without').length === 0")


def test_a_line_of_ir_leads_to_its_line_of_python_and_back(page: Page, dumped: Dumped) -> None:
    show(page, dumped.alone, "#tiled_matmul/0")
    line = next(
        number for number, text in enumerate(MATMUL.read_text().splitlines(), 1) if "tl.program_id(1)" in text
    )
    press = (  # again at each look, too; and the page may still mark the line that it opened with
        "[...document.querySelectorAll('.gutter-place .cm-gutterElement')]"
        f".find(one => one.textContent === ':{line}')"
        "?.dispatchEvent(new MouseEvent('mousedown', {bubbles: true}))"
    )
    marked_line = "document.querySelector('section.source .marked')?.textContent.includes('program_id(1)')"
    page.wait(f"({press}, {marked_line})")
    (marked,) = texts(page, "section.source .marked")
    assert marked == MATMUL.read_text().splitlines()[line - 1]
    click = (  # again at each look: on a busy machine the lines move after they are drawn
        "(line => { const {x, y} = line.getBoundingClientRect();"
        " line.dispatchEvent(new MouseEvent('click', {bubbles: true, clientX: x + 60, clientY: y + 5})) })"
        "(document.querySelector('section.source .marked'))"
    )
    marked_ir = "[...document.querySelectorAll('.pane .cm-line.marked')]"
    page.wait(f"{click}, {marked_ir}.some(one => one.textContent.includes('tt.get_program_id y'))")


def test_two_dumps_part_where_the_target_comes_in(page: Page, dumped: Dumped) -> None:
    show(page, dumped.both, "#tiled_matmul/0/against")
    page.wait("document.querySelector('.summary a') !== null")
    (parting,) = texts(page, ".summary a")
    assert parting.endswith("convert-triton-to-tritongpu")
    assert press(page, "x") == parting.split()[0]
    (removed,) = texts(page, ".pane.before .cm-line.removed")
    (added,) = texts(page, ".pane.after .cm-line.added")
    assert removed.replace("cuda:90", "cuda:80") == added
    assert [text.rpartition(" ")[2] for text in texts(page, ".diff .sides span")] == ["cuda:90", "cuda:80"]
    page.key("c")
    page.wait("document.querySelector('.diff .sides') === null")
    assert "/against" not in address(page)


def test_it_is_light_or_dark_as_the_system_says_or_the_reader(page: Page, dumped: Dumped) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    page.prefer("dark")
    show(page, dumped.alone)
    dark = page.js(background)
    page.prefer("light")
    page.wait(f"{background} !== {json.dumps(dark)}")
    page.key("t")
    assert page.js(background) == dark
    show(page, dumped.alone)
    assert page.js(background) == dark


def test_only_real_changes_count(page: Page, with_wheel: Smith, tmp_path: Path) -> None:
    folder(tmp_path / "dump", {"k": [("A", BEFORE), ("B", AFTER), ("C", RELOCATED), ("D", RELOCATED)]})
    with_wheel.beside(tmp_path)("passes.report", tmp_path / "dump")
    show(page, tmp_path / "dump" / "report.html", "#k/0")
    assert texts(page, '.entry[data-id="0"] .counts b') == ["\u22122"]  # as passes.list
    assert "highlighted: +1 \u22123" in texts(page, ".diff .says")[0]
    assert [text.strip() for text in texts(page, ".pane.before .cm-line.removed")] == [
        "#blocked = #ttg.blocked<{order = [0]}>",
        "%0 = arith.constant 1 : i32",
        "%3 = arith.subi %2, %1 : tensor<4xi32, #blocked1>",
    ]
    assert texts(page, ".entry.same .name") == ["b", "c"]  # one moves places only, one does nothing
    page.key("r")
    page.wait("document.querySelectorAll('.pane.before .cm-line.removed').length > 6")


def test_what_a_dump_says_is_text_on_the_page(page: Page, with_wheel: Smith, tmp_path: Path) -> None:
    evil = folder(tmp_path / "dump", {EVIL: [(EVIL, EVIL), (EVIL, f'{EVIL}\n#loc = loc("{EVIL}.py":1:1)\n')]})
    with_wheel.beside(tmp_path)("passes.report", evil.folder, "--against", evil.folder)
    show(page, evil.folder / "report.html")
    assert page.js("document.querySelectorAll('img').length") == 0
    assert EVIL in page.js("document.querySelector('select.kernel').textContent")
    assert EVIL in "".join(texts(page, ".cm-line"))
    page.key("/")
    page.type("<img")
    page.wait("document.body.dataset.searched === '<img'")
    assert set(texts(page, ".match")) == {"<img"}
    assert page.js("document.title") != "1"
    assert len(page.requests) == 1


def test_what_cannot_be_a_report_is_refused(with_wheel: Smith, tmp_path: Path) -> None:
    smith = with_wheel.beside(tmp_path)
    made = folder(tmp_path / "dump", {"k": [("A", "a\n"), ("B", "b\n")]})
    kernel = tmp_path / "kernel.py"
    kernel.write_text("import triton\n")
    assert "suffix .html" in smith("passes.report", made.folder, "--out", kernel, code=2).error
    assert kernel.read_text() == "import triton\n"
    assert "is not a dump" in smith("passes.report", tmp_path, code=1).error
    assert "is not a dump" in smith("passes.report", made.folder, "--against", tmp_path, code=1).error
    assert not (made.folder / "report.html").exists()
    assert smith("passes.report", made.folder).out == f"{made.folder / 'report.html'}\n"


def test_a_failure_is_named_and_a_kernel_without_passes_is_empty(
    page: Page, with_wheel: Smith, tmp_path: Path
) -> None:
    made = folder(tmp_path / "dump", {"k": [("A", "a\n"), ("B", "b\n")]})
    failed = replace(made.kernels[0], failed="B", error="it broke <b>badly</b>")
    kernels = (
        failed,
        DumpedKernel("empty", "empty", ""),
        DumpedKernel("late", "late", "", failed="after B", error="ptxas"),
    )
    (made.folder / index.FILE).write_text(replace(made, kernels=kernels).render())
    with_wheel.beside(tmp_path)("passes.report", made.folder)
    show(page, made.folder / "report.html", "#k/1")
    assert texts(page, ".summary .failed") == [" failed in B"]
    assert texts(page, ".entry.failed .name") == ["b"]
    assert "it broke <b>badly</b>" in texts(page, ".diff .says")[0]
    page.js("location.hash = '#empty'")
    page.wait("document.querySelectorAll('.entry').length === 0")
    assert texts(page, ".cm-line") == []
    page.js("location.hash = '#late'")
    page.wait("document.querySelector('.summary .failed')?.textContent === ' failed after B'")
    page.key("j")
    page.key("u")


def test_kernels_are_unpacked_when_they_are_looked_at(page: Page, with_wheel: Smith, tmp_path: Path) -> None:
    long = {name: [("A", f"{name * 50}\n" * 20_000), ("B", "end\n" * 10)] for name in ("one", "two", "three")}
    folder(tmp_path / "dump", long)
    with_wheel.beside(tmp_path)("passes.report", tmp_path / "dump")
    show(page, tmp_path / "dump" / "report.html")
    packed = "document.querySelectorAll('[id^=chunk]').length"
    assert page.js(packed) == 2
    page.js("location.hash = '#three/0'")
    page.wait(f"document.querySelector('.pane.before .cm-line').textContent === '{'three' * 50}'")
    assert page.js(packed) == 1
