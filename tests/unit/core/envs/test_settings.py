from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any, Literal, get_origin, get_type_hints

import pytest

from tests.support import REPOSITORY
from tritonsmith.core import configs
from tritonsmith.core.envs import settings
from tritonsmith.core.envs.settings import Settings, TritonSettings
from tritonsmith.core.errors import ConfigError, UsageError

SHIPPED = sorted(path.stem for path in configs.data_dir("envs").glob("*.toml"))


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture
def user_file(home: Path) -> Path:
    return home / "settings.toml"


@pytest.mark.parametrize("name", SHIPPED)
def test_the_shipped_environments_are_valid(name: str) -> None:
    loaded = settings.load(name)
    assert loaded.name == name
    assert loaded.triton.source or loaded.triton.wheel


def test_each_layer_goes_over_the_one_before(user_file: Path, tmp_path: Path) -> None:
    write(
        user_file, '[triton]\nrevision = "user"\nbuild-type = "Debug"\n[toolchain]\njobs = 3\nlink-jobs = 1\n'
    )
    env = write(tmp_path / "mine.toml", '[triton]\nrevision = "file"\nproton = true\n[toolchain]\njobs = 5\n')
    loaded = settings.load(str(env), {"toolchain.jobs": 7, "llvm.assertions": None})
    assert loaded.name == "mine"
    assert loaded.triton == TritonSettings(revision="file", build_type="Debug", proton=True)
    assert (loaded.toolchain.jobs, loaded.toolchain.link_jobs) == (7, 1)
    assert dict(loaded.origin) == {
        "triton.revision": str(env),
        "triton.build-type": str(user_file),
        "triton.proton": str(env),
        "toolchain.jobs": "command line",
        "toolchain.link-jobs": str(user_file),
    }


def test_explain_tells_every_key_with_its_origin(tmp_path: Path) -> None:
    env = write(tmp_path / "mine.toml", '[triton]\nbackends = ["nvidia"]\n')
    rows = {key: (value, origin) for key, value, origin in settings.explain(settings.load(str(env)))}
    fields = [
        f"{section.name}.{key.name.strip('_').replace('_', '-')}"
        for section in dataclasses.fields(Settings)
        if section.name not in ("name", "origin")
        for key in dataclasses.fields(getattr(Settings("x"), section.name))
    ]
    assert list(rows) == fields
    assert rows["triton.backends"] == (("nvidia",), str(env))
    assert rows["llvm.any-commit"] == (False, "default")


def test_an_environment_without_a_file_of_the_user(user_file: Path) -> None:
    assert not user_file.exists()
    assert settings.load("dev").cache.launcher == "ccache"


