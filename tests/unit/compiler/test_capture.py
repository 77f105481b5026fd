"""What a launch was specialised for, as a signature that binds to the same."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tritonsmith.compiler import capture, signature
from tritonsmith.compiler.kernels import kernel_list
from tritonsmith.compiler.source import KernelParameter, KernelSource
from tritonsmith.core import untrusted
from tritonsmith.worker.border import text_of
from tritonsmith.worker.messages import (
    CaptureRow,
    ExampleLaunch,
    LaunchesRow,
    RecordedParameter,
    SpecializedKernel,
)


def kernel(names: str, constexpr: bool = False, **more: Any) -> SpecializedKernel:
    """A kernel with these parameters, as the worker records it."""
    parameters = tuple(RecordedParameter(name, constexpr) for name in names.split())
    return SpecializedKernel("k.py", 1, "k", "k", "k", parameters, ("cuda", 90, 32), {}, **more)


@pytest.mark.parametrize(
    "value",
    [
        *(1, 1.5, True, None, "relu", "a,b", "16", "it's", {"dtype": "float16"}, [1, [2, "x,y"]], [True]),
        *([{"dtype": "float16"}], [{"dtype": "float16"}, -8]),
    ],
)
def test_constants_come_back(value: Any) -> None:
    text = capture.signature_text(
        kernel("C", constexpr=True, signature={"C": "constexpr"}, constexprs={"C": value})
    )
    source = KernelSource("k", (KernelParameter("C", constexpr=True),))
    bound = signature.bind(text, source, {}, {})
    expected = (1, (2, "x,y")) if value == [1, [2, "x,y"]] else tuple(value) if type(value) is list else value
    assert bound.constexprs == {"C": expected}


def test_types_hints_and_ones() -> None:
    text = capture.signature_text(
        kernel(
            "x n one t b",
            signature={
                "x": "*fp16",
                "n": "i64",
                "one": "constexpr",
                "t": ["i32", "*fp32", "constexpr"],
                "b": "u1",
            },
            constexprs={"one": 1, "t.2": 8},
            hints={"x": 16, "t.1": 16},
            ranges=("x", "t.1"),
        )
    )
    assert text == "x=*fp16:16:r32,n=i64,one=i32:1,t=(i32,*fp32:16:r32,8),b=u1"


def test_what_no_signature_can_say() -> None:
    with pytest.raises(ValueError, match="cannot be written in a signature"):
        capture.spell_constant([{"dtype": "float16"}, 1.5])


def test_a_number_that_toml_cannot_hold_is_left_out_and_the_list_can_be_read(tmp_path: Path) -> None:
    file = tmp_path / "k.py"
    file.write_text("")
    seed, given = (
        (1 << 63) + 5,
        {"x": {"elements": 8, "low": 0, "high": 1 << 63}, "seed": (1 << 63) + 5, "n": 8},
    )
    launches = capture.Launches(
        replace(kernel("x seed n", signature={"x": "*u64", "seed": "u64", "n": "i32"}), file=str(file)),
        grids=Counter({"1,1,1": 1}),
        largest={"seed": seed, "n": 8},
        example=ExampleLaunch((1, 1, 1), given, 8),
    )
    recording = capture.Recording([launches])
    rows = capture.list_entries(recording, {}, "h100", tmp_path)
    (tmp_path / "list.toml").write_text(kernel_list.render_kernels(rows, captured={}))
    (row,) = untrusted.read_toml(tmp_path / "list.toml")["kernel"]
    assert row["largest"] == {"n": 8}
    assert row["launch"]["arguments"] == {"x": {"elements": 8, "low": 0}, "n": 8}
    assert list(recording.notes) == ["seed of k has no value in the list: one exceeds TOML's range"]


def test_the_records_of_processes_are_merged(tmp_path: Path) -> None:
    """A later count of a process replaces the earlier one; a line that was cut by a kill is left out."""
    add = kernel("n", signature={"n": "i32"})
    large = ExampleLaunch((4, 1, 1), {"x": {"elements": 512}, "n": 512}, 512)
    rows = [
        CaptureRow(versions={"python": "3.11"}),
        CaptureRow(LaunchesRow(add, 1, {"4,1,1": 1}, {"p.py:3": 1}, (), {"n": 300})),
        CaptureRow(LaunchesRow(add, 2, {"4,1,1": 2}, {"p.py:3": 2}, ({"num_warps": 4},), {"n": 512}, large)),
        CaptureRow(texts={"<cell>": "x = 1"}),
        CaptureRow(note="of the first"),
    ]
    whole = "".join(text_of(row) + "\n" for row in rows)
    (tmp_path / "1-10.jsonl").write_text(f"{whole}{text_of(CaptureRow(end=True))}\n", encoding="utf-8")
    second = "".join(text_of(row) + "\n" for row in rows[:2])
    (tmp_path / "2-20.jsonl").write_text(second + '{"note": "of the sec', encoding="utf-8")
    recording = capture.read_records(tmp_path)
    [launches] = recording.kernels
    assert (launches.kernel, launches.count) == (add, 3)
    assert (launches.grids, launches.sites) == ({"4,1,1": 3}, {"p.py:3": 3})
    assert launches.configs == ({"num_warps": 4},)
    assert launches.largest == {"n": 512}
    assert launches.example == large
    assert recording.texts == {"<cell>": "x = 1"}
    assert (recording.processes, recording.versions) == (2, {"python": "3.11"})
    assert list(recording.notes) == [
        "of the first",
        "a process ended before it could write its last counts: they may be low",
    ]
