"""`doctor`, in this process: what it prints, asks and changes, and how it ends."""

from __future__ import annotations

import io
import json
import subprocess
from pathlib import Path

import pytest

from tests.unit.cli.tasks.conftest import Smith
from tests.unit.facts import fakes
from tritonsmith import __version__
from tritonsmith.cli.tasks import output
from tritonsmith.core.envs import receipts, workspace
from tritonsmith.core.errors import SmithError
from tritonsmith.doctor import run


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout in which one stands."""
    root = fakes.checkout(tmp_path / "my triton", "3.5")
    monkeypatch.chdir(root)
    return root


@pytest.fixture
def stale(root: Path) -> Path:
    """A CMake cache of pip's, whose compiler is gone; it is what one error is about."""
    return fakes.cmake_cache(
        root / "build" / "cmake.linux-x86_64-cpython-3.11", "CMAKE_C_COMPILER:PATH=/gone"
    )


def disk(monkeypatch: pytest.MonkeyPatch, free: float) -> None:
    monkeypatch.setattr("tritonsmith.facts.machine.disk_free", lambda _: free)


@pytest.mark.parametrize(("free", "code"), [(1.0, 1), (500.0, 0)])
def test_json(smith: Smith, free: float, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    disk(monkeypatch, free)
    answer = smith("doctor", "--env", "dev", "--only", "machine", "--json")
    report = json.loads(answer.out)
    assert (report["schema"], report["worst"] == "error", answer.code) == (2, code == 1, code)
    assert [row["id"] for row in report["findings"]][:2] == ["machine.memory", "machine.disk"]
    assert {row["group"] for row in report["findings"]} == {"machine"}
    assert not workspace.default().root.exists()


def test_everything_as_json(smith: Smith) -> None:
    report = json.loads(smith("doctor", "--json").out)
    assert {row["id"] for row in report["findings"]} == {check.id for check in run.ALL if not check.deep}
    assert "crashed" not in {row["status"] for row in report["findings"]}
    assert report["setup"]["python"] == ""
    assert (report["env"], report["tritonsmith"]) == ("dev", __version__)
    root = workspace.default().root
    assert {path.name for path in root.rglob("*") if path.is_file() and path.parent != root} == {
        "doctor-history.json",
        "doctor-history.lock",
    }


@pytest.mark.parametrize(("free", "code"), [(1.0, 1), (500.0, 0)])
def test_the_screen(smith: Smith, free: float, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    disk(monkeypatch, free)
    answer = smith("doctor", "--only", "machine.disk, machine.clock")
    assert answer.code == code
    lines = [line.split() for line in answer.out.splitlines() if line]
    assert lines[0] == ["machine"]
    assert lines[1][:2] == ["✗" if code else "✓", "disk"]
    assert answer.out.splitlines()[-1].startswith("doctor: ")
    assert ("more: invoke doctor --explain machine.disk\n" in answer.out) is (code == 1)
    assert answer.err == "note: environment dev, Python none\n"


def test_the_list(smith: Smith) -> None:
    answer = smith("doctor", "--list")
    assert (answer.code, answer.err) == (0, "")
    named = {check.id: check for check in run.ALL}
    lines = [line.split() for line in answer.out.splitlines()]
    listed = {line[0]: "--deep" in line for line in lines if line and line[0] in named}
    assert list(listed.items()) == [(name, check.deep) for name, check in named.items()]
    some = smith("doctor", "--list", "--only", "builds,tools.lit").out
    assert "tools.lit" in some
    assert "builds.llvm" in some
    assert "tools.cmake" not in some


def test_the_documentation_of_a_check(smith: Smith) -> None:
    answer = smith("doctor", "--explain", "machine.disk")
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.startswith("### machine.disk\n")
    assert "TRITONSMITH_HOME" in answer.out
    assert "machine.libstdcxx" not in answer.out


def test_the_documentation_of_a_group(smith: Smith) -> None:
    answer = smith("doctor", "--explain", "gpu")
    heads = [line.removeprefix("### ") for line in answer.out.splitlines() if line.startswith("#")]
    assert heads == [check.id for check in run.ALL if check.group == "gpu"]


def test_the_documentation_of_a_check_that_is_misspelt(smith: Smith) -> None:
    answer = smith("doctor", "--explain", "machine.dusk")
    assert answer.code == 2
    assert "machine.disk" in answer.err


def test_a_file_that_stops_the_doctor_is_explained_too(smith: Smith, root: Path) -> None:
    (root / "broken.toml").write_text("[triton", encoding="utf-8")
    row = json.loads(smith("doctor", "--env", "./broken.toml", "--json").out)["findings"][0]
    assert smith(*row["docs"].split()[1:]).out.startswith("An env file that cannot be read stops the doctor")


def test_the_environment_that_was_used_last(smith: Smith) -> None:
    path = workspace.default().env("release").receipt("setup-mlir")
    path.parent.mkdir(parents=True)
    path.write_text(receipts.render("setup-mlir", {"prefix": "/gone"}))
    answer = smith("doctor", "--only", "builds.llvm")
    assert answer.code == 1
    assert "invoke setup-mlir --env release" in answer.out
    assert "environment release" in answer.err
    assert smith("doctor", "--only", "builds.llvm", "--env", "dev").code == 0


def test_the_report(smith: Smith, root: Path, stale: Path, home: Path) -> None:
    answer = smith("doctor", "--only", "builds", "--report")
    assert answer.code == 1
    assert answer.out.startswith("<details>")
    assert answer.out.rstrip().endswith("</details>")
    assert "builds.cmake-paths" in answer.out
    for secret in (str(home), str(root.parent), str(stale.parent)):
        assert secret not in answer.out


# --- mending


def test_nothing_to_mend(smith: Smith, root: Path) -> None:
    assert root
    answer = smith("doctor", "--only", "builds", "--fix")
    assert answer.code == 0
    assert "nothing can be fixed automatically" in answer.err
    assert not workspace.default().root.exists()


def test_an_error_that_cannot_be_mended_stays_one(
    smith: Smith, stale: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk(monkeypatch, 0.1)
    answer = smith("doctor", "--only", "machine.disk,builds.cmake-paths", "--fix", "--yes")
    assert answer.code == 1
    assert not stale.exists()
    assert smith("doctor", "--only", "machine.disk", "--fix", "--yes").code == 1


def test_a_dry_run_prints_the_plan_and_does_nothing(smith: Smith, stale: Path) -> None:
    answer = smith("doctor", "--only", "builds", "--fix", "--dry-run")
    assert answer.code == 0
    assert answer.out.startswith("#!/bin/sh\n# apply fixes that can be undone\n# note: builds.cmake-paths: ")
    assert f"mv '{stale}' '{stale}.stale'" in answer.out
    checked = subprocess.run(("/bin/sh", "-n"), input=answer.out, text=True, check=False)
    assert checked.returncode == 0
    assert stale.is_file()
    assert not workspace.default().root.exists()


def test_the_dry_run_is_what_happens(smith: Smith, stale: Path) -> None:
    script = smith("doctor", "--only", "builds", "--fix", "--dry-run").out
    subprocess.run(("/bin/sh",), input=script, text=True, check=True)
    assert smith("doctor", "--only", "builds").code == 0
    assert Path(f"{stale}.stale").is_file()


def test_without_a_terminal_it_must_be_told_yes(smith: Smith, stale: Path) -> None:
    answer = smith("doctor", "--only", "builds", "--fix")
    assert answer.code == 1
    assert "there is no terminal to ask in" in answer.err
    assert "--yes to agree" in answer.err
    assert stale.is_file()
    assert not workspace.default().root.exists()


def test_with_yes_it_is_done(smith: Smith, stale: Path) -> None:
    answer = smith("doctor", "--only", "builds", "--fix", "--yes")
    assert answer.code == 0
    assert answer.out.index("✗ cmake-paths") < answer.out.index("#!/bin/sh") < answer.out.index("done; check")
    assert not stale.exists()
    (log,) = (workspace.default().root / "logs").iterdir()
    assert "apply fixes that can be undone" in log.read_text()
    again = smith("doctor", "--only", "builds", "--fix", "--yes")
    assert (again.code, "nothing can be fixed" in again.err) == (0, True)


class Terminal(io.StringIO):
    """A standard input that somebody sits at."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("typed", "agreed"),
    [("y\n", True), (" YES \n", True), ("n\n", False), ("\n", False), ("", False), ("yess\n", False)],
)
def test_a_person_is_asked(
    smith: Smith, stale: Path, typed: str, agreed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(typed))
    answer = smith("doctor", "--only", "builds", "--fix")
    assert "Apply these fixes? [y/N] " in answer.err
    assert (stale.exists(), answer.code) == (not agreed, 0 if agreed else 1)
    assert agreed or not workspace.default().root.exists()


def test_agreed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert output.agreed("delete [all]?", yes=True)
    with pytest.raises(SmithError, match="no terminal to ask in"):
        output.agreed("delete [all]?", yes=False)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stdin", Terminal("y\n"))
    assert output.agreed("delete [all]?", yes=False)
    assert capsys.readouterr().err == "delete [all]? [y/N] "


def test_a_wrong_env_file_is_a_finding_for_programs(smith: Smith, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("[llvm]\nprovidr = 'source'\n")
    answer = smith("doctor", "--json", "--env", str(file))
    assert answer.code == 1
    found = json.loads(answer.out)
    assert found["worst"] == "error"
    (one,) = found["findings"]
    assert (one["id"], one["status"]) == ("env.file", "error")
    assert "did you mean" in one["remedy"]
