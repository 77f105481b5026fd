"""Many units of work with the newest wheel: by processes of this machine, and by a real Dask cluster."""

from __future__ import annotations

import csv
import io
import json
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.integration.dask_cluster import Cluster, running
from tests.integration.harness import DEAD, Smith, interrupt, wait_for
from tests.support import all_gone
from tritonsmith.compiler.tritons import Triton
from tritonsmith.lab.bisect.program_tests import CommandTests
from tritonsmith.worker import FOLDER

KERNELS = 6
FILE = """import triton
import triton.language as tl
from helper import twice

@triton.jit
def k{number}(p, N: tl.constexpr):
    offsets = tl.arange(0, N)
    tl.store(p + offsets, twice(tl.load(p + offsets)) + {number})
"""
HELPER = "import triton\n\n@triton.jit\ndef twice(x):\n    return x * 2\n"
MEET = """
import os, pathlib, time
mine = pathlib.Path(os.environ["TRITON_HOME"])
(mine / "here").touch()
while len(list(mine.parent.glob("*/here"))) < 2:
    time.sleep(0.01)
print(os.getppid())
"""
ENDLESS = """import triton
import triton.language as tl

@triton.jit
def endless(p, N: tl.constexpr):
    x = tl.load(p)
    for i in tl.static_range(N):
        x = x * 3 + i
    tl.store(p, x)
"""
SLOW = """import time
import triton
import triton.language as tl

def wait():
    time.sleep(600)
    return 1

ONE = wait()

@triton.jit
def slow(p, N: tl.constexpr):
    tl.store(p, ONE)
"""


@pytest.fixture(scope="module")
def smith(with_wheel: Smith, tmp_path_factory: pytest.TempPathFactory) -> Smith:
    """The tool beside a list of kernels, with the newest wheel in the environment `wheel`."""
    root = tmp_path_factory.mktemp("study")
    rows = []
    for number in range(KERNELS):
        (root / f"k{number}.py").write_text(FILE.format(number=number))
        rows.append(f'[[kernel]]\nfile = "k{number}.py"\nkernel = "k{number}"\nsignature = "*fp32:16,256"\n')
    (root / "helper.py").write_text(HELPER)
    (root / "kernels.toml").write_text("\n".join(rows))
    (root / "slow.py").write_text(SLOW)
    (root / "slow.toml").write_text('[[kernel]]\nfile = "slow.py"\nsignature = "*fp32,64"\n')
    return with_wheel.beside(root)


def python(smith: Smith) -> str:
    """The interpreter of the newest wheel: the same file on this cluster's machines."""
    return str(smith.env("wheel") / "venv" / "bin" / "python")


def study(smith: Smith, out: str, *flags: str) -> list[dict[str, str]]:
    """Rows of a study of all kernels for two targets."""
    argv = (
        "kernels.toml",
        "--triton",
        python(smith),
        "--target",
        "a100,mi300x",
        "--out",
        out,
        "--csv",
        *flags,
    )
    return list(csv.DictReader(io.StringIO(smith("kernel.study", *argv).out)))


def numbers(rows: list[dict[str, str]]) -> list[tuple[str, ...]]:
    """What does not depend on who compiled."""
    return [(row["kernel"], row["target"], row["registers_per_thread"], row["code_bytes"]) for row in rows]


@pytest.fixture(scope="module")
def rows(smith: Smith) -> list[dict[str, str]]:
    """A study by processes of this machine."""
    return study(smith, "here", "--plot", "study.svg")


@pytest.mark.slow
def test_a_study(smith: Smith, rows: list[dict[str, str]]) -> None:
    assert len(rows) == 2 * KERNELS
    assert not any(row["error"] for row in rows)
    assert all(int(row["code_bytes"]) > 0 for row in rows)
    assert "</svg>" in (smith.cwd / "study.svg").read_text(encoding="utf-8")
    (version,) = {row["triton"] for row in rows}
    made = json.loads((smith.cwd / "here" / version / "k0" / "manifest.json").read_text(encoding="utf-8"))
    assert {"ttgir", "ptx", "cubin"} <= set(made["points"][0]["stages"])


@pytest.mark.slow
def test_it_goes_on_where_it_stopped(smith: Smith, rows: list[dict[str, str]]) -> None:
    (version,) = {row["triton"] for row in rows}
    folder = smith.cwd / "here" / version
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*.cubin")}
    (folder / "k1" / "cuda-80-32" / "k1.cubin").unlink()
    assert numbers(study(smith, "here")) == numbers(rows)
    after = {path: path.stat().st_mtime_ns for path in folder.rglob("*.cubin")}
    assert [path.name for path, when in after.items() if before[path] != when] == ["k1.cubin"]


@pytest.fixture
def cluster(smith: Smith, tmp_path: Path) -> Iterator[Cluster]:
    """Two workers on this machine, with a workspace of their own."""
    with running(tmp_path, smith.environ, [tmp_path / "theirs"] * 2) as started:
        yield started


