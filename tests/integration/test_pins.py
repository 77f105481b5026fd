"""`pins` and `env-triton` through the console script: repositories over file:// URLs, a real wheel."""

from __future__ import annotations

import difflib
import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.integration.harness import DEAD, Done, Smith, commit, git
from tests.support import require

CHECKOUT = Path(__file__).parents[2]
OFFLINE = {
    "PIP_INDEX_URL": f"{DEAD}/simple",
    "PIP_EXTRA_INDEX_URL": "",
    "PIP_FIND_LINKS": "",
    "PIP_CONFIG_FILE": "/dev/null",
    "PIP_NO_CACHE_DIR": "1",
    "PIP_RETRIES": "0",
}
PIN = "bfeb066872bc1e8b2d2bc0a3b295b99dd77206e7"  # of PyTorch 2.9.1
CANDIDATE = "7416ffcb92cdbe98d9f97e4e6f95247e46dfc9fd"  # of PyTorch 2.9.0


@pytest.fixture
def smith(tmp_path: Path) -> Smith:
    """The tool in an empty folder; spaces in every path."""
    require("git")
    root = tmp_path / "new comer"
    cwd = root / "empty folder"
    cwd.mkdir(parents=True)
    return Smith(root, cwd=cwd)


@pytest.fixture
def pytorch(tmp_path: Path) -> Path:
    """A repository with the pins of two releases, and much else."""
    folder = tmp_path / "my pytorch"
    pins = folder / ".ci" / "docker" / "ci_commit_pins"
    pins.mkdir(parents=True)
    for number in range(300):
        (folder / f"file{number}.cpp").write_text(f"int x{number};\n" * 500, encoding="utf-8")
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "config", "uploadpack.allowFilter", "true")
    git(folder, "config", "uploadpack.allowAnySHA1InWant", "true")
    for version, triton, pin in (("2.9.0", "3.5.0", CANDIDATE), ("2.9.1", "3.5.1", PIN)):
        (pins / "triton.txt").write_text(f"{pin}\n", encoding="utf-8")
        (pins.parent / "triton_version.txt").write_text(f"{triton}\n", encoding="utf-8")
        commit(folder, version)
        git(folder, "tag", f"v{version}")
    return folder


def answer(done: Done) -> dict[str, Any]:
    """What `--json` printed."""
    found: dict[str, Any] = json.loads(done.out)
    assert found["schema"] == 1
    return found


def test_the_table_from_an_empty_folder(smith: Smith) -> None:
    out = smith("pins").out
    assert "the LLVM in the wheel is NOT the LLVM at the pin" in out
    assert "pytorch-triton-" in out
    releases = answer(smith("pins", "--json"))["releases"]
    assert [row["pytorch"] for row in releases][-1] == "2.15.0"
    assert all(row["pytorch"] in out for row in releases)
    assert not smith.home.exists()


def test_one_release_and_how_it_was_read(smith: Smith) -> None:
    done = smith("pins", "--pytorch", "2.12")
    assert "note: 2.12 is read as 2.12.1" in done.err
    assert "THE TWO LLVMs DIFFER" in done.out
    one = answer(smith("pins", "--pytorch", "2.12", "--json"))
    assert one["release"]["llvms_differ"] is True
    assert one["note"].startswith("2.12 is read as")


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (("--pytorch", "2.9.7"), "nearest known releases: 2.9.1, 2.10.0"),
        (("--pytorch", "nightly"), "not a version of PyTorch"),
        (("--live", "--installed"), "--live and --installed contradict each other"),
        (("--ref", "main"), "--ref requires --live"),
        (("--update",), "--update requires --live"),
        (("--dry-run",), "--dry-run requires --live"),
        (("--env", "dev"), "--env requires --installed"),
        (("--source", "."), "--source requires --triton, --picks or --live"),
        (("--installed", "--pytorch", "2.9"), "--pytorch requires --live, or no other question"),
        (("--installed", "--env", "dev", "--python", "x"), "--env and --python contradict each other"),
        (("--live", "--json", "--dry-run"), "--json and --dry-run contradict each other"),
        (("--live", "--update", "--ref", "main"), "--update reads each release's own tag"),
        (("--lvie",), "did you mean '--live'?"),
    ],
)
def test_a_wrong_command_line(smith: Smith, argv: tuple[str, ...], says: str) -> None:
    assert says in smith("pins", *argv, code=2).error
    assert not smith.home.exists()


