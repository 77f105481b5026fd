"""Traces of tritonparse: which kernels they have, and what cannot be compiled again."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import zstandard

from tritonsmith.compiler.kernels import kernels_file
from tritonsmith.compiler.kernels.kernels_file import Trace
from tritonsmith.core.errors import FactError, UsageError

ADD = "@triton.jit\ndef add(x, y, n, s, BLOCK: tl.constexpr, KIND: tl.constexpr):\n    pass\n"
TUNED = f"""@triton.autotune(configs=[
    triton.Config({{"BLOCK": 64}}, num_warps=4),
    triton.Config({{"BLOCK": 128}}, num_warps=8),
], key=["n"])
{ADD}"""
TYPES = ("!tt.ptr<f16>", "!tt.ptr<!tt.ptr<f32>>", "i64")
TTIR = """#loc = loc("k.py":3:0)
module {{
  tt.func public @add({}) attributes {{noinline = false}} {{
"""


def compiled(hash_: str = "a", code: str = ADD, **more: Any) -> dict[str, Any]:
    """The event of a compilation."""
    heads = [
        f'%arg{n}: {kind} {{tt.divisibility = 16 : i32}} loc("k.py":3:0)' for n, kind in enumerate(TYPES)
    ]
    metadata = {
        "name": "add",
        "hash": hash_,
        "target": {"backend": "cuda", "arch": 90, "warp_size": 32},
        "num_warps": 4,
        "num_stages": 3,
        "num_ctas": 1,
        "maxnreg": None,
        "src_constants": {"(3,)": 1, "(4,)": 64, "(5,)": "triton.language.core.dtype('fp16')"},
        "src_attrs": {"(0,)": [["tt.divisibility", 16]]},
    }
    python = {"file_path": "/gone/k.py", "start_line": 1, "end_line": 9, "code": code}
    payload = {"metadata": metadata | more, "python_source": python}
    return {
        "event_type": "compilation",
        "payload": payload | {"file_content": {"add.ttir": TTIR.format(", ".join(heads))}},
    }


def launched(hash_: str, *grid: int) -> dict[str, Any]:
    return {"event_type": "launch", "grid": grid, "compilation_metadata": {"hash": hash_}}


def traced(folder: Path, *events: Mapping[str, Any]) -> Trace:
    """A trace of these events, read."""
    path = folder / "t.ndjson"
    path.write_text("".join(f"{json.dumps(one)}\n" for one in events))
    return kernels_file.read_trace(path, folder / "sources")


def test_a_kernel_of_another_machine(tmp_path: Path) -> None:
    found = traced(tmp_path, compiled(), compiled(), launched("a", 8), launched("a", 4, 2), launched("a", 8))
    (one,) = found.entries
    assert one.signature == "x=*fp16:16,y=**fp32,n=i64,s=1,BLOCK=64,KIND=tl.float16"
    assert (list(map(str, one.targets)), one.options) == (["cuda:90:32"], {"num_warps": 4, "num_stages": 3})
    assert (one.name, one.count, one.grids) == ("add", 3, ((8,), (4, 2)))
    ((place, text),) = found.texts.items()
    assert one.file == str(place)
    assert place.is_relative_to(tmp_path / "sources")
    assert text == f"import triton\nimport triton.language as tl\n\n\n{ADD}"
    assert found.notes == ("k.py is not on this machine: add is compiled from the trace's text",)


def test_decorators_are_left_out_where_the_trace_has_the_function_only(tmp_path: Path) -> None:
    found = traced(
        tmp_path,
        compiled(
            code=f"    @inductor.pointwise(\n        x=1)\n    {ADD.replace(chr(10), chr(10) + '    ')}"
        ),
    )
    (text,) = found.texts.values()
    assert text.endswith(f"\n\n\n{ADD}")


def test_a_whole_file_is_taken_as_it_is(tmp_path: Path) -> None:
    event = compiled(code=f"import triton\n\nX = 3\n\n{ADD}")
    event["payload"]["python_source"]["function_start_line"] = 5
    (text,) = traced(tmp_path, event).texts.values()
    assert text == f"import triton\n\nX = 3\n\n{ADD}"


@pytest.mark.parametrize("same", [True, False])
def test_a_file_that_is_here_is_compiled(tmp_path: Path, same: bool) -> None:
    file = tmp_path / "k.py"
    file.write_text(f"import triton\n{ADD if same else ADD.replace('pass', 'return')}")
    event = compiled()
    event["payload"]["python_source"]["file_path"] = str(file)
    found = traced(tmp_path, event)
    assert (found.texts, found.notes, found.entries[0].file) == ({}, (), str(file))
    assert found.entries[0].changed(tmp_path) is not same
    assert (found.entries[0].sha256 == hashlib.sha256(file.read_bytes()).hexdigest()) is same


def test_what_an_autotuner_compiled_is_one_kernel_with_configs(tmp_path: Path) -> None:
    other = {"src_constants": {"(3,)": 1, "(4,)": 128, "(5,)": "relu"}, "num_warps": 8}
    first = compiled("a", TUNED, src_constants={"(3,)": 1, "(4,)": 64, "(5,)": "relu"})
    found = traced(tmp_path, first, compiled("b", TUNED, **other), launched("b", 1))
    (one,) = found.entries
    assert one.configs == (
        {"BLOCK": 64, "num_warps": 4, "num_stages": 3},
        {"BLOCK": 128, "num_warps": 8, "num_stages": 3},
    )
    assert one.signature.endswith("BLOCK=128,KIND=relu")  # what was launched
    assert one.options["num_warps"] == 8


def test_two_ways_of_one_kernel_have_two_names(tmp_path: Path) -> None:
    found = traced(tmp_path, compiled("a"), compiled("b", num_warps=8))
    assert [one.name for one in found.entries] == ["add-1", "add-2"]
    assert {one.kernel for one in found.entries} == {"add"}


def test_warps_that_specialization_adds_are_not_asked_for(tmp_path: Path) -> None:
    (one,) = traced(tmp_path, compiled(num_warps=12, num_warps_base=4)).entries
    assert one.options["num_warps"] == 4


@pytest.mark.parametrize("pack", [gzip.compress, lambda text: zstandard.ZstdCompressor().compress(text)])
def test_packed_records(tmp_path: Path, pack: Any) -> None:
    """tritonparse packs each record on its own."""
    path = tmp_path / "t.bin.ndjson"
    lines = [f"{json.dumps(one)}\n".encode() for one in (compiled(), launched("a", 3))]
    path.write_bytes(b"".join(map(pack, lines)))
    assert kernels_file.read_trace(path, tmp_path).entries[0].count == 1


def test_a_kernel_that_cannot_be_asked_for_is_left_out(tmp_path: Path) -> None:
    part = compiled("b", src_constants={"(3, 0)": 1})
    more = compiled("c", src_constants={})
    lost = compiled("d", code="x = 3")
    deep = compiled("f", code=f"{'(' * 5000}{ADD}")
    odd = compiled("e", src_constants={"(3,)": {"type": "Layout"}})
    found = traced(tmp_path, compiled(), part, more, lost, odd, deep)
    assert [one.name for one in found.entries] == ["add"]
    assert found.notes[:5] == (
        "line 2: add, which has a tuple among its parameters, is left out",
        "line 3: add, whose parameters are not those of its ttir, is left out",
        "line 4: add, whose definition the trace does not have, is left out",
        "line 5: add, one of whose constants is an object, is left out",
        "line 6: add, whose definition the trace does not have, is left out",
    )
    with pytest.raises(FactError, match="no kernel that can be compiled again"):
        traced(tmp_path, lost)


@pytest.mark.parametrize(
    "text",
    ["{", "[]", "3", '{"event_type": "compilation"}', '{"event_type": "launch", "grid": [[]]}', "\udcff", ""],
)
def test_what_is_no_trace(tmp_path: Path, text: str) -> None:
    path = tmp_path / "t.ndjson"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(FactError):
        kernels_file.read_trace(path, tmp_path)


def test_a_damaged_archive_and_no_file(tmp_path: Path) -> None:
    path = tmp_path / "t.ndjson.gz"
    with pytest.raises(UsageError, match="no such file"):
        kernels_file.read_trace(path, tmp_path)
    path.write_bytes(gzip.compress(b"x" * 99)[:-9])
    with pytest.raises(FactError, match="cannot read this trace"):
        kernels_file.read_trace(path, tmp_path)


def test_a_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels_file, "_LARGEST", 1 << 16)
    path = tmp_path / "t.ndjson.gz"
    path.write_bytes(gzip.compress(b"\n" * (1 << 20)))
    with pytest.raises(FactError, match="too large"):
        kernels_file.read_trace(path, tmp_path)
