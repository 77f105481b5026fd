from __future__ import annotations

from pathlib import Path

import pytest

from tritonsmith.build.explain import cache_misses
from tritonsmith.build.explain.reasons import RebuildReason
from tritonsmith.core.errors import FactError
from tritonsmith.facts import ccache_inputs

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
    [one] = ccache_inputs.read(written(tmp_path, TEXT, "cache_miss"))
    assert (one.object, one.hit) == (Path("/home/b/x.cpp.o"), False)
    assert one.values("arg") == ["-O0", "-g"]
    assert one.values("cwd") == ["/work"]
    assert one.values("cc_mtime") == ["132360\n1750791925000000000"]
    assert one.values("no such") == []


def test_the_last_compile_of_an_object_counts(tmp_path: Path) -> None:
    written(tmp_path, TEXT, "direct_cache_hit", time="20261121_163212_000000")
    written(tmp_path, TEXT, "cache_miss")
    assert [one.hit for one in ccache_inputs.read(tmp_path)] == [True]


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
    assert cache_misses.explain(after, before).rows == (RebuildReason(("x.cpp.o",), why),)


def test_another_folder_hits_and_what_is_new(tmp_path: Path) -> None:
    before = written(tmp_path / "before", TEXT, "cache_miss", name="one/lib/x.cpp.o")
    written(before, TEXT, "cache_miss", name="one/bin/y.cpp.o")
    after = written(tmp_path / "after", TEXT, "preprocessed_cache_hit", name="two/lib/x.cpp.o")
    written(after, TEXT, "cache_miss", name="two/bin/z.cpp.o")
    written(after, TEXT, "unsupported_source_language", name="two/bin/w.o")
    found = cache_misses.explain(after, before)
    assert (found.hits, found.misses) == (1, 1)
    assert found.rows == (RebuildReason(("bin/z.cpp.o",), "not compiled before"),)


def test_an_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(FactError, match="no compile here"):
        cache_misses.explain(tmp_path, tmp_path)
