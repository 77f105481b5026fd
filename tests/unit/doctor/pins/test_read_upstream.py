from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.repositories import Made, Maker
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import FactError, LockedError, SmithError
from tritonsmith.core.plan import GitFetch, locks
from tritonsmith.doctor.pins import read_upstream
from tritonsmith.doctor.pins.read_upstream import LivePin
from tritonsmith.facts import pytorch_pins

CUDA, ROCM, XPU, CPU = (digit * 40 for digit in "abcd")
PINS = ".ci/docker/ci_commit_pins"
OLD = ".github/ci_commit_pins"


@pytest.fixture
def pytorch(make: Maker) -> Made:
    """A repository of PyTorch in which the pins moved, as they did: tags v2.0.1, v2.4.1 and v2.9.1."""
    made = make("pytorch")
    old = {f"{OLD}/triton.txt": f"{CUDA}\n", f"{OLD}/triton-rocm.txt": f"{ROCM}\n"}
    made.commit("2.0", {**old, "csrc/big.cpp": "x" * 100_000})
    made.git("tag", "v2.0.1")
    made.commit(
        "2.4",
        {
            f"{PINS}/triton.txt": f"{CUDA}\n",
            f"{PINS}/triton-rocm.txt": f"{ROCM}\n",
            f"{PINS}/triton-xpu.txt": f"{XPU}\n",
            ".ci/docker/triton_version.txt": "3.0.0\n",
            f"{OLD}/triton.txt": f"->../../{PINS}/triton.txt",
            f"{OLD}/triton-rocm.txt": f"->../../{PINS}/triton-rocm.txt",
        },
    )
    made.git("tag", "-a", "v2.4.1", "-m", "2.4.1")
    made.commit(
        "2.9",
        {
            f"{PINS}/triton-rocm.txt": None,
            f"{OLD}/triton-rocm.txt": None,
            f"{PINS}/triton-cpu.txt": f"{CPU}\n",
            ".ci/docker/triton_xpu_version.txt": "3.5.0\n",
            ".ci/docker/triton_version.txt": "3.5.1\n",
        },
    )
    made.git("tag", "v2.9.1")
    made.git("branch", "release/2.9")
    for number in range(50):
        (made.path / f"file{number}.py").write_text(f"{number}")
    made.commit("later", {f"{PINS}/triton.txt": f"{'e' * 40}\n"})
    return made


def read(where: str, ref: str, triton: Path | None = None) -> dict[str, LivePin]:
    reading = read_upstream.read(where, ref, workspace.default(), triton)
    assert reading.ref == ref
    assert reading.committed.startswith("20")
    return {pin.channel: pin for pin in reading.pins}


@pytest.mark.slow
@pytest.mark.parametrize("by", ["path", "url"])
def test_pins_in_the_places_of_each_era(pytorch: Made, by: str) -> None:
    where = pytorch.path.as_uri() if by == "url" else str(pytorch.path)
    assert read(where, "v2.0.1") == {
        "cuda": LivePin("cuda", "CUDA", CUDA, "", f"{OLD}/triton.txt"),
        "rocm": LivePin("rocm", "ROCm", ROCM, "", f"{OLD}/triton-rocm.txt"),
    }
    assert read(where, "v2.4.1") == {
        "cuda": LivePin("cuda", "CUDA", CUDA, "3.0.0", f"{PINS}/triton.txt"),
        "rocm": LivePin("rocm", "ROCm", ROCM, "3.0.0", f"{PINS}/triton-rocm.txt"),
        "xpu": LivePin("xpu", "XPU", XPU, "3.0.0", f"{PINS}/triton-xpu.txt"),
    }
    new = read(where, "v2.9.1")
    cuda = LivePin("cuda", "CUDA", CUDA, "3.5.1", f"{PINS}/triton.txt")
    assert new == {
        "cuda": cuda,
        "rocm": replace(cuda, channel="rocm", title="ROCm", same_as="cuda"),
        "xpu": LivePin("xpu", "XPU", XPU, "3.5.0", f"{PINS}/triton-xpu.txt"),
        "cpu": LivePin("cpu", "CPU", CPU, "", f"{PINS}/triton-cpu.txt"),
    }
    assert read(where, "release/2.9") == new
    assert read(where, pytorch.git("rev-parse", "v2.9.1")) == new
    assert read(where, "main")["cuda"].commit == "e" * 40


def test_a_link_leads_to_the_pin_where_only_the_old_place_is_known(make: Maker) -> None:
    made = make("pytorch")
    made.commit(
        "x", {"elsewhere/triton.txt": f"{CUDA}\n", f"{OLD}/triton.txt": "->../../elsewhere/triton.txt"}
    )
    pins = read(str(made.path), "main")
    assert pins["cuda"].commit == pins["rocm"].commit == CUDA


