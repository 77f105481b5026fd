"""Jobs from cores and memory, the cgroup's limits included."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.build import made
from tritonsmith.build.jobs import Jobs, bound
from tritonsmith.core.envs.schema import DebugInfo, ToolchainSettings
from tritonsmith.facts import machine

NO_WISH = ToolchainSettings()


@pytest.mark.parametrize(
    ("cores", "gib", "debug_info", "wanted"),
    [
        (16, 64, "split", Jobs(16, 16)),
        (16, 64, "full", Jobs(16, 5)),  # 12 GiB a link
        (16, 64, "lines", Jobs(16, 16)),
        (64, 32, "split", Jobs(21, 10)),  # 1.5 GiB a compile, 3 a link
        (64, 32, "none", Jobs(21, 16)),
        (8, 4, "split", Jobs(2, 1)),
        (8, 4, "full", Jobs(2, 1)),
        (1, 64, "split", Jobs(1, 1)),
        (4, 1, "full", Jobs(1, 1)),  # never none at all
    ],
)
def test_what_cores_and_memory_allow(cores: int, gib: int, debug_info: DebugInfo, wanted: Jobs) -> None:
    host = made.machine(cores=cores, memory=gib * made.GIB)
    assert bound(host, NO_WISH, debug_info) == wanted


def test_settings_override() -> None:
    host = made.machine(cores=16, memory=64 * made.GIB)
    assert bound(host, ToolchainSettings(jobs=40), "split") == Jobs(40, 21)
    assert bound(host, ToolchainSettings(link_jobs=30), "split") == Jobs(16, 30)
    assert bound(host, ToolchainSettings(jobs=2, link_jobs=1), "none") == Jobs(2, 1)


def test_a_container_gets_what_its_cgroup_grants(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "capture", lambda _: None)  # libstdc++ is of no concern here
    free = machine.read(tmp_path)  # no limits there
    (tmp_path / "memory.max").write_text(f"{3 * made.GIB}\n", encoding="ascii")
    (tmp_path / "cpu.max").write_text("100000 100000\n", encoding="ascii")
    limited = machine.read(tmp_path)
    assert (limited.cores, limited.memory) == (1, min(free.memory, 3 * made.GIB))
    assert bound(limited, NO_WISH, "split") == Jobs(1, 1)
