from __future__ import annotations

import math
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support import require
from tests.unit.doctor.conftest import VERSIONS, Programs, leave, only, venv
from tests.unit.facts import fakes
from tests.unit.facts.fakes import git
from tritonsmith.build import precompiled_headers
from tritonsmith.core import configs
from tritonsmith.core.envs.settings import CacheSettings, LlvmSettings, Settings, TritonSettings
from tritonsmith.core.plan import Plan, Run
from tritonsmith.core.plan.runner import Runner
from tritonsmith.core.ui.progress import PhaseProgress
from tritonsmith.doctor import run, tools
from tritonsmith.doctor.check import Check, DoctorContext, Finding
from tritonsmith.facts import ccache

WHEEL = Settings("dev", triton=TritonSettings(wheel="newest"))


def programs_of(subject: DoctorContext) -> dict[str, Finding]:
    """The findings of all checks that look at one program, by name."""
    return {check.id: only(check, subject) for check in tools.PROGRAMS}


# --- programs


def test_there_is_a_check_for_each_row_of_the_config(subject: DoctorContext, programs: Programs) -> None:
    programs(VERSIONS)
    found = programs_of(subject)
    assert list(found) == [f"tools.{row['id']}" for row in configs.load("tools")["tool"]]
    assert {one.status for one in found.values()} == {"ok"}
    assert found["tools.cmake"].seen == "cmake 3.31.10"
    assert found["tools.cmake"].where.endswith("/bin/cmake")


@pytest.mark.parametrize(
    ("name", "check", "version", "status"),
    [
        ("cmake", "cmake", "4.1.0", "warning"),
        ("cmake", "cmake", "3.16.3", "warning"),
        ("ninja", "ninja", "1.10.0", "warning"),
        ("ninja", "ninja", "1.12.1.git.kitware.jobserver-1", "ok"),
        ("clang++", "clang", "13.0.1", "warning"),
        ("ld.lld", "lld", "11.0", "warning"),
        ("ccache", "ccache", "3.7.7", "warning"),
        ("git", "git", "2.17.1", "warning"),
        ("git", "git", "unknown", "ok"),
    ],
)
def test_versions_that_do_not_fit(
    subject: DoctorContext, programs: Programs, name: str, check: str, version: str, status: str
) -> None:
    programs(VERSIONS | {name: version})
    found = programs_of(subject)
    wrong = found.pop(f"tools.{check}")
    assert wrong.status == status
    assert {one.status for one in found.values()} == {"ok"}
    if status == "warning":
        assert f"{name} {version}; required: >=" in wrong.seen
        assert wrong.affects
        assert wrong.remedy
        assert wrong.commands


def test_missing_programs(subject: DoctorContext, programs: Programs) -> None:
    programs({})
    assert {name: one.status for name, one in programs_of(subject).items()} == {
        "tools.cmake": "error",
        "tools.ninja": "error",
        "tools.git": "error",
        "tools.clang": "error",
        "tools.lld": "note",
        "tools.ccache": "note",
    }
    found = programs_of(replace(subject, settings=WHEEL))
    assert {one.status for one in found.values()} == {"note"}


def test_versioned_names_count(subject: DoctorContext, programs: Programs) -> None:
    (programs(VERSIONS | {"clang++-17": "17.0.6"}) / "clang++").unlink()
    assert programs_of(subject)["tools.clang"].where.endswith("/clang++-17")


def test_the_floor_that_the_checkout_asks_for_counts_too(subject: DoctorContext, programs: Programs) -> None:
    programs(VERSIONS)
    subject.cwd = fakes.checkout(subject.cwd / "triton", "3.5")
    project = subject.cwd / "pyproject.toml"
    assert programs_of(subject)["tools.cmake"].status == "ok"
    project.write_text(
        '[build-system]\nrequires = ["cmake-extra>=9", "cmake>=3.35; sys_platform != \'x\'"]\n'
    )
    found = replace(subject)
    assert programs_of(found)["tools.cmake"].status == "note"
    assert "pyproject.toml requires >=3.35" in programs_of(found)["tools.cmake"].seen
    project.write_text('[build-system]\nrequires = ["gitpython>=99", "ninja"]\n')
    found = replace(subject)
    assert {one.status for one in programs_of(found).values()} == {"ok"}


