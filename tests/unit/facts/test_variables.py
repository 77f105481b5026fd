from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.facts import fakes
from tritonsmith.core import configs
from tritonsmith.facts import variables

KINDS = {
    *("flag", "text", "number", "list", "program", "file", "folder", "files", "folders"),
    *("makes-file", "makes-folder"),
}
KEYS = {
    *("since", "until", "inert", "at", "kind", "by", "effect", "cache", "cache-since", "unless", "what"),
    *("source", "seen", "still"),
}


def test_every_row_is_whole() -> None:
    for name, row in configs.load("triton-variables")["variable"].items():
        assert set(row) <= KEYS, name
        assert {"since", "at", "kind", "effect", "what", "source"} <= set(row), name
        assert row["kind"] in KINDS, name
        assert row["at"], name
        assert set(row["at"]) <= {"build", "run", "import", "script", "test"}, name
        assert row.get("cache", "neutral") in ("invalidates", "neutral"), name


@pytest.mark.parametrize("section", ["sticky", "left-on", "instead", "needs"])
def test_other_tables_name_variables_of_the_table(section: str) -> None:
    table = configs.load("triton-variables")[section]
    assert [name for name in table if name not in variables.table()] == []
    if section == "needs":
        assert set(table.values()) <= variables.table().keys()


def test_empty_rows_name_variables_of_the_table() -> None:
    for row in configs.load("triton-variables")["empty"]:
        assert set(row["names"]) <= variables.table().keys()


@pytest.mark.parametrize(
    ("name", "version", "exists"),
    [
        ("MLIR_ENABLE_DUMP", "2.0.0", True),
        ("MLIR_DUMP_PATH", "3.2.0", False),
        ("MLIR_DUMP_PATH", "3.3.1", True),
        ("MLIR_ENABLE_REMARK", "3.2.0", True),
        ("MLIR_ENABLE_REMARK", "3.3.0", False),
        ("TRITON_STABLE_ABI", "3.8.0", False),
        ("TRITON_STABLE_ABI", "3.9.0+git0123abcd", True),
        ("TRITON_STABLE_ABI", "3.10.0", True),
        ("TRITON_STABLE_ABI", "", True),
        ("TRITON_PASS_PLUGIN_PATH", "", False),
        ("TRITON_CODEGEN_AMD", "2.1.0", True),
        ("TRITON_CODEGEN_AMD", "3.0.0", False),
    ],
)
def test_what_a_version_has(name: str, version: str, exists: bool) -> None:
    row = variables.find(name)
    assert row is not None
    assert row.exists(version) is exists


def test_what_does_nothing_any_more() -> None:
    row = variables.table()["TRITON_ENABLE_EXPERIMENTAL_CONSAN"]
    assert [version for version in ("3.5", "3.6", "3.9", "") if row.is_inert(version)] == ["3.6", "3.9", ""]
    assert [row.span for row in map(variables.find, ("DEBUG", "USE_TTGIR_LOC", "MI_GPU_ARCH")) if row] == [
        "since 2.0",
        "3.0 to 3.1",
        "in 2.1",
    ]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("MLIR_ENABLE_DUMPS", "MLIR_ENABLE_DUMP"),
        ("MLIR_DUMP_ENABLE", "MLIR_ENABLE_DUMP"),
        ("TIRTON_HOME", "TRITON_HOME"),
        ("TRITON_ALWAYS_COMPLIE", "TRITON_ALWAYS_COMPILE"),
        ("LLVM_SYS_PATH", "LLVM_SYSPATH"),
        ("TRITON_SOMETHING_ELSE", None),
        ("TRITONSMITH_HOME", None),
    ],
)
def test_what_was_meant(written: str, meant: str | None) -> None:
    assert variables.nearest(written) == meant


