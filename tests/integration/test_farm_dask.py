"""Many machines: a farm by a real Dask cluster whose workers die, hang, or have another Triton."""

from __future__ import annotations

import json
import signal
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.integration.dask_cluster import running
from tests.integration.harness import Smith, interrupt, wait_for
from tests.support import all_gone, script_of_python
from tests.unit.compiler.resources import elf_maker
from tests.unit.lab.compare import compiler, making
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import EXIT_UNDECIDED

pytestmark = pytest.mark.slow

SIDES = {"wheel": "3.4.0", "torch": "3.6.0"}
KERNELS = 5
WORDS = ("farm", "kernels.toml", "--base", "wheel", "--head", "torch", "--json")


@pytest.fixture
def smith(tmp_path: Path) -> Smith:
    """The tool beside a list of kernels, with a Triton that compiles nothing in each of two environments."""
    smith = Smith(tmp_path, cwd=tmp_path)
    workspace(smith.home)
    rows = []
    for number in range(KERNELS):
        compiler.kernel(tmp_path, f"k{number}")
        rows.append(
            f'[[kernel]]\nfile = "k{number}.py"\nsignature = "*fp32,64"\ntargets = ["a100", "mi300x"]\n'
        )
    (tmp_path / "kernels.toml").write_text("".join(rows))
    return smith


def workspace(home: Path, versions: dict[str, str] = SIDES) -> Path:
    """A workspace with such environments."""
    Workspace(home).claim()
    for env, version in versions.items():
        compiler.make(home / "envs" / env / "venv", version)
    return home


def farm(smith: Smith, *flags: str, code: int = EXIT_UNDECIDED) -> dict[str, Any]:
    """What a farm says; its binaries have no resources, so that nothing is not decided."""
    done = smith(*WORDS, *flags, code=code)
    content: dict[str, Any] = json.loads(done.out)
    return {**content, "err": done.err}


def counts(homes: Sequence[Path]) -> Counter[str]:
    """How often each kernel was compiled for each target by each side."""
    return Counter(
        f"{env} {row}"
        for home in homes
        for env in SIDES
        for row in compiler.compiled(home / "envs" / env / "venv" / "bin" / "python")
    )


