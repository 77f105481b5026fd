from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support import as_plain_user, require
from tritonsmith.build import explain
from tritonsmith.build.explain import RebuildReason
from tritonsmith.core.errors import FactError
from tritonsmith.facts import ccache, tools
from tritonsmith.facts.ccache import Ccache

# As ccache 4.7.5 prints it, less the lines that nobody asks for.
OLD = """\
(default) absolute_paths_in_stderr = false
(/home/me (old)/.config/ccache/ccache.conf) base_dir = /home/me/my trees
(environment) cache_dir = /home/me/cc
(default) hash_dir = true
(default) max_files = 0
(default) max_size = 5.0G
(default) sloppiness =
"""
# As 4.10 and later print it: https://github.com/ccache/ccache/blob/v4.10/src/ccache/util/string.cpp
NEW = (
    OLD.replace("5.0G", "20.0 GiB").replace("hash_dir = true", "hash_dir = false").replace("/my trees", ":/x")
)
STATS = """\
autoconf_test\t3
cache_miss\t30
cache_size_kibibyte\t1572864
direct_cache_hit\t60
direct_cache_miss\t30
preprocessed_cache_hit\t10
preprocessed_cache_miss\t30
stats_zeroed_timestamp\t0
"""


def test_the_listings_of_4_7() -> None:
    seen = ccache.parse(OLD, STATS)
    limit = 5e9 / 2**30
    assert seen == Ccache(Path("/home/me/cc"), limit, 1.5, 70, 30, "/home/me/my trees", hash_dir=True)
    assert seen.hit_rate == 0.7


def test_the_listings_of_4_10() -> None:
    seen = ccache.parse(NEW, STATS + "max_cache_size_kibibyte\t20971520\nmax_files_in_cache\t0\n")
    assert (seen.limit_gib, seen.base_dir, seen.hash_dir) == (20.0, "/home/me:/x", False)


@pytest.mark.parametrize(
    ("text", "gib"),
    [
        ("5.0G", 5e9 / 2**30),
        ("500.0M", 5e8 / 2**30),
        ("5.0 GB", 5e9 / 2**30),
        ("5.0 GiB", 5.0),
        ("512.0 MiB", 0.5),
        ("1.0 KiB", 2.0**-20),
        ("1.0 kB", 1000 / 2**30),
        ("5000", 5000 / 2**30),  # 4.7 knows no unit below M
        ("512 bytes", 2.0**-21),
        ("0", 0.0),
        ("0 bytes", 0.0),
        ("", 0.0),
        ("unlimited", 0.0),
    ],
)
def test_sizes(text: str, gib: float) -> None:
    assert ccache.parse(f"(default) max_size = {text}\n", "").limit_gib == pytest.approx(gib)


def test_before_the_first_compile_there_is_no_rate() -> None:
    seen = ccache.parse("", "")
    assert (seen.hit_rate, seen.used_gib, seen.limit_gib, seen.hash_dir) == (None, 0.0, 0.0, True)


@pytest.mark.parametrize("name", ["remote", "secondary"])  # 4.7 and later; 4.4 to 4.6
def test_a_remote_storage(name: str) -> None:
    counts = {"hit": 9, "miss": 3, "error": 1, "timeout": 2}
    stats = "".join(f"{name}_storage_{key}\t{value}\n" for key, value in counts.items())
    seen = ccache.parse(f"(environment) {name}_storage = redis://s3cret@host\n", stats)
    assert (seen.remote, seen.remote_hits, seen.remote_misses, seen.remote_errors) == (True, 9, 3, 3)
    assert "s3cret" not in repr(seen)
    assert not ccache.parse(f"(default) {name}_storage = \n", "").remote


def script(path: Path, config: str, stats: str) -> Path:
    answers = {"--show-config": config, "--print-stats": stats}
    cases = "".join(f"{asked}) printf %s '{answer}';;\n" for asked, answer in answers.items())
    path.write_text(f"#!/bin/sh\ncase $1 in\n{cases}*) exit 1;;\nesac\n")
    path.chmod(0o755)
    return path


def test_a_program_that_prints_them(tmp_path: Path) -> None:
    program = script(tmp_path / "ccache", OLD, STATS)
    assert ccache.read(program) == ccache.parse(OLD, STATS)


@pytest.mark.parametrize("text", ["", "#!/bin/sh\nexit 1\n", "#!/bin/sh\n[ $1 = --show-config ]\n"])
def test_one_that_does_not_answer(tmp_path: Path, text: str) -> None:
    program = tmp_path / "ccache"
    if text:
        program.write_text(text)
        program.chmod(0o755)
    assert ccache.read(program) is None


