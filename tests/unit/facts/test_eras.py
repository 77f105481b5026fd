from __future__ import annotations

import re

import pytest

from tritonsmith.core.errors import UsageError
from tritonsmith.core.text import version_key
from tritonsmith.facts import checkout


@pytest.mark.parametrize(
    ("version", "line"),
    [
        ("3.5", "3.5"),
        ("3.5.1", "3.5"),
        ("v3.5.1", "3.5"),
        ("2.0.0.post1", "2.0"),
        ("3.9", "3.9"),
        ("3.10", "3.9"),
        ("4.0", "3.9"),
    ],
)
def test_the_release_line_of_a_version(version: str, line: str) -> None:
    assert checkout.triton_release(version).version == line


@pytest.mark.parametrize("version", ["", "main", "1.1.2", "0", "2", "3"])
def test_no_release_line(version: str) -> None:
    with pytest.raises(UsageError, match="unknown Triton release line") as caught:
        checkout.triton_release(version)
    assert "2.0" in caught.value.hints[-1]


def test_rows_are_sorted_and_complete() -> None:
    rows = checkout.triton_releases()
    assert [row.version for row in rows] == sorted((row.version for row in rows), key=version_key)
    for row in rows:
        assert re.fullmatch("[0-9a-f]{9,40}", row.commit)
        assert re.fullmatch("([0-9a-f]{40})?", row.llvm)
        assert version_key(row.python[0]) < version_key(row.python[1])
        assert any(name.startswith(("pybind11", "nanobind")) for name in row.requires)


@pytest.mark.parametrize(
    ("feature", "last_without", "first", "last", "first_without"),
    [
        ("root-setup", "3.3", "3.4", "3.9", None),
        ("llvm-hash-txt", "2.1", "2.2", "3.7", "3.8"),
        ("llvm-info-json", "3.7", "3.8", "3.10", None),
        ("pybind11-variable", None, "2.0", "3.2", "3.3"),
        ("amd-llvm-pin", "3.9", "3.10", "3.11", None),
    ],
)
def test_features_begin_and_end(
    feature: str, last_without: str | None, first: str, last: str, first_without: str | None
) -> None:
    assert feature in checkout.features_of(first)
    assert feature in checkout.features_of(f"{last}.2")
    for version in filter(None, (last_without, first_without)):
        assert feature not in checkout.features_of(version)


def test_options_follow_the_version() -> None:
    assert "TRITON_BUILD_TUTORIALS" in checkout.cmake_options_of("3.3.1")
    assert "TRITON_BUILD_TUTORIALS" not in checkout.cmake_options_of("3.4")
    assert "JSON_SYSPATH" in checkout.cmake_options_of("3.10")
    assert checkout.cmake_options_of("1.0") == checkout.features_of("1.0") == frozenset()
    assert checkout.cmake_options_of("3.9") | checkout.cmake_options_of("2.0") <= checkout.cmake_options()


def test_each_feature_has_a_probe() -> None:
    for name, probe in checkout.feature_probes().items():
        files = probe["file"] if isinstance(probe["file"], list) else [probe["file"]]
        assert files, name
        assert not any(file.startswith("/") or ".." in file for file in files)


@pytest.mark.parametrize(("short", "full"), [("c5dede880d17", 40), ("0" * 12, 12), ("", 40)])
def test_full_commit(short: str, full: int) -> None:
    found = checkout.full_commit(short)
    assert found.startswith(short)
    assert len(found) == full


def test_single_values() -> None:
    assert checkout.lit_requirement().startswith("lit>=")
    assert all(flag.startswith("-Wno-error=") for flag in checkout.relaxed_warnings())
    assert checkout.clang_released(19) == "2024-09-17"
    assert checkout.clang_released(3) is None
