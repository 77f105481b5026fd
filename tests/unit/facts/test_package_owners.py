from __future__ import annotations

import importlib.metadata
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.unit.facts import installs
from tests.unit.facts.installs import checkout, editable, install, put, site_of
from tritonsmith.facts import package_owners
from tritonsmith.facts.package_owners import Distribution


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return site_of(tmp_path / "env")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return checkout(tmp_path / "a checkout")


def only(site: Path) -> Distribution:
    (found,) = package_owners.read([site])
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
    assert list(package_owners.recorded(found)) == [site / "triton.egg-link"]


def test_egg_links_that_lead_nowhere_or_elsewhere(site: Path) -> None:
    put(site, {"triton.egg-link": "/gone/python\n.", "other.egg-link": "/gone\n.", "triton-xpu.egg-link": ""})
    found = {one.name: one for one in package_owners.read([site])}
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
    assert package_owners.finder_mapping(tmp_path / "finder.py")["triton"] == Path("/src/triton")


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
    assert package_owners.finder_mapping(tmp_path / "finder.py") == {}
    assert package_owners.finder_mapping(tmp_path / "gone.py") == {}


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
    without = package_owners.without_folder(pth, [Path("/src/triton/python"), tmp_path / "triton-2.0.egg"])
    assert without == "import sys; sys.__plen = 1\n\n/src/other\n"
    assert package_owners.without_folder(pth, [Path("/src/nothing")]) is None
    assert package_owners.without_folder(tmp_path / "gone.pth", [Path("/src")]) is None


@pytest.fixture
def distributions_site(tmp_path: Path) -> Path:
    return site_of(tmp_path / "an env")


def read(distributions_site: Path) -> dict[str, Distribution]:
    return {found.name: found for found in package_owners.read([distributions_site])}


def owns(distributions_site: Path) -> dict[str, str]:
    return {
        found.name: found.owns for found in package_owners.owners(package_owners.read([distributions_site]))
    }


def test_names_and_versions_are_those_that_python_itself_finds() -> None:
    site = Path(sysconfig.get_path("purelib"))
    known = {
        package_owners.normalised(found.metadata["Name"]): found.version
        for found in importlib.metadata.distributions(path=[str(site)])
    }
    assert {found.name: found.version for found in package_owners.read([site])} == known
    assert known["pytest"] == pytest.__version__


def test_nothing_there(tmp_path: Path) -> None:
    assert package_owners.read([tmp_path, tmp_path / "gone"]) == ()
    assert package_owners.leftovers(tmp_path / "gone") == ()


def test_who_owns_triton_is_said_by_files_and_not_by_names(distributions_site: Path) -> None:
    install(distributions_site, "triton", "3.5.0", {"triton/__init__.py": ""})
    install(distributions_site, "somebodys_Triton", "1", {"somebody.py": "", "triton/x.py": ""})
    install(distributions_site, "old_triton", "2.0", more={"top_level.txt": "other\ntriton/_C\n"})
    install(distributions_site, "torch", "2.9.0", {"torch/triton/x.py": "", "torch/_inductor/triton.py": ""})
    install(distributions_site, "tritonclient", "2.0", {"tritonclient/__init__.py": ""})
    install(
        distributions_site,
        "triton_kernels",
        "1.0",
        {"triton_kernels/x.py": ""},
        more={"top_level.txt": "triton_kernels\n"},
    )
    install(distributions_site, "triton_xpu", "3.7.0", {"elsewhere.py": ""})
    assert owns(distributions_site) == {
        "triton": "RECORD",
        "somebodys-triton": "RECORD",
        "old-triton": "top_level.txt",
    }
    assert len(read(distributions_site)) == 7
    assert read(distributions_site)["triton"].installer == "pip"


def test_metadata_that_lost_their_record_are_judged_by_their_name(distributions_site: Path) -> None:
    (install(distributions_site, "pytorch_triton_rocm", "3.4.0") / "RECORD").unlink()
    (install(distributions_site, "something", "1.0") / "RECORD").unlink()
    assert owns(distributions_site) == {"pytorch-triton-rocm": "name"}