def told(farm: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """What does not depend on who compiled."""
    return [
        (row["kernel"], row["point"], row["from"]["status"], row["to"]["status"]) for row in farm["kernels"]
    ]


def starts(home: Path, env: str) -> list[str]:
    """The commands that an interpreter of a worker was started with."""
    return compiler.starts(home / "envs" / env / "venv" / "bin" / "python")


def hanging(worker: int, home: Path, farm: subprocess.Popen[str]) -> list[psutil.Process]:
    """The processes of a worker as soon as it compiles the kernel that hangs."""
    python = home / "envs" / "wheel" / "venv" / "bin" / "python"
    wait_for(lambda: any(row.startswith("k0 ") for row in compiler.compiled(python)), farm)
    return psutil.Process(worker).children(recursive=True)


@pytest.fixture
def homes(tmp_path: Path) -> list[Path]:
    return [workspace(tmp_path / f"worker {number}") for number in range(2)]


def test_the_result_is_that_of_this_machine_and_nothing_is_compiled_twice(
    smith: Smith, tmp_path: Path, homes: list[Path]
) -> None:
    here = farm(smith)
    with running(tmp_path, smith.environ, homes) as cluster:
        there = farm(smith, "--scheduler", cluster.address)
    assert told(there) == told(here)
    assert there["verdict"] == here["verdict"]
    compiled = counts(homes)
    assert len(compiled) == 2 * 2 * KERNELS
    assert set(compiled.values()) == {1}
    assert all(counts([home]) for home in homes)


def test_a_worker_starts_each_interpreter_once(smith: Smith, tmp_path: Path, homes: list[Path]) -> None:
    with running(tmp_path, smith.environ, homes[:1]) as cluster:
        farm(smith, "--scheduler", cluster.address)
        family = psutil.Process(cluster.workers[0].pid).children(recursive=True)
        cluster.workers[0].terminate()
        cluster.workers[0].wait(60)
    assert {env: starts(homes[0], env) for env in SIDES} == {env: ["attend"] for env in SIDES}
    assert len(family) == len(SIDES)
    assert all_gone(family)


def test_a_triton_that_was_installed_meanwhile_is_imported(
    smith: Smith, tmp_path: Path, homes: list[Path]
) -> None:
    with running(tmp_path, smith.environ, homes[:1]) as cluster:
        farm(smith, "--scheduler", cluster.address)
        # The same everywhere, as where the farm's environment is on a shared disk.
        for home in (smith.home, homes[0]):
            site = next((home / "envs" / "torch" / "venv").glob("lib/*/site-packages"))
            (site / "triton" / "new.py").write_text("")
        again = farm(smith, "--scheduler", cluster.address, "--target", "h100")
    assert {row[2:] for row in told(again)} == {("ok", "ok")}
    assert {env: starts(homes[0], env) for env in SIDES} == {"wheel": ["attend"], "torch": ["attend"] * 2}


def test_of_a_worker_that_is_killed_nothing_goes_on(smith: Smith, tmp_path: Path, homes: list[Path]) -> None:
    compiler.kernel(tmp_path, "k0", "hang")
    with (
        running(tmp_path, smith.environ, homes[:1]) as cluster,
        smith.running(*WORDS, "--scheduler", cluster.address) as process,
    ):
        family = hanging(cluster.workers[0].pid, homes[0], process)
        cluster.workers[0].kill()
        assert all_gone(family)
        interrupt(process)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_what_nobody_waits_for_any_more_ends(
    smith: Smith, tmp_path: Path, homes: list[Path], how: signal.Signals
) -> None:
    """The process of a worker goes on, and has no compile that the next farm would wait for."""
    compiler.kernel(tmp_path, "k0", "hang")
    with running(tmp_path, smith.environ, homes[:1]) as cluster:
        with smith.running(*WORDS, "--scheduler", cluster.address) as process:
            family = hanging(cluster.workers[0].pid, homes[0], process)
            process.send_signal(how)
            process.communicate(timeout=120)
        assert process.returncode == (130 if how is signal.SIGINT else -how)
        assert all_gone(family)
        compiler.kernel(tmp_path, "k0")
        there = farm(smith, "--scheduler", cluster.address)
        assert cluster.workers[0].poll() is None
    assert {row[2:] for row in told(there)} == {("ok", "ok")}
    assert not list((homes[0] / "kernels" / "units").iterdir())


def test_a_worker_that_is_killed_costs_the_compile_that_it_ran(
    smith: Smith, tmp_path: Path, homes: list[Path]
) -> None:
    """What it had compiled before is not compiled again, though that lay in its memory."""
    compiler.kernel(tmp_path, f"k{KERNELS - 1}", "die once")
    (homes[0] / "envs" / "wheel" / "venv" / "log.died").touch()  # by the other side alone
    with running(tmp_path, smith.environ, homes[:1] * 2) as cluster:
        there = farm(smith, "--scheduler", cluster.address)
        assert sum(process.poll() == -signal.SIGKILL for process in cluster.workers) == 1
    assert {row[2:] for row in told(there)} == {("ok", "ok")}
    compiled = counts(homes[:1])
    assert [name.split()[:2] for name, times in compiled.items() if times > 1] == [
        ["torch", f"k{KERNELS - 1}"]
    ] * 2
    assert set(compiled.values()) == {1, 2}


def test_a_worker_that_stands_still_is_left_out(smith: Smith, tmp_path: Path, homes: list[Path]) -> None:
    # Sooner than after five minutes; but on a busy machine, one that is well may be late, too.
    quick = {"DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "30s"}
    with (
        running(tmp_path, {**smith.environ, **quick}, homes) as cluster,
        smith.running(*WORDS, "--scheduler", cluster.address) as process,
    ):
        still = psutil.Process(cluster.workers[0].pid)
        wait_for(lambda: sum(counts(homes[:1]).values()) > 0, process)
        still.suspend()
        out, err = process.communicate(timeout=600)
    assert process.returncode == EXIT_UNDECIDED, err
    assert {row[2:] for row in told(json.loads(out))} == {("ok", "ok")}


@pytest.mark.parametrize("other", [{**SIDES, "torch": "3.5.0"}, {"wheel": "3.4.0"}], ids=["another", "none"])
def test_a_worker_with_another_triton_is_left_out(
    smith: Smith, tmp_path: Path, homes: list[Path], other: dict[str, str]
) -> None:
    odd = workspace(tmp_path / "odd", other)
    with running(tmp_path, smith.environ, [homes[0], odd]) as cluster:
        there = farm(smith, "--scheduler", cluster.address)
    assert {row[2:] for row in told(there)} == {("ok", "ok")}
    assert set(counts([homes[0], odd]).values()) == {1}
    assert not [name for name in counts([odd]) if name.startswith("torch")]
    assert there["err"].count("cannot compile by torch") == 1


def test_where_no_worker_has_the_triton_nothing_is_decided(smith: Smith, tmp_path: Path) -> None:
    odd = workspace(tmp_path / "odd", {"wheel": "3.4.0"})
    with running(tmp_path, smith.environ, [odd]) as cluster:
        done = smith(*WORDS, "--scheduler", cluster.address, code=1)
    assert done.error.startswith("error: not sure: no kernel compiles by both Tritons")
    assert "no Python interpreter with Triton" in done.error
    assert done.err.count("cannot compile by torch") == 1


def test_workers_disassemble_only_what_differs_and_the_answer_is_the_same(
    smith: Smith, tmp_path: Path, homes: list[Path]
) -> None:
    """Each run of the disassembler notes in whose workspace it ran."""
    log = tmp_path / "disassembled"
    code = f"import os; open({str(log)!r}, 'a').write(os.environ.get('TRITONSMITH_HOME', '') + '\\n')"
    program = script_of_python(tmp_path / "nvdisasm", f"{code}; print({making.SASS!r}, end='')")
    smith.more["TRITON_NVDISASM_PATH"] = str(program)
    rows = []
    for name in ("differs", "equal"):
        folder = tmp_path / f"of-{name}"
        folder.mkdir()
        for number, version in enumerate(SIDES.values()):
            binary = elf_maker.cubin(registers=40 + (number if name == "differs" else 0), code=b"\1" * 16)
            (folder / f"{version}.cubin").write_bytes(binary)
        (folder / "sass").write_text(making.SASS)
        compiler.kernel(tmp_path, name, f"binary {folder} ")
        rows.append(f'[[kernel]]\nfile = "{name}.py"\nsignature = "*fp32,64"\ntargets = ["h100"]\n')
    (tmp_path / "kernels.toml").write_text("".join(rows))

    def answer(*flags: str) -> object:
        said = farm(smith, *flags, code=0)
        return said["verdict"], [(row["kernel"], row["from"], row["to"]) for row in said["kernels"]]

    here = answer()
    alone = log.read_text().splitlines()
    assert "instructions all" in str(here)
    log.unlink()
    smith("clear-cache", "--rehearsed", "--yes")
    with running(tmp_path, smith.environ, homes) as cluster:
        there = answer("--scheduler", cluster.address)
    assert there == here
    by_workers = log.read_text().splitlines()
    assert len(by_workers) == len(alone) == 2
    assert set(by_workers) <= set(map(str, homes))