@pytest.mark.parametrize(
    ("text", "what", "hint"),
    [
        ('[triton]\nrevison = "x"', r"unknown key 'revison' in \[triton\]", "did you mean 'revision'?"),
        ('[triton]\nbuild_type = "Debug"', "unknown key 'build_type'", "did you mean 'build-type'?"),
        ("[tritn]\n", r"unknown section \[tritn\]", "did you mean 'triton'?"),
        ('revision = "x"', "'revision' is outside a section", "known names: cache, llvm"),
        ("triton = 3", "'triton' is outside a section", "did you mean 'triton'?"),
        ('[triton]\nbuild-type = "debug"', "build-type cannot be 'debug'", "did you mean 'Debug'?"),
        ('[llvm]\nprovider = "soruce"', "provider cannot be 'soruce'", "did you mean 'source'?"),
        ("[llvm]\nprovider = 1", "provider cannot be 1", "known names"),
        ("[llvm]\nprovider = []", r"provider cannot be \[\]", "known names"),
        ('[triton]\nsanitizer = "adress"', "sanitizer cannot be 'adress'", "did you mean 'address'?"),
        ('[triton]\nproton = "yes"', "proton must be a bool, not 'yes'", ""),
        ("[triton]\nproton = 1", "proton must be a bool, not 1", ""),
        ("[toolchain]\njobs = true", "jobs must be a int, not True", ""),
        ("[toolchain]\njobs = 2.0", "jobs must be a int, not 2.0", ""),
        ("[triton]\nrevision = 3.5", "revision must be a str, not 3.5", ""),
        ('[triton]\nbackends = "nvidia"', "backends must be a list of strings, not 'nvidia'", ""),
        ("[triton]\nbackends = [1]", "backends must be a list of strings", ""),
        ("[triton", "not valid TOML", ""),
        ("[triton]\nproton = true\nproton = true", "not valid TOML", ""),
    ],
)
@pytest.mark.parametrize("whose", ["env file", "user's file"])
def test_mistakes_in_a_file(
    text: str, what: str, hint: str, whose: str, user_file: Path, tmp_path: Path
) -> None:
    path = write(user_file if whose == "user's file" else tmp_path / "mine.toml", text)
    with pytest.raises(ConfigError, match=what) as caught:
        settings.load("dev" if whose == "user's file" else str(path))
    assert caught.value.where == str(path)
    assert hint in "\n".join(caught.value.hints)
    assert caught.value.exit_code == 1


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="not valid TOML"):
        settings.load(str(tmp_path / "mine.toml"))


@pytest.mark.parametrize(
    ("key", "value", "hint"),
    [
        ("llvm.provider", "soruce", "did you mean 'source'?"),
        ("triton.build-type", "Dbg", "did you mean 'Debug'?"),
        ("triton.sanitizer", "memory", "known names: address, thread, undefined"),
    ],
)
def test_a_flag_outside_its_choices_is_a_usage_error(key: str, value: str, hint: str) -> None:
    with pytest.raises(UsageError, match="cannot be") as caught:
        settings.load("dev", {key: value})
    assert hint in caught.value.hints
    assert caught.value.where == "command line"


def test_lists_of_flags_become_tuples() -> None:
    given: dict[str, Any] = {"triton.targets": ("a", "b"), "triton.backends": ["amd"]}
    loaded = settings.load("dev", given)
    assert (loaded.triton.targets, loaded.triton.backends) == (("a", "b"), ("amd",))


def test_an_unknown_environment() -> None:
    with pytest.raises(UsageError, match="no environment named 'realese'") as caught:
        settings.load("realese")
    assert caught.value.hints[0] == "did you mean 'release'?"
    assert str(configs.data_dir("envs")) in str(caught.value)


def test_a_path_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such env file"):
        settings.load(str(tmp_path / "mine.toml"))


def test_a_relative_path_and_one_in_the_home_folder(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    here = write(tmp_path / "sub" / "here.toml", "[triton]\n")
    there = write(home / "there.toml", "[triton]\n")
    assert settings.find("sub/here.toml") == here
    assert settings.find("~/there.toml") == there


def test_the_users_environments_come_before_the_shipped(home: Path) -> None:
    mine = write(home / "envs" / "dev.toml", '# my own\n[triton]\nrevision = "mine"\n')
    other = write(home / "envs" / "other.toml", "[triton]\n# not about it\n")
    assert settings.load("dev").triton.revision == "mine"
    rows = {name: (path, about) for name, path, about in settings.available()}
    assert set(rows) == {*SHIPPED, "other"}
    assert rows["dev"] == (mine, "my own")
    assert rows["other"] == (other, "")
    assert len(settings.available()) == len(rows)


def test_a_checkout_cannot_bring_an_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "envs" / "dev.toml", '[toolchain]\ncompiler = "/evil"\n')
    write(tmp_path / "envs" / "evil.toml", '[toolchain]\ncompiler = "/evil"\n')
    monkeypatch.chdir(tmp_path)
    assert settings.load("dev").toolchain.compiler == ""
    with pytest.raises(UsageError):
        settings.load("evil")


