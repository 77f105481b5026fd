"""Upstream's archives: which one a machine gets, its URL and checksum."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.build import made
from tests.unit.build.conftest import Golden
from tritonsmith.build.llvm import prebuilt
from tritonsmith.build.llvm.prebuilt import archive_for, suffix_for
from tritonsmith.core.plan import Remove
from tritonsmith.facts.checkout import LlvmPin
from tritonsmith.facts.machine import Machine

BLOB = "https://oaitriton.blob.core.windows.net/public/llvm-builds"
SUMS = (("almalinux-x64", "aa" * 32), ("ubuntu-x64", "bb" * 32))


def linux(glibc: str, arch: str = "x86_64", os_id: str = "debian", glibcxx: str = "3.4.33") -> Machine:
    return Machine("Linux", arch, 8, 16 * made.GIB, os_id=os_id, glibc=glibc, glibcxx=glibcxx)


@pytest.mark.parametrize(
    ("machine", "version", "suffix"),
    [
        (linux("2.17"), "3.0.0", "centos-x64"),
        (linux("2.17"), "3.5.0", "centos-x64"),
        (linux("2.17"), "3.6.0", "almalinux-x64"),  # triton#8191
        (linux("2.17"), "3.10.0", "almalinux-x64"),
        (linux("2.12"), "3.1.0", "centos-x64"),
        (linux("2.18"), "3.1.0", "almalinux-x64"),
        (linux("2.28"), "3.7.0", "almalinux-x64"),
        (linux("2.31"), "3.7.0", "ubuntu-x64"),
        (linux("2.36"), "3.7.0", "ubuntu-x64"),
        (linux("2.40"), "2.2.0", "ubuntu-x64"),
        (linux("2.36", "aarch64"), "3.5.0", "ubuntu-arm64"),
        (linux("2.28", "aarch64", "rocky"), "3.5.0", "ubuntu-arm64"),
        (linux("2.34", "aarch64", "almalinux"), "3.5.0", "almalinux-arm64"),
        (linux("2.17", "aarch64"), "3.5.0", "ubuntu-arm64"),
        (linux("2.36", "ppc64le"), "3.5.0", ""),
        (linux("2.36", "riscv64"), "3.5.0", ""),
        (linux("", os_id="alpine"), "3.5.0", ""),  # musl
        (made.machine("macos"), "3.5.0", "macos-arm64"),
        (made.machine("macos", arch="x86_64"), "3.5.0", "macos-x64"),
        (Machine("Windows", "AMD64", 8, 16 * made.GIB), "3.8.0", ""),
    ],
)
def test_suffix(machine: Machine, version: str, suffix: str) -> None:
    assert suffix_for(machine, version) == suffix


def test_url_of_an_old_pin_has_no_build_number_and_no_checksum() -> None:
    archive = archive_for(made.request(), linux("2.36"))
    assert archive is not None
    assert archive.url == f"{BLOB}/llvm-a66376b0-ubuntu-x64.tar.gz"
    assert (archive.name, archive.sha256, archive.note) == ("llvm-a66376b0-ubuntu-x64", "", "")


@pytest.mark.parametrize("build", [0, 1, 12])
def test_url_of_a_new_pin_ends_in_the_build_number(build: int) -> None:
    pin = LlvmPin(made.PIN, "cmake/llvm-info.json", build=build, sha256=SUMS)
    archive = archive_for(replace(made.request(), pin=pin), linux("2.36"))
    assert archive is not None
    assert archive.url == f"{BLOB}/llvm-a66376b0-ubuntu-x64-{build}.tar.gz"
    assert archive.name == f"llvm-a66376b0-ubuntu-x64-{build}"


@pytest.mark.parametrize(
    ("machine", "suffix", "sha256"),
    [
        (linux("2.28"), "almalinux-x64", "aa" * 32),
        (linux("2.36"), "ubuntu-x64", "bb" * 32),
        (linux("2.36", "aarch64"), "ubuntu-arm64", "ee" * 32),  # none in the pin: the user's
    ],
)
def test_checksum_goes_by_the_suffix(machine: Machine, suffix: str, sha256: str) -> None:
    pin = LlvmPin(made.PIN, "cmake/llvm-info.json", build=2, sha256=SUMS)
    archive = archive_for(replace(made.request(sha256="ee" * 32), pin=pin), machine)
    assert archive is not None
    assert (archive.suffix, archive.sha256) == (suffix, sha256)


@pytest.mark.parametrize(
    ("machine", "suffix"),
    [
        (linux("2.31"), "almalinux-x64"),  # Ubuntu 20.04: triton#7088
        (linux("2.33"), "almalinux-x64"),
        (linux("2.34"), "ubuntu-x64"),
        (linux("2.36", glibcxx="3.4.29"), "almalinux-x64"),  # conda's libstdc++: triton#7431
        (linux("2.36", glibcxx="3.4.30"), "ubuntu-x64"),
        (linux("2.36", glibcxx=""), "ubuntu-x64"),  # not known is not too old
        (linux("2.31", "aarch64"), "almalinux-arm64"),
    ],
)
def test_too_old_for_ubuntus_build_means_almalinuxs(machine: Machine, suffix: str) -> None:
    pin = LlvmPin(made.PIN, "cmake/llvm-info.json", sha256=SUMS)
    archive = archive_for(replace(made.request(), pin=pin), machine)
    assert archive is not None
    assert archive.suffix == suffix
    assert archive.sha256 == dict(SUMS).get(suffix, "")
    changed = suffix.startswith("almalinux")
    assert archive.note.endswith(f"using {suffix} instead") is changed
    plan = prebuilt.plan(archive, made.workspace(), made.store())
    assert plan.notes == ((archive.note,) if changed else ())


def test_a_mirror_has_the_same_files() -> None:
    archive = archive_for(made.request(), linux("2.36"), "https://mirror.example/llvm/")
    assert archive is not None
    assert archive.url == "https://mirror.example/llvm/llvm-a66376b0-ubuntu-x64.tar.gz"


def test_no_archive_without_a_pin_or_a_build() -> None:
    assert archive_for(made.request(None), linux("2.36")) is None
    assert archive_for(made.request(), linux("2.36", "ppc64le")) is None


def test_the_folder_gets_its_name_only_when_all_is_there(golden: Golden) -> None:
    pin = LlvmPin(made.PIN, "cmake/llvm-info.json", build=2, sha256=SUMS)
    archive = archive_for(replace(made.request(), pin=pin), linux("2.36"))
    assert archive is not None
    plan = prebuilt.plan(archive, made.workspace(), made.store())
    (root,) = (step.root for step in plan.steps if isinstance(step, Remove))
    assert root == made.workspace().root
    golden("llvm-archive.sh", made.shell(plan))
