"""The report's file: whole or not there, and what comes from a dump is data in it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tests.unit.inspect.report.folders import folder
from tests.unit.inspect.report.test_pack_texts import unpacked
from tritonsmith.compiler.dump.binaries import Binary
from tritonsmith.core.errors import FactError, SmithError, UsageError
from tritonsmith.inspect.report import write

EVIL = '</script><img src=x onerror="document.title=1"><!--<script>'


class Elements(HTMLParser):
    """The elements of a page, as a browser finds them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.scripts: dict[str, str] = {}
        self.kinds: list[str | None] = []
        self._script: str | None = None
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag == "script":
            self._script = dict(attrs).get("id") or ""
            self.kinds.append(dict(attrs).get("type"))

    def handle_endtag(self, tag: str) -> None:  # noqa: ARG002 - as the base class has it
        self._script = None

    def handle_data(self, data: str) -> None:
        if self._script is not None:
            self.scripts[self._script] = self.scripts.get(self._script, "") + data

    @property
    def data(self) -> dict[str, Any]:
        return json.loads(self.scripts["data"])  # type: ignore[no-any-return]


def test_the_page_has_the_pipeline_and_each_text_once(tmp_path: Path) -> None:
    index = folder(tmp_path / "dump", {"matmul": [("Inline", "a\n"), ("CSE", "b\n"), ("DCE", "b\n")]})
    made = write.write_report(index, tmp_path / "deep" / "report.html")
    page = Elements(made.path.read_text())
    (side,) = page.data["sides"]
    rows = side["kernels"][0]["rows"]
    assert [(row["name"], row["before"], row["after"]) for row in rows] == [
        ("Inline", [0, "mlir", 1, 2], [1, "mlir", 1, 2]),
        ("CSE", [1, "mlir", 1, 2], [1, "mlir", 1, 2]),
        ("DCE", [1, "mlir", 1, 2], None),
    ]
    assert unpacked(page.scripts["chunk-0"]) == [b"a\n", b"b\n"]
    assert (made.passes, made.dumped, made.size) == (3, 6, made.path.stat().st_size)


def test_two_dumps_share_what_is_equal(tmp_path: Path) -> None:
    one = folder(tmp_path / "a", {"k": [("X", "same\n"), ("Y", "left\n")]})
    two = folder(tmp_path / "b", {"k": [("X", "same\n"), ("Y", "right\n")]}, target="cuda:80")
    page = Elements(write.write_report(one, tmp_path / "report.html", two).path.read_text())
    texts = [[row["before"][0] for row in side["kernels"][0]["rows"]] for side in page.data["sides"]]
    assert texts == [[0, 1], [0, 2]]
    assert [side["kernels"][0]["target"] for side in page.data["sides"]] == ["cuda:90", "cuda:80"]


def test_python_files_that_are_here_are_in_it(tmp_path: Path) -> None:
    kernel = tmp_path / "kernel.py"
    kernel.write_text("import triton\n")
    index = folder(tmp_path / "dump", {"k": [("X", f'#loc = loc("{kernel}":1:1)\n')]})
    page = Elements(write.write_report(index, tmp_path / "report.html").path.read_text())
    number = page.data["sources"][str(kernel)]
    assert unpacked(page.scripts["chunk-0"])[number] == b"import triton\n"


def test_a_dump_cannot_write_html(tmp_path: Path) -> None:
    harmless = folder(tmp_path / "plain", {"k": [("X", "a\n"), ("Y", "b\n")]})
    evil = folder(tmp_path / "evil", {EVIL: [(EVIL, EVIL), (EVIL, f"{EVIL}\n")]})
    expected = Elements(write.write_report(harmless, tmp_path / "plain.html").path.read_text())
    page = Elements(write.write_report(evil, tmp_path / "evil.html").path.read_text())
    assert page.tags == expected.tags
    assert page.kinds == expected.kinds
    assert page.data["sides"][0]["kernels"][0]["name"] == EVIL