@pytest.mark.usefixtures("host_path")
def test_the_one_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require("ccache")
    monkeypatch.setenv("CCACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("CCACHE_MAXSIZE", "3Gi")
    monkeypatch.setenv("CCACHE_BASEDIR", "/a")
    program = tools.find("ccache")
    assert program is not None
    seen = ccache.read(program.path)
    assert seen is not None
    assert (seen.folder, seen.base_dir, seen.hit_rate) == (tmp_path / "cache", "/a", None)
    assert seen.limit_gib == pytest.approx(3.0, rel=0.01)


# ccache 4.7.5 and `clang++-19 -O0 -g -c x.cpp`, shortened.
TEXT = """\
=== COMMON ===
4
### ext
ii
### cc_mtime
132360
1750791925000000000
### cwd
/work
=== DIRECT MODE ===
### arg
-O0
### arg
-g
### inputfile
x.cpp
### sourcecode hash
8ba48l5ee946rho0o4seeujmkpu250ht6
=== PREPROCESSOR MODE ===
### arg
-O0
### arg
-g
### cpp
# 1 "
x.cpp
" 2
# 1 "
./h.h
" 1
# 2 "
x.cpp
" 2
int f(){return 1;}

### cppstderr

"""
LOG = "[2026-11-21T16:32:11.079408 10034] Result: {}\n"


def written(
    folder: Path, text: str, result: str, name: str = "b/x.cpp.o", time: str = "20261121_163210_804256"
) -> Path:
    base = folder / f"home/{name}.{time}.ccache-"
    base.parent.mkdir(parents=True, exist_ok=True)
    Path(f"{base}input-text").write_text(text)
    Path(f"{base}log").write_text(LOG.format(result))
    return folder


def test_the_inputs_of_one_compile(tmp_path: Path) -> None:
    [one] = ccache.read_inputs(written(tmp_path, TEXT, "cache_miss"))
    assert (one.object, one.hit) == (Path("/home/b/x.cpp.o"), False)
    assert one.values("arg") == ["-O0", "-g"]
    assert one.values("cwd") == ["/work"]
    assert one.values("cc_mtime") == ["132360\n1750791925000000000"]
    assert one.values("no such") == []


def test_the_last_compile_of_an_object_counts(tmp_path: Path) -> None:
    written(tmp_path, TEXT, "direct_cache_hit", time="20261121_163212_000000")
    written(tmp_path, TEXT, "cache_miss")
    assert [one.hit for one in ccache.read_inputs(tmp_path)] == [True]


@pytest.mark.parametrize(
    ("was", "now", "why"),
    [
        ("-g", "-gsplit-dwarf", "flags: -g -> -gsplit-dwarf"),
        ("int f(){return 1;}", "int f(){return 2;}", "the preprocessed source changed, first in x.cpp"),
        ('" 1\n# 2', '" 1\nint more;\n# 2', "the preprocessed source changed, first in ./h.h"),
        ("8ba48l5e", "9ba48l5e", "the source file changed"),
        ("1750791925000000000", "2", "the compiler changed"),
        ("/work", "/other", "compiled in a different folder, which the debug info records (hash_dir)"),
        ("\nii\n", "\ni\n", "ext changed: ii -> i"),
        ("x", "x", "nothing differs: the result was never stored or was evicted"),
    ],
)
def test_why_it_was_missed(tmp_path: Path, was: str, now: str, why: str) -> None:
    before = written(tmp_path / "before", TEXT, "cache_miss")
    after = written(tmp_path / "after", TEXT.replace(was, now), "cache_miss")
    assert explain.explain_misses(after, before).rows == (RebuildReason(("x.cpp.o",), why),)


def test_another_folder_hits_and_what_is_new(tmp_path: Path) -> None:
    before = written(tmp_path / "before", TEXT, "cache_miss", name="one/lib/x.cpp.o")
    written(before, TEXT, "cache_miss", name="one/bin/y.cpp.o")
    after = written(tmp_path / "after", TEXT, "preprocessed_cache_hit", name="two/lib/x.cpp.o")
    written(after, TEXT, "cache_miss", name="two/bin/z.cpp.o")
    written(after, TEXT, "unsupported_source_language", name="two/bin/w.o")
    found = explain.explain_misses(after, before)
    assert (found.hits, found.misses) == (1, 1)
    assert found.rows == (RebuildReason(("bin/z.cpp.o",), "not compiled before"),)


def test_an_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(FactError, match="no compile here"):
        explain.explain_misses(tmp_path, tmp_path)


# Storages that answer, that answer something else, and that do not.


@contextmanager
def answering(text: bytes) -> Iterator[int]:
    """A server that says one thing to whoever connects; its port."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(text)

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        thread.join()


@pytest.mark.parametrize(
    ("scheme", "text", "trouble"),
    [
        ("redis", b"+PONG\r\n", ""),
        ("redis", b"-NOAUTH Authentication required.\r\n", "it answers NOAUTH Authentication required."),
        ("redis", b"", "it answers nothing"),
        ("http", b"HTTP/1.1 404 Not Found\r\n\r\n", ""),
        ("http", b"HTTP/1.1 200 OK\r\n\r\n", ""),
        ("http", b"HTTP/1.1 401 Unauthorized\r\n\r\n", "it requires a login (HTTP 401)"),
        ("http", b"HTTP/1.1 502 Bad Gateway\r\n\r\n", "it answers HTTP 502"),
        ("http", b"220 mail.example.org\r\n", "220 mail.example.org\r\n"),
    ],
)
def test_what_a_server_says(scheme: str, text: bytes, trouble: str) -> None:
    with answering(text) as port:
        answer = ccache.ask_storage(f"{scheme}://127.0.0.1:{port}/cache", timeout=10)
    assert answer.trouble == trouble
    assert answer.seconds > 0


def test_nobody_there() -> None:
    assert "refused" in ccache.ask_storage("redis://127.0.0.1:9", timeout=10).trouble


def test_somebody_who_never_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert "timed out" in ccache.ask_storage(f"redis://127.0.0.1:{port}", timeout=0.05).trouble


def test_folders(tmp_path: Path) -> None:
    assert ccache.ask_storage(f"file://{tmp_path}", write=True, timeout=1).trouble == ""
    assert ccache.ask_storage(f"file://{tmp_path}/no", timeout=1).trouble == "no such folder"
    tmp_path.chmod(0o500)
    closed = as_plain_user(lambda: ccache.ask_storage(f"file://{tmp_path}", write=True, timeout=1))
    assert closed.trouble == "it may not be written to"
    assert ccache.ask_storage(f"file://{tmp_path}", timeout=1).trouble == ""
    tmp_path.chmod(0o700)


def test_a_daemon_on_a_unix_socket(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    assert not ccache.listens(path, timeout=1)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        assert not ccache.listens(path, timeout=1)
        server.listen()
        assert ccache.listens(path, timeout=1)