# --- the CMake of PATH


def test_the_cmake_of_a_plain_pip_build(subject: DoctorContext, programs: Programs) -> None:
    folder = programs({})
    assert only(tools.cmake_on_path, subject).status == "not applicable"
    programs({"cmake": "3.25.1"})
    found = only(tools.cmake_on_path, subject)
    assert (found.status, found.seen, found.where) == ("ok", "cmake 3.25.1", str(folder / "cmake"))
    programs({"cmake": "4.0.3"})
    found = only(tools.cmake_on_path, subject)
    assert found.status == "note"
    assert found.seen == "cmake 4.0.3; this Triton requires >=3.20,<4"
    assert "triton#6330" in found.affects


# --- ccache

NEED = configs.load("resources")["ccache"]
TRITON = NEED["triton"]
SAYS = """
case $1 in
--version) echo ccache version 4.7.5;;
--show-config)
  echo '(environment) cache_dir = /cc'
  echo '(default) max_size = {size}'
  echo '(default) base_dir = {base}';;
--print-stats) printf 'cache_size_kibibyte\\t524288\\ndirect_cache_hit\\t{hits}\\ncache_miss\\t{misses}\\n';;
esac
"""


def cache(
    subject: DoctorContext,
    programs: Programs,
    size: str = "5.0G",
    base: str = "",
    hits: int = 0,
    misses: int = 0,
) -> DoctorContext:
    """The subject with a ccache on PATH that says this of itself."""
    programs({"ccache": SAYS.format(size=size, base=base, hits=hits, misses=misses)})
    return replace(subject)


@pytest.mark.parametrize(
    ("size", "status", "seen"),
    [
        ("5.0G", "ok", "0.5 of 4.7 GiB used"),
        ("5.0 GiB", "ok", "0.5 of 5.0 GiB used"),
        ("0", "ok", "0.5 GiB used, no limit"),
        ("50.0M", "warning", f"0.5 of 0.0 GiB used; this environment's build needs about {TRITON:.1f}"),
    ],
)
def test_the_limit_of_the_compiler_cache(
    subject: DoctorContext, programs: Programs, size: str, status: str, seen: str
) -> None:
    found = only(tools.ccache_size, cache(subject, programs, size))
    assert (found.status, found.seen, found.where) == (status, seen, "/cc")


def test_an_llvm_from_source_wants_more(subject: DoctorContext, programs: Programs) -> None:
    leave(subject, "setup-mlir", provider="source", prefix="/x")
    subject.settings = Settings("dev", llvm=LlvmSettings(build_type="Debug"))
    wanted = TRITON + NEED["llvm"]["Debug"]
    found = only(tools.ccache_size, cache(subject, programs, "2.0 GiB"))
    assert found.status == "warning"
    assert f"needs about {wanted:.1f}" in found.seen
    assert found.commands == (f"ccache --set-config max_size={math.ceil(2 * wanted)}G",)
    assert found.remedy == "raise the limit (max_size=2Gi restores the old one)"
    leave(subject, "setup-mlir", provider="prebuilt", prefix="/x")
    assert only(tools.ccache_size, cache(subject, programs, "2.0 GiB")).status == "ok"


def test_a_limit_that_the_environment_sets_is_not_changed_in_a_file(
    subject: DoctorContext, programs: Programs
) -> None:
    seen = cache(subject, programs, "50.0M")
    found = only(tools.ccache_size, seen)
    assert len(found.fix) == 1
    assert "max_size=0.0466Gi restores" in found.remedy
    seen.environ = {"CCACHE_MAXSIZE": "50M"}
    found = only(tools.ccache_size, seen)
    assert found.fix == ()
    assert found.commands == (f"export CCACHE_MAXSIZE={math.ceil(2 * TRITON)}G",)


