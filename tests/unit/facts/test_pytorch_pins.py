from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from tests.unit.facts.installs import install, python_of, site_of
from tritonsmith.core import configs
from tritonsmith.core.errors import UsageError
from tritonsmith.core.text import version_key
from tritonsmith.doctor.pins import report
from tritonsmith.facts import pytorch_pins
from tritonsmith.facts.pytorch_pins import UNKNOWN, Pin, PyTorchRelease, Torch

RELEASES = {release.version: release for release in pytorch_pins.releases()}
PINS = [
    pytest.param(pin, id=f"{release.version}-{where}")
    for release in RELEASES.values()
    for where, pin in release.own_pins.items()
    if pin is not None
]
each_pin = pytest.mark.parametrize("pin", PINS)
each_release = pytest.mark.parametrize("release", RELEASES.values(), ids=list(RELEASES))


def texts(value: Any) -> list[str]:
    """Every text in a table."""
    if isinstance(value, dict):
        return [text for part in value.values() for text in texts(part)]
    if isinstance(value, list):
        return [text for part in value for text in texts(part)]
    return [value] if isinstance(value, str) else []


def test_releases_are_in_order_and_each_is_there_once() -> None:
    rows = [row["pytorch"] for row in configs.load(pytorch_pins.CONFIG)["release"]]
    assert rows == sorted(set(rows), key=version_key)
    assert (rows[0], rows[-1]) == ("2.0.0", "2.15.0")
    assert len(rows) == 28


@each_pin
def test_a_commit_comes_with_how_it_is_known_and_without_candidates(pin: Pin) -> None:
    assert pin.grade in pytorch_pins.grades()
    assert pin.llvm_grade in pytorch_pins.grades()
    assert bool(pin.commit) is (pin.grade != UNKNOWN)
    assert bool(pin.llvm) is (pin.llvm_grade != UNKNOWN)
    assert not (pin.commit and pin.candidates)
    if pin.same_file:
        assert (pin.commit, pin.candidates, pin.llvm) == ("", (), "")
    if pin.commit or pin.candidates or pin.same_file:
        told_by_a_neighbour = pin.candidates and pin.note
        assert pin.source or told_by_a_neighbour


@each_pin
def test_commits_are_whole(pin: Pin) -> None:
    for commit in filter(None, (pin.commit, *pin.candidates)):
        assert re.fullmatch(r"[0-9a-f]{40}", commit)
    assert len(set(pin.candidates)) == len(pin.candidates)
    assert re.fullmatch(r"|[0-9a-f]{12}|[0-9a-f]{40}", pin.llvm)


@each_release
def test_a_requirement_is_one_of_triton(release: PyTorchRelease) -> None:
    requirement = Requirement(release.cuda.requires)
    assert requirement.name == "triton"
    assert requirement.specifier.contains(release.cuda.version)
    assert "Linux" in str(requirement.marker)
    if release.rocm.requires:
        assert Requirement(release.rocm.requires).name == pytorch_pins.wheel_name(release.version, "rocm")


def test_sources_are_public() -> None:
    for text in texts(configs.load(pytorch_pins.CONFIG)):
        assert not re.search(r"\bid \d|/work|/opt/|/home|third-party copy", text), text


def test_where_the_wheel_has_another_llvm_than_the_pin() -> None:
    differ = {version for version, release in RELEASES.items() if release.llvms_differ}
    assert differ == {"2.6.0", "2.12.1", "2.13.0", "2.14.0"}
    untold = {version for version, release in RELEASES.items() if release.llvms_differ is None}
    assert untold == {"2.3.0", "2.4.0", "2.4.1", "2.14.1", "2.15.0"}


def test_what_is_unknown_stays_unknown() -> None:
    unknown = {version for version, release in RELEASES.items() if not release.cuda.commit}
    lines = {"2.2.0", "2.2.1", "2.2.2", "2.3.0", "2.4.0", "2.4.1"}
    assert unknown == lines | {"2.7.1", "2.9.0", "2.10.0", "2.14.1", "2.15.0"}
    assert RELEASES["2.15.0"].wheel.commit == ""
    assert RELEASES["2.15.0"].wheel.llvm.startswith("b010a18d")


def test_a_channel_may_read_the_file_of_cuda_or_have_none() -> None:
    release = RELEASES["2.13.0"]
    assert release.pin("rocm") is release.cuda
    assert release.pin("wheel") is release.wheel
    old = RELEASES["2.3.1"]
    assert old.pin("rocm") is old.rocm
    assert old.pin("xpu") is None
    with pytest.raises(KeyError):
        release.pin("metal")


@pytest.mark.parametrize(
    ("text", "version", "note"),
    [
        ("2.9.1", "2.9.1", ""),
        ("v2.9.1", "2.9.1", "v2.9.1 is read as 2.9.1"),
        ("2.13.0+cpu", "2.13.0", "2.13.0+cpu is read as 2.13.0"),
        ("2.9", "2.9.1", "2.9 is read as 2.9.1, the newest release of that line in the table"),
        ("2.1", "2.1.2", "2.1 is read as 2.1.2, the newest release of that line in the table"),
        ("2.10", "2.10.0", "2.10 is read as 2.10.0, the newest release of that line in the table"),
    ],
)
def test_find(text: str, version: str, note: str) -> None:
    found = pytorch_pins.find(text)
    assert (found.release.version, found.note) == (version, note)


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("2.9.7", "2.9.1, 2.10.0"),
        ("2.16.0", "2.15.0"),
        ("1.13.1", "2.0.0"),
        ("2.5.9", "2.5.1, 2.6.0"),
        ("2", "2.0.0"),
        ("2.99", "2.15.0"),
    ],
)
def test_an_unknown_version_gets_the_nearest_ones(text: str, near: str) -> None:
    with pytest.raises(UsageError, match=re.escape(f"the table has no PyTorch {text}")) as caught:
        pytorch_pins.find(text)
    assert caught.value.hints[0] == f"nearest known releases: {near}"
    assert "pins --live" in caught.value.hints[1]


