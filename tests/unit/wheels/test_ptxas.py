"""Versions of ptxas, and the variables that select one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tritonsmith.core import configs
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.core.plan import Plan, UnpackPackage
from tritonsmith.core.text import version_key
from tritonsmith.facts import machine
from tritonsmith.wheels import ptxas
from tritonsmith.wheels.ptxas import RegistryPtxas

NOWHERE = Path("/nonexistent/python")


@pytest.mark.parametrize(
    ("wanted", "found"), [("12.4", "12.4.131"), ("13.0", "13.0.88"), ("12.8.61", "12.8.61")]
)
def test_a_version_that_is_known_asks_nobody(wanted: str, found: str) -> None:
    assert ptxas.resolve(wanted, NOWHERE) == found


@pytest.mark.parametrize("wanted", ["", "13", "cuda", "13.0.88.1", "12.9a"])
def test_what_is_no_version(wanted: str) -> None:
    with pytest.raises(UsageError, match="no version of ptxas"):
        ptxas.resolve(wanted, NOWHERE)


def test_a_version_that_nobody_knows_needs_the_index() -> None:
    with pytest.raises(FactError, match="lists no versions of nvidia-cuda-nvcc"):
        ptxas.resolve("99.0", NOWHERE)


def test_versions_older_than_the_packages() -> None:
    with pytest.raises(UsageError, match=r"no package has ptxas 11\.8"):
        ptxas.resolve("11.8", NOWHERE)


def test_the_list_is_sorted_and_all_of_it_is_in_packages(tmp_path: Path) -> None:
    known = ptxas.known()
    assert list(known) == sorted(set(known), key=version_key)
    for version in known:
        made = ptxas.prepare(version, Workspace(tmp_path), machine.read(), NOWHERE)
        assert made.requirement.endswith(f"=={version}")
        assert made.path.name == "ptxas"
        assert "--version" in made.plan.shell()


@pytest.mark.parametrize(
    ("triton", "variables"),
    [
        ("3.2.0", ["TRITON_PTXAS_PATH"]),
        ("3.3.1", ["TRITON_PTXAS_PATH", "TRITON_PTXAS-BLACKWELL_PATH"]),
        ("3.4.0", ["TRITON_PTXAS_PATH"]),
        ("3.9.0", ["TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH"]),
        ("", ["TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH"]),
    ],
)
def test_the_variables_of_a_release(triton: str, variables: list[str]) -> None:
    assert list(ptxas.variables(Path("/x/ptxas"), triton)) == variables


def test_the_variables_of_all_releases() -> None:
    rows = configs.load("gpus")["nvidia"]["ptxas"]
    assert set(ptxas.variables(Path("/x/ptxas"))) == {row["variable"] for row in rows}


def test_a_ptxas_of_another_version_than_its_package_is_refused(tmp_path: Path) -> None:
    program = tmp_path / "ptxas"
    program.write_text("#!/bin/sh\necho 'Cuda compilation tools, release 12.8, V12.8.93'\n")
    program.chmod(0o755)
    made = ptxas.RegistryPtxas("12.9.86", program, "x==12.9.86", Plan("nothing"))
    with pytest.raises(FactError, match=r"reports 12\.8\.93, its package is 12\.9\.86"):
        ptxas.install(made, Workspace(tmp_path))


def test_two_runs_that_want_one_at_once_put_it_there_once(tmp_path: Path) -> None:
    space = Workspace(tmp_path / "home")
    pip = tmp_path / "pip"  # as `pip --target FOLDER REQUIREMENT`
    pip.write_text("#!/bin/sh\nsleep 0.3; mkdir $2; printf '#!/bin/sh\\necho V13.0.88\\n' > $2/ptxas\n")
    pip.write_text(f"{pip.read_text()}chmod +x $2/ptxas; echo $$ >> {tmp_path / 'calls'}\n")
    pip.chmod(0o755)
    dest, requirement = space.toolchain / "nvcc-13.0.88", "nvidia-cuda-nvcc==13.0.88"
    verify = ("ptxas", "--version")
    step = UnpackPackage((str(pip),), requirement, dest, space.root, verify, phase="ptxas")
    wanted = RegistryPtxas("13.0.88", dest / "ptxas", requirement, Plan("ptxas", (step,)))
    space.claim()  # by threads of one process that would not be safe
    with ThreadPoolExecutor(2) as pool:
        for one in [pool.submit(ptxas.install, wanted, space, silent=True) for _ in range(2)]:
            one.result()
    assert ptxas.version_of(dest / "ptxas") == "13.0.88"
    assert (tmp_path / "calls").read_text().count("\n") == 1
