"""The answer of `cache.list`."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.unit.doctor.caches import made
from tritonsmith.core.errors import UsageError
from tritonsmith.doctor import cache_list
from tritonsmith.doctor.cache_clear import Filters
from tritonsmith.doctor.cache_list import CacheListing


def make(*roots: Path, limit: int = 50, **wanted: Any) -> CacheListing:
    kinds = [made.as_root(root, "jit") for root in roots]
    return cache_list.make(kinds, Filters(**wanted), limit=limit, installed=(), now=time.time())


def test_the_newest_come_first_and_the_rest_is_counted(root: Path) -> None:
    for number in range(5):
        made.kernel(root, f"kernel_{number}", ago=60.0 * (number + 1))
    found = make(root, limit=2)
    assert [row.entry.kernel for row in found.rows] == ["kernel_0", "kernel_1"]
    assert found.chosen == 5
    assert found.bytes == found.contents[0].bytes
    assert len(make(root, limit=0).rows) == 5


@pytest.mark.parametrize(
    ("era", "version"),
    [("md5", "(2.0-2.3)"), ("sha256", "(3.0-3.1)"), ("base64url", "(3.2)"), ("base32", "3.9.0")],
)
def test_a_row(root: Path, era: str, version: str) -> None:
    made.kernel(root, "matmul", era=era, num_warps=8, num_stages=5, ago=7200)
    found = make(root)
    kernel, target, triton, stages, _, age, options, cache, entry = cache_list.cells(found.rows[0], found.now)
    assert cache_list.entry(entry, [found.rows[0].entry.root]) == Path(found.rows[0].entry.path)
    assert (kernel, target, triton, stages) == ("matmul", "cuda:90", version, "to cubin")
    assert (age, options, cache) == ("2 h", "num_warps=8 num_stages=5", "jit")


def test_stages_that_are_not_all_are_named(root: Path) -> None:
    path = made.kernel(root, target=("hip", "gfx942", 64))
    assert cache_list.cells(make(root).rows[0], 0)[3] == "to hsaco"
    (path / "vector_add.llir").unlink()
    assert cache_list.cells(make(root).rows[0], 0)[3] == "source ttir ttgir amdgcn hsaco"


def test_what_is_no_kernel_says_so(root: Path) -> None:
    made.launcher(root)
    made.autotune(root)
    made.unfinished(root)
    made.folder(root, "base32", "empty")
    found = make(root)
    names = {cache_list.cells(row, found.now)[0] for row in found.rows}
    assert names == {"cuda_utils (launcher)", "matmul (autotune)", "slow (unfinished)", "? (unfinished)"}


def test_a_bundle_has_no_era(root: Path) -> None:
    made.kernel(root).rename(root / "tmp.7f6bd6a1-3bb1-4bd4-b2a5-32d2c1ab8e0c")
    assert cache_list.cells(make(root).rows[0], 0)[2] == ""


def test_json(root: Path) -> None:
    path = made.kernel(root, num_warps=8)
    made.kernel(root, "other", ago=7200)
    (root / "notes.txt").write_text("x")
    answer = json.loads(json.dumps(cache_list.as_json(make(root, limit=1))))
    assert (answer["schema"], answer["more"]) == (1, 1)
    assert answer["chosen"]["entries"] == answer["roots"][0]["entries"] == 2
    assert answer["roots"][0]["strangers"] == [{"name": "notes.txt", "why": "not an entry name"}]
    (entry,) = answer["entries"]
    sizes = [file.stat().st_size for file in path.iterdir()]
    changed = entry.pop("changed")
    assert changed.endswith("+00:00")
    assert entry == {
        "root": str(root),
        "name": path.name,
        "kind": "kernel",
        "era": "base32",
        "kernel": "vector_add",
        "target": "cuda:90:32",
        "triton": "3.9.0",
        "stages": ["source", *made.CUDA],
        "files": len(sizes),
        "bytes": sum(sizes),
        "options": {"num_warps": "8"},
    }


def test_no_cache_yet(tmp_path: Path) -> None:
    answer = cache_list.as_json(make(tmp_path / "empty"))
    assert (answer["entries"], answer["more"], answer["roots"][0]["entries"]) == ([], 0, 0)


@pytest.mark.parametrize(("backend", "last"), [(("cuda", 90, 32), "cubin"), (("hip", "gfx942", 64), "hsaco")])
def test_the_files_of_an_entry_in_the_order_of_its_stages(
    tmp_path: Path, backend: tuple[str, int | str, int], last: str
) -> None:
    folder = made.kernel(tmp_path, "add", target=backend)
    shown = {one.name: one for one in cache_list.files(folder)}
    stages = [one.stage for one in shown.values() if one.stage]
    assert stages[:3] == ["source", "ttir", "ttgir"]
    assert stages.index("ttgir") < stages.index(last)
    assert "machine code for one" in shown[f"add.{last}"].what
    assert "metadata" in shown["add.json"].what
    assert "which Triton reads first" in shown["__grp__add.json"].what


def test_an_entry_by_the_beginning_of_its_name(tmp_path: Path) -> None:
    root = made.as_root(tmp_path, "jit")
    folders = [made.kernel(tmp_path, name) for name in ("add", "mul")]
    assert cache_list.entry(folders[0].name, [root]) == folders[0]
    assert cache_list.entry(str(folders[1]), [root]) == folders[1]
    assert cache_list.entry("mul", [root]) == folders[1]
    made.kernel(tmp_path, "mul", num_warps=8)
    with pytest.raises(UsageError, match="2 entries are of the kernel 'mul'"):
        cache_list.entry("mul", [root])
    with pytest.raises(UsageError, match="no entry begins with 'nothing'"):
        cache_list.entry("nothing", [root])
    with pytest.raises(UsageError, match="3 entries begin with ''"):
        cache_list.entry("", [root])
    launcher = tmp_path / "LAUNCHER"
    launcher.mkdir()
    (launcher / "launcher.so").touch()
    assert cache_list.entry(str(launcher), [root]) == launcher
    with pytest.raises(UsageError, match="this folder is not an entry of a Triton cache"):
        cache_list.entry(str(root.path), [root])