def test_live_by_url_fetches_the_pins_and_nothing_else(smith: Smith, pytorch: Path) -> None:
    done = smith("pins", "--live", "--repository", pytorch.as_uri(), "--pytorch", "2.9")
    assert PIN in done.out
    assert "CUDA     the same (pin-file-quoted)" in done.out
    (repository,) = (smith.home / "sources").glob("pins-*")
    kinds = git(repository, "cat-file", "--batch-all-objects", "--batch-check").split()[1::3]
    assert (kinds.count("commit"), kinds.count("blob")) == (1, 2)
    assert [path.name for path in repository.iterdir()] == [".git"]
    assert "--filter=blob:none" in smith.log("pins")


def test_live_by_path_writes_nothing(smith: Smith, pytorch: Path) -> None:
    found = answer(smith("pins", "--live", "--repository", pytorch, "--ref", "v2.9.0", "--json"))
    assert found["pins"][0]["commit"] == CANDIDATE
    assert found["pins"][1]["same_as"] == "cuda"
    assert git(pytorch, "status", "--porcelain") == ""
    assert not smith.home.exists()


def test_live_dry_run_prints_a_script(smith: Smith) -> None:
    script = smith("pins", "--live", "--dry-run").out
    assert "--filter=blob:none -- https://github.com/pytorch/pytorch main" in script
    subprocess.run(("sh", "-n"), input=script, text=True, check=True)
    assert not smith.home.exists()


def test_live_without_a_network(smith: Smith) -> None:
    error = smith("pins", "--live", "--repository", f"{DEAD}/pytorch", "--pytorch", "2.9.1", code=1).error
    assert error.startswith("error: cannot read 'v2.9.1' of this repository")
    assert "check the network" in error
    assert "--repository PATH" in error
    assert "tritonsmith pins --pytorch VERSION" in error
    assert len(error.splitlines()) < 10


def test_live_of_a_ref_or_a_folder_that_is_not_there(smith: Smith, pytorch: Path) -> None:
    assert (
        "no tag, branch or commit 'v3'"
        in smith("pins", "--live", "--repository", pytorch, "--ref", "v3", code=1).error
    )
    assert "not a git repository" in smith("pins", "--live", "--repository", smith.cwd, code=1).error


@pytest.fixture
def own(smith: Smith, tmp_path: Path) -> tuple[Smith, Path]:
    """The tool run from a checkout of its own, and the table there."""
    checkout = tmp_path / "own checkout"
    for name in ("src", "configs", "envs"):
        shutil.copytree(CHECKOUT / name, checkout / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(CHECKOUT / "pyproject.toml", checkout)
    return replace(
        smith, more={"PYTHONPATH": str(checkout / "src")}
    ), checkout / "configs" / "pytorch-pins.toml"


@pytest.mark.slow
def test_update_writes_what_the_tags_say(own: tuple[Smith, Path], pytorch: Path) -> None:
    smith, table = own
    before = table.read_text(encoding="utf-8")
    asked = ("pins", "--live", "--update", "--repository", pytorch, "--pytorch", "2.9.0,2.9.1")
    plan = smith(*asked, "--dry-run")
    assert f"# note: 2.9.0 CUDA: unknown -> {CANDIDATE[:10]} (read)" in plan.out
    subprocess.run(("sh", "-n"), input=plan.out, text=True, check=True)
    assert table.read_text(encoding="utf-8") == before
    done = smith(*asked)
    assert f"2.9.0 CUDA: unknown -> {CANDIDATE[:10]} (read)" in done.out
    after = table.read_text(encoding="utf-8")
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0)
    changed = [line for line in lines if line[0] in "+-" and line[:3] not in ("+++", "---")]
    assert f'+commit = "{CANDIDATE}"' in changed
    assert len(changed) < 30
    assert not [line for line in changed if "#" in line and line.startswith(("+#", "-#"))]
    assert "nothing to change" in smith(*asked).out
    assert table.read_text(encoding="utf-8") == after
    release = answer(smith("pins", "--pytorch", "2.9.0", "--json"))["release"]
    assert (release["cuda"]["commit"], release["cuda"]["grade"]) == (CANDIDATE, "read")


