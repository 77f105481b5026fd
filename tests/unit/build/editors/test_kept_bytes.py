"""What the user wrote into a file of an editor or of git stays byte for byte; links are refused."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest

from tests.unit.build.editors.test_editor import Built
from tests.unit.build.editors.test_editor import built as built  # noqa: PLC0414 - a fixture
from tests.unit.cli.tasks.conftest import Smith
from tests.unit.cli.tasks.conftest import smith as smith  # noqa: PLC0414 - a fixture
from tests.unit.core.plan.conftest import tools
from tritonsmith.build.editors import merged_files
from tritonsmith.core import untrusted
from tritonsmith.core.plan import Patch

_SETTINGS = b'{\r\n  // caf\xe9\r\n  "a": "b",\r\n  "files.exclude": {"build\xff/": true}\r\n}\r\n'


def _vscode(built: Built, smith: Smith, *flags: str) -> int:
    return smith("editor", "vscode", "--env", built.env, *flags).code


def _settings(built: Built, content: bytes) -> Path:
    path = built.root / ".vscode" / "settings.json"
    path.parent.mkdir()
    path.write_bytes(content)
    return path


def _is_inserted_in(old: bytes, new: bytes) -> bool:
    """Whether all bytes of the old text are in the new one, in their order."""
    rest = iter(new)
    return all(byte in rest for byte in old)


def test_line_ends_of_windows_and_bytes_of_latin1(built: Built, smith: Smith) -> None:
    path = _settings(built, _SETTINGS)
    assert _vscode(built, smith) == 0
    new = path.read_bytes()
    assert _is_inserted_in(_SETTINGS, new)
    assert b"  // caf\xe9\r\n" in new
    assert b'{"build\xff/": true}' in new
    assert new.count(b"\n") == new.count(b"\r\n") > _SETTINGS.count(b"\n")
    assert "clangd.arguments" in merged_files.parse(new.decode("latin-1")).value
    assert _vscode(built, smith) == 0
    assert path.read_bytes() == new


def test_the_script_of_a_dry_run_does_the_same(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_bytes(_SETTINGS)
    before = untrusted.exact_text(file)
    after, _ = merged_files.merge(before, {"new": ["x"]})
    step = Patch(tmp_path, file.name, before, after, phase="editor")
    script = untrusted.exact_bytes("\n".join(step.shell()) + "\n")
    subprocess.run(["sh"], input=script, check=True, cwd=tmp_path)
    assert file.read_bytes() == untrusted.exact_bytes(after)
    file.write_bytes(_SETTINGS)
    step.act(tools())
    assert file.read_bytes() == untrusted.exact_bytes(after)


@pytest.mark.parametrize("content", [b"build\xff/\n*.orig\r\n", b"build\xff/\r\n*.orig", b""])
def test_what_git_passes_over(content: bytes, built: Built, smith: Smith) -> None:
    path = built.root / ".git" / "info" / "exclude"
    path.write_bytes(content)
    path.chmod(0o640)
    assert _vscode(built, smith) == 0
    new = path.read_bytes()
    assert new.startswith(content)
    assert b"/.vscode/settings.json" in new.splitlines()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert _vscode(built, smith) == 0
    assert path.read_bytes() == new


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444])
def test_modes_stay(mode: int, built: Built, smith: Smith) -> None:
    path = _settings(built, b"{}")
    path.chmod(mode)
    assert _vscode(built, smith) == 0
    assert "clangd.arguments" in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == mode


@pytest.mark.parametrize("linked", ["info", "info/exclude"])
def test_what_git_passes_over_is_not_written_through_a_link(
    linked: str, built: Built, smith: Smith, tmp_path: Path
) -> None:
    place, elsewhere = built.root / ".git" / linked, tmp_path / "elsewhere"
    place.rename(elsewhere)
    place.symlink_to(elsewhere)
    excluded = built.root / ".git" / "info" / "exclude"
    before = excluded.read_bytes()
    answer = smith("editor", "vscode", "--env", built.env)
    assert (answer.code, place.is_symlink(), excluded.read_bytes()) == (1, True, before)
    assert "refusing to write through a link" in answer.err
    assert not (built.root / ".vscode").exists()


def test_a_repository_that_names_another_one(built: Built, smith: Smith, tmp_path: Path) -> None:
    other = tmp_path / "other" / "info"
    other.mkdir(parents=True)
    (other / "exclude").write_text("theirs\n")
    (built.root / ".git" / "commondir").write_text(str(other.parent))
    assert _vscode(built, smith) == 0
    assert (other / "exclude").read_text() == "theirs\n"


def test_a_link_where_a_file_begins(built: Built, smith: Smith, tmp_path: Path) -> None:
    """A checkout can have a link of the name that a file has before it is complete."""
    (tmp_path / "mine").write_text("mine\n")
    path = _settings(built, b"{}")
    path.with_name(".settings.json.tritonsmith").symlink_to(tmp_path / "mine")
    assert _vscode(built, smith) == 0
    assert (tmp_path / "mine").read_text() == "mine\n"
    assert not path.is_symlink()
    assert "clangd.arguments" in path.read_text()


def test_a_block_in_a_file_of_windows(built: Built, smith: Smith) -> None:
    path = built.root / ".nvim.lua"
    path.write_bytes(b"-- caf\xe9\r\nvim.o.wrap = false")
    for _ in range(2):
        assert smith("editor", "neovim", "--env", built.env).code == 0
        new = path.read_bytes()
        assert new.startswith(b"-- caf\xe9\r\nvim.o.wrap = false\r\n-- tritonsmith ")
        assert new.count(b"\n") == new.count(b"\r\n")
        assert new.count(b"tritonsmith ends") == 1


def test_a_file_of_one_owner_stays_theirs(built: Built, smith: Smith) -> None:
    path = _settings(built, b"{}")
    if os.geteuid() == 0:
        os.chown(path, 65534, 65534)
    owner = path.stat().st_uid
    assert _vscode(built, smith) == 0
    assert path.stat().st_uid == owner