def test_the_policy_allows_one_script_and_no_connection(tmp_path: Path) -> None:
    index = folder(tmp_path / "dump", {"k": [("X", "a\n")]})
    page = write.write_report(index, tmp_path / "report.html").path.read_text()
    match = re.search(r'Content-Security-Policy" content="([^"]+)"', page)
    assert match
    assert "default-src 'none'" in match[1]
    assert re.search(r"script-src 'sha256-[\w+/=]{44}';", match[1])
    assert "http" not in match[1]


@pytest.mark.parametrize("name", ["report.py", "report", "folder.html"])
def test_it_overwrites_nothing_but_pages(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(UsageError, match=r"suffix \.html"):
        write.check_name(tmp_path / name)


def test_a_missing_file_leaves_the_old_report(tmp_path: Path) -> None:
    index = folder(tmp_path / "dump", {"k": [("X", "a\n"), ("Y", "b\n")]})
    (tmp_path / "dump" / "0" / "001.mlir").unlink()
    out = tmp_path / "report.html"
    out.write_text("old")
    with pytest.raises(FactError, match="cannot read a file of this dump"):
        write.write_report(index, out)
    assert out.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dump", "report.html"]


@pytest.mark.parametrize("link", [False, True])
def test_a_dump_cannot_ask_for_files_of_the_reader(tmp_path: Path, link: bool) -> None:
    (tmp_path / "secret").write_text("no")
    index = folder(tmp_path / "dump", {"k": [("X", "a\n")]})
    (dump,) = index.dumps
    if link:
        index.path(dump).unlink()
        index.path(dump).symlink_to(tmp_path / "secret")
    else:
        index = replace(index, dumps=(replace(dump, path="../secret"),))
    with pytest.raises(FactError, match="outside its folder"):
        write.write_report(index, tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd"])
def test_what_was_compiled_cannot_ask_for_them_either(tmp_path: Path, name: str) -> None:
    (tmp_path / "secret").write_text("no")
    index = folder(tmp_path / "dump", {"k": [("X", "a\n")]})
    _compiled(index.folder, {"sass": name})
    with pytest.raises(FactError, match="outside its folder"):
        write.write_report(index, tmp_path / "report.html")


def test_what_was_compiled_is_data(tmp_path: Path) -> None:
    harmless = folder(tmp_path / "plain", {"k": [("X", "a\n")]})
    index = folder(tmp_path / "dump", {"k": [("X", "a\n")]})
    _compiled(index.folder, {"sass": "compiled/k.sass"}, word=EVIL)
    (index.folder / "compiled" / "k.sass").write_text(EVIL)
    expected = Elements(write.write_report(harmless, tmp_path / "plain.html").path.read_text())
    page = Elements(write.write_report(index, tmp_path / "report.html").path.read_text())
    assert page.tags == expected.tags
    binary = page.data["sides"][0]["kernels"][0]["binary"]
    assert binary["gist"].startswith(f"{EVIL} registers")
    assert binary["texts"] == [["sass", 1, 0, len(EVIL)]]


def _compiled(folder_: Path, files: dict[str, str], word: str = "x") -> None:
    (folder_ / "compiled").mkdir()
    one = {
        "point": word,
        "target": word,
        "values": {"registers_per_thread": word, "limiter": word},
        "instructions": {word: 1},
        "notes": [word],
        "files": files,
    }
    content = {"schema": 1, "kernels": {"k": one}}
    (folder_ / "compiled" / "binaries.json").write_text(json.dumps(content))


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    index = folder(tmp_path / "dump", {"k": [("X", "a\n")]})
    (tmp_path / "file").write_text("")
    with pytest.raises(SmithError, match="cannot write the report"):
        write.write_report(index, tmp_path / "file" / "report.html")


def test_a_dump_without_passes_makes_no_report(tmp_path: Path) -> None:
    (tmp_path / "dump").mkdir()
    with pytest.raises(FactError, match="no passes"):
        write.write_report(folder(tmp_path / "dump", {}), tmp_path / "report.html")


# What the page says of a compiled kernel in one line.

NVIDIA = {
    "registers_per_thread": 255,
    "spill_store_bytes": 16,
    "spill_load_bytes": 20,
    "shared_static_bytes": 1024,
    "shared_dynamic_bytes": 32768,
    "occupancy_percent": 12.5,
    "limiter": "registers",
}
AMD = {
    "vgprs_per_lane": 128,
    "sgprs_per_wave": 40,
    "sgpr_spills": 0,
    "vgpr_spills": 3,
    "lds_bytes": 100,
    "occupancy_percent": None,
}


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            NVIDIA | {"occupancy_percent": None},
            "255 registers \u00b7 spills 16 B stored, 20 B loaded \u00b7 33 KiB shared",
        ),
        (
            NVIDIA | {"spill_store_bytes": 0, "spill_load_bytes": 0},
            "255 registers \u00b7 no spills \u00b7 33 KiB shared \u00b7 12.5 % occupancy",
        ),
        (
            NVIDIA | {"spill_store_bytes": None, "occupancy_percent": None},
            "255 registers \u00b7 spills unknown \u00b7 33 KiB shared",
        ),
        (AMD, "128 VGPRs, 40 SGPRs \u00b7 3 VGPRs, 0 SGPRs spilled \u00b7 100 B LDS"),
    ],
)
def test_a_gist_says_what_spills_and_never_guesses(values: dict[str, float | str | None], words: str) -> None:
    assert write.resources_gist(Binary("", "", values)) == words