@pytest.mark.slow
def test_a_cluster_compiles_the_same(smith: Smith, rows: list[dict[str, str]], cluster: Cluster) -> None:
    assert numbers(study(smith, "there", "--scheduler", cluster.address)) == numbers(rows)
    made = json.loads(next((smith.cwd / "there").rglob("k0/manifest.json")).read_text(encoding="utf-8"))
    assert made["file"] == str(smith.cwd / "k0.py")
    for point in made["points"]:
        for stage in point["stages"].values():
            path = next((smith.cwd / "there").rglob("k0")) / stage["path"]
            assert path.stat().st_size == stage["size"]


@pytest.mark.slow
def test_a_worker_that_is_killed_loses_nothing(
    smith: Smith, rows: list[dict[str, str]], cluster: Cluster
) -> None:
    argv = ("kernels.toml", "--triton", python(smith), "--target", "a100,mi300x", "--out", "killed", "--csv")
    with smith.running("kernel.study", *argv, "--scheduler", cluster.address) as process:
        victim = psutil.Process(cluster.workers[0].pid)
        wait_for(lambda: _compiles(victim.children()), process)
        victim.send_signal(signal.SIGKILL)
        out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert numbers(list(csv.DictReader(io.StringIO(out)))) == numbers(rows)


@pytest.mark.slow
def test_a_compile_that_hangs_is_given_up_by_a_cluster(smith: Smith, cluster: Cluster) -> None:
    (smith.cwd / "endless.py").write_text(ENDLESS)
    rows = (smith.cwd / "kernels.toml").read_text()
    endless = '\n[[kernel]]\nfile = "endless.py"\nsignature = "*fp32:16,100000000"\n'
    (smith.cwd / "endless.toml").write_text(rows + endless)
    argv = ("endless.toml", "--triton", python(smith), "--target", "a100", "--out", "endless", "--csv")
    # Not shorter: on a busy machine, one of the others would be given up, too.
    done = smith("kernel.study", *argv, "--timeout", "20", "--scheduler", cluster.address, code=1)
    errors = {row["kernel"]: row["error"] for row in csv.DictReader(io.StringIO(done.out))}
    assert "timed out after 20 s" in errors.pop("endless")
    assert errors == {f"k{number}": "" for number in range(KERNELS)}
    # Each waits for its next request, and what it had started is gone.
    for worker in cluster.workers:
        waiting = psutil.Process(worker.pid).children()
        assert waiting
        assert not [child for process in waiting for child in process.children()]


@pytest.mark.slow
def test_commands_of_a_bisect_run_at_once_on_a_cluster(
    smith: Smith, cluster: Cluster, tmp_path: Path
) -> None:
    tritons = [Triton(label, python=python(smith)) for label in "ab"]
    tested = CommandTests(
        ("python", "-c", MEET), tmp_path, tmp_path / "tests", scheduler=cluster.address, jobs=2
    )
    found = {triton.label: outcome.figures for triton, outcome in tested.outcomes(tritons)}
    workers = {f"exit code 0: {process.pid}" for process in cluster.workers}
    assert (set(found), set(found.values())) == ({"a", "b"}, workers)


def _compiles(family: list[psutil.Process]) -> bool:
    """Whether one of these processes compiles."""
    for one in family:
        with suppress(psutil.NoSuchProcess):  # or a zombie
            if str(FOLDER) in one.cmdline():
                return True
    return False


@pytest.mark.slow
def test_nobody_at_the_address(smith: Smith) -> None:
    argv = ("kernels.toml", "--triton", python(smith), "--target", "a100", "--out", "nobody")
    address = DEAD.replace("http", "tcp")
    assert (
        f"no Dask scheduler responds at {address}"
        in smith("kernel.study", *argv, "--scheduler", address, code=1).error
    )
    assert "--scheduler cannot be" in smith("kernel.study", *argv, "--scheduler", "x://y", code=2).error


@pytest.mark.slow
def test_interrupted_it_leaves_no_process(smith: Smith) -> None:
    argv = ("slow.toml", "--triton", python(smith), "--target", "a100", "--out", "slow")
    family: list[psutil.Process] = []
    with smith.running("kernel.study", *argv) as process:

        def compiling() -> bool:
            family[:] = psutil.Process(process.pid).children(recursive=True)
            return _compiles(family)

        wait_for(compiling, process)
        done = interrupt(process)
    assert done.code == 130
    assert "Traceback" not in done.err
    assert all_gone(family)


@pytest.mark.slow
def test_wrong_input_is_one_clear_error(smith: Smith) -> None:
    for argv, code, what in (
        (["kernel.toml", "--triton", "3.4.0"], 2, "did you mean 'kernels.toml'?"),
        (["kernels.toml"], 2, "no Triton is given"),
        (["kernels.toml", "--triton", "h100"], 2, "--triton cannot be 'h100'"),
        (["kernels.toml", "--triton", "weel"], 2, "did you mean 'wheel'?"),
        (["kernels.toml", "--triton", "wheel", "--plot", "x.gif"], 2, "--plot cannot write"),
        (["kernels.toml", "--triton", "wheel", "--source", "."], 2, "is not a git repository"),
    ):
        assert what in smith("kernel.study", *argv, code=code).error
    script = smith("kernel.study", "kernels.toml", "--triton", "3.3.1", "--out", "dry", "--dry-run").out
    assert "triton==3.3.1" in script
    assert not (smith.cwd / "dry").exists()
