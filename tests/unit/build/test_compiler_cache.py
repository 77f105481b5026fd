"""What stands before each compile, for every setting of `[cache]`."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support import require
from tests.unit.build import made
from tritonsmith.build import compiler_cache
from tritonsmith.build.compiler_cache import Folders
from tritonsmith.build.triton import recipe
from tritonsmith.core.envs.settings import CacheSettings, DebugInfo
from tritonsmith.core.errors import ConfigError, FactError
from tritonsmith.core.plan import Link
from tritonsmith.facts.tools import Tool

HERE = Folders(Path("/home/dev/my triton"), Path("/ws/envs/dev/triton"), Path("/ws"))
THROUGH = str(Path(compiler_cache.__file__).with_name("through_link.sh"))
RELATIVE = ("CCACHE_BASEDIR=/ws", "CCACHE_NOHASHDIR=1", "CCACHE_ABSSTDERR=1")
CCACHE = made.compilers()
REDIS = "redis://cache.example.org"


def other(name: str) -> Tool:
    return Tool(name, Path("/opt/bin") / name, "1.2.3")


def test_without_settings_it_is_ccache_and_nothing_else() -> None:
    assert compiler_cache.launcher(CacheSettings(), CCACHE) == ("/usr/bin/ccache",)
    assert compiler_cache.flags(None) == ()
    assert compiler_cache.steps(None, phase="x") == ()


def test_without_ccache_there_is_nothing() -> None:
    assert compiler_cache.launcher(CacheSettings(), made.compilers(launcher=None), HERE) == ()


def test_a_build_folder_that_shares() -> None:
    words = ("env", *RELATIVE, "sh", THROUGH, "/home/dev/my triton", "/ws/envs/dev/triton/source")
    assert compiler_cache.launcher(CacheSettings(), CCACHE, HERE) == (*words, "/usr/bin/ccache")
    assert compiler_cache.flags(HERE) == ("-Xclang", "-fdebug-compilation-dir=.")
    assert compiler_cache.steps(HERE, phase="x") == (Link(HERE.build / "source", HERE.source, phase="x"),)


@pytest.mark.parametrize(
    ("system", "changes"),
    [
        ("Darwin", {}),
        ("Linux", {"cxx": Tool("g++", Path("/usr/bin/g++"), "12.2")}),
        ("Linux", {"launcher": other("sccache")}),
        ("Linux", {"launcher": None}),
    ],
)
def test_where_folders_are_left_as_they_are(system: str, changes: dict[str, Tool | None]) -> None:
    assert compiler_cache.shared(CCACHE, "Linux", HERE) == HERE
    assert compiler_cache.shared(replace(CCACHE, **changes), system, HERE) is None


def test_precompiled_headers_are_let_through() -> None:
    words = compiler_cache.launcher(CacheSettings(), CCACHE, precompiled_headers=True)
    assert words == ("env", "CCACHE_SLOPPINESS=pch_defines,time_macros", "/usr/bin/ccache")


@pytest.mark.parametrize(
    ("version", "name"),
    [
        ("4.4", "CCACHE_SECONDARY_STORAGE"),
        ("4.6.3", "CCACHE_SECONDARY_STORAGE"),
        ("4.7", "CCACHE_REMOTE_STORAGE"),
        ("4.14.2", "CCACHE_REMOTE_STORAGE"),
        ("", "CCACHE_REMOTE_STORAGE"),
    ],
)
def test_a_remote_storage_is_read_only_unless_told(version: str, name: str) -> None:
    found = made.compilers(launcher=Tool("ccache", Path("/usr/bin/ccache"), version))
    words = compiler_cache.launcher(CacheSettings(remote=REDIS), found)
    assert words == (
        "env",
        f"{name}={REDIS}|read-only=true",
        "CCACHE_COMPILERCHECK=content",
        "/usr/bin/ccache",
    )
    words = compiler_cache.launcher(CacheSettings(remote=REDIS, remote_write=True), found)
    assert f"{name}={REDIS}" in words


def test_a_ccache_without_remote_storage_is_told() -> None:
    found = made.compilers(launcher=Tool("ccache", Path("/usr/bin/ccache"), "4.3"))
    with pytest.raises(FactError, match=r"ccache 4\.3 has no remote storage"):
        compiler_cache.launcher(CacheSettings(remote=REDIS), found)


@pytest.mark.parametrize("remote", ["redis://h", "redis://h:1234", "http://h/c", "file:///nfs/ccache"])
def test_storages_that_an_env_file_may_name(remote: str) -> None:
    compiler_cache.check_remote(remote)


@pytest.mark.parametrize(
    ("remote", "what"),
    [
        ("redis://:s3cret@h", "a user name or a password"),
        ("redis://s3cret@h", "a user name or a password"),
        ("http://me:s3cret@h/c", "a user name or a password"),
        ("http://h/c|bearer-token=s3cret", "a single URL"),
        ("http://h/c @bearer-token=s3cret", "a single URL"),
        ("https://h/c", "not a storage"),
        ("/nfs/ccache", "not a storage"),
        ("file://nfs", "not an absolute path"),
        ("redis://", "no host"),
        ("http:///c", "no host"),
    ],
)
def test_storages_that_it_may_not(remote: str, what: str) -> None:
    with pytest.raises(ConfigError, match=what) as caught:
        compiler_cache.launcher(CacheSettings(remote=remote), CCACHE)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        (CacheSettings(remote_write=True), "none is set"),
        (CacheSettings(launcher="sccache", remote=REDIS), "the launcher is 'sccache'"),
        (CacheSettings(launcher="none", distribute="icecc"), "the launcher is 'none'"),
    ],
)
def test_settings_that_contradict_each_other(settings: CacheSettings, what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        compiler_cache.launcher(settings, CCACHE)


def test_icecc_comes_through_ccache() -> None:
    words = compiler_cache.launcher(CacheSettings(distribute="icecc"), CCACHE)
    assert words == ("env", "CCACHE_PREFIX=icecc", "/usr/bin/ccache")


@pytest.mark.parametrize("name", ["sccache", "recc"])
def test_others_take_their_settings_from_the_environment(name: str) -> None:
    settings = CacheSettings(launcher=name)  # type: ignore[arg-type]
    found = made.compilers(launcher=other(name))
    here = compiler_cache.shared(found, "Linux", HERE)
    assert compiler_cache.launcher(settings, found, here, precompiled_headers=True) == (f"/opt/bin/{name}",)


def ids(
    settings: CacheSettings, launcher: Tool | None, info: DebugInfo = "split", *, icecc: bool
) -> list[str]:
    rows = compiler_cache.problems(settings, made.compilers(launcher=launcher), info, icecc=icecc)
    return [name for name, _, _ in rows]


def test_problems() -> None:
    away = CacheSettings(distribute="icecc")
    sccache = CacheSettings(launcher="sccache")
    assert ids(CacheSettings(), CCACHE.launcher, icecc=False) == []
    assert ids(away, CCACHE.launcher, icecc=False) == ["no-icecc"]
    assert ids(away, CCACHE.launcher, icecc=True) == []
    assert ids(away, None, icecc=True) == ["no-ccache"]
    assert ids(CacheSettings(remote=REDIS), None, icecc=False) == ["no-ccache"]
    assert ids(sccache, other("sccache"), icecc=False) == ["sccache-split-dwarf"]
    assert ids(sccache, other("sccache"), "full", icecc=False) == []


def test_triton_is_built_so_and_the_link_comes_before_the_build() -> None:
    inputs = made.inputs("3.5", tree=made.llvm())
    variables = recipe.cache_variables(inputs)
    assert variables["CMAKE_CXX_COMPILER_LAUNCHER"].startswith(f"env;CCACHE_BASEDIR={inputs.workspace.root};")
    debug = "-gsplit-dwarf -ggnu-pubnames -Xclang -fdebug-compilation-dir=."
    assert variables["CMAKE_CXX_FLAGS"].endswith(debug)
    steps = recipe.plan(inputs).steps
    link = Link(inputs.env.build / "source", inputs.checkout.root, phase=recipe.PHASE_CONFIGURE)
    build = next(step for step in steps if step.phase == recipe.PHASE_BUILD)
    assert steps.index(link) < steps.index(build)


ARGUMENTS = [
    ("/my tree/lib/a.cpp", "LINK/lib/a.cpp"),
    ("/my tree", "LINK"),
    ("-I/my tree/include", "-ILINK/include"),
    ("-I/my tree", "-ILINK"),
    ("/my trees/a.cpp", "/my trees/a.cpp"),
    ("-I/my tree-2/include", "-I/my tree-2/include"),
    ('-DROOT="/my tree/x"', '-DROOT="/my tree/x"'),
    ("-o", "-o"),
    ("", ""),
    ("$HOME `ls` *", "$HOME `ls` *"),
]


def test_arguments_go_through_the_link_word_by_word() -> None:
    show = [sys.executable, "-c", "import sys; print(*sys.argv[1:], sep='\\n')"]
    argv = ["sh", THROUGH, "/my tree", "LINK", *show, *(word for word, _ in ARGUMENTS)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split("\n")[:-1] == [word for _, word in ARGUMENTS]


def test_the_exit_code_is_the_programs() -> None:
    argv = ["sh", THROUGH, "/a", "/b", "sh", "-c", "exit 7"]
    assert subprocess.run(argv, check=False, timeout=60).returncode == 7


@pytest.mark.slow
@pytest.mark.usefixtures("host_path")
def test_cmake_takes_the_words_apart_and_leaves_them_out_of_the_compilation_database(tmp_path: Path) -> None:
    require("clang++-19")
    own = Path(sys.executable).with_name("cmake")
    if not own.is_file():
        require("cmake")
    source, build = tmp_path / "my source", tmp_path / "my build"
    source.mkdir()
    (source / "a.c").write_text("int a;\n")
    (source / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(x LANGUAGES C)\nadd_library(x OBJECT a.c)\n"
    )
    log = tmp_path / "log"
    fake = tmp_path / "cc ache"
    fake.write_text(f'#!/bin/sh\necho "$CCACHE_BASEDIR|$*" >> "{log}"\nexec "$@"\n')
    fake.chmod(0o755)
    found = made.compilers(launcher=Tool("ccache", fake, "4.7.5"))
    folders = Folders(source, build, tmp_path)
    words = compiler_cache.launcher(CacheSettings(), found, folders)
    variables = {"CMAKE_C_COMPILER_LAUNCHER": ";".join(words), "CMAKE_EXPORT_COMPILE_COMMANDS": "ON"}
    build.mkdir()
    folders.link.symlink_to(source)
    defines = [f"-D{name}={value}" for name, value in variables.items()]
    argv = (str(own), *defines, f"-DCMAKE_MAKE_PROGRAM={own.with_name('ninja')}", "-G", "Ninja")
    subprocess.run((*argv, "-S", source, "-B", build), check=True, capture_output=True, timeout=60)
    subprocess.run((own, "--build", build), check=True, capture_output=True, timeout=60)
    assert f"{tmp_path}|" in log.read_text()
    assert f"-c {folders.link}/a.c" in log.read_text()
    database = (build / "compile_commands.json").read_text()
    assert "CCACHE" not in database
    assert str(source / "a.c") in database