def test_what_else_lies_among_the_users_environments_does_no_harm(home: Path) -> None:
    (home / "envs" / "folder.toml").mkdir(parents=True)
    (home / "envs" / "binary.toml").write_bytes(b"\xff\xfe")
    assert {"dev", "binary"} <= {name for name, _, _ in settings.available()}
    assert settings.load("dev").name == "dev"
    with pytest.raises(ConfigError, match="not valid TOML"):
        settings.load("binary")


def test_where_the_users_settings_lie(home: Path, user_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert settings.user_settings_file() == user_file
    monkeypatch.delenv("TRITONSMITH_CONFIG")
    found = settings.user_settings_file()
    assert found.parts[-2:] == ("tritonsmith", "settings.toml")
    assert found.is_relative_to(home)


def test_a_negative_number_of_jobs() -> None:
    with pytest.raises(ConfigError, match=r"toolchain\.jobs cannot be -3"):
        settings.resolve("x", [("x.toml", {"toolchain.jobs": -3})])


def test_a_release_is_an_environment_without_a_file(user_file: Path) -> None:
    loaded = settings.load("triton-3.4.0")
    assert (loaded.name, loaded.triton.wheel) == ("triton-3.4.0", "3.4.0")
    assert dict(loaded.origin)["triton.wheel"] == "triton-3.4.0"
    mine = write(user_file.parent / "envs" / "triton-3.4.0.toml", '[triton]\nrevision = "mine"\n')
    assert settings.load("triton-3.4.0").triton.revision == "mine", mine
    with pytest.raises(UsageError, match="no environment named 'triton-three'"):
        settings.load("triton-three")


@pytest.mark.parametrize("name", ["...toml", "..toml", "-.toml"])
def test_a_file_whose_environment_would_be_the_folder_above(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, "")
    (tmp_path / "link.toml").symlink_to(path)
    for given in (path, tmp_path / "link.toml"):
        with pytest.raises(UsageError, match="not a valid environment name"):
            settings.load(str(given))


def test_files_whose_environment_has_no_name_are_not_listed(user_file: Path) -> None:
    for name in ("...toml", "..toml", ".toml", "mine.toml"):
        write(user_file.parent / "envs" / name, "")
    mine = [name for name, path, _ in settings.available() if path.parent == user_file.parent / "envs"]
    assert mine == ["mine"]


def test_an_env_file_inherits_from_another_one(tmp_path: Path) -> None:
    eldest = write(tmp_path / "a" / "eldest.toml", '[triton]\nproton = true\nbuild-type = "Debug"\n')
    middle = write(tmp_path / "a" / "middle.toml", 'inherits = "eldest.toml"\n[toolchain]\njobs = 3\n')
    env = write(tmp_path / "mine.toml", 'inherits = "a/middle.toml"\n[triton]\nbuild-type = "Release"\n')
    loaded = settings.load(str(env))
    assert loaded.name == "mine"
    assert dict(loaded.origin) == {
        "triton.proton": str(eldest),
        "triton.build-type": str(env),
        "toolchain.jobs": str(middle),
    }


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('inherits = "mine.toml"\n', "inherits from itself"),
        ("inherits = 3\n", "must be the name or path"),
        ('inherits = "nobody"\n', "no environment named 'nobody'"),
        ('inherits = "missing.toml"\n', "no such env file"),
    ],
)
def test_an_inheritance_that_leads_nowhere(tmp_path: Path, text: str, told: str) -> None:
    env = write(tmp_path / "mine.toml", text)
    with pytest.raises((ConfigError, UsageError), match=told):
        settings.load(str(env))


def test_the_users_own_settings_inherit_from_nothing(user_file: Path) -> None:
    write(user_file, 'inherits = "debug"\n')
    with pytest.raises(ConfigError, match="outside a section"):
        settings.load("dev")


