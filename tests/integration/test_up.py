"""`up`, or a kernel task instead, with a real wheel from the package index, and without any index."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.integration.conftest import FIRST_UP
from tests.integration.harness import DEAD, Smith
from tests.support import REPOSITORY

OFFLINE = {
    "PIP_INDEX_URL": f"{DEAD}/simple",
    "PIP_EXTRA_INDEX_URL": "",
    "PIP_FIND_LINKS": "",
    "PIP_CONFIG_FILE": "/dev/null",
    "PIP_NO_CACHE_DIR": "1",
    "PIP_RETRIES": "0",
}
KERNEL = (
    REPOSITORY / "examples" / "aot" / "kernels.py:vector_add",
    "--signature",
    "*fp32,*fp32,*fp32,fp32,i32,BLOCK=1024",
)


@pytest.fixture
def smith(with_wheel: Smith) -> Smith:
    """The tool after a newcomer's first `up`."""
    return with_wheel


def test_up_compiles_for_two_vendors_and_shows_it(smith: Smith) -> None:
    first = (smith.root / FIRST_UP).read_text(encoding="utf-8")
    for text in ("vector_add", "cuda:90:32", "hip:gfx942:64", "ttgir", "cubin", "hsaco", "What next"):
        assert text in first
    assert str(smith.env("wheel") / "kernels") in first


def test_the_files_of_every_stage_are_there(smith: Smith) -> None:
    stages = {path.suffix: path for path in (smith.env("wheel") / "kernels").rglob("vector_add.*")}
    assert {".ttir", ".ttgir", ".llir", ".ptx", ".cubin", ".amdgcn", ".hsaco"} <= set(stages)
    assert all(path.stat().st_size > 0 for path in stages.values())
    assert ".visible .entry vector_add" in stages[".ptx"].read_text(encoding="utf-8")
    assert stages[".cubin"].read_bytes().startswith(b"\x7fELF")
    assert stages[".hsaco"].read_bytes().startswith(b"\x7fELF")


def test_the_receipt_tells_the_version_and_the_sizes(smith: Smith) -> None:
    answer = smith.receipt("up", "wheel")["answer"]
    assert answer["triton"][0].isdigit()
    assert [result["target"] for result in answer["results"]] == ["cuda:90:32", "hip:gfx942:64"]


def test_the_doctor_sees_it_work(smith: Smith) -> None:
    findings = json.loads(smith("doctor", "--env", "wheel", "--only", "python", "--deep", "--json").out)
    statuses = {found["id"]: (found["status"], found["seen"]) for found in findings["findings"]}
    for name in ("python.owners", "python.import", "python.ptxas", "python.compile"):
        assert statuses[name][0] == "ok", statuses
    assert "cubin" in statuses["python.compile"][1]


def test_a_second_up_installs_nothing(smith: Smith) -> None:
    stamp = smith.env("wheel") / ".venv.done"
    before = stamp.stat().st_mtime_ns, _packages(smith)
    smith("up")
    assert (stamp.stat().st_mtime_ns, _packages(smith)) == before
    assert "pip install" not in smith.log("up")


def test_a_second_up_needs_no_network(smith: Smith) -> None:
    assert "What next" in replace(smith, more=OFFLINE)("up").out


@pytest.mark.slow
def test_without_an_index_there_is_one_clear_error(tmp_path: Path) -> None:
    lonely = Smith(tmp_path, cwd=tmp_path, more=OFFLINE)
    error = lonely("up", code=1).error
    assert "Python environment failed" in error
    assert "triton" in error
    assert "check that pip can reach its index" in error
    log = Path(error.rpartition("full log: ")[2].strip())
    assert "pip install" in log.read_text(encoding="utf-8")
    assert not lonely.env("wheel").joinpath("receipts").exists()
    assert len(error.splitlines()) <= 20


@pytest.mark.slow
def test_a_compile_before_the_first_up_installs_what_up_then_finds(tmp_path: Path) -> None:
    newcomer = Smith(tmp_path, cwd=tmp_path)
    kernel = ("kernel.compile", *KERNEL, "--target", "h100", "--stage", "ptx")
    first = newcomer(*kernel)
    assert f"note: no Triton yet: the newest release is installed into {newcomer.env('wheel')}" in first.err
    assert "cuda-90-32" in first.out
    assert "no Triton yet" not in newcomer(*kernel).err
    assert "What next" in replace(newcomer, more=OFFLINE)("up").out
    assert "pip install" not in newcomer.log("up")


@pytest.mark.slow
def test_a_compile_without_an_index_says_what_to_check_and_can_be_run_again(tmp_path: Path) -> None:
    lonely = Smith(tmp_path, cwd=tmp_path, more=OFFLINE)
    for _ in range(2):
        error = lonely("kernel.compile", *KERNEL, code=1).error
        assert "cannot install the newest Triton" in error
        assert "check that pip can reach its index" in error
        assert len(error.splitlines()) <= 20


def test_up_with_an_environment_that_builds_is_a_usage_error(smith: Smith) -> None:
    error = smith("up", "--env", "dev", code=2).error
    assert "builds Triton from sources" in error
    assert "tritonsmith setup-mlir --env dev" in error


def test_up_dry_run_touches_nothing(tmp_path: Path) -> None:
    idle = Smith(tmp_path, cwd=tmp_path)
    script = idle("up", "--dry-run").out
    assert "pip install" in script
    assert '"cuda"' in script
    assert not idle.home.exists()


def _packages(smith: Smith) -> dict[str, int]:
    folder = next((smith.env("wheel") / "venv" / "lib").glob("python*/site-packages"))
    return {path.name: path.stat().st_mtime_ns for path in folder.glob("*.dist-info")}
