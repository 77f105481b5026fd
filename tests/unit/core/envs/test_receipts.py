from __future__ import annotations

import json
from pathlib import Path

import pytest

from tritonsmith import __version__
from tritonsmith.core.envs import receipts
from tritonsmith.facts.tools import Tool


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "receipt.json"
    path.write_text(
        receipts.render("up", {"prefix": Path("/x"), "targets": ("a", "b"), "seconds": {"p": 1.5}})
    )
    receipt = receipts.read(path)
    assert receipt is not None
    assert receipt.pop("finished")[:2] == "20"
    assert receipt == {
        "schema": 1,
        "task": "up",
        "tritonsmith": __version__,
        "prefix": "/x",
        "targets": ["a", "b"],
        "seconds": {"p": 1.5},
    }


def test_facts_become_tables() -> None:
    tool = Tool("clang++", Path("/usr/bin/clang++"), "19.1.7")
    seen = json.loads(receipts.render("build-triton", {"compiler": tool, "linker": None}))
    assert seen["compiler"] == {"name": "clang++", "path": "/usr/bin/clang++", "version": "19.1.7"}
    assert seen["linker"] is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"schema"',
        b"{}",
        json.dumps({"schema": 2}).encode(),
        b"\xff\xfe",
        pytest.param(receipts.render("up", {}).encode()[:-10], id="cut off"),  # its time must be in no name
    ],
)
def test_a_corrupted_receipt_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "receipt.json").write_bytes(content)
    assert receipts.read(tmp_path / "receipt.json") is None


def test_no_receipt_is_none(tmp_path: Path) -> None:
    assert receipts.read(tmp_path / "receipt.json") is None
    assert receipts.read(tmp_path) is None
    (tmp_path / "file").touch()
    assert receipts.read(tmp_path / "file" / "receipt.json") is None
