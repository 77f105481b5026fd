"""Where a manifest may go, and the gist of what the compiler says."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.unit.compiler.resources.test_measure import manifest as made
from tests.unit.compiler.resources.test_measure import point
from tritonsmith.compiler import manifest
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.core.plan import Plan
from tritonsmith.inspect import show as show_stage
from tritonsmith.ir import gpu_binary

TYPED = """at 3:24:
def bad(x, n, BLOCK: tl.constexpr):
    tl.store(x + o, o + undefined_thing, mask=o < n)
                        ^
NameError('undefined_thing is not defined')
at /k/bad.py:5"""
NESTED = f"""at 4:24:
    tl.store(x + o, bad(o))
                    ^
{TYPED}"""
OLDER = """at 4:8:
    w = tl.dot(v, tl.trans(v))
        ^
at /k/crash.py:6
AssertionError: Input shapes should have M >= 16"""
PASSES = """RuntimeError: PassManager::run failed
python: /project/lib/Tools/LinearLayout.cpp:246: Assertion `llvm::isPowerOf2_32(size)' failed.
/k/crash.py:3:1: error: Failures have been detected while processing an MLIR pass pipeline"""


def test_a_folder_of_ours_a_new_one_and_an_empty_one_may_be_written_to(tmp_path: Path) -> None:
    (tmp_path / manifest.FILE).write_text(made(tmp_path).render(), encoding="utf-8")
    manifest.check_output(tmp_path)
    manifest.check_output(tmp_path / "new")
    (tmp_path / "empty").mkdir()
    manifest.check_output(tmp_path / "empty")


@pytest.mark.parametrize("content", ["{}", "[]", "no json", '{"name": "a web page"}'])
def test_somebody_elses_manifest_is_not_written_over(tmp_path: Path, content: str) -> None:
    (tmp_path / manifest.FILE).write_text(content, encoding="utf-8")
    with pytest.raises(UsageError, match=r"was not written by kernel\.compile"):
        manifest.check_output(tmp_path)


FOREIGN = ["{}", "[]", "7", '"text"', '{"name": "a web page", "version": 3}', '{"schema": 1, "points": []}']


@pytest.mark.parametrize("content", FOREIGN)
def test_somebody_elses_manifest_is_told_to_be_that(tmp_path: Path, content: str) -> None:
    (tmp_path / manifest.FILE).write_text(content, encoding="utf-8")
    with pytest.raises(FactError, match="was not written by kernel") as caught:
        manifest.read(tmp_path)
    assert caught.value.where == str(tmp_path / manifest.FILE)
    assert caught.value.hints


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"schema": 99}, "by another version of tritonsmith"),
        ({"points": 7}, "is incomplete or malformed"),
        ({"points": [{"id": "x"}]}, "is incomplete or malformed"),
        ({"points": ["x"]}, "is incomplete or malformed"),
        ({"surprise": 1}, "is incomplete or malformed"),
    ],
)
def test_a_manifest_of_ours_that_is_wrong(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    content = json.loads(made(tmp_path).render()) | change
    (tmp_path / manifest.FILE).write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(FactError, match=says):
        manifest.read(tmp_path)


@pytest.mark.parametrize("content", ["no json", "[" * 100_000])
def test_what_is_no_json(tmp_path: Path, content: str) -> None:
    (tmp_path / manifest.FILE).write_text(content, encoding="utf-8")
    with pytest.raises(FactError, match="cannot read this manifest"):
        manifest.read(tmp_path)


def test_remarks_come_back_and_those_of_an_older_manifest_are_not_known(tmp_path: Path) -> None:
    whole = made(tmp_path, point(tmp_path, "cuda:80:32", {}, {}, remarks=["(C7510) lost"]))
    for text, remarks in ((whole.render(), ["(C7510) lost"]), (_without_remarks(whole), None)):
        (tmp_path / manifest.FILE).write_text(text, encoding="utf-8")
        assert manifest.read(tmp_path).points[0].remarks == remarks


def _without_remarks(whole: manifest.Manifest) -> str:
    content = json.loads(whole.render())
    del content["points"][0]["remarks"]
    return json.dumps(content)


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "out").touch()
    with pytest.raises(UsageError, match="--out is a file"):
        manifest.check_output(tmp_path / "out")


@pytest.mark.parametrize(
    ("error", "gist"),
    [
        (TYPED, "NameError('undefined_thing is not defined')"),
        (NESTED, "NameError('undefined_thing is not defined')"),
        (OLDER, "AssertionError: Input shapes should have M >= 16"),
        (PASSES, PASSES.splitlines()[1]),
        ("ValueError: num_ctas > 1 not supported", "ValueError: num_ctas > 1 not supported"),
        ("the compiler died: SIGABRT\nLLVM ERROR: no\n", "LLVM ERROR: no"),
        ("at 1:2:\n  ^", "at 1:2:"),
        ("", ""),
    ],
)
def test_the_gist_of_an_error(tmp_path: Path, error: str, gist: str) -> None:
    assert point(tmp_path, "cuda:80:32", {}, {}, status="failed", error=error).gist == gist


HOSTILE: list[dict[str, Any]] = [
    {"stages": {"ttir": {"path": path, "size": 1, "sha256": ""}}}
    for path in ("/dev/zero", "../k.ttir", "p/../../k", "a\0b", "\ud800", "", 5, None)
]
HOSTILE += [{"target": "cuda"}, {"target": 5}, {"id": 5}, {"signature": 5}, {"signature": {"x": []}}]
HOSTILE += [{"options": 5}, {"status": {}}, {"metadata": 5}, {"seconds": "x"}, {"remarks": [5]}]
HOSTILE += [{"id": one} for one in ("../x", "/etc", "a/b", "a\0b")]
HOSTILE += [{"metadata": {"name": one}} for one in ("../x", 'x"); system("true', "-o", "a\nb", "a\x1bb", 5)]
HOSTILE += [{"metadata": {one: "1); abort("}} for one in ("shared", "num_warps", "warp_size", "tmem_size")]


@pytest.mark.parametrize("change", HOSTILE)
def test_a_point_that_somebody_made_up(tmp_path: Path, change: dict[str, Any]) -> None:
    content = json.loads(made(tmp_path, point(tmp_path, "cuda:90:32", {}, {})).render())
    content["points"][0] |= change
    (tmp_path / manifest.FILE).write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(FactError, match="is incomplete or malformed"):
        manifest.read(tmp_path)


NAMED: list[dict[str, Any]] = [
    {"kernel": one} for one in ("../x", "/etc/x", "-o", ".", "..", "a/b", "a\0b", "a\nb", "a\x1b[2Jb")
]


@pytest.mark.parametrize("change", [{"kernel": 5}, {"file": 5}, {"command": []}, {"stand_ins": 5}, *NAMED])
def test_a_manifest_that_somebody_made_up(tmp_path: Path, change: dict[str, Any]) -> None:
    content = json.loads(made(tmp_path, point(tmp_path, "cuda:90:32", {}, {})).render()) | change
    (tmp_path / manifest.FILE).write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(FactError, match="is incomplete or malformed"):
        manifest.read(tmp_path)


@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_a_stage_that_never_ends_is_refused(tmp_path: Path, kind: str) -> None:
    stage = tmp_path / "k.ttir"
    os.mkfifo(stage) if kind == "pipe" else stage.symlink_to("/dev/zero")
    stages = {"ttir": {"path": "k.ttir", "size": 1, "sha256": ""}}
    content = json.loads(made(tmp_path, point(tmp_path, "cuda:90:32", {}, {})).render())
    content["points"][0]["stages"] = stages
    (tmp_path / manifest.FILE).write_text(json.dumps(content), encoding="utf-8")
    seen = manifest.read(tmp_path)
    refusal = "cannot read this stage" if kind == "pipe" else "outside its folder"
    with pytest.raises(FactError, match=refusal):
        show_stage.stage_text(seen, seen.points[0], "ttir")
    with pytest.raises(FactError, match="cannot read this binary"):
        gpu_binary.load(stage)


def test_programs_of_a_triton_run_only_if_it_compiled_something_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITONSMITH_HOME", str(tmp_path / "home"))
    space = workspace.default()
    seen = made(tmp_path)
    assert manifest.trusted_package(seen, space) is None
    space.claim()
    space.run(Plan("record", (manifest.record_triton(seen, space),)), "test", quiet=True)
    assert manifest.trusted_package(seen, space) == Path(seen.origin)
    assert manifest.trusted_package(replace(seen, origin=f"{seen.origin}/../evil"), space) is None
    envs = space.root / "envs"
    assert manifest.trusted_package(replace(seen, origin=str(envs / "wheel" / "triton")), space)
    for origin in ("", ".", "triton", str(envs / ".." / "evil"), "/"):
        assert manifest.trusted_package(replace(seen, origin=origin), space) is None


def test_a_stage_that_links_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "out"
    compiled = made(out, point(out, "cuda:90:32", {}, {"ptx": ".version 8.0\n", "ttir": "module {}\n"}))
    (row,) = compiled.points
    ptx, ttir = (compiled.path(row, stage) for stage in ("ptx", "ttir"))
    assert ptx
    assert ttir
    (tmp_path / "secret").write_text("secret", encoding="utf-8")
    ptx.unlink()
    ptx.symlink_to(tmp_path / "secret")
    with pytest.raises(FactError, match="outside its folder"):
        show_stage.stage_text(compiled, row, "ptx")
    # The whole folder may be reached by a link, and a link may lead to another file of it.
    (tmp_path / "link").symlink_to(out)
    ptx.unlink()
    ptx.symlink_to(ttir)
    linked = replace(compiled, folder=tmp_path / "link")
    assert show_stage.stage_text(linked, row, "ptx") == "module {}\n"
