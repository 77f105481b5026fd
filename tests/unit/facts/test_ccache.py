from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import require
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
