"""What the doctor says of caches that reach beyond this machine."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.unit.facts import fakes
from tritonsmith.build.triton import precompiled
from tritonsmith.core.envs.schema import CacheSettings, LlvmSettings, Settings, TritonSettings
from tritonsmith.doctor import registry, tools_cache
from tritonsmith.doctor.check import Check
from tritonsmith.doctor.context import DoctorContext
from tritonsmith.facts import ccache

from .conftest import Programs, only


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


@pytest.mark.parametrize("check", registry.of(tools_cache), ids=lambda check: check.id)
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
    found = only(tools_cache.remote, subject)
    assert (found.status, found.where) == ("ok", redis)
    assert found.seen.endswith(" ms; 90 % of 100 requests were hits, 2 errors")


def test_a_storage_that_was_not_asked_yet(subject: DoctorContext, redis: str) -> None:
    subject.settings = cached(remote=redis)
    assert only(tools_cache.remote, subject).seen.endswith("; no requests so far")


def test_a_storage_that_is_gone(subject: DoctorContext) -> None:
    subject.settings = cached(remote="redis://127.0.0.1:9")
    found = only(tools_cache.remote, subject)
    assert found.status == "warning"
    assert "refused" in found.seen


def test_a_folder_as_storage(subject: DoctorContext, tmp_path: Path) -> None:
    subject.settings = cached(remote=f"file://{tmp_path}")
    assert only(tools_cache.remote, subject).status == "ok"
    subject.settings = cached(remote=f"file://{tmp_path}/no")
    assert only(tools_cache.remote, subject).seen == "unusable: no such folder"


def test_a_password_in_an_env_file(subject: DoctorContext) -> None:
    subject.settings = cached(remote="redis://s3cret@127.0.0.1:9")
    found = only(tools_cache.remote, subject)
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
    assert only(tools_cache.headers, subject).status == status


def test_icecc(subject: DoctorContext, programs: Programs, tmp_path: Path) -> None:
    programs({})
    subject.settings = cached(distribute="icecc")
    subject.environ = {"ICECC_TEST_SOCKET": str(tmp_path / "s")}
    assert only(tools_cache.icecc, subject).status == "error"
    programs({"icecc": "1.4.0"})
    found = only(tools_cache.icecc, subject)
    assert (found.status, found.seen) == ("warning", "no iceccd answers on this machine")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        server.listen()
        assert only(tools_cache.icecc, subject).seen == "icecc 1.4.0, and its daemon answers"


def test_sccache_and_recc(subject: DoctorContext, programs: Programs) -> None:
    programs({})
    subject.settings = cached(launcher="sccache")
    assert only(tools_cache.launcher, subject).seen == "no sccache on PATH"
    programs({"sccache": "0.10.0", "recc": "1.2.3"})
    found = only(tools_cache.launcher, subject)
    assert (found.status, found.seen) == ("warning", "sccache 0.10.0 and split debug info")
    assert "sccache#1593" in found.affects
    subject.settings = replace(subject.settings, llvm=LlvmSettings(debug_info="lines"))
    assert only(tools_cache.launcher, subject).status == "ok"
    subject.settings = cached(launcher="recc")
    assert only(tools_cache.launcher, subject).seen == "recc, and RECC_SERVER is not set"
    subject.environ = {"RECC_SERVER": "grpc://cluster:8980"}
    assert only(tools_cache.launcher, subject).seen == "recc 1.2.3"


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
    assert only(tools_cache.folders, subject).status == status


def test_a_build_folder_that_was_moved_or_lost_its_checkout(subject: DoctorContext) -> None:
    configured(subject, "CCACHE_BASEDIR=/somewhere/else")
    assert only(tools_cache.folders, subject).status == "warning"
    configured(subject, f"CCACHE_BASEDIR={subject.space.root}")
    assert only(tools_cache.folders, subject).status == "ok"
    subject.cwd.joinpath("checkout").rmdir()
    assert only(tools_cache.folders, subject).status == "warning"


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
    (check,) = (one for one in registry.of(tools_cache) if one.id == "tools.precompiled")
    assert only(check, subject).status == "not applicable"
    fakes.cmake_cache(subject.env.build, "CMAKE_BUILD_TYPE:STRING=Debug")
    assert only(check, subject).seen == 'none; the env file says "auto"'
    kept = {"TRITONSMITH_PCH": "compiler", "TRITONSMITH_PCH_compiler_HEADERS": '"a.h";"b.h"'}
    fakes.cmake_cache(subject.env.build, *(f"{name}:STRING={value}" for name, value in kept.items()))
    subject.cwd = fakes.checkout(tmp_path / "triton", "3.5")
    monkeypatch.setattr(precompiled, "choose", lambda *_: kept)
    assert only(check, subject).seen == "2 headers, which most sources include"
    monkeypatch.setattr(precompiled, "choose", lambda *_: {**kept, "TRITONSMITH_PCH": "compiler;python"})
    found = only(check, subject)
    assert found.status == "note"
    assert "--reconfigure" in found.commands[0]
