from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.facts.installs import checkout, editable, install, put, site_of
from tritonsmith.facts import distributions, editables
from tritonsmith.facts.distributions import Distribution


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return site_of(tmp_path / "env")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return checkout(tmp_path / "a checkout")


def only(site: Path) -> Distribution:
    (found,) = distributions.read([site])
    return found


@pytest.mark.parametrize("finder", [True, False])
def test_what_setuptools_leaves(site: Path, source: Path, finder: bool) -> None:
    editable(site, source, finder=finder)
    found = only(site)
    assert found.owns == "top_level.txt"
    assert found.editable is not None
    assert (found.editable.project, found.editable.package) == (source, source / "python" / "triton")
    assert [hook.suffix for hook in found.editable.hooks] == ([".pth", ".py"] if finder else [".pth"])


def test_an_editable_install_that_only_its_path_tells_of(site: Path, source: Path) -> None:
    install(site, "mine", "1.0", {"_mine.pth": f"# a comment\nimport os\n{source / 'python'}\n"})
    found = only(site)
    assert (found.owns, found.installer) == ("editable", "pip")
    assert found.editable is not None
    assert (found.editable.project, found.editable.package) == (None, source / "python" / "triton")


def test_an_editable_install_of_something_else_owns_nothing(site: Path, tmp_path: Path) -> None:
    put(tmp_path / "src", {"other/__init__.py": "", "triton/README": ""})  # a clone beside it is no package
    install(site, "other", "1.0", {"_other.pth": str(tmp_path / "src")})
    assert (only(site).owns, only(site).editable) == ("", None)


def test_an_egg_link(site: Path, source: Path) -> None:
    """`setup.py develop`: the metadata lie in the source tree."""
    info = source / "python" / "triton.egg-info"
    put(info, {"PKG-INFO": "Name: triton\nVersion: 2.1.0\n", "top_level.txt": "triton\ntriton/_C\n"})
    put(site, {"triton.egg-link": f"{source / 'python'}\n../"})
    found = only(site)
    assert (found.name, found.version, found.owns) == ("triton", "2.1.0", "top_level.txt")
    assert found.editable is not None
    assert found.editable.project == source / "python"
    assert list(distributions.recorded(found)) == [site / "triton.egg-link"]


def test_egg_links_that_lead_nowhere_or_elsewhere(site: Path) -> None:
    put(site, {"triton.egg-link": "/gone/python\n.", "other.egg-link": "/gone\n.", "triton-xpu.egg-link": ""})
    found = {one.name: one for one in distributions.read([site])}
    assert {name: one.owns for name, one in found.items()} == {
        "triton": "name",
        "other": "",
        "triton-xpu": "name",
    }
    gone = found["triton"].editable
    assert gone is not None
    assert (gone.project, gone.package) == (Path("/gone/python"), Path("/gone/python/triton"))


@pytest.mark.parametrize(
    "text",
    [
        "MAPPING = {'triton': '/src/triton'}",
        "MAPPING: dict[str, str] = {'triton': '/src/triton', 'triton._C': '/build'}",
        "x = 1\nMAPPING: Dict[str, str] = {'triton': '/src/triton'}\nNAMESPACES = {}\n",
    ],
)
def test_finders_are_read_and_not_run(tmp_path: Path, text: str) -> None:
    (tmp_path / "finder.py").write_text(text)
    assert editables.mapping(tmp_path / "finder.py")["triton"] == Path("/src/triton")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "MAPPING = {os.getcwd(): 1}",
        "MAPPING = {",
        "MAPPING = []",
        f"MAPPING = {{'triton': '/{'x' * 256}'}}",
        r"MAPPING = {'triton': '/a\x00b', 'other': '/\ud800'}",
    ],
)
def test_finders_that_say_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "finder.py").write_text(text)
    assert editables.mapping(tmp_path / "finder.py") == {}
    assert editables.mapping(tmp_path / "gone.py") == {}


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"url": 1}', '{"url": "file:///x"}', '{"dir_info": {}}'])
def test_direct_urls_that_are_no_editable_install(site: Path, text: str) -> None:
    install(site, "triton", "3.5.0", {"triton.pth": "/gone"}, more={"direct_url.json": text})
    found = only(site)
    assert found.owns == "name"
    assert found.editable is not None
    assert found.editable.project is None


def test_lines_are_taken_out_of_easy_install(tmp_path: Path) -> None:
    pth = tmp_path / "easy-install.pth"
    pth.write_text("import sys; sys.__plen = 1\n/src/triton/python\n./triton-2.0.egg\n\n/src/other\n")
    without = editables.without_folder(pth, [Path("/src/triton/python"), tmp_path / "triton-2.0.egg"])
    assert without == "import sys; sys.__plen = 1\n\n/src/other\n"
    assert editables.without_folder(pth, [Path("/src/nothing")]) is None
    assert editables.without_folder(tmp_path / "gone.pth", [Path("/src")]) is None