def test_what_is_inherited_from_a_source_tree_needs_consent(tmp_path: Path) -> None:
    foreign = write(tmp_path / "tree" / "env.toml", '[toolchain]\ncompiler = "/tmp/evil"\n')
    (tmp_path / "tree" / ".git").mkdir()
    env = write(tmp_path / "mine.toml", f'inherits = "{foreign}"\n')
    with pytest.raises(ConfigError, match="not allowed yet"):
        settings.load(str(env))


HOSTILE = (
    "-x",
    "--upload-pack=evil",
    "a\nb",
    "a\x1b[2J",
)
PATHS = ("/../../abs/checkout/triton-9.9.tar.gz", "../x.whl", "==3.5.0", "3.5.0 --index-url=https://evil")


def _texts() -> dict[str, type]:
    """Keys whose values are free text, alone or in a list: what may become a word of a command line."""
    keys = {}
    for key, _, _ in settings.explain(Settings("x")):
        section, _, dashed = key.partition(".")
        hints = get_type_hints(type(getattr(Settings("x"), section)))
        hint = hints.get(dashed.replace("-", "_")) or hints[f"{dashed}_"]
        if hint is str or get_origin(hint) is tuple:
            keys[key] = hint
        else:
            assert hint in (int, bool) or get_origin(hint) is Literal, key
    return keys


def test_every_text_has_a_form_and_a_row_in_the_documentation() -> None:
    """A new key of the schema must be checked, and docs/security.md must say where it goes."""
    assert set(settings.FORMS) == set(_texts())
    text = (REPOSITORY / "docs" / "security.md").read_text(encoding="utf-8")
    section = text.partition("\n## Values\n")[2].partition("\n## ")[0]
    rows = {
        key
        for line in section.splitlines()
        if line.startswith("| ")
        for key in re.findall(r"`([^`]+)`", line)
    }
    assert set(settings.FORMS) <= rows


@pytest.mark.parametrize("key", settings.FORMS)
@pytest.mark.parametrize("word", HOSTILE)
def test_no_text_is_an_option_or_has_control_characters(tmp_path: Path, key: str, word: str) -> None:
    value: str | list[str] = word if _texts()[key] is str else [word]
    section, _, name = key.partition(".")
    file = write(tmp_path / "mine.toml", f"[{section}]\n{name} = {json.dumps(value)}\n")
    with pytest.raises(ConfigError, match=re.escape(f"{key}: {word!r} is not")):
        settings.load(str(file))
    with pytest.raises(UsageError, match=re.escape(f"{key}: {word!r} is not")):
        settings.load("dev", {key: value})


@pytest.mark.parametrize("word", PATHS)
@pytest.mark.parametrize("key", ["triton.wheel", "python.torch", "llvm.sha256"])
def test_what_pip_installs_is_a_version_and_never_a_path(tmp_path: Path, key: str, word: str) -> None:
    """pip takes `triton==/../../x.tar.gz` for the file of that name, and runs its setup.py."""
    section, _, name = key.partition(".")
    file = write(tmp_path / "mine.toml", f"[{section}]\n{name} = {json.dumps(word)}\n")
    with pytest.raises(ConfigError, match=f"{key}: "):
        settings.load(str(file))


@pytest.mark.parametrize("version", ["newest", "3.6.0", "3.0.0rc2", "3.5.1.post1", "3.2.0+git35c6c7c6"])
def test_versions_of_wheels(version: str) -> None:
    assert settings.load("wheel", {"triton.wheel": version}).triton.wheel == version


def test_a_revision_is_no_refspec() -> None:
    for ref in ("main", "release/3.4.x", "v3.4.0", "refs/pull/1/head", "46550ab1"):
        assert settings.load("dev", {"triton.revision": ref}).triton.revision == ref
    for ref in ("+main", "main:main", "a..b", "main^", "HEAD@{1}", "/x", "refs/*"):
        with pytest.raises(UsageError, match=r"triton\.revision"):
            settings.load("dev", {"triton.revision": ref})