@pytest.mark.parametrize("text", ["2.16.0.dev20261006", "2.10.0a0+git449b176", "2.9.0rc1"])
def test_what_is_not_released_is_not_in_the_table(text: str) -> None:
    with pytest.raises(UsageError, match="no unreleased builds") as caught:
        pytorch_pins.find(text)
    assert "--ref COMMIT" in str(caught.value)


@pytest.mark.parametrize("text", ["nightly", "main", "", "two", "2.9.x"])
def test_what_is_no_version(text: str) -> None:
    with pytest.raises(UsageError, match="not a version of PyTorch"):
        pytorch_pins.find(text)


@pytest.mark.parametrize(
    ("version", "channel", "name"),
    [
        ("2.0.1", "cuda", "triton"),
        ("2.15.0", "cuda", "triton"),
        ("2.9.1", "rocm", "pytorch-triton-rocm"),
        ("2.10.0", "rocm", "triton-rocm"),
        ("2.15.0", "rocm", ""),
        ("2.4.1", "xpu", ""),
        ("2.5.0", "xpu", "pytorch-triton-xpu"),
        ("2.14.1", "xpu", "triton-xpu"),
    ],
)
def test_wheel_names_by_era(version: str, channel: str, name: str) -> None:
    assert pytorch_pins.wheel_name(version, channel) == name


def test_nightlies_were_renamed_later_than_releases() -> None:
    def nightly(version: str) -> set[str]:
        names = pytorch_pins.wheel_names(version)
        return {name.name for name in names if name.kind == "nightly"}

    assert nightly("2.9.1") == nightly("2.10.0") == {"pytorch-triton"}
    assert nightly("2.11.0") == {"triton"}


def test_pin_files_know_the_older_places() -> None:
    files = {file.channel: file for file in pytorch_pins.pin_files()}
    assert set(pytorch_pins.CHANNELS) < set(files) == set(pytorch_pins.titles())
    assert files["cuda"].commit[-1] == ".github/ci_commit_pins/triton.txt"
    assert files["rocm"].otherwise == "cuda"
    for file in files.values():
        assert all(not path.startswith("/") for path in (*file.commit, *file.version))


def test_llvm_at_a_commit_of_the_table() -> None:
    pin = RELEASES["2.13.0"].cuda
    assert pytorch_pins.llvm_at(pin.commit) == (pin.llvm, "read-at-commit")
    assert pytorch_pins.llvm_at("0" * 40) == ("", UNKNOWN)


def test_every_key_of_the_file_is_read() -> None:
    names = {field.name.replace("_", "-") for field in fields(Pin)}
    for row in configs.load(pytorch_pins.CONFIG)["release"]:
        assert set(row) <= {"pytorch", "cuda", "rocm", "xpu", "wheel"}
        for channel in ("cuda", "rocm", "xpu", "wheel"):
            assert set(row.get(channel, {})) <= names


# The torch of releases of packages, in the real table.

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("name", pytorch_pins.package_names())
def test_each_torch_is_a_release(name: str) -> None:
    known = {one.version for one in pytorch_pins.releases()}
    found = pytorch_pins.find_package(name)
    assert len(found) > 10
    assert {one.torch for one in found} <= known


def test_one_release_and_its_triton() -> None:
    (found,) = pytorch_pins.find_package("vllm==0.26.0")
    assert found.torch == "2.11.0"
    (row,) = report.packages([found]).as_json()["rows"]
    assert [text for text, _ in row[:3]] == ["vllm 0.26.0", "2.11.0", "3.6.0"]


@pytest.mark.parametrize(("text", "hint"), [("vlm", "vllm"), ("vllm==0.26", "0.26.0")])
def test_what_is_not_there_is_an_error_with_the_nearest(text: str, hint: str) -> None:
    with pytest.raises(UsageError) as error:
        pytorch_pins.find_package(text)
    assert any(hint in line for line in error.value.hints)


def test_the_kernels_that_a_release_has_in_it() -> None:
    found = {one.version: one.triton_kernels for one in pytorch_pins.find_package("vllm")}
    assert (found["0.33.0"], found["0.20.2"], found["0.10.2"]) == ("v3.5.1", "v3.6.0", "")
    (row,) = report.packages(pytorch_pins.find_package("vllm==0.33.0")).as_json()["rows"]
    assert row[-1][0] == "v3.5.1"


GIT = "cf30153c4c131c8164ee7798e5022d810682e2cb"


def test_everything_that_it_tells(tmp_path: Path) -> None:
    text = (
        "from typing import Optional\n__version__ = '2.13.0+cu130'\ndebug = False\n"
        f"cuda: Optional[str] = '13.0'\ngit_version = '{GIT}'\nhip: Optional[str] = None\n"
        "xpu: Optional[str] = '20250201'\n"
    )
    install(site_of(tmp_path), "torch", "2.13.0+cu130", {"torch/version.py": text})
    assert pytorch_pins.read_torch(python_of(tmp_path)) == Torch(
        "2.13.0+cu130", GIT, "", "False", "13.0", "", "20250201"
    )


def test_none_and_one_that_says_little(tmp_path: Path) -> None:
    assert pytorch_pins.read_torch(python_of(tmp_path)) is None
    text = "__version__ = '2.0'\ngit_version = 'Unknown'\n"
    install(site_of(tmp_path), "torch", "2.0", {"torch/version.py": text})
    assert pytorch_pins.read_torch(python_of(tmp_path)) == Torch("2.0", "", "")