@pytest.mark.slow
def test_update_of_every_release_names_those_without_a_tag(own: tuple[Smith, Path], pytorch: Path) -> None:
    smith, table = own
    asked = ("pins", "--live", "--update", "--repository", pytorch)
    assert "no tag, branch or commit 'v2.0.0'" in smith(*asked, code=1).error
    git(pytorch, "tag", "v2.0.0", "v2.9.0")
    found = answer(smith(*asked, "--json"))
    assert found["file"] == str(table)
    assert "2.13.0" in found["missing"]
    assert "2.9.1" not in found["missing"]
    assert len(found["changes"]) == 6


def test_update_of_a_release_that_the_table_lacks(own: tuple[Smith, Path], pytorch: Path) -> None:
    smith, _ = own
    git(pytorch, "tag", "v2.99.0")
    smith("pins", "--live", "--update", "--repository", pytorch.as_uri(), "--pytorch", "2.99.0")
    assert PIN in smith("pins", "--pytorch", "2.99").out


@pytest.fixture
def triton(tmp_path: Path) -> Path:
    """A checkout of Triton as far as `pins` looks at it."""
    folder = tmp_path / "my triton"
    for name in ("include/triton", "third_party"):
        (folder / name).mkdir(parents=True)
        (folder / name / "file").touch()
    git(folder, "init", "--quiet", "--initial-branch=main")
    commit(folder, "Fix it (#1)")
    return folder


def test_who_holds_a_commit_in_the_checkout_that_one_stands_in(smith: Smith, triton: Path) -> None:
    inside = replace(smith, cwd=triton / "third_party")
    done = inside("pins", "--triton", "HEAD")
    assert "Fix it (#1)" in done.out
    assert "Pins for CUDA that have it: none" in done.out
    assert "2.15.0  CUDA   the pin is unknown" in done.out
    assert "2.13.0  CUDA   this clone lacks the pin" in done.out
    rows = answer(inside("pins", "--triton", "HEAD", "--json"))["pins"]
    assert {row["relation"] for row in rows} == {"undecided"}
    assert {row["release"] for row in rows} >= {"2.0.0", "2.9.1", "2.15.0"}


def test_who_holds_a_commit_that_is_not_there(smith: Smith, triton: Path) -> None:
    assert "no clone of Triton found" in smith("pins", "--triton", "HEAD", code=1).error
    error = smith("pins", "--triton", PIN, "--source", triton, code=1).error
    assert f"no commit '{PIN}'" in error
    assert str(triton) in error


def test_installed_where_there_is_nothing(smith: Smith) -> None:
    assert "has no virtual environment yet" in smith("pins", "--installed", code=1).error
    assert "no torch in this Python" in smith("pins", "--installed", "--python", sys.executable, code=1).error
    assert "no such file" in smith("pins", "--installed", "--python", "/no/python", code=1).error


@pytest.fixture(scope="module")
def settled(tmp_path_factory: pytest.TempPathFactory) -> Smith:
    """An environment into which `env-triton` put the real wheel of PyTorch 2.13.0."""
    root = tmp_path_factory.mktemp("settled env")
    smith = Smith(root, cwd=root)
    done = smith("env-triton", "--pytorch", "2.13", "--env", "wheel")
    assert "triton==3.7.1, as PyTorch 2.13.0 requires" in done.out
    return smith