def test_what_could_not_be_read_is_said() -> None:
    assert write.resources_gist(Binary("", "", error="no ELF")) == "resources unknown: no ELF"


def test_a_table_has_units_and_leaves_out_what_is_not_known() -> None:
    found = write.resources_table(Binary("", "", AMD))
    assert ("VGPRs", "128", "per lane") in found
    assert not any(what == "occupancy" for what, _, _ in found)


# Which Python files a text speaks of.


def test_names_are_found_in_all_languages() -> None:
    text = b"""
#loc1 = loc("/home/me/matmul.py":12:4)
!5 = !DIFile(filename: "flash.py", directory: "/home/me/kernels")
\t.file\t1 "/home/me" "softmax.py"
#loc2 = loc("rows"(#loc1))
#loc3 = loc("notes.txt":1:1)
"""
    found = write.python_files(text)
    assert found[0] == "/home/me/matmul.py"
    assert set(found) >= {"/home/me/kernels/flash.py", "/home/me/softmax.py"}
    assert not any(name.endswith(".txt") for name in found)


def test_only_python_files_that_are_here_by_their_full_name_are_read(tmp_path: Path) -> None:
    here, large = tmp_path / "kernel.py", tmp_path / "large.py"
    here.write_text("x = 1\n")
    large.write_text("#" * 2**21)
    (tmp_path / "secret").write_text("no")
    (tmp_path / "folder.py").mkdir()
    names = [here, large, tmp_path / "secret", tmp_path / "gone.py", tmp_path / "folder.py"]
    assert write.read_python([*map(str, names), "kernel.py", "\0.py"]) == {str(here): "x = 1\n"}


@pytest.mark.parametrize("written", [r"mein Code \C3\A9.py", r"mein Code \303\251.py", "mein Code é.py"])
def test_a_name_beyond_ascii_is_read_and_keeps_the_key_that_the_ir_has(tmp_path: Path, written: str) -> None:
    (tmp_path / "mein Code é.py").write_text("x = 1\n")
    (name,) = write.python_files(f'#loc = loc("{tmp_path}/{written}":1:1)'.encode())
    assert write.read_python([name]) == {f"{tmp_path}/{written}": "x = 1\n"}
