"""Sets of debug variables, by version."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tritonsmith.compiler import env_profiles
from tritonsmith.core import configs
from tritonsmith.core.errors import UsageError
from tritonsmith.facts import variables

OUT = Path("/some where/out")


def made(*names: str, version: str, kernel: str = "") -> env_profiles.Environment:
    return env_profiles.environment(env_profiles.chosen(names), version, kernel=kernel, out=OUT)


def test_every_variable_is_one_that_some_triton_reads() -> None:
    for profile in env_profiles.known().values():
        assert profile.what
        assert set(profile.set) <= set(variables.table()), profile.name
    for row in configs.load("ir-profiles")["before"]:
        assert {row["name"], *row["set"]} <= set(variables.table())


@pytest.mark.parametrize("version", ["2.1", "3.0", "3.1", "3.2", "3.4", "3.9"])
@pytest.mark.parametrize("name", sorted(env_profiles.known()))
def test_nothing_is_set_that_a_version_does_not_know(name: str, version: str) -> None:
    found = made(name, version=version)
    for variable in found.set:
        assert variables.table()[variable].exists(version), f"{variable} in {version}"
    missing = set(env_profiles.known()[name].set) - set(found.set)
    assert all(any(variable in note for note in found.notes) for variable in missing)


def test_the_newest_knows_all_of_nvidia() -> None:
    found = made("nvidia", version="3.9.0")
    assert found.set == {
        "MLIR_ENABLE_DUMP": "1",
        "LLVM_IR_ENABLE_DUMP": "1",
        "NVPTX_ENABLE_DUMP": "1",
        "TRITON_ALWAYS_COMPILE": "1",
    }
    assert found.notes == ()
    assert found.folders == ()


def test_a_kernels_name_is_for_versions_that_take_one() -> None:
    assert made("mlir", version="3.2.0", kernel="matmul").set["MLIR_ENABLE_DUMP"] == "matmul"
    older = made("mlir", version="3.1.0", kernel="matmul")
    assert older.set["MLIR_ENABLE_DUMP"] == "1"
    assert "MLIR_ENABLE_DUMP=matmul" in older.notes[0]
    assert "triton#4188" in older.notes[0]


def test_what_replaced_a_variable_is_set_and_said() -> None:
    found = made("ir-lines", version="3.1.0")
    assert found.set["USE_TTGIR_LOC"] == "1"
    assert "USE_IR_LOC" not in found.set
    assert any("USE_TTGIR_LOC instead of USE_IR_LOC=ttgir" in note for note in found.notes)
    assert any("TRITON_DUMP_DIR" in note and "~/.triton/dump" in note for note in found.notes)


def test_a_kernel_that_no_variable_looks_at_is_said() -> None:
    assert "no variable of these profiles uses --kernel" in made("timing", version="3.9", kernel="k").notes


def test_a_shell_takes_the_exports(tmp_path: Path) -> None:
    out = tmp_path / "a folder with 'quotes'"
    found = env_profiles.environment(env_profiles.chosen(["reproducer"]), "3.9.0", out=out)
    script = f'{found.exports()}printf %s "$TRITON_REPRODUCER_PATH"'
    said = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout
    assert said == str(out / "reproducer.mlir")
    assert out.is_dir()


def test_a_version_that_nobody_knows_is_said() -> None:
    assert any(
        "the variables of Triton 4.0 are not known" in note for note in made("nvidia", version="4.0").notes
    )
    for known in ("3.9.1", "3.9.0+git12", ""):
        assert made("nvidia", version=known).notes == ()
    for wrong in ("3", "3.x", "3.4 ; ls", ""):
        with pytest.raises(UsageError, match="--triton cannot be"):
            env_profiles.version_of(wrong)
    assert env_profiles.version_of("3.4") == "3.4"


def test_an_unknown_profile_names_the_nearest() -> None:
    with pytest.raises(UsageError, match="nvida") as caught:
        env_profiles.chosen(["nvida"])
    assert "did you mean 'nvidia'?" in str(caught.value)
