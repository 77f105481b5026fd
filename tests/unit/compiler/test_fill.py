"""Records of filled caches, the parts of a key that differ, and what makes a cache useless."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from tests.support import as_plain_user
from tests.unit.core.plan.conftest import tools
from tritonsmith.compiler import fill, targets
from tritonsmith.compiler.fill import Filled, FillWish, Miss, Verified
from tritonsmith.compiler.kernels.kernel_list import ListedKernel
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.core.plan import Plan
from tritonsmith.core.plan.steps.cache_entries import FILLING, AddEntries
from tritonsmith.facts import triton_cache
from tritonsmith.worker.border import text_of
from tritonsmith.worker.fill import unfit
from tritonsmith.worker.messages import (
    CacheKey,
    Fill,
    FilledRow,
    FillHead,
    FillRecord,
    RecordedParameter,
    SpecializedKernel,
)

HEAD = FillHead("3.6.0", "digest", "3.12.1", ".cpython-312.so", "/v/triton", "ptxas 12.8-90", {})


def key(**more: Any) -> CacheKey:
    """A key of a kernel."""
    kernel = SpecializedKernel(
        "/k.py", 3, "k", "k", "k", (RecordedParameter("x", False),), ("cuda", 90, 32), {}, {"x": "i32"}
    )
    own = {name: more.pop(name) for name in ("file", "line", "signature", "hints") if name in more}
    parts = {"source": "s", "constants": {}, "options": {"num_warps": "4"}, "backend": "b", "triton": "t"}
    more.setdefault("variables", {})
    return CacheKey(replace(kernel, **own), **{**parts, **more})


@pytest.mark.parametrize(
    ("here", "differs"),
    [
        ({}, []),
        ({"options": {"num_warps": "8"}}, ["option num_warps: 8 here, 4 in the cache"]),
        ({"variables": {"A": "1"}}, ["variable A: 1 here, none in the cache"]),
        ({"backend": "c"}, ["ptxas or the architecture: 'c' here, 'b' in the cache"]),
        ({"constants": {"(1,)": "64"}}, ["constant (1,): 64 here, none in the cache"]),
        ({"signature": {"x": "i64"}}, ["type of x: i64 here, i32 in the cache"]),
        ({"hints": {"x": 16}}, ["multiple of 16: x: 16 here, none in the cache"]),
        ({"source": "r", "line": 4}, ["source: line 4 of /k.py here, line 3 in the cache"]),
    ],
)
def test_each_part_of_a_key_that_differs_is_named(here: dict[str, Any], differs: list[str]) -> None:
    assert list(fill.differences(key(**here), key())) == differs


def test_a_source_that_changed_names_the_file_that_filled_the_cache() -> None:
    (text,) = fill.differences(key(source="r", file="/new.py"), key())
    assert text.endswith("has changed in /new.py, which was filled from /k.py")


def test_of_another_triton_no_other_part_is_compared() -> None:
    (text,) = fill.differences(key(triton="u", backend="c", options={}), key())
    assert text.startswith("Triton itself")


@pytest.mark.parametrize(
    ("here", "home", "why"),
    [
        (HEAD, "/cache", []),
        (HEAD, "/elsewhere", ["its indexes name files in /elsewhere"]),
        (replace(HEAD, key="other"), "/cache", ["Triton 3.6.0 was another build: /v/triton"]),
        (replace(HEAD, backend="ptxas 13.0-90"), "/cache", ["ptxas or the architecture: ptxas 12.8-90"]),
        (replace(HEAD, variables={"A": "1"}), "/cache", ["A was not set"]),
        (
            replace(HEAD, suffix=".cpython-313.so"),
            "/cache",
            ["its C extensions are for another Python: .cpython-312.so"],
        ),
        (replace(HEAD, folder="/w/triton"), "/cache", []),
    ],
)
def test_what_makes_a_cache_useless(here: FillHead, home: str, why: list[str]) -> None:
    made = Fill("cuda:90:32", home, replace(HEAD, extensions=("E",)), ())
    assert list(unfit(made, "/cache", here)) == why


def test_the_folder_of_triton_counts_in_some_releases() -> None:
    head = replace(HEAD, extensions=("E",), folder_counts=True)
    made = Fill("cuda:90:32", "/cache", head, ())
    assert list(unfit(made, "/cache", replace(head, folder="/w/triton"))) == [
        "its C extensions are for Triton in /v/triton, not in /w/triton"
    ]
    assert not list(
        unfit(replace(made, head=replace(head, extensions=())), "/cache", replace(head, folder=""))
    )


def test_a_second_run_adds_to_the_record_of_the_first(tmp_path: Path) -> None:
    rows = tuple(FilledRow(name, "p", "ok", "", name) for name in "ab")
    first = fill._recorded(None, Fill("cuda:90:32", str(tmp_path), HEAD, rows[:1]))
    bad = FilledRow("c", "p", "failed", "no")
    again = Fill("cuda:90:32", str(tmp_path), HEAD, (*rows[1:], bad))
    record = fill._recorded(first, again)
    assert [row.name for row in record.fills[0].rows] == ["a", "b"]
    (tmp_path / triton_cache.RECORD).write_text(text_of(record))
    assert fill.read_record(tmp_path) == record


@pytest.mark.parametrize(
    ("target", "head"),
    [
        ("cuda:100:32", HEAD),
        ("cuda:90:32", replace(HEAD, backend="ptxas 13.0-90")),
        ("cuda:90:32", replace(HEAD, variables={"DISABLE_LLVM_OPT": "true"})),
    ],
)
def test_runs_for_other_programs_keep_apart(target: str, head: FillHead) -> None:
    first = Fill("cuda:90:32", "/home", HEAD, (FilledRow("a", "p", "ok", "", "A"),))
    other = Fill(target, "/home", head, (FilledRow("a", "p", "ok", "", "B"),))
    assert fill._recorded(FillRecord(1, (first,)), other).fills == (first, other)


def test_entries_that_are_filled_for_a_new_home_are_recorded_for_it_alone() -> None:
    rows = tuple(FilledRow(name, "p", "ok", "", name) for name in "ab")
    old = FillRecord(1, (Fill("cuda:90:32", "/old", HEAD, rows),))
    some = fill._recorded(old, Fill("cuda:90:32", "/new", HEAD, rows[:1]))
    assert [(each.home, [row.entry for row in each.rows]) for each in some.fills] == [
        ("/old", ["b"]),
        ("/new", ["a"]),
    ]
    whole = fill._recorded(old, Fill("cuda:90:32", "/new", HEAD, rows))
    assert [each.home for each in whole.fills] == ["/new"]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "cannot be read"),
        ("[]", "cannot be read"),
        ('{"schema": 1}', "cannot be read"),
        ('{"schema": "1", "fills": []}', "cannot be read"),
        ("\xff", "cannot be read"),
        ("[" * 200_000, "cannot be read"),
        ('{"schema": 2, "fills": [], "more": 1}', "a later version of tritonsmith has filled this cache"),
    ],
)
def test_a_record_that_cannot_be_read_is_an_error_that_names_it(text: str, what: str, tmp_path: Path) -> None:
    assert fill.read_record(tmp_path) is None
    file = tmp_path / triton_cache.RECORD
    file.write_text(text, encoding="latin-1")
    with pytest.raises(FactError, match=what) as caught:
        fill.read_record(tmp_path)
    assert caught.value.where == str(file)
    # Before anything is compiled.
    with pytest.raises(FactError, match=what):
        fill.prepare((), cast("Any", None), FillWish(tmp_path, tmp_path))


@pytest.mark.parametrize("folder", ["triton", "../triton", "/opt/../triton", "/opt//triton", "/opt/\n"])
def test_the_folder_of_triton_elsewhere_is_absolute(folder: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--triton-at cannot be"):
        fill.prepare((), cast("Any", None), FillWish(tmp_path, tmp_path, triton=folder))


def test_what_another_run_recorded_meanwhile_is_kept(tmp_path: Path) -> None:
    mine, other = (
        fill.RecordFill(
            tmp_path,
            Fill("cuda:90:32", str(tmp_path), HEAD, (FilledRow(name, "p", "ok", "", name),)),
            phase="add",
        )
        for name in "ab"
    )
    other.act(tools())
    mine.act(tools())
    record = fill.read_record(tmp_path)
    assert record
    assert [row.name for row in record.fills[0].rows] == ["b", "a"]
    assert json.loads((tmp_path / triton_cache.RECORD).read_text())["schema"] == record.schema


@pytest.mark.parametrize("home", ["/a\0b", "/a\ud800b", "/" + "a" * 5000])
def test_a_home_that_no_folder_can_have_is_another_one(home: str, tmp_path: Path) -> None:
    assert list(unfit(Fill("cuda:90:32", home, HEAD, ()), str(tmp_path), HEAD)) == [
        f"its indexes name files in {home}"
    ]


def test_the_record_is_no_stranger_in_the_cache(tmp_path: Path) -> None:
    (tmp_path / triton_cache.RECORD).write_text(text_of(FillRecord(1, ())))
    assert triton_cache.scan(triton_cache.Root("named", tmp_path, "a test")).strangers == ()


def test_a_list_of_another_vendors_gpu_is_refused(tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text("import triton\n@triton.jit\ndef k(x):\n    pass\n")
    entry = ListedKernel("a.toml", "k.py", "k", "k", "x=*fp32:16", targets=targets.parse_all(["h100"]))
    path = tmp_path / "a.toml"
    with pytest.raises(UsageError, match="captured for cuda:90:32, and hip:gfx942:64 is of another vendor"):
        fill.requests_of((entry,), path, targets.parse_all(["mi300x"]))
    ((request, _),) = fill.requests_of((entry,), path, targets.parse_all(["b200"]))
    assert [str(target) for target in request.targets] == ["cuda:100:32"]
    with pytest.raises(UsageError, match="names no target"):
        fill.requests_of((replace(entry, targets=()),), path, ())


def test_results_of_autotuners_are_taken_from_a_cache_that_has_some(tmp_path: Path) -> None:
    with pytest.raises(FactError, match="has no results of autotuners"):
        fill._tuned(tmp_path)
    folder = tmp_path / ("A" * 52)
    folder.mkdir()
    (folder / "k.autotune.json").write_text("{}")
    assert fill._tuned(tmp_path) == {folder.name: folder}


def test_a_folder_that_cannot_be_written_to_is_an_error(tmp_path: Path) -> None:
    fill._check_writable(tmp_path / "new" / "deep")
    tmp_path.chmod(0o555)
    with pytest.raises(FactError, match="cannot write into this folder"):
        as_plain_user(lambda: fill._check_writable(tmp_path / "new"))
    with pytest.raises(FactError, match="this is not a folder"):
        fill._check_writable(Path("/dev/null/warm"))


def test_the_result_says_what_is_missing() -> None:
    rows = (
        FilledRow("k", "a", "ok", "", "E"),
        FilledRow("k", "b", "failed", "CompilationError: no\nmore"),
        FilledRow("l", "a", "ok", "no launcher: gcc failed", "F"),
    )
    filled = Filled(replace(HEAD, without="there is no C compiler"), rows, ("E", "F"), 1)
    assert list(fill.summary(filled)) == [
        ("k", "1", "1 of 2", "CompilationError: no"),
        ("l", "1", "filled", "no launcher: gcc failed"),
    ]
    assert filled.lacks_extensions
    assert len(filled.bad) == 1
    assert not Filled(replace(HEAD, without=fill.NO_EXTENSIONS), rows[:1], (), 0).lacks_extensions


@pytest.mark.parametrize(
    ("error", "headline"),
    [
        ("", ""),
        ("no attribute\nmore", "no attribute"),
        ("at 2:8:\n    y = x.foo\n        ^\nno foo\nat /k.py:14", "no foo (at /k.py:14)"),
        ("at 2:8:\n  f(x)\n  ^\nat /k.py:9\nat 1:1:\n  g\n  ^\nnot 3", "not 3 (at /k.py:9)"),
        ("at 2:8:", "at 2:8:"),
    ],
)
def test_the_table_shows_what_the_compiler_says(error: str, headline: str) -> None:
    row = FilledRow("k", "p", "failed", error)
    assert [row[-1] for row in fill.summary(Filled(HEAD, (row,), (), 0))] == [headline]


def test_the_plan_counts_entries(tmp_path: Path) -> None:
    for number, text in ((1, "1 added entry"), (2, "2 added entries")):
        step = AddEntries(tmp_path, (tmp_path,) * number, tmp_path, triton_cache.index(), phase="add")
        assert Plan("t", (step,)).summary()[1].startswith(f"add: {text}")


def test_the_lines_below_name_what_was_repaired_and_what_is_in_the_way(tmp_path: Path) -> None:
    filled = Filled(HEAD, (), ("A",), 1, repaired=("B",), blocked=("C", "D"))
    first, second, third, _good = fill.closing(filled, tmp_path)
    assert first == f"1 entry added to {tmp_path}; 1 was there already"
    assert second == "1 entry repaired"
    assert third.startswith("2 entries left alone")
    assert third.endswith(": C, D")


def test_only_what_an_interrupted_fill_left_counts_as_unfinished(tmp_path: Path) -> None:
    (tmp_path / "A").mkdir()
    assert not fill.is_unfinished(tmp_path)
    (tmp_path / FILLING).mkdir()
    assert fill.is_unfinished(tmp_path)
    (tmp_path / triton_cache.RECORD).write_text("{}")
    assert not fill.is_unfinished(tmp_path)


def test_an_entry_whose_index_was_written_is_one_that_was_compiled(tmp_path: Path) -> None:
    for name in ("kept", "again", "half"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "k.cubin").write_text("x")
    for name in ("kept", "again"):
        (tmp_path / name / "__grp__k.json").write_text("{}")
    before = fill._files(tmp_path)
    (tmp_path / "new").mkdir()
    for name in ("again", "half", "new"):
        (tmp_path / name / "fresh").write_text("{}")
        (tmp_path / name / "fresh").rename(tmp_path / name / "__grp__k.json")
    assert fill._compiled(before, fill._files(tmp_path)) == {"again", "half", "new"}


def test_an_extension_that_was_written_is_one_that_was_built() -> None:
    record = FillRecord(1, (Fill("cuda:90:32", "/", HEAD, ()),))
    before = {"A": {"cuda_utils.so": (1, 1)}, "B": {"l.cpython-312.so": (2, 2)}, "C": {"m.so": (3, 3)}}
    after = {
        "A": {"cuda_utils.so": (1, 1)},
        "B": {"l.cpython-312.so": (2, 2), "l.cpython-313.so": (5, 5)},
        "C": {"m.so": (4, 4)},
    }
    assert list(fill._extensions(before, after, record)) == [
        Miss("l", "", ("Python: l.cpython-313.so here, .cpython-312.so in the cache",)),
        Miss("m", "", ("the cache has it, but it could not be loaded",)),
    ]


def test_a_verdict_counts_kernels_and_extensions() -> None:
    assert fill.verdict(Verified(2, (), 0)) == "2 kernels looked up, nothing was compiled"
    misses = (Miss("k", "k.py:1", ("x",)), Miss("cuda_utils", "", ("y",)))
    assert fill.verdict(Verified(2, misses, 0)) == "2 kernels looked up, 1 compiled, 1 C extension built"
