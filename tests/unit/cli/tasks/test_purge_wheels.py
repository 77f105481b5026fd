from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from invoke.collection import Collection

from tests.unit.cli.tasks.conftest import Answer
from tests.unit.facts.installs import put, site_of, triton
from tritonsmith.cli.program import SmithProgram
from tritonsmith.cli.tasks.env import purge_wheels
from tritonsmith.core.envs import workspace

Purge = Callable[..., Answer]


class Terminal(io.StringIO):
    """Somebody who types."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("venv") / "a venv"
    subprocess.run((sys.executable, "-m", "venv", "--without-pip", folder), check=True)
    return folder


@pytest.fixture
def venv(made: Path) -> Path:
    """A virtual environment with a Triton."""
    triton(site_of(made))
    return made


@pytest.fixture
def purge(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, made: Path) -> Purge:
    monkeypatch.setattr(sys, "dont_write_bytecode", sys.dont_write_bytecode)  # Invoke changes it
    monkeypatch.setenv("VIRTUAL_ENV", str(made))  # the environment that is active

    def run(*argv: str, typed: str | None = None) -> Answer:
        monkeypatch.setattr(sys, "stdin", io.StringIO() if typed is None else Terminal(typed))
        code = 0
        try:
            program = SmithProgram(name="tritonsmith", namespace=Collection(purge_wheels), version="0")
            program.run(["tritonsmith", "purge-wheels", *argv])
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 1
        out, err = capsys.readouterr()
        return Answer(code, out, err)

    return run


def there(venv: Path) -> bool:
    return (site_of(venv) / "triton").exists()


def test_it_shows_what_goes_and_asks(purge: Purge, venv: Path) -> None:
    answer = purge(typed="n\n")
    assert (answer.code, there(venv)) == (1, True)
    assert "triton 3.5.0" in answer.out
    assert "nothing was removed" in answer.err
    assert "--dry-run" in answer.err
    answer = purge(typed="y\n")
    assert (answer.code, there(venv)) == (0, False)
    assert f"removed 6 files from {venv}" in answer.out
    assert "[y/N]" in answer.err


def test_nobody_to_ask(purge: Purge, venv: Path) -> None:
    answer = purge("--python", str(venv / "bin" / "python"))
    assert (answer.code, there(venv)) == (1, True)
    assert "--yes" in answer.err
    assert "--dry-run" in answer.err
    assert purge("--yes").code == 0
    assert not there(venv)


def test_a_dry_run_prints_a_script_and_nothing_else(purge: Purge, venv: Path) -> None:
    answer = purge("--dry-run")
    assert (answer.code, answer.err, there(venv)) == (0, "", True)
    assert subprocess.run(("/bin/sh", "-n"), input=answer.out, text=True, check=False).returncode == 0
    assert "libtriton.so" in answer.out
    assert not workspace.default().root.exists()


def test_a_long_plan_is_a_summary_on_a_terminal_and_a_script_elsewhere(
    purge: Purge, venv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(site_of(venv) / "triton", {f"extra_{number}.py": "" for number in range(60)})
    script = purge("--dry-run").out
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    shown = purge("--dry-run").out.splitlines()
    assert len(shown) <= 10
    assert any("removes triton 3.5.0: " in line for line in shown)
    assert f"the whole script has {script.count(chr(10))} lines: add `| less`, or `> plan.sh`" in shown[-1]
    assert "extra_59.py" in script
    assert set(shown[1:-1]) <= set(script.splitlines())


def test_an_environment_that_is_named_is_never_the_active_one(purge: Purge, venv: Path) -> None:
    for flags in (("--env", "debug"), ("--env", "dev")):
        answer = purge(*flags, "--yes")
        assert (answer.code, there(venv)) == (1, True)
        assert "no working interpreter found" in answer.err
        assert "--python PATH" in answer.err


def test_a_name_that_is_no_utf_8_is_shown(purge: Purge, venv: Path) -> None:
    (site_of(venv) / "triton" / os.fsdecode(b"caf\xe9.so")).touch()
    answer = purge("--yes")
    assert (answer.code, there(venv)) == (0, False)
    assert "copied in: caf\\udce9.so" in answer.out


def test_nothing_to_do(purge: Purge, made: Path) -> None:
    purge("--yes")
    answer = purge()
    assert answer.code == 0
    assert answer.out == f"nothing to remove: nothing in {made} owns triton/\n"


def test_a_folder_that_no_distribution_put_on_the_path_is_told_of(
    purge: Purge, venv: Path, tmp_path: Path
) -> None:
    put(tmp_path, {"mine/triton/__init__.py": ""})
    by_hand = site_of(venv) / "mine.pth"
    by_hand.write_text(str(tmp_path / "mine"))
    answer = purge("--yes")
    by_hand.unlink()
    assert answer.code == 0
    assert f"still finds {tmp_path / 'mine' / 'triton'}" in answer.err.replace("\n", "")


def test_what_lies_outside_is_told_of(purge: Purge, venv: Path) -> None:
    record = site_of(venv) / "triton-3.5.0.dist-info" / "RECORD"
    record.write_text(
        record.read_text() + "".join(f"../../../../outside/{number},,\n" for number in range(7))
    )
    answer = purge("--yes")
    assert answer.code == 0
    assert answer.err.count("kept, although a RECORD lists it, because no wheel installs files there") == 5
    assert "2 more are kept" in answer.err


def test_a_killed_run_is_healed_first(purge: Purge, venv: Path) -> None:
    stash = site_of(venv) / "~tritonsmith-purge"
    init = site_of(venv) / "triton" / "__init__.py"
    put(stash, {"journal.json": f'{{"files": ["{init}"], "edits": [], "folders": []}}'})
    init.rename(stash / "0")
    dry = purge("--dry-run")
    assert "was interrupted: restoring the files that it had moved" in dry.err
    assert not init.exists()
    answer = purge(typed="n\n")
    assert init.is_file()
    assert not stash.exists()
    assert "triton 3.5.0" in answer.out
    purge("--yes")
    assert not there(venv)


def test_the_systems_python(purge: Purge, home: Path) -> None:
    base = sys._base_executable  # type: ignore[attr-defined]
    answer = purge("--python", base, "--yes")
    assert answer.code == 1
    assert "this is a system Python" in answer.err
    assert not (home / "workspace").exists()


@pytest.mark.parametrize("argv", [["--python", "/no/such/python"], ["--env", "devv"]])
def test_usage(purge: Purge, argv: list[str]) -> None:
    assert purge(*argv).code == 2


def test_no_interpreter(purge: Purge, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("VIRTUAL_ENV")
    monkeypatch.delenv("CONDA_PREFIX", raising=False)
    answer = purge()
    assert (answer.code, answer.err) == (0, "")
    assert "nothing to remove: environment dev has no Python yet" in answer.out
    (tmp_path / "python").touch(mode=0o755)
    assert purge("--python", str(tmp_path / "python")).code == 1
