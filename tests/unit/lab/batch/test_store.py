"""The database of results: what is kept comes back, once, whole, and whatever happens to its file."""

from __future__ import annotations

import gc
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tritonsmith.core.errors import FactError, StepError
from tritonsmith.lab.batch import store
from tritonsmith.lab.batch.store import ResultStore, pack

PLACE = ("releases/3.6.0", "key", "cuda:90:32")
PARTS = {"p/k.ttir": b"module {}", "p/k.cubin": bytes(range(256)) * 40}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a folder" / "results.db"


ENDLESS = """CREATE VIEW result AS WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n FROM c)
    SELECT n AS triton, n AS key, n AS target, n AS manifest, n AS metrics FROM c"""


def changed(path: Path, sql: str) -> list[tuple[int, ...]]:
    base = sqlite3.connect(path)
    rows = base.execute(sql).fetchall()
    base.commit()
    base.close()
    return rows


def test_what_is_kept_comes_back(path: Path) -> None:
    here = ResultStore(path)
    assert here.find(*PLACE[:2], ["cuda:90:32"]) == {}
    here.keep(*PLACE, "the manifest", pack(PARTS))
    here.keep_metrics(*PLACE, "the metrics")
    here.close()
    again = ResultStore(path)
    every = ["cuda:90:32", "hip:gfx942:64"]
    assert again.find(*PLACE[:2], every) == {"cuda:90:32": "the manifest"}
    assert again.metrics(*PLACE[:2], every) == {"cuda:90:32": "the metrics"}
    assert dict(again.contents(*PLACE)) == PARTS
    assert again.find("releases/3.7.0", "key", ["cuda:90:32"]) == {}
    again.keep(*PLACE, "another", pack({"p/k.ttir": b"other"}))
    assert again.find(*PLACE[:2], ["cuda:90:32"]) == {"cuda:90:32": "another"}
    assert again.metrics(*PLACE[:2], every) == {}
    assert dict(again.contents(*PLACE)) == {"p/k.ttir": b"other"}


def test_each_content_is_there_once(path: Path) -> None:
    here = ResultStore(path)
    for number in range(20):
        here.keep(f"commits/{number}", "key", "cuda:90:32", "m", pack(PARTS))
    counts = "SELECT (SELECT count(*) FROM result), (SELECT count(*) FROM file), count(*) FROM content"
    assert changed(path, counts) == [(20, 40, 2)]
    usage = here.usage()
    assert [row.kernels for row in usage] == [1] * 20
    assert 0 < usage[0].bytes < 600  # compressed


def test_imports_are_by_content_and_kernel(path: Path) -> None:
    here = ResultStore(path)
    here.keep_imports("sum", "k", [("torch.nn", 0), ("near", 1)])
    assert here.imports("sum", "k") == [("torch.nn", 0), ("near", 1)]
    assert (here.imports("sum", "other"), here.imports("other", "k")) == (None, None)


def test_a_database_of_an_earlier_version_gets_the_table_of_answers(path: Path) -> None:
    ResultStore(path).close()
    changed(path, "DROP TABLE answer")
    here = ResultStore(path)
    assert here.answer("why") is None
    here.keep_answer("why", '"because"')
    assert here.answer("why") == '"because"'
    # And one that has it is imported like one that has not.
    other = ResultStore(path.with_name("other.db"))
    assert other.merge(path) == (0, 0)
    assert other.answer("why") is None


@pytest.mark.parametrize("damage", ["all of it", "half of it", "its end"])
def test_a_damaged_file_is_set_aside(path: Path, damage: str, capsys: pytest.CaptureFixture[str]) -> None:
    here = ResultStore(path)
    for number in range(200):
        here.keep("releases/3.6.0", str(number), "cuda:90:32", f"manifest {number}" * 20, pack(PARTS))
    here.close()
    raw = path.read_bytes()
    middle = len(raw) // 2
    contents = {
        "all of it": b"\1" * len(raw),
        "half of it": raw[:4096] + b"x" * (middle - 4096) + raw[middle:],
        "its end": raw[:middle],
    }
    path.write_bytes(contents[damage])
    again = ResultStore(path)
    for number in range(200):
        again.keep("releases/3.6.0", str(number), "cuda:90:32", "new", pack(PARTS))
    assert again.find("releases/3.6.0", "7", ["cuda:90:32"]) == {"cuda:90:32": "new"}
    assert "the kept results were damaged" in capsys.readouterr().err
    assert path.with_name("results.db.damaged-1").read_bytes()[:4096] == contents[damage][:4096]


def test_a_damaged_content_is_no_result(path: Path) -> None:
    here = ResultStore(path)
    here.keep(*PLACE, "manifest", pack(PARTS))
    changed(path, "UPDATE content SET data=zeroblob(30)")
    changed(path, "UPDATE result SET manifest=zeroblob(30)")
    assert here.find(*PLACE[:2], ["cuda:90:32"]) == {}
    with pytest.raises(FactError, match="a file of a kept result is damaged"):
        list(here.contents(*PLACE))


def test_somebody_elses_and_newer_files_stay(path: Path) -> None:
    path.parent.mkdir()
    changed(path, "CREATE TABLE mine (a)")
    with pytest.raises(FactError, match="no database of kept results"):
        ResultStore(path)
    assert not store.is_ours(path)
    path.unlink()
    ResultStore(path).close()
    assert store.is_ours(path)
    changed(path, "PRAGMA user_version=99")
    with pytest.raises(FactError, match="a newer tritonsmith"):
        ResultStore(path)


