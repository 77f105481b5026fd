from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.inspect.export_ptx import samples
from tritonsmith.compiler.manifest import Manifest, Point, Stage
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.inspect.export_ptx import compiled_kernel
from tritonsmith.inspect.export_ptx.compiled_kernel import KernelArgument

TWO = samples.kernel("ret;", params=".param .u64 .ptr .global .align 1 a, .param .u32 n")


def point(name: str, **more: Any) -> Point:
    values: dict[str, Any] = {
        "signature": {"a": "*fp32", "n": "i32", "one": "i32", "BLOCK": "constexpr"},
        "constexprs": {"BLOCK": 64},
        "hints": {"a": 16, "one": 1},
        "options": {},
        "status": "ok",
        "seconds": 1.0,
        "stages": {"ptx": Stage(f"{name}/k.ptx", 1, "0" * 64)},
        **more,
    }
    return Point(id=name, target="cuda:90:32", **values)


def folder(root: Path, *points: Point, text: str = TWO) -> Manifest:
    found = Manifest(root, "k", "/x/k.py", "0" * 64, "3.0.0", "/t", "3.11", "make", points)
    for one in points:
        for stage in one.stages.values():
            path = root / stage.path
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
    (root / "manifest.json").write_text(found.render(), encoding="utf-8")
    return found


def test_arguments_are_what_is_left_of_the_signature(tmp_path: Path) -> None:
    folder(tmp_path, point("p"))
    made = compiled_kernel.load(tmp_path)
    assert made.arguments == (KernelArgument("a", "*fp32"), KernelArgument("n", "i32"))
    assert (made.triton, made.entry.name, made.threads, made.shared) == ("3.0.0", "k", (128,), None)


@pytest.mark.parametrize("signature", [{"a": "*fp32"}, {"a": "tensordesc<fp16[64, 64]>", "n": "i32"}])
def test_a_signature_that_does_not_fit_the_ptx_is_not_believed(
    tmp_path: Path, signature: dict[str, str]
) -> None:
    folder(tmp_path, point("p", signature=signature))
    assert compiled_kernel.load(tmp_path).arguments is None


@pytest.mark.parametrize(
    ("metadata", "scratch"),
    [
        ({}, ()),
        ({"global_scratch_size": 0}, ("global_scratch",)),
        ({"global_scratch_size": 0, "profile_scratch_size": 0}, ("global_scratch", "profile_scratch")),
    ],
)
def test_appended_parameters_are_known_by_the_metadata(
    tmp_path: Path, metadata: dict[str, int], scratch: tuple[str, ...]
) -> None:
    folder(tmp_path, point("p", metadata=metadata, signature={}))
    assert compiled_kernel.load(tmp_path).scratch == scratch


def test_threads_without_a_directive_are_those_of_the_warps(tmp_path: Path) -> None:
    assert samples.stored(tmp_path, TWO, {"num_warps": 8}).threads == (256,)


def test_which_point(tmp_path: Path) -> None:
    failed = point("c", stages={}, status="failed", error="no such op")
    folder(tmp_path, point("a"), point("b"), failed)
    assert compiled_kernel.load(tmp_path, point="b").path == tmp_path / "b" / "k.ptx"
    with pytest.raises(UsageError, match="2 points in") as caught:
        compiled_kernel.load(tmp_path)
    assert "points with PTX: a, b" in str(caught.value)
    with pytest.raises(UsageError, match="no point 'bb'") as caught:
        compiled_kernel.load(tmp_path, point="bb")
    assert "did you mean 'b'?" in str(caught.value)
    with pytest.raises(FactError, match="the point c has no PTX") as found:
        compiled_kernel.load(tmp_path, point="c")
    assert found.value.why == "no such op"


def test_a_folder_without_ptx(tmp_path: Path) -> None:
    folder(tmp_path, point("a", stages={}))
    with pytest.raises(UsageError, match=r"no point in .* has PTX"):
        compiled_kernel.load(tmp_path)


def test_flags_that_go_with_the_other_kind(tmp_path: Path) -> None:
    folder(tmp_path, point("a"))
    with pytest.raises(UsageError, match="--metadata is only for"):
        compiled_kernel.load(tmp_path, metadata=tmp_path / "k.json")
    with pytest.raises(UsageError, match="--point is only for"):
        compiled_kernel.load(tmp_path / "a" / "k.ptx", point="a")


def test_metadata_named_or_beside_it(tmp_path: Path) -> None:
    samples.stored(tmp_path, TWO, {"shared": 1})
    other = tmp_path / "other.json"
    other.write_text('{"shared": 2}', encoding="utf-8")
    path = tmp_path / "k.ptx"
    assert compiled_kernel.load(path).shared == 1
    assert compiled_kernel.load(path, metadata=other).shared == 2


@pytest.mark.parametrize(("text", "why"), [("{", "cannot read this metadata"), ("[1]", "not the metadata")])
def test_unreadable_metadata(tmp_path: Path, text: str, why: str) -> None:
    samples.stored(tmp_path, TWO, {})
    (tmp_path / "k.json").write_text(text, encoding="utf-8")
    with pytest.raises(FactError, match=why):
        compiled_kernel.load(tmp_path / "k.ptx")


@pytest.mark.parametrize("text", [samples.HEAD, TWO + TWO.partition(".address_size 64")[2]])
def test_a_file_with_no_kernel_or_two(tmp_path: Path, text: str) -> None:
    with pytest.raises(FactError, match="needs a PTX file with exactly one kernel"):
        samples.stored(tmp_path, text)
