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
from tests.unit.passes.report.folders import folder
from tritonsmith.kernels import example
from tritonsmith.passes import index
from tritonsmith.passes.index import Index, Kernel

SIGNATURE = "*fp16:16,*fp16:16,*fp32:16,i32:16,i32:16,i32:16,TILE_M=64,TILE_N=64,TILE_K=32"
EVIL = '</script><img src=x onerror="document.title=1"><!--<script>'
MATMUL = Path(example.__file__).parent / "examples" / "tiled_matmul.py"

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
        alone: its report.
        both: the report of both dumps.
    """

    index: Index
    alone: Path
    both: Path


@pytest.fixture(scope="module")
def dumped(with_wheel: Smith, tmp_path_factory: pytest.TempPathFactory) -> Dumped:
    root = tmp_path_factory.mktemp("passes report")
    smith = with_wheel.beside(root)
    for target in ("90", "80"):
        smith(
            "passes.dump",
            MATMUL,
            "--signature",
            SIGNATURE,
            "--target",
            f"cuda:{target}",
            "--out",
            root / target,
        )
    smith("passes.report", root / "90")
    both = root / "both.html"
    smith("passes.report", root / "90", "--against", root / "80", "--out", both)
    return Dumped(index.read(root / "90"), root / "90" / "report.html", both)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    require(chromium.found())
    with chromium.page(tmp_path_factory.mktemp("profile")) as made:
        made.size(1400, 900)
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
    assert [text.partition("@")[0] for text in texts(page, ".entry .name")] == names
    same = [dump.number for dump in dumped.index.dumps if dump.changed is False]
    assert texts(page, ".entry.same .number") == [str(number) for number in same]
    assert len(texts(page, ".timeline g.bar")) == len(names)
    assert texts(page, ".entry .time") != [""] * len(names)
    assert page.requests == [dumped.alone.as_uri()]


def test_passes_are_walked_by_keys(page: Page, dumped: Dumped) -> None:
    show(page, dumped.alone)
    (kernel,) = dumped.index.kernels
    first, second, third = [str(dump.number) for dump in dumped.index.dumps if dump.changed][:3]
    assert page.js("document.body.dataset.shown") == first
    assert press(page, "j") == second
    assert press(page, "ArrowDown") == third
    assert address(page) == f"#{kernel.name}/{third}"
    assert press(page, "k") == second
    assert press(page, "J") == str(int(second) + 1)
    assert press(page, "K") == second
    assert texts(page, ".entry[aria-selected=true] .number") == [second]


@pytest.mark.parametrize("width", [800, 1400])
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
        page.size(1400, 900)


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
    )
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
    page.js(
        "[...document.querySelectorAll('.gutter-place .cm-gutterElement')]"
        f".find(one => one.textContent === ':{line}')"
        ".dispatchEvent(new MouseEvent('mousedown', {bubbles: true}))"
    )
    page.wait("document.querySelector('section.source .marked') !== null")
    (marked,) = texts(page, "section.source .marked")
    assert marked == MATMUL.read_text().splitlines()[line - 1]
    page.js(
        "(line => { const {x, y} = line.getBoundingClientRect();"
        " line.dispatchEvent(new MouseEvent('click', {bubbles: true, clientX: x + 60, clientY: y + 5})) })"
        "(document.querySelector('section.source .marked'))"
    )
    page.wait("document.querySelector('.pane .cm-line.marked') !== null")
    assert any("tt.get_program_id y" in text for text in texts(page, ".pane .cm-line.marked"))


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
    assert texts(page, '.entry[data-id="0"] .counts b') == ["+1", "\u22123"]
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
    assert "no index of a dump" in smith("passes.report", tmp_path, code=1).error
    assert "no index of a dump" in smith("passes.report", made.folder, "--against", tmp_path, code=1).error
    assert not (made.folder / "report.html").exists()
    assert smith("passes.report", made.folder).out == f"{made.folder / 'report.html'}\n"


def test_a_failure_is_named_and_a_kernel_without_passes_is_empty(
    page: Page, with_wheel: Smith, tmp_path: Path
) -> None:
    made = folder(tmp_path / "dump", {"k": [("A", "a\n"), ("B", "b\n")]})
    failed = replace(made.kernels[0], failed="B", error="it broke <b>badly</b>")
    kernels = (
        failed,
        Kernel("empty", "empty", ""),
        Kernel("late", "late", "", failed="after B", error="ptxas"),
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
    page.wait("document.body.dataset.counted === 'three'")
    assert page.js(packed) == 1
    assert texts(page, ".pane.before .cm-line")[0] == "three" * 50
