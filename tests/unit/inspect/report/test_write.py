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
    made = write.make(index, tmp_path / "deep" / "report.html")
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
    page = Elements(write.make(one, tmp_path / "report.html", two).path.read_text())
    texts = [[row["before"][0] for row in side["kernels"][0]["rows"]] for side in page.data["sides"]]
    assert texts == [[0, 1], [0, 2]]
    assert [side["kernels"][0]["target"] for side in page.data["sides"]] == ["cuda:90", "cuda:80"]


def test_python_files_that_are_here_are_in_it(tmp_path: Path) -> None:
    kernel = tmp_path / "kernel.py"
    kernel.write_text("import triton\n")
    index = folder(tmp_path / "dump", {"k": [("X", f'#loc = loc("{kernel}":1:1)\n')]})
    page = Elements(write.make(index, tmp_path / "report.html").path.read_text())
    number = page.data["sources"][str(kernel)]
    assert unpacked(page.scripts["chunk-0"])[number] == b"import triton\n"


def test_a_dump_cannot_write_html(tmp_path: Path) -> None:
    harmless = folder(tmp_path / "plain", {"k": [("X", "a\n"), ("Y", "b\n")]})
    evil = folder(tmp_path / "evil", {EVIL: [(EVIL, EVIL), (EVIL, f"{EVIL}\n")]})
    expected = Elements(write.make(harmless, tmp_path / "plain.html").path.read_text())
    page = Elements(write.make(evil, tmp_path / "evil.html").path.read_text())
    assert page.tags == expected.tags
    assert page.kinds == expected.kinds
    assert page.data["sides"][0]["kernels"][0]["name"] == EVIL


def test_the_policy_allows_one_script_and_no_connection(tmp_path: Path) -> None:
    index = folder(tmp_path / "dump", {"k": [("X", "a\n")]})
    page = write.make(index, tmp_path / "report.html").path.read_text()
    match = re.search(r'Content-Security-Policy" content="([^"]+)"', page)
    assert match
    assert "default-src 'none'" in match[1]
    assert re.search(r"script-src 'sha256-[\w+/=]{44}';", match[1])
    assert "http" not in match[1]


@pytest.mark.parametrize("name", ["report.py", "report", "folder.html"])
def test_it_overwrites_nothing_but_pages(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(UsageError, match=r"suffix \.html"):
        write.check(tmp_path / name)


def test_a_missing_file_leaves_the_old_report(tmp_path: Path) -> None:
    index = folder(tmp_path / "dump", {"k": [("X", "a\n"), ("Y", "b\n")]})
    (tmp_path / "dump" / "0" / "001.mlir").unlink()
    out = tmp_path / "report.html"
    out.write_text("old")
    with pytest.raises(FactError, match="cannot read a file of this dump"):
        write.make(index, out)
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
        write.make(index, tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd"])
def test_what_was_compiled_cannot_ask_for_them_either(tmp_path: Path, name: str) -> None:
    (tmp_path / "secret").write_text("no")
    index = folder(tmp_path / "dump", {"k": [("X", "a\n")]})
    _compiled(index.folder, {"sass": name})
    with pytest.raises(FactError, match="outside its folder"):
        write.make(index, tmp_path / "report.html")


def test_what_was_compiled_is_data(tmp_path: Path) -> None:
    harmless = folder(tmp_path / "plain", {"k": [("X", "a\n")]})
    index = folder(tmp_path / "dump", {"k": [("X", "a\n")]})
    _compiled(index.folder, {"sass": "compiled/k.sass"}, word=EVIL)
    (index.folder / "compiled" / "k.sass").write_text(EVIL)
    expected = Elements(write.make(harmless, tmp_path / "plain.html").path.read_text())
    page = Elements(write.make(index, tmp_path / "report.html").path.read_text())
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
        write.make(index, tmp_path / "file" / "report.html")


def test_a_dump_without_passes_makes_no_report(tmp_path: Path) -> None:
    (tmp_path / "dump").mkdir()
    with pytest.raises(FactError, match="no passes"):
        write.make(folder(tmp_path / "dump", {}), tmp_path / "report.html")