def test_a_folder_that_cannot_be_made(path: Path) -> None:
    path.parent.write_text("a file")
    with pytest.raises(StepError, match="cannot use the kept results"):
        ResultStore(path)


def test_a_full_disk_is_an_error_and_leaves_the_rest(path: Path) -> None:
    here = ResultStore(path)
    here.keep(*PLACE, "manifest", pack(PARTS))
    (pages,) = here._base.execute("PRAGMA page_count").fetchone()
    here._base.execute(f"PRAGMA max_page_count={pages}")
    with pytest.raises(StepError, match="cannot use the kept results") as raised:
        here.keep("releases/3.7.0", "key", "cuda:90:32", "manifest", pack({"a": os.urandom(1 << 20)}))
    assert "full" in str(raised.value.why)
    assert here.find(*PLACE[:2], ["cuda:90:32"]) == {"cuda:90:32": "manifest"}
    assert here.find("releases/3.7.0", "key", ["cuda:90:32"]) == {}


WRITER = """
import os, sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from tritonsmith.lab.batch.store import ResultStore, pack
here = ResultStore(Path(sys.argv[1]))
for number in range(int(sys.argv[3])):
    here.keep(sys.argv[2], str(number), "cuda:90:32", "manifest", pack({"a": os.urandom(3000), "b": b"same"}))
    print(number, flush=True)
"""


def writer(path: Path, name: str, count: int) -> subprocess.Popen[str]:
    argv = [sys.executable, "-c", WRITER, str(path), name, str(count)]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)


def test_a_file_that_another_process_makes_between_two_questions(path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    base = sqlite3.connect(path)

    class Slow:
        def execute(self, text: str) -> SimpleNamespace:
            row = base.execute(text).fetchone()
            ResultStore(path)  # the other process; the first time, it makes the file
            return SimpleNamespace(fetchone=lambda: row)

    with closing(base):  # `Slow` refers to itself, and keeps it
        assert not store._check(cast("sqlite3.Connection", Slow()), path)
        assert store._check(base, path)


def test_two_writers_at_once(path: Path) -> None:
    with writer(path, "releases/1", 60) as one, writer(path, "releases/2", 60) as other:
        assert [process.wait(120) for process in (one, other)] == [0, 0]
    assert [row.kernels for row in ResultStore(path).usage()] == [60, 60]
    assert changed(path, "SELECT count(*) FROM content") == [(121,)]


def test_a_writer_that_is_killed_leaves_whole_results(path: Path) -> None:
    with writer(path, "releases/1", 100000) as process:
        assert process.stdout is not None
        last = [int(process.stdout.readline()) for _ in range(50)][-1]
        process.kill()
    here = ResultStore(path)
    (row,) = here.usage()
    assert row.kernels > last
    for number in range(row.kernels):
        assert {name for name, _ in here.contents("releases/1", str(number), "cuda:90:32")} == {"a", "b"}
    here.keep(*PLACE, "manifest", pack(PARTS))


def test_results_of_another_machine(path: Path, tmp_path: Path) -> None:
    there, here = ResultStore(tmp_path / "there.db"), ResultStore(path)
    here.keep(*PLACE, "ours", pack(PARTS))
    there.keep(*PLACE, "theirs", pack({"a": b"b"}))
    there.keep("releases/3.7.0", "key", "cuda:90:32", "new", pack(PARTS))
    there.keep_metrics("releases/3.7.0", "key", "cuda:90:32", "metrics")
    there.close()
    assert here.merge(tmp_path / "there.db") == (1, 2)
    assert here.find(*PLACE[:2], ["cuda:90:32"]) == {"cuda:90:32": "ours"}
    assert here.find("releases/3.7.0", "key", ["cuda:90:32"]) == {"cuda:90:32": "new"}
    assert here.metrics("releases/3.7.0", "key", ["cuda:90:32"]) == {"cuda:90:32": "metrics"}
    assert dict(here.contents("releases/3.7.0", "key", "cuda:90:32")) == PARTS


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE file SET path='../../outside' WHERE path='p/k.ttir'",
        "UPDATE file SET sha256='0'",
        "UPDATE content SET data=x'28b52ffda0ffffffff'",  # unpacks to 4 GiB
        "UPDATE result SET manifest=x'00'",
        "UPDATE result SET manifest='a text'",
        "UPDATE result SET triton='../../outside'",
        "UPDATE result SET key=x'00'",
        "DROP TABLE content",
        f"DROP TABLE result; {ENDLESS}",
    ],
)
def test_a_strangers_file_may_hold_anything(path: Path, tmp_path: Path, change: str) -> None:
    there = ResultStore(tmp_path / "there.db")
    there.keep(*PLACE, "theirs", pack(PARTS))
    there.close()
    for statement in change.split("; "):
        changed(tmp_path / "there.db", statement)
    here = ResultStore(path)
    with pytest.raises(FactError, match="cannot read these results"):
        here.merge(tmp_path / "there.db")
    assert here.usage() == []


def test_a_store_that_is_gone_has_closed_its_file(tmp_path: Path) -> None:
    kept: Any = ResultStore(tmp_path / "results.db")
    connection, kept.itself = kept._base, kept  # a cycle, as the frames of an error make
    del kept
    gc.collect()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("SELECT 1")