def test_which_names_are_about_triton() -> None:
    names = (
        *("TRITON_NEW", "LLVM_DIR", "DEBUG", "MAX_JOBS", "TIRTON_HOME", "AMDGPU_ENABLE_DUMP"),
        *("PATH", "HOME", "LLVM", "TRITONE", "MIR_FOO", "XLA_FLAGS", "DEBUG_LEVEL", "TIKTOKEN_CACHE_DIR"),
    )
    about = variables.about_triton(dict.fromkeys(names, "1"))
    assert about == tuple(sorted(names[:6]))


@pytest.mark.parametrize(
    ("name", "owner"),
    [
        ("LLVM_PROFILE_FILE", "LLVM's profile runtime"),
        ("LLVM_SYS_170_PREFIX", "Rust's llvm-sys"),
        ("TRITON_AWS_MOUNT_DIRECTORY", "NVIDIA Triton Inference Server"),
        ("TRITONSMITH_HOME", "tritonsmith"),
        ("TRITON_CACHE_DIR", ""),
        ("TRITON_NEW", ""),
    ],
)
def test_of_other_software(name: str, owner: str) -> None:
    assert variables.foreign(name) == owner


@pytest.mark.parametrize(
    ("name", "version", "on"),
    [
        ("DEBUG", "3.9", {"1", "ON", "on", "yes", "Y", "true"}),  # setup.py
        ("TRITON_ALWAYS_COMPILE", "3.3", {"1"}),  # `== "1"`
        ("TRITON_ALWAYS_COMPILE", "3.4", {"1", "ON", "on", "yes", "Y", "true"}),  # knobs.py
        ("MLIR_ENABLE_TIMING", "3.9", {"1", "ON", "on", "true"}),  # C++
        ("TRITON_DISABLE_LINE_INFO", "3.9", {"1", "ON", "on", "true"}),  # knobs.py and C++
        ("LLVM_BUILD_SHARED_LIBS", "3.6", {"1", "ON", "on", "yes", "Y", "true"}),
    ],
)
def test_what_is_true(name: str, version: str, on: set[str]) -> None:
    row = variables.table()[name]
    values = {"1", "ON", "on", "yes", "Y", "true", "2", "enabled", "0", "off", "NO", "False", ""}
    assert {value for value in values if variables.is_true(row, value, version)} == on
    plain = {value for value in values if variables.is_plain(row, value, version)}
    assert plain == on | {"0", "off", "NO", "False", ""}
    assert {value.lower() for value in on} == set(variables.true_values(row, version))


def test_what_nothing_does() -> None:
    suppressed = variables.empty("LLVM_SYSPATH", "3.6.0")
    assert suppressed is not None
    assert "suppresses the download" in suppressed.does
    assert not suppressed.good
    reset = variables.empty("LLVM_SYSPATH", "3.7.0")
    assert reset is not None
    assert reset.good
    assert variables.empty("TRITON_CACHE_DIR", "3.3.0") is None
    assert variables.empty("TRITON_CACHE_DIR", "") is not None
    assert variables.empty("MLIR_ENABLE_DUMP", "") is None


def test_what_sticks() -> None:
    assert variables.sticky("3.2.0") == {}
    assert set(variables.sticky("3.6.0")) == {
        *("TRITON_BUILD_PROTON", "TRITON_BUILD_WITH_CCACHE", "TRITON_PARALLEL_LINK_JOBS"),
    }
    assert variables.sticky("")["LLVM_SYSPATH"] == ""
    assert variables.sticky("")["TRITON_BUILD_PROTON"] == "ON"


def test_a_tree_knows_better_than_its_version(tmp_path: Path) -> None:
    root = fakes.checkout(tmp_path / "triton", "3.5")
    (root / "setup.py").write_text('os.getenv("TRITON_BUILD_DIR"); check_env_flag("TRITON_BRAND_NEW")\n')
    names = ("TRITON_BRAND_NEW", "TRITON_BUILD_DIR", "TRITON_BRAND", "TRITON_HOME")
    assert variables.read_in(root, names) == {"TRITON_BRAND_NEW", "TRITON_BUILD_DIR"}
