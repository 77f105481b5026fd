from __future__ import annotations

from pathlib import Path

import pytest

from tritonsmith.core.envs import consent, settings, workspace
from tritonsmith.core.envs.settings import Settings
from tritonsmith.core.errors import ConfigError, UsageError

VALUES = {
    "cache.remote": '"redis://h"',
    "llvm.dir": '"/evil"',
    "llvm.prebuilt-url": '"https://evil"',
    "llvm.source": '"https://evil/llvm.git"',
    "llvm.store": '"/evil"',
    "python.interpreter": '"/evil/python"',
    "toolchain.compiler": '"/evil/clang++"',
    "triton.cmake-args": '["-DCMAKE_CXX_COMPILER_LAUNCHER=/evil"]',
    "triton.plugin-dirs": '["/evil"]',
    "triton.source": '"https://evil/triton.git"',
}


def write(file: Path, values: dict[str, str], jobs: int = 1) -> Path:
    sections: dict[str, list[str]] = {"toolchain": [f"jobs = {jobs}"]}
    for key, value in values.items():
        section, _, name = key.partition(".")
        sections.setdefault(section, []).append(f"{name} = {value}")
    text = "\n".join("\n".join((f"[{name}]", *lines)) for name, lines in sections.items())
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def allow(file: Path) -> None:
    path, wanted = settings.values_needing_consent(str(file))
    consent.allow(path, wanted, workspace.default())


@pytest.fixture(params=[".git", ".hg", ".jj", ".svn", "setup.py", "Cargo.toml"])
def tree(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A checkout that somebody sent."""
    root = tmp_path / "checkout"
    root.mkdir()
    (root / request.param).touch()
    return root


def test_every_key_that_is_a_place_is_among_them() -> None:
    """A new key of the schema that names a path or a URL has to be thought about."""
    harmless = {
        "triton.wheel",
        "triton.revision",
        "triton.backends",
        "triton.targets",
        "llvm.sha256",
        "llvm.targets",
    }
    harmless |= {"llvm.ninja-targets", "llvm.debug-libraries"}
    free = {
        key
        for key, value, _ in settings.explain(Settings("x"))
        if value in ("", "main") or isinstance(value, tuple)
    }
    literals = {"triton.sanitizer", "cache.distribute"}
    assert free - harmless - literals == set(consent.KEYS)


@pytest.mark.parametrize("key", consent.KEYS)
def test_what_a_checkout_names_to_run_needs_consent(tree: Path, key: str) -> None:
    file = write(tree / "envs" / "mine.toml", {key: VALUES[key]})
    with pytest.raises(ConfigError, match="is not allowed yet") as caught:
        settings.load(str(file))
    assert caught.value.why == f"{key} = {VALUES[key]}".replace('"', "'")
    assert f"invoke env --allow {file}" in caught.value.hints[0]
    assert settings.load(str(file), only_shown=True).name == "mine"
    allow(file)
    assert settings.load(str(file)).name == "mine"


def test_consent_is_to_these_values_of_this_file(tree: Path) -> None:
    file = write(tree / "mine.toml", {"llvm.dir": '"/one"'})
    allow(file)
    write(file, {"llvm.dir": '"/one"'}, jobs=7)
    assert settings.load(str(file)).toolchain.jobs == 7
    for changed in ({"llvm.dir": '"/two"'}, {"llvm.dir": '"/one"', "python.interpreter": '"/evil"'}):
        write(file, changed)
        with pytest.raises(ConfigError, match="is not allowed yet"):
            settings.load(str(file))
    other = write(tree / "other.toml", {"llvm.dir": '"/one"'})
    with pytest.raises(ConfigError, match="is not allowed yet"):
        settings.load(str(other))


def test_a_link_to_a_checkouts_file_is_that_file(tree: Path, tmp_path: Path) -> None:
    file = write(tree / "mine.toml", {"llvm.dir": '"/one"'})
    (tmp_path / "link.toml").symlink_to(file)
    with pytest.raises(ConfigError, match="is not allowed yet"):
        settings.load(str(tmp_path / "link.toml"))


def test_what_names_nothing_to_run_needs_none(tree: Path) -> None:
    file = write(tree / "mine.toml", {"triton.wheel": '"3.5.0"', "llvm.dir": '""'})
    assert settings.load(str(file)).triton.wheel == "3.5.0"


def test_the_users_own_need_none(tmp_path: Path, home: Path) -> None:
    """One that lies in no source tree, and those of the config folder, even if that is under git."""
    own = write(tmp_path / "mine.toml", {"llvm.dir": '"/one"'})
    assert settings.load(str(own)).llvm.dir == "/one"
    (home / ".git").mkdir()
    listed = write(settings.user_settings_file().parent / "envs" / "team.toml", {"llvm.dir": '"/two"'})
    assert settings.load("team").llvm.dir == "/two"
    assert settings.load(str(listed)).llvm.dir == "/two"
    for name, _, _ in settings.available():
        settings.load(name)


@pytest.mark.parametrize(
    ("key", "word"),
    [
        ("triton.targets", "-f/evil.ninja"),
        ("llvm.ninja-targets", "-f"),
        ("triton.backends", "../../evil"),
        ("triton.backends", "nvidia;../evil"),
        ("llvm.targets", "X86;-DEVIL=1"),
        ("llvm.debug-libraries", "-f"),
        ("llvm.ninja-targets", "install"),
        ("triton.targets", "./install/strip"),
        ("triton.targets", "uninstall"),
    ],
)
def test_a_list_of_names_holds_no_options_and_no_paths(tmp_path: Path, key: str, word: str) -> None:
    """Ninja runs what a file of the checkout's says if it is told `-f`."""
    file = write(tmp_path / "mine.toml", {key: f'["{word}"]'})
    with pytest.raises(ConfigError, match="is not a name"):
        settings.load(str(file))
    with pytest.raises(UsageError, match="is not a name"):
        settings.load("dev", {key: (word,)})


def test_names_as_they_are_used(tmp_path: Path) -> None:
    names = {
        "triton.targets": '["check-triton", "bin/triton-opt", "lib/install.cpp^"]',
        "llvm.targets": '["X86"]',
    }
    assert len(settings.load(str(write(tmp_path / "mine.toml", names))).triton.targets) == 3


def test_a_link_out_of_a_checkout_is_the_checkouts(tree: Path, tmp_path: Path) -> None:
    write(tmp_path / "elsewhere.toml", {"llvm.dir": '"/evil"'})
    (tree / "link.toml").symlink_to(tmp_path / "elsewhere.toml")
    with pytest.raises(ConfigError, match="is not allowed yet"):
        settings.load(str(tree / "link.toml"))
    allow(tree / "link.toml")
    assert settings.load(str(tree / "link.toml")).llvm.dir == "/evil"
