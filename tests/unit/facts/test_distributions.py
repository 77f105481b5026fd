from __future__ import annotations

import importlib.metadata
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.unit.facts import installs
from tests.unit.facts.installs import install, put, site_of
from tritonsmith.facts import distributions
from tritonsmith.facts.distributions import Distribution


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return site_of(tmp_path / "an env")


def read(site: Path) -> dict[str, Distribution]:
    return {found.name: found for found in distributions.read([site])}


def owns(site: Path) -> dict[str, str]:
    return {found.name: found.owns for found in distributions.owners(distributions.read([site]))}


def test_names_and_versions_are_those_that_python_itself_finds() -> None:
    site = Path(sysconfig.get_path("purelib"))
    known = {
        distributions.normalised(found.metadata["Name"]): found.version
        for found in importlib.metadata.distributions(path=[str(site)])
    }
    assert {found.name: found.version for found in distributions.read([site])} == known
    assert known["pytest"] == pytest.__version__


def test_nothing_there(tmp_path: Path) -> None:
    assert distributions.read([tmp_path, tmp_path / "gone"]) == ()
    assert distributions.leftovers(tmp_path / "gone") == ()


def test_who_owns_triton_is_said_by_files_and_not_by_names(site: Path) -> None:
    install(site, "triton", "3.5.0", {"triton/__init__.py": ""})
    install(site, "somebodys_Triton", "1", {"somebody.py": "", "triton/x.py": ""})
    install(site, "old_triton", "2.0", more={"top_level.txt": "other\ntriton/_C\n"})
    install(site, "torch", "2.9.0", {"torch/triton/x.py": "", "torch/_inductor/triton.py": ""})
    install(site, "tritonclient", "2.0", {"tritonclient/__init__.py": ""})
    install(
        site, "triton_kernels", "1.0", {"triton_kernels/x.py": ""}, more={"top_level.txt": "triton_kernels\n"}
    )
    install(site, "triton_xpu", "3.7.0", {"elsewhere.py": ""})
    assert owns(site) == {"triton": "RECORD", "somebodys-triton": "RECORD", "old-triton": "top_level.txt"}
    assert len(read(site)) == 7
    assert read(site)["triton"].installer == "pip"


def test_metadata_that_lost_their_record_are_judged_by_their_name(site: Path) -> None:
    (install(site, "pytorch_triton_rocm", "3.4.0") / "RECORD").unlink()
    (install(site, "something", "1.0") / "RECORD").unlink()
    assert owns(site) == {"pytorch-triton-rocm": "name"}


def test_metadata_of_the_time_before_wheels(site: Path) -> None:
    put(
        site / "triton-2.0.0-py3.8.egg-info",
        {"top_level.txt": "triton\n", "installed-files.txt": "../triton/a.py\n"},
    )
    put(
        site / "pytorch_triton.egg-info",
        {"PKG-INFO": "Name: pytorch-triton\nVersion: 2.1.0\n", "top_level.txt": "triton"},
    )
    put(
        site,
        {"triton_nightly-2.2.egg-info": "Name: triton-nightly\n", "PyYAML-6.0.egg-info": "Name: PyYAML\n"},
    )
    put(site / "triton-2.0.0-py3.8-linux-x86_64.egg", {"EGG-INFO/top_level.txt": "triton\n"})
    found = distributions.read([site])
    assert sorted((one.name, one.version, one.info.suffix, one.owns) for one in found) == [
        ("pytorch-triton", "2.1.0", ".egg-info", "top_level.txt"),
        ("pyyaml", "6.0", ".egg-info", ""),
        ("triton", "2.0.0", ".egg", "top_level.txt"),
        ("triton", "2.0.0", ".egg-info", "top_level.txt"),
        ("triton-nightly", "2.2", ".egg-info", "name"),
    ]
    (old,) = (one for one in found if one.title == "triton 2.0.0" and one.info.suffix == ".egg-info")
    assert site / "triton-2.0.0-py3.8.egg-info" / "../triton/a.py" in distributions.recorded(old)


def test_a_record_is_read_to_the_letter(site: Path) -> None:
    info = install(site, "triton", "3.5.0", {"triton/a, b.py": "", 'triton/"x".py': ""})
    text = '"triton/a, b.py",sha256=x,1\n"triton/""x"".py",,\n../../../bin/proton,,\n/abs,,\n\n'
    (info / "RECORD").write_text(text)
    (found,) = distributions.read([site])
    assert found.owns == ""  # a wheel has one line at least that needs no quotes
    listed = set(distributions.recorded(found))
    assert {
        site / "triton/a, b.py",
        site / 'triton/"x".py',
        site / "../../../bin/proton",
        Path("/abs"),
    } < listed
    assert info / "METADATA" in listed  # whether it is listed or not


@pytest.mark.parametrize("name", ["~riton", "~-iton", "~~~~~n", "~%=9on"])
def test_leftovers_of_an_interrupted_pip(site: Path, name: str) -> None:
    """pip renames what it is about to remove, the first letters first."""
    put(site / name, {"x.py": ""})
    put(site / "~riton-3.5.0.dist-info", {"RECORD": "triton/__init__.py,,\n"})
    put(site / "~ip-24.0.dist-info", {"RECORD": "pip/__init__.py,,\n"})
    put(site / "~tritonsmith-purge", {"0": ""})
    for other in ("~orch", "~", "~ritons", "riton", "~ritox"):
        (site / other).mkdir()
    assert distributions.leftovers(site) == tuple(sorted((site / name, site / "~riton-3.5.0.dist-info")))
    assert distributions.read([site]) == ()


def test_files_below_follow_no_link(tmp_path: Path) -> None:
    put(tmp_path / "top", {"a": "", "deep/b": ""})
    put(tmp_path / "elsewhere", {"precious": ""})
    (tmp_path / "top" / "to folder").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "top" / "dangling").symlink_to(tmp_path / "nowhere")
    found = {str(path.relative_to(tmp_path)) for path in distributions.files_below(tmp_path / "top")}
    assert found == {"top/a", "top/deep/b", "top/to folder", "top/dangling"}
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "top")
    assert list(distributions.files_below(link)) == [link]
    assert list(distributions.files_below(tmp_path / "gone")) == []


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
def test_which_triton_a_torch_requires(site: Path, lines: list[str], wanted: str) -> None:
    text = "".join(f"Requires-Dist: {line}\n" for line in lines).replace("Linux", _system())
    install(site, "torch", "2.13.0", more={"METADATA": f"Name: torch\nVersion: 2.13.0\n{text}\nProse.\n"})
    (torch,) = distributions.read([site])
    assert distributions.required_triton(torch, installs.MINOR).partition(";")[0] == wanted


def _system() -> str:
    return "Darwin" if sys.platform == "darwin" else "Linux"


def test_the_names_that_are_known() -> None:
    assert {"triton", "pytorch-triton-rocm", "triton-xpu", "fbtriton"} < set(distributions.known_names())
    assert all(name == distributions.normalised(name) for name in distributions.known_names())
