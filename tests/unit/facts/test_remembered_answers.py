from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from tritonsmith.core.envs import workspace
from tritonsmith.core.plan import files
from tritonsmith.facts import tools

OWN = Path(sys.executable).with_name("remembered-by-a-test")


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A script of the tool's own `.venv`, which counts how often it is asked."""
    monkeypatch.setattr("sys.executable", str(tmp_path / "bin" / "python"))
    path = tmp_path / "bin" / "tool"
    path.parent.mkdir()
    write(path, "1.0")
    return path


def write(path: Path, says: str) -> None:
    path.write_text(f"#!/bin/sh\necho asked >> {path}.log\necho version {says}\n")
    path.chmod(0o755)


def asked(program: Path) -> int:
    log = program.with_name(f"{program.name}.log")
    return len(log.read_text().splitlines()) if log.exists() else 0


def keep() -> None:
    """As the end of a task does; what was read is forgotten."""
    answers = tools.unsaved_answers()
    assert answers
    files.write_atomically(*answers)
    tools._read_answers.cache_clear()


def test_an_unchanged_program_is_asked_once(program: Path) -> None:
    assert [tools.ask(program, "--version") for _ in range(3)] == ["version 1.0"] * 3
    keep()
    assert tools.ask(program, "--version") == "version 1.0"
    assert asked(program) == 1
    assert tools.unsaved_answers() is None
    assert tools.ask(program, "--help") == "version 1.0"
    assert asked(program) == 2


def test_a_changed_program_is_asked_again(program: Path) -> None:
    tools.ask(program, "--version")
    keep()
    write(program, "2.0")
    os.utime(program, (1.0, 1.0))
    assert tools.ask(program, "--version") == "version 2.0"


def test_a_link_that_leads_elsewhere_now(program: Path) -> None:
    other = program.with_name("other")
    write(other, "3.0")
    link = program.with_name("link")
    link.symlink_to(program)
    assert tools.ask(link, "--version") == "version 1.0"
    keep()
    link.unlink()
    link.symlink_to(other)
    assert tools.ask(link, "--version") == "version 3.0"


def test_a_script_of_others_and_a_compiler_cache_are_asked_each_time(program: Path, tmp_path: Path) -> None:
    shim = tmp_path / "shims" / "clang++"
    shim.parent.mkdir()
    write(shim, "19.1.7")
    cache = program.with_name("ccache")
    write(cache, "4.7.5")
    masked = program.with_name("clang++")
    masked.symlink_to(cache)
    for one in (shim, masked):
        tools.ask(one, "--version")
        tools.ask(one, "--version")
    assert (asked(shim), asked(cache)) == (2, 2)


def test_a_failure_is_not_remembered(program: Path) -> None:
    program.write_text(f"#!/bin/sh\necho asked >> {program}.log\nexit 1\n")
    assert tools.ask(program, "--version") is None
    assert tools.ask(program, "--version") is None
    assert asked(program) == 2
    assert tools.ask(program.with_name("gone"), "--version") is None


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"schema": 2, "answers": {}}', '{"schema": 1, "answers": [1]}']
)
def test_a_damaged_file_is_no_memory(program: Path, text: str) -> None:
    file = workspace.default().root / tools.ANSWERS_FILE
    file.parent.mkdir(parents=True)
    file.write_text(text)
    assert tools.ask(program, "--version") == "version 1.0"
    unsaved = tools.unsaved_answers()
    assert unsaved
    assert len(json.loads(unsaved[1])["answers"]) == 1


def test_without_a_home_nothing_is_kept(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITONSMITH_HOME", "~no-such-user/x")
    assert tools.ask(program, "--version") == "version 1.0"
    assert tools.unsaved_answers() is None