def test_metadata_of_the_time_before_wheels(distributions_site: Path) -> None:
    put(
        distributions_site / "triton-2.0.0-py3.8.egg-info",
        {"top_level.txt": "triton\n", "installed-files.txt": "../triton/a.py\n"},
    )
    put(
        distributions_site / "pytorch_triton.egg-info",
        {"PKG-INFO": "Name: pytorch-triton\nVersion: 2.1.0\n", "top_level.txt": "triton"},
    )
    put(
        distributions_site,
        {"triton_nightly-2.2.egg-info": "Name: triton-nightly\n", "PyYAML-6.0.egg-info": "Name: PyYAML\n"},
    )
    put(distributions_site / "triton-2.0.0-py3.8-linux-x86_64.egg", {"EGG-INFO/top_level.txt": "triton\n"})
    found = package_owners.read([distributions_site])
    assert sorted((one.name, one.version, one.info.suffix, one.owns) for one in found) == [
        ("pytorch-triton", "2.1.0", ".egg-info", "top_level.txt"),
        ("pyyaml", "6.0", ".egg-info", ""),
        ("triton", "2.0.0", ".egg", "top_level.txt"),
        ("triton", "2.0.0", ".egg-info", "top_level.txt"),
        ("triton-nightly", "2.2", ".egg-info", "name"),
    ]
    (old,) = (one for one in found if one.title == "triton 2.0.0" and one.info.suffix == ".egg-info")
    assert distributions_site / "triton-2.0.0-py3.8.egg-info" / "../triton/a.py" in package_owners.recorded(
        old
    )


def test_a_record_is_read_to_the_letter(distributions_site: Path) -> None:
    info = install(distributions_site, "triton", "3.5.0", {"triton/a, b.py": "", 'triton/"x".py': ""})
    text = '"triton/a, b.py",sha256=x,1\n"triton/""x"".py",,\n../../../bin/proton,,\n/abs,,\n\n'
    (info / "RECORD").write_text(text)
    (found,) = package_owners.read([distributions_site])
    assert found.owns == ""  # a wheel has one line at least that needs no quotes
    listed = set(package_owners.recorded(found))
    assert {
        distributions_site / "triton/a, b.py",
        distributions_site / 'triton/"x".py',
        distributions_site / "../../../bin/proton",
        Path("/abs"),
    } < listed
    assert info / "METADATA" in listed  # whether it is listed or not


@pytest.mark.parametrize("name", ["~riton", "~-iton", "~~~~~n", "~%=9on"])
def test_leftovers_of_an_interrupted_pip(distributions_site: Path, name: str) -> None:
    """pip renames what it is about to remove, the first letters first."""
    put(distributions_site / name, {"x.py": ""})
    put(distributions_site / "~riton-3.5.0.dist-info", {"RECORD": "triton/__init__.py,,\n"})
    put(distributions_site / "~ip-24.0.dist-info", {"RECORD": "pip/__init__.py,,\n"})
    put(distributions_site / "~tritonsmith-purge", {"0": ""})
    for other in ("~orch", "~", "~ritons", "riton", "~ritox"):
        (distributions_site / other).mkdir()
    assert package_owners.leftovers(distributions_site) == tuple(
        sorted((distributions_site / name, distributions_site / "~riton-3.5.0.dist-info"))
    )
    assert package_owners.read([distributions_site]) == ()


def test_files_below_follow_no_link(tmp_path: Path) -> None:
    put(tmp_path / "top", {"a": "", "deep/b": ""})
    put(tmp_path / "elsewhere", {"precious": ""})
    (tmp_path / "top" / "to folder").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "top" / "dangling").symlink_to(tmp_path / "nowhere")
    found = {str(path.relative_to(tmp_path)) for path in package_owners.files_below(tmp_path / "top")}
    assert found == {"top/a", "top/deep/b", "top/to folder", "top/dangling"}
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "top")
    assert list(package_owners.files_below(link)) == [link]
    assert list(package_owners.files_below(tmp_path / "gone")) == []


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        (
            ["filelock", "triton==3.7.1; platform_system == 'Linux' and python_version < '3.99'"],
            "triton==3.7.1",
        ),
        (["triton==3.7.1; platform_system == 'Plan 9'"], ""),
        (["triton==3.7.1; python_version < '3.0'"], ""),
        (["triton==3.7.1; extra == 'gpu'"], ""),
        (["not a requirement!", "pytorch_triton-rocm (==2.1.0)"], "pytorch_triton-rocm (==2.1.0)"),
        (["tritonclient"], ""),
    ],
)
def test_which_triton_a_torch_requires(distributions_site: Path, lines: list[str], wanted: str) -> None:
    text = "".join(f"Requires-Dist: {line}\n" for line in lines).replace("Linux", _system())
    install(
        distributions_site,
        "torch",
        "2.13.0",
        more={"METADATA": f"Name: torch\nVersion: 2.13.0\n{text}\nProse.\n"},
    )
    (torch,) = package_owners.read([distributions_site])
    assert package_owners.required_triton(torch, installs.MINOR).partition(";")[0] == wanted


def _system() -> str:
    return "Darwin" if sys.platform == "darwin" else "Linux"


def test_the_names_that_are_known() -> None:
    assert {"triton", "pytorch-triton-rocm", "triton-xpu", "fbtriton"} < set(package_owners.known_names())
    assert all(name == package_owners.normalised(name) for name in package_owners.known_names())