@pytest.mark.slow
def test_env_triton_installs_the_wheel_that_pytorch_requires(settled: Smith) -> None:
    assert settled.receipt("env-triton", "wheel")["requirement"] == "triton==3.7.1"
    (site,) = settled.env("wheel").glob("venv/lib/python*/site-packages")
    assert (site / "triton-3.7.1.dist-info").is_dir()
    assert (site / "triton" / "_C" / "libtriton.so").is_file()


@pytest.mark.slow
def test_env_triton_does_nothing_twice_and_needs_no_network_then(settled: Smith) -> None:
    again = replace(settled, more=OFFLINE)("env-triton", "--pytorch", "2.12.1", "--env", "wheel")
    assert "wheel has triton==3.7.1 already" in again.out


def test_env_triton_replaces_nothing_unasked(settled: Smith) -> None:
    done = settled("env-triton", "--pytorch", "2.9.1", "--env", "wheel", code=1)
    assert "replaces triton 3.7.1" in done.err
    assert "there is no terminal to ask in" in done.error
    assert "--yes" in done.error
    (site,) = settled.env("wheel").glob("venv/lib/python*/site-packages")
    assert (site / "triton-3.7.1.dist-info").is_dir()


def test_env_triton_without_a_network(settled: Smith) -> None:
    lonely = replace(settled, more=OFFLINE)
    error = lonely("env-triton", "--pytorch", "2.9.1", "--env", "wheel", "--yes", code=1).error
    assert "triton==3.5.1 could not be installed" in error
    assert f"git checkout {PIN}" in error
    (site,) = settled.env("wheel").glob("venv/lib/python*/site-packages")
    assert (site / "triton-3.7.1.dist-info").is_dir()


def test_installed_beside_a_real_wheel(settled: Smith) -> None:
    (site,) = settled.env("wheel").glob("venv/lib/python*/site-packages")
    for version, agrees in (("2.13.0", True), ("2.9.1", False)):
        info, package = site / f"torch-{version}.dist-info", site / "torch"
        package.mkdir()
        (package / "__init__.py").write_text("raise SystemExit('imported')", encoding="utf-8")
        (package / "version.py").write_text(f"__version__ = '{version}'\n", encoding="utf-8")
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n"
            f"Requires-Dist: triton=={'3.7.1' if agrees else '3.5.1'}\n",
            encoding="utf-8",
        )
        found = answer(settled("pins", "--installed", "--env", "wheel", "--json"))
        assert found["agrees"] is agrees
        (row,) = found["triton"]
        assert (row["name"], row["version"], row["commit"]) == ("triton", "3.7.1", None)
        assert found["release"]["pytorch"] == version
        assert f"agrees  {'yes' if agrees else 'NO'}" in settled("pins", "--installed", "--env", "wheel").out
        shutil.rmtree(info)
        shutil.rmtree(package)


@pytest.mark.parametrize(
    ("argv", "code", "says"),
    [
        (("--pytorch", "nightly"), 1, "tritonsmith pins --live --ref nightly"),
        (("--pytorch", "2.9.1", "--channel", "rocm"), 1, f"git checkout {PIN}"),
        (("--pytorch", "2.15", "--channel", "xpu"), 1, "tritonsmith pins --live --pytorch 2.15.0"),
        (("--pytorch", "2.9.9"), 2, "nearest known releases: 2.9.1, 2.10.0"),
        (("--pytorch", "2.9.1", "--channel", "cdua"), 2, "did you mean 'cuda'?"),
        (("--pytorch", "2.9.1", "--env", "wheeel"), 2, "did you mean 'wheel'?"),
        ((), 2, "no PyTorch version given"),
    ],
)
def test_env_triton_says_what_to_do_instead(
    smith: Smith, argv: tuple[str, ...], code: int, says: str
) -> None:
    assert says in smith("env-triton", *argv, code=code).error
    assert not smith.home.exists()


def test_env_triton_dry_run_touches_nothing(smith: Smith) -> None:
    script = smith("env-triton", "--pytorch", "2.9.1", "--dry-run").out
    assert "pip install" in script
    assert "triton==3.5.1" in script
    subprocess.run(("sh", "-n"), input=script, text=True, check=True)
    assert not smith.home.exists()
