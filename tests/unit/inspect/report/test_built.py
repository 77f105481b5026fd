"""The script that is committed is made from the sources that are."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from tests.support import REPOSITORY
from tritonsmith.inspect import report

WEB = REPOSITORY / "web"
BUILT = Path(report.__file__).parent / "built"


@pytest.mark.parametrize("name", ["report.js", "report.css"])
def test_it_is_of_these_sources(name: str) -> None:
    sources = [WEB / one for one in ("build.mjs", "package-lock.json", "package.json")]
    sources += sorted((WEB / "src").iterdir())
    expected = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
    first = (BUILT / name).read_text(encoding="utf-8").partition("\n")[0]
    assert first == f"/*! sources: {expected} */", "npm ci && npm run build, in web/"


def test_every_library_in_it_comes_with_its_licence() -> None:
    locked = json.loads((WEB / "package-lock.json").read_text())["packages"]
    texts = (BUILT / "LICENSES.txt").read_text(encoding="utf-8")
    for name in json.loads((WEB / "package.json").read_text())["dependencies"]:
        version = locked[f"node_modules/{name}"]["version"]
        assert f"{name} {version}\n" in texts
    assert texts.count("Permission is hereby granted") == texts.count("\n" + "-" * 80 + "\n") + 1


def test_nothing_in_it_ends_the_element_that_it_stands_in() -> None:
    assert "</style" not in (BUILT / "report.css").read_text(encoding="utf-8").lower()
    for name in ("report.js", "LICENSES.txt"):
        text = (BUILT / name).read_text(encoding="utf-8").lower()
        assert "</script" not in text
        assert "<!--" not in text
