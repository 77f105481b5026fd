from __future__ import annotations

import json
from pathlib import Path

import pytest

from tritonsmith.compiler import from_cache, targets
from tritonsmith.core.errors import FactError

NAME = "A" * 50 + "22"
METADATA = {
    "target": {"backend": "cuda", "arch": 90, "warp_size": 32},
    "num_warps": 8,
    "num_stages": 3,
    "num_ctas": 1,
    "maxnreg": 64,
    "enable_fp_fusion": False,
    "shared": 0,
}


def entry(root: Path, name: str = NAME, **files: str) -> Path:
    folder = root / name
    folder.mkdir(parents=True)
    content = {"ttir": "module {}", "ttgir": "module {}", "json": json.dumps(METADATA), **files}
    for suffix, text in content.items():
        if text:
            (folder / f"add.{suffix}").write_text(text)
    (folder / "__grp__add.json").write_text('{"child_paths": {}}')
    return folder


@pytest.fixture
def cache(home: Path) -> Path:
    return home / ".triton" / "cache"


def test_an_entry_says_what_it_was_compiled_for_and_with(cache: Path) -> None:
    folder = entry(cache)
    for text in (str(folder), NAME, NAME[:8] + NAME[8:]):
        asked = from_cache.request_of_entry(text, (), {})
        assert asked.file == folder / "add.ttir"
        assert (asked.kernel, asked.from_ir) == ("add", True)
        assert asked.targets == (targets.parse("cuda:90"),)
        assert asked.options == {"num_warps": 8, "num_stages": 3, "maxnreg": 64, "enable_fp_fusion": False}


def test_flags_win(cache: Path) -> None:
    asked = from_cache.request_of_entry(str(entry(cache)), targets.parse_all(["mi300x"]), {"num_warps": 2})
    assert asked.targets == (targets.parse("mi300x"),)
    assert asked.options["num_warps"] == 2


def test_without_ttir_the_ttgir_is_taken(cache: Path) -> None:
    assert from_cache.request_of_entry(str(entry(cache, ttir="")), (), {}).file.suffix == ".ttgir"
    with pytest.raises(FactError, match="neither ttir nor ttgir"):
        from_cache.request_of_entry(str(entry(cache, name="B" * 52, ttir="", ttgir="", cubin="x")), (), {})


def test_the_beginning_of_a_name_is_enough_if_it_is_the_only_one(cache: Path) -> None:
    folder = entry(cache)
    assert from_cache.find(NAME[:6]) == folder
    entry(cache, name="A" * 52)
    with pytest.raises(FactError, match="2 entries start with 'AAAAAA'"):
        from_cache.find("AAAAAA")
    with pytest.raises(FactError, match="no entry 'ZZZZZZ'"):
        from_cache.find("ZZZZZZ")


@pytest.mark.parametrize(
    ("files", "what"),
    [
        ({"json": "{"}, "cannot read the metadata"),
        ({"json": "[]"}, "cannot read the metadata"),
        ({"json": ""}, "cannot read the metadata"),
        ({"json": "{}"}, "does not record its target"),
    ],
)
def test_unreadable_entries(cache: Path, files: dict[str, str], what: str) -> None:
    with pytest.raises(FactError, match=what):
        from_cache.request_of_entry(str(entry(cache, **files)), (), {})


def test_what_is_no_entry_of_a_kernel(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(FactError, match="not a complete kernel entry"):
        from_cache.request_of_entry(str(tmp_path), (), {})