def test_a_url_brings_only_the_contents_that_are_read(pytorch: Made) -> None:
    read(pytorch.path.as_uri(), "v2.9.1")
    (repository,) = (workspace.default().sources).glob("pins-*")
    argv = ("git", "-C", str(repository), "cat-file", "--batch-all-objects", "--batch-check")
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    kinds = [line.split()[1] for line in done.stdout.splitlines()]
    assert kinds.count("commit") == 1  # and no history
    assert kinds.count("blob") == 5  # three pins and two versions
    assert not [path for path in repository.iterdir() if path.name != ".git"]


def test_a_url_is_fetched_again_because_branches_move(pytorch: Made) -> None:
    url = pytorch.path.as_uri()
    assert read(url, "main")["cuda"].commit == "e" * 40
    pytorch.commit("moved", {f"{PINS}/triton.txt": f"{'f' * 40}\n"})
    assert read(url, "main")["cuda"].commit == "f" * 40


def test_a_clone_of_the_users_is_left_as_it_is(pytorch: Made) -> None:
    def files() -> dict[Path, tuple[int, int]]:
        found = (path for path in pytorch.path.rglob("*") if not path.is_symlink())
        return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in found}

    before = files()
    read(str(pytorch.path), "v2.0.1")
    assert files() == before
    assert not workspace.default().root.exists()


def test_the_plan_is_what_the_run_does(pytorch: Made) -> None:
    url = "https://example.invalid/x/pytorch.git"
    plan = read_upstream.plan_fetch(url, "v2.9.1", workspace.default())
    (fetch,) = (step for step in plan.steps if isinstance(step, GitFetch))
    assert (fetch.urls, fetch.commit, fetch.blobless) == ((url,), "v2.9.1", True)
    assert fetch.repository.parent == workspace.default().sources
    assert fetch.repository.name.startswith("pins-pytorch-")
    other = read_upstream.plan_fetch("https://example.invalid/y/pytorch.git", "v2.9.1", workspace.default())
    assert other.steps[1] != fetch
    assert read_upstream.plan_fetch(str(pytorch.path), "main", workspace.default()).steps == ()


def test_no_such_ref(pytorch: Made) -> None:
    with pytest.raises(FactError, match="no tag, branch or commit 'v9") as caught:
        read(str(pytorch.path), "v9.9.9")
    assert "git fetch origin --tags" in str(caught.value)
    with pytest.raises(SmithError, match="cannot read 'v9") as caught_url:
        read(pytorch.path.as_uri(), "v9.9.9")
    assert "--repository PATH" in str(caught_url.value)
    assert "invoke pins --pytorch VERSION" in str(caught_url.value)


def test_an_unreachable_url(tmp_path: Path) -> None:
    with pytest.raises(SmithError, match="cannot read 'main' of this repository") as caught:
        read((tmp_path / "nowhere").as_uri(), "main")
    assert "check the network" in str(caught.value)


def test_a_repository_without_pins(make: Maker) -> None:
    made = make("other")
    made.commit("x", {"README.md": "no PyTorch"})
    with pytest.raises(FactError, match="no file at this commit pins Triton") as caught:
        read(str(made.path), "main")
    assert f"{OLD}/triton.txt" in str(caught.value)


@pytest.mark.parametrize("text", ["", "release/3.5.x\n", f"{CUDA} # why\n", "A" * 40])
def test_a_pin_file_that_holds_no_commit(make: Maker, text: str) -> None:
    made = make("pytorch")
    made.commit("x", {f"{PINS}/triton.txt": text})
    with pytest.raises(FactError, match="does not contain a commit") as caught:
        read(str(made.path), "main")
    assert f"{PINS}/triton.txt at " in str(caught.value)


def test_a_second_run_is_told_to_wait(pytorch: Made) -> None:
    space = workspace.default()
    space.claim()
    with locks.hold(space.root / "pins.lock", purpose="pins --live"), pytest.raises(LockedError):
        read(pytorch.path.as_uri(), "main")


def test_llvm_from_a_clone_of_triton_and_else_from_the_table(make: Maker) -> None:
    triton = make("triton")
    info = {"cmake/llvm-info.json": json.dumps({"llvm_hash": "9" * 40})}
    commit = triton.commit("x", info)
    known = pytorch_pins.find("2.13.0").release.cuda
    made = make("pytorch")
    made.commit("x", {f"{PINS}/triton.txt": f"{commit}\n", f"{PINS}/triton-xpu.txt": f"{known.commit}\n"})
    pins = read(str(made.path), "main", triton.path)
    assert (pins["cuda"].llvm, pins["cuda"].llvm_from) == ("9" * 40, "the Triton clone")
    assert (pins["xpu"].llvm, pins["xpu"].llvm_from) == (known.llvm, "the table")
    alone = read(str(made.path), "main")
    assert (alone["cuda"].llvm, alone["cuda"].llvm_from) == ("", "")


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("https://github.com/pytorch/pytorch", True),
        ("file:///x", True),
        ("git@github.com:pytorch/pytorch", True),
        ("../pytorch", False),
        ("/src/pytorch", False),
    ],
)
def test_urls(text: str, url: bool) -> None:
    assert read_upstream.is_url(text) is url


def test_upstream_is_the_default() -> None:
    assert read_upstream.default_repository() == "https://github.com/pytorch/pytorch"
