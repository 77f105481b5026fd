"""The page of many kernels by many Tritons in a real Chromium, and one of real compiles."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.integration import chromium
from tests.integration.harness import Smith
from tests.support import require
from tests.unit.lab.compare.test_site import EVIL, MORE, OK, ROWS, content
from tritonsmith.compiler import up
from tritonsmith.compiler.tritons import Triton
from tritonsmith.lab.compare import site
from tritonsmith.lab.compare.site import SiteRow

NAMES = "[...document.querySelectorAll('.site > tbody > tr .name button')].map(one => one.textContent)"
SUMMARY = "document.getElementById('summary').textContent"
DETAILS = "document.querySelector('tr.details')?.innerText || ''"


def choose(id_: str, value: str, event: str = "change") -> str:
    """What a person does who picks or types something."""
    return (
        f"(() => {{ const field = document.getElementById('{id_}'); field.value = {json.dumps(value)}; "
        f"field.dispatchEvent(new Event('{event}', {{bubbles: true}})); }})()"
    )


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """A page of 250 kernels by three Tritons."""
    tritons = [Triton(version, version=version) for version in ("3.6.0", "3.7.1", "3.9.0")]
    same = [SiteRow(f"same_{n}", "", "pack", "cuda:90:32", (OK,), (0, 0, 0), (1.0,) * 3) for n in range(248)]
    back = SiteRow("back", "", "", "cuda:90:32", (OK, MORE), (0, 1, 0), (1.0, None, 1.0), ROWS[1].findings)
    rows = [*same, back, *(SiteRow(**{**vars(row), "at": (row.at[0], *row.at)}) for row in ROWS[1:])]
    return site.write(content(tuple(rows), *tritons), tmp_path / "site")


def test_the_page(many: Path, tmp_path: Path) -> None:
    require(chromium.found())
    with chromium.page(tmp_path / "profile") as page:
        page.open(many)
        # The worst comes first, and a name that looks like HTML is a name.
        assert page.js(NAMES)[0] == EVIL
        assert len(page.js(NAMES)) == 100
        assert page.js(SUMMARY).startswith("3.6.0 → 3.9.0: 1 finding in 1 compile (spills more 1); 1 changed")
        page.js("document.getElementById('more').click()")
        assert len(page.js(NAMES)) == 200
        page.js(choose("search", "SAME_24", "input"))
        assert page.js(NAMES) == [f"same_{n}" for n in (24, *range(240, 248))]
        page.js(choose("search", "", "input"))
        # Between two others, another kernel is worse as well.
        page.js(choose("to", "1"))
        page.js(choose("show", "findings"))
        assert page.js(NAMES) == ["back"]
        assert "spills more: spills 0 -> 8" in page.js("document.querySelector('.changes').innerText")
        page.js("document.querySelector('.name button').click()")
        assert "invoke compare kernels.toml:back --from 3.6.0 --to 3.7.1 --target cuda:90:32" in page.js(
            DETAILS
        )
        address = page.js("location.hash")
        assert page.requests == [many.as_uri()]
        assert page.errors == []
        # Whoever gets the link sees the same.
        page.open(many, address)
        assert page.js(NAMES) == ["back"]
        assert "3.7.1" in page.js(DETAILS)
        page.open(many, "#target=hip:gfx942:64&metric=no+such")
        assert page.js(NAMES) == ["lost"]
        assert page.js("document.querySelector('.line .cross') !== null")
        page.key("/")
        page.type("fou")
        assert page.js("document.getElementById('search').value") == "fou"
        assert page.js(NAMES) == []
        assert page.errors == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_small_screen_shows_all_of_it(many: Path, tmp_path: Path, scheme: str) -> None:
    require(chromium.found())
    with chromium.page(tmp_path / "profile") as page:
        page.size(390, 844)
        page.prefer(scheme)
        page.open(many, "#open=back")
        assert page.js("document.documentElement.scrollWidth") == 390
        assert page.js("document.querySelector('tr.details') !== null")
        back = page.js("getComputedStyle(document.body).backgroundColor")
        assert back == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(20, 24, 29)")


EXAMPLE = Path(up.__file__).parent / "examples" / "tiled_matmul.py"
SIGNATURE = "*fp16:16,*fp16:16,*fp32:16,i32:16,i32:16,i32:16,TILE_M=64,TILE_N=64,TILE_K="
LIST = "".join(
    f'[[kernel]]\nfile = "{EXAMPLE}"\nname = "{name}"\nsignature = "{SIGNATURE}{tile}"\n'
    for name, tile in (("fine", 32), ("broken <b>", 33))
)


@pytest.mark.slow
def test_a_page_of_real_compiles(with_wheel: Smith, tmp_path: Path) -> None:
    smith = with_wheel.beside(tmp_path)
    (tmp_path / "kernels.toml").write_text(LIST)
    python = str(smith.env("wheel") / "venv" / "bin" / "python")
    command = (
        "farm",
        "--site",
        "kernels.toml",
        "--triton",
        f"{python},wheel",
        "--target",
        "h100",
        "--out",
        "site",
    )
    told = json.loads(smith(*command, "--json").out)
    assert (told["state"], told["verdict"]) == ("unsure", "not sure: 1 kernel compiles by neither")
    (fine, broken) = told["rows"]
    assert {"cpu_seconds", "registers", "spills", "code"} <= fine["by"]["wheel"].keys()
    assert fine["by"]["wheel"]["cpu_seconds"] > 0
    assert fine["by"]["wheel"]["tensor core"] > 0
    assert "power of 2" in broken["by"]["wheel"]["message"]
    assert "no verdict" in (tmp_path / "site" / "badge.svg").read_text()
    require(chromium.found())
    with chromium.page(tmp_path / "profile") as page:
        page.open(tmp_path / "site" / "index.html")
        assert page.js(NAMES) == ["broken <b>", "fine"]
        assert page.errors == []