@pytest.mark.usefixtures("host_path")
def test_the_fix_raises_the_limit_of_a_real_ccache(
    subject: DoctorContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require("ccache")
    monkeypatch.setenv("CCACHE_DIR", str(tmp_path / "not" / "yet" / "made"))
    monkeypatch.setenv("CCACHE_CONFIGPATH", str(tmp_path / "ccache.conf"))
    (tmp_path / "ccache.conf").write_text("max_size = 50M\n")
    (step,) = only(tools.ccache_size, replace(subject)).fix
    assert isinstance(step, Run)
    Runner(tmp_path / "log", PhaseProgress(live=False, silent=True)).run(Plan("mend", (step,)))
    assert only(tools.ccache_size, replace(subject)).status == "ok"


@pytest.mark.parametrize(
    ("hits", "misses", "status", "seen"),
    [
        (0, 0, "ok", "0 compiles so far: too few for a hit rate"),
        (0, 499, "ok", "499 compiles so far: too few for a hit rate"),
        (50, 450, "note", "10 % of 500 compiles were hits"),
        (100, 400, "ok", "20 % of 500 compiles were hits"),
    ],
)
def test_the_hit_rate(
    subject: DoctorContext, programs: Programs, hits: int, misses: int, status: str, seen: str
) -> None:
    found = only(tools.ccache_hits, cache(subject, programs, hits=hits, misses=misses))
    assert (found.status, found.seen) == (status, seen)
    assert bool(found.commands) is (status == "note")


CCACHE = (tools.ccache_size, tools.ccache_hits, tools.ccache_base_dir)


@pytest.mark.parametrize("check", CCACHE, ids=lambda check: check.id)
def test_an_environment_without_a_compiler_cache(
    subject: DoctorContext, programs: Programs, check: Check
) -> None:
    without = "this environment compiles nothing through ccache"
    answers = cache(subject, programs)
    assert only(check, replace(answers, settings=WHEEL)).seen == without
    none = Settings("dev", cache=CacheSettings(launcher="none"))
    assert only(check, replace(answers, settings=none)).seen == without
    programs({"ccache": "\nexit 1\n"})
    assert only(check, replace(subject)).seen == "no working ccache (see tools.ccache)"


@pytest.fixture
def trees(tmp_path: Path) -> tuple[Path, Path]:
    """Two worktrees of one Triton."""
    require("git")
    one, two = fakes.checkout(tmp_path / "src" / "one", "3.5"), tmp_path / "src" / "the other"
    fakes.commit(one)
    git(one, "worktree", "add", "--quiet", "--detach", str(two))
    return one, two


@pytest.mark.parametrize("base", ["{src}", "{src}/", "/", "/x:{src}/one:{src}/the other"])
def test_worktrees_share_compiles_below_one_folder(
    subject: DoctorContext, trees: tuple[Path, Path], base: str
) -> None:
    subject.cwd = trees[1]
    base = base.format(src=trees[0].parent)
    subject.ccache = ccache.parse(f"(x) base_dir = {base}\n(x) hash_dir = false\n", "")
    found = only(tools.ccache_base_dir, subject)
    assert (found.status, found.seen) == ("ok", f"2 worktrees; base_dir is {base}, hash_dir is off")


@pytest.mark.parametrize(
    ("base", "hash_dir", "commands"),
    [
        ("", True, ["base_dir={src}", "hash_dir=false"]),
        ("{src}/one", True, ["base_dir={src}", "hash_dir=false"]),
        ("{src}/o", False, ["base_dir={src}"]),
        ("{src}", True, ["hash_dir=false"]),
    ],
)
def test_worktrees_that_do_not_share(
    subject: DoctorContext, trees: tuple[Path, Path], base: str, hash_dir: bool, commands: list[str]
) -> None:
    subject.cwd = trees[0]
    base = base.format(src=trees[0].parent)
    config = f"(x) base_dir = {base}\n(x) hash_dir = {str(hash_dir).lower()}\n"
    subject.ccache = ccache.parse(config, "")
    found = only(tools.ccache_base_dir, subject)
    assert found.status == "note"
    assert found.seen.startswith(f"2 worktrees; base_dir is {base or 'not set'}, hash_dir is o")
    assert found.commands == tuple(
        f"ccache --set-config {command.format(src=trees[0].parent)}" for command in commands
    )


def test_one_worktree_shares_with_nobody(subject: DoctorContext) -> None:
    subject.cwd, subject.ccache = fakes.checkout(subject.cwd / "triton", "3.5"), ccache.parse("", "")
    assert only(tools.ccache_base_dir, subject).seen == "at most one worktree"


# --- lit


def test_lit_before_there_is_a_python(subject: DoctorContext) -> None:
    assert only(tools.lit, subject).seen == "no Python environment yet"


@pytest.mark.parametrize(
    ("version", "status"), [("18.1.8", "ok"), ("23.1.0", "warning"), ("15.0.7", "warning")]
)
def test_lit(subject: DoctorContext, version: str, status: str) -> None:
    python = venv(subject.env.venv, lit=version)
    found = only(tools.lit, subject)
    assert (found.status, found.where) == (status, str(python))
    assert found.seen == f"lit {version}" + ("; required: lit>=17,<20" if status == "warning" else "")
    if status == "warning":
        assert found.commands == (f"{python} -m pip install 'lit>=17,<20'",)


def test_a_python_without_lit(subject: DoctorContext) -> None:
    python = venv(subject.env.venv)
    found = only(tools.lit, subject)
    assert (found.status, str(python) in found.seen) == ("not applicable", True)


# --- libstdc++


def test_nothing_in_front_of_the_systems_libstdcxx(subject: DoctorContext) -> None:
    assert only(tools.libstdcxx, subject).seen == "GLIBCXX_3.4.30, and no older one hides it"
    subject.host = replace(subject.host, glibcxx="")
    assert only(tools.libstdcxx, subject).status == "not applicable"


@pytest.mark.parametrize(("tag", "status"), [("3.4.9", "warning"), ("3.4.30", "ok"), ("3.4.33", "ok")])
def test_condas_libstdcxx(subject: DoctorContext, tmp_path: Path, tag: str, status: str) -> None:
    library = fakes.libstdcxx(tmp_path / "conda" / "lib", "3.4", tag)
    subject.environ = {"CONDA_PREFIX": str(tmp_path / "conda")}
    found = only(tools.libstdcxx, subject)
    assert found.status == status
    if status == "warning":
        assert (found.where, found.seen) == (str(library), f"GLIBCXX_{tag}, the system's has GLIBCXX_3.4.30")
        assert "triton#1543" in found.affects
        assert found.commands == ("conda install -c conda-forge libstdcxx-ng",)


def test_an_old_libstdcxx_on_the_library_path(subject: DoctorContext, tmp_path: Path) -> None:
    library = fakes.libstdcxx(tmp_path / "old", "3.4.22")
    fakes.libstdcxx(tmp_path / "conda" / "lib", "3.4.32")
    subject.environ = {
        "LD_LIBRARY_PATH": f":/gone:{tmp_path / 'old'}:{tmp_path / 'conda' / 'lib'}:",
        "CONDA_PREFIX": str(tmp_path / "conda"),
    }
    found = only(tools.libstdcxx, subject)
    assert (found.status, found.where) == ("warning", str(library))
    assert found.commands == ("unset LD_LIBRARY_PATH",)


def test_each_old_libstdcxx_is_named_once(subject: DoctorContext, tmp_path: Path) -> None:
    fakes.libstdcxx(tmp_path / "lib", "3.4.22")
    fakes.libstdcxx(tmp_path / "old", "3.4.20")
    subject.environ = {
        "LD_LIBRARY_PATH": f"{tmp_path}/lib:{tmp_path}/old:{tmp_path}/lib",
        "CONDA_PREFIX": str(tmp_path),
    }
    found = tools.libstdcxx(subject)
    assert [one.where for one in found] == [f"{tmp_path}/{name}/libstdc++.so.6" for name in ("lib", "old")]


# What the doctor says of caches that reach beyond this machine.


def cached(**cache: Any) -> Settings:
    return Settings("dev", cache=CacheSettings(**cache))


@pytest.fixture
def redis() -> Iterator[str]:
    """A server that knows one word of Redis."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(100)
                connection.sendall(b"+PONG\r\n")

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"redis://127.0.0.1:{server.getsockname()[1]}"


# The check of libstdc++ looks at the machine, whatever an env asks for.
@pytest.mark.parametrize(
    "check",
    [check for check in run.checks_of(tools) if check is not tools.libstdcxx],
    ids=lambda check: check.id,
)
@pytest.mark.parametrize("wheel", ["", "newest"])
def test_an_env_that_asks_for_nothing_is_not_looked_at(
    subject: DoctorContext, programs: Programs, check: Check, wheel: str
) -> None:
    programs({})
    subject.settings = Settings("dev", triton=TritonSettings(wheel=wheel))
    assert only(check, subject).status == "not applicable"


def test_a_storage_that_answers(subject: DoctorContext, redis: str) -> None:
    subject.settings = cached(remote=redis)
    subject.ccache = ccache.parse(
        "", "remote_storage_hit\t90\nremote_storage_miss\t10\nremote_storage_error\t2\n"
    )
    found = only(tools.remote, subject)
    assert (found.status, found.where) == ("ok", redis)
    assert found.seen.endswith(" ms; 90 % of 100 requests were hits, 2 errors")


def test_a_storage_that_was_not_asked_yet(subject: DoctorContext, redis: str) -> None:
    subject.settings = cached(remote=redis)
    assert only(tools.remote, subject).seen.endswith("; no requests so far")


def test_a_storage_that_is_gone(subject: DoctorContext) -> None:
    subject.settings = cached(remote="redis://127.0.0.1:9")
    found = only(tools.remote, subject)
    assert found.status == "warning"
    assert "refused" in found.seen


def test_a_folder_as_storage(subject: DoctorContext, tmp_path: Path) -> None:
    subject.settings = cached(remote=f"file://{tmp_path}")
    assert only(tools.remote, subject).status == "ok"
    subject.settings = cached(remote=f"file://{tmp_path}/no")
    assert only(tools.remote, subject).seen == "unusable: no such folder"


def test_a_password_in_an_env_file(subject: DoctorContext) -> None:
    subject.settings = cached(remote="redis://s3cret@127.0.0.1:9")
    found = only(tools.remote, subject)
    assert (found.status, found.where) == ("error", "redis://***@127.0.0.1:9")
    assert "CCACHE_REMOTE_STORAGE" in found.remedy
    assert "s3cret" not in repr(found)


@pytest.mark.parametrize(
    ("cache", "wanted", "config", "status"),
    [
        ({}, "auto", "", "not applicable"),
        ({"remote": "redis://h"}, "auto", "", "ok"),
        ({"remote": "redis://h"}, "on", "", "warning"),
        ({"distribute": "icecc"}, "on", "", "warning"),
        ({"distribute": "icecc"}, "off", "", "ok"),
        ({}, "auto", "(x) remote_storage = redis://h\n", "warning"),
        ({}, "off", "(x) remote_storage = redis://h\n", "ok"),
        ({"launcher": "none"}, "on", "", "not applicable"),
    ],
)
def test_precompiled_headers(
    subject: DoctorContext, cache: dict[str, Any], wanted: Any, config: str, status: str
) -> None:
    subject.settings = replace(cached(**cache), llvm=LlvmSettings(precompiled_headers=wanted))
    subject.ccache = ccache.parse(config, "")
    assert only(tools.headers, subject).status == status


def test_icecc(subject: DoctorContext, programs: Programs, tmp_path: Path) -> None:
    programs({})
    subject.settings = cached(distribute="icecc")
    subject.environ = {"ICECC_TEST_SOCKET": str(tmp_path / "s")}
    assert only(tools.icecc, subject).status == "error"
    programs({"icecc": "1.4.0"})
    found = only(tools.icecc, subject)
    assert (found.status, found.seen) == ("warning", "no iceccd answers on this machine")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        server.listen()
        assert only(tools.icecc, subject).seen == "icecc 1.4.0, and its daemon answers"


def test_sccache_and_recc(subject: DoctorContext, programs: Programs) -> None:
    programs({})
    subject.settings = cached(launcher="sccache")
    assert only(tools.launcher, subject).seen == "no sccache on PATH"
    programs({"sccache": "0.10.0", "recc": "1.2.3"})
    found = only(tools.launcher, subject)
    assert (found.status, found.seen) == ("warning", "sccache 0.10.0 and split debug info")
    assert "sccache#1593" in found.affects
    subject.settings = replace(subject.settings, llvm=LlvmSettings(debug_info="lines"))
    assert only(tools.launcher, subject).status == "ok"
    subject.settings = cached(launcher="recc")
    assert only(tools.launcher, subject).seen == "recc, and RECC_SERVER is not set"
    subject.environ = {"RECC_SERVER": "grpc://cluster:8980"}
    assert only(tools.launcher, subject).seen == "recc 1.2.3"


@pytest.mark.parametrize(
    ("remote", "asked", "status"),
    [
        ("", "", "ok"),
        (";CCACHE_REMOTE_STORAGE=redis://h|read-only=true", "redis://h", "ok"),
        (";CCACHE_SECONDARY_STORAGE=redis://h", "redis://h", "ok"),
        ("", "redis://h", "warning"),
        (";CCACHE_REMOTE_STORAGE=redis://h", "", "warning"),
        (";CCACHE_REMOTE_STORAGE=redis://h", "redis://other", "warning"),
    ],
)
def test_the_build_folders_own_settings(subject: DoctorContext, remote: str, asked: str, status: str) -> None:
    configured(subject, f"CCACHE_BASEDIR={subject.space.root}{remote}")
    subject.settings = cached(remote=asked)
    assert only(tools.folders, subject).status == status


def test_a_build_folder_that_was_moved_or_lost_its_checkout(subject: DoctorContext) -> None:
    configured(subject, "CCACHE_BASEDIR=/somewhere/else")
    assert only(tools.folders, subject).status == "warning"
    configured(subject, f"CCACHE_BASEDIR={subject.space.root}")
    assert only(tools.folders, subject).status == "ok"
    subject.cwd.joinpath("checkout").rmdir()
    assert only(tools.folders, subject).status == "warning"


def configured(subject: DoctorContext, words: str) -> None:
    build = subject.env.build
    build.mkdir(parents=True, exist_ok=True)
    launcher = f"CMAKE_CXX_COMPILER_LAUNCHER:STRING=env;{words};CCACHE_NOHASHDIR=1;ccache"
    (build / "CMakeCache.txt").write_text(f"{launcher}\n")
    (subject.cwd / "checkout").mkdir(exist_ok=True)
    if not (build / "source").is_symlink():
        (build / "source").symlink_to(subject.cwd / "checkout")


def test_the_precompiled_headers_of_a_build_folder(
    subject: DoctorContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (check,) = (one for one in run.checks_of(tools) if one.id == "tools.precompiled")
    assert only(check, subject).status == "not applicable"
    fakes.cmake_cache(subject.env.build, "CMAKE_BUILD_TYPE:STRING=Debug")
    assert only(check, subject).seen == 'none; the env file says "auto"'
    kept = {"TRITONSMITH_PCH": "compiler", "TRITONSMITH_PCH_compiler_HEADERS": '"a.h";"b.h"'}
    fakes.cmake_cache(subject.env.build, *(f"{name}:STRING={value}" for name, value in kept.items()))
    subject.cwd = fakes.checkout(tmp_path / "triton", "3.5")
    monkeypatch.setattr(precompiled_headers, "choose_headers", lambda *_: kept)
    assert only(check, subject).seen == "2 headers, which most sources include"
    monkeypatch.setattr(
        precompiled_headers, "choose_headers", lambda *_: {**kept, "TRITONSMITH_PCH": "compiler;python"}
    )
    found = only(check, subject)
    assert found.status == "note"
    assert "--reconfigure" in found.commands[0]
