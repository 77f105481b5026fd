"""Kernels of a kernels file: how they are named, and which flags win over the file."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tritonsmith.compiler import request, run, source, targets
from tritonsmith.compiler.kernels import kernel_list, kernels_file
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.core.errors import UsageError

A100, H100 = targets.parse_all(["a100"]), targets.parse_all(["h100"])
KERNELS = """
import triton
import triton.language as tl

@triton.autotune(configs=make_configs(), key=["n"])
@triton.jit
def tuned(x, n, BLOCK: tl.constexpr, FAST: tl.constexpr):
    pass

@triton.jit
def add(x, n):
    pass
"""
CAPTURED = """
[captured]
command = "python script.py"

[[kernel]]
file = "k.py"
kernel = "tuned"
signature = "*fp32:16,i32,BLOCK=64,FAST=True"
targets = ["a100"]
options = { num_warps = 4, maxnreg = 64 }
configs = [{ BLOCK = 64, num_warps = 4 }, { BLOCK = 128, num_warps = 8 }]

[[kernel]]
file = "k.py"
kernel = "add"
arguments = { x = "*fp32", n = "i32" }
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A kernels file beside the kernels."""
    (tmp_path / "k.py").write_text(KERNELS)
    path = tmp_path / "captured.toml"
    path.write_text(CAPTURED)
    return path


def asked(file: Path, name: str = "", **flags: Any) -> tuple[CompileRequest, ...]:
    """The requests for some kernels, H100 where nobody names a target."""
    entries = kernels_file.choose(kernel_list.read(file), file, name)
    given = CompileRequest(**{"file": Path(), "kernel": "", "signature": "", "targets": (), **flags})
    return kernels_file.requests(entries, file, given, H100)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("/c.toml", ("/c.toml", "")),
        ("/c.toml:layer_norm", ("/c.toml", "layer_norm")),
        ("/a b/c.toml:06 bwd: 2", ("/a b/c.toml", "06 bwd: 2")),
        ("/t.ndjson", ("/t.ndjson", "")),
        ("/t.ndjson.gz:add", ("/t.ndjson.gz", "add")),
        ("k.py:add", None),
        ("package.toml_kernels:add", None),
        ("", None),
    ],
)
def test_how_it_is_named(text: str, named: tuple[str, str] | None) -> None:
    assert kernels_file.named(text) == (named and (Path(named[0]), named[1]))


def test_all_kernels_as_they_were_captured(file: Path) -> None:
    tuned, add = asked(file)
    assert (tuned.name, tuned.kernel, tuned.targets, tuned.signature) == (
        "tuned",
        "tuned",
        A100,
        "*fp32:16,i32,BLOCK=64,FAST=True",
    )
    assert tuned.options == {"num_warps": 4, "maxnreg": 64}
    assert (add.targets, add.signature) == (H100, "x=*fp32,n=i32")


def test_flags_win(file: Path) -> None:
    (one,) = asked(file, "tuned", targets=H100, options={"num_warps": 1}, signature="*fp16,i32,32,False")
    assert (one.targets, one.signature) == (H100, "*fp16,i32,32,False")
    assert one.options == {"num_warps": 1, "maxnreg": 64}


def test_recorded_configs_need_no_run_of_the_file(file: Path) -> None:
    """What the file makes its configs from is not there."""
    (one,) = asked(file, "tuned", autotune=True)
    run.check(one)
    found = request.expand_points(one, source.find(KERNELS, "tuned", file))
    assert [(point.id, point.options) for point in found] == [
        ("cuda-80-32,BLOCK=64,num_warps=4", {"maxnreg": 64, "num_warps": 4}),
        ("cuda-80-32,BLOCK=128,num_warps=8", {"maxnreg": 64, "num_warps": 8}),
    ]
    assert [point.bound.constexprs for point in found if point.bound] == [
        {"BLOCK": 64, "FAST": True},
        {"BLOCK": 128, "FAST": True},
    ]


def test_the_command_names_the_entry_that_has_the_configs(file: Path) -> None:
    (one,) = asked(file, "tuned", autotune=True)
    assert one.flags().startswith(f"{file}:tuned ")
    assert replace(one, autotune=False, configs=()).flags().startswith(f"{file.with_name('k.py')}:tuned ")


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"signature": "*fp32,i32,BLOCK=64,FAST=True"}, r"both the signature and the configs .* set BLOCK"),
        ({"options": {"num_warps": 2}}, r"both a flag and the configs .* set num_warps"),
    ],
)
def test_a_flag_does_not_give_way_to_recorded_configs(file: Path, flags: Any, words: str) -> None:
    (one,) = asked(file, "tuned", autotune=True, **flags)
    with pytest.raises(UsageError, match=words) as caught:
        run.check(one)
    assert caught.value.where == f"{file}:tuned"


def test_of_many_kernels_those_with_configs_are_tuned(file: Path) -> None:
    assert [len(one.configs) for one in asked(file, autotune=True)] == [2, 0]
    file.write_text(CAPTURED.replace("configs", "#"))
    with pytest.raises(UsageError, match="--sweep autotune applies to one kernel"):
        asked(file, autotune=True)
    (one,) = asked(file, "tuned", autotune=True)
    assert one.runs_for_configs


def test_one_signature_is_not_for_many_kernels(file: Path) -> None:
    with pytest.raises(UsageError, match="a TOML file lists many"):
        asked(file, signature="*fp32")


def test_a_function_names_its_only_entry(file: Path) -> None:
    twice = CAPTURED.replace('kernel = "add"', 'kernel = "add"\nname = "add 1"')
    file.write_text(twice)
    assert [one.name for one in asked(file, "add")] == ["add 1"]
    file.write_text(
        f'{twice}\n[[kernel]]\nfile = "k.py"\nkernel = "add"\nname = "add_1"\nsignature = "*fp16,i32"\n'
    )
    with pytest.raises(UsageError, match="this file lists 2 kernels") as caught:
        asked(file, "add")
    assert caught.value.hints == (f"choose one: {file}:add 1", f"choose one: {file}:add_1")
    with pytest.raises(UsageError, match="the same folder: add 1 and add_1"):
        kernels_file.check_folders(asked(file))


def test_no_such_kernel(file: Path) -> None:
    with pytest.raises(UsageError, match="this file lists no kernel 'tune'") as caught:
        asked(file, "tune")
    assert caught.value.hints[0] == "did you mean 'tuned'?"


def test_a_file_that_has_changed_is_told_once(file: Path) -> None:
    entries = kernel_list.read(file)
    there = hashlib.sha256(KERNELS.encode()).hexdigest()
    assert list(kernels_file.changes([replace(one, sha256=there) for one in entries], file)) == []
    stale = [replace(one, sha256="00") for one in entries]
    assert list(kernels_file.changes(stale, file)) == ["k.py has changed since it was captured"]


def test_a_note_where_targets_of_the_file_win(file: Path) -> None:
    entries = kernel_list.read(file)
    assert list(kernels_file.own_targets(entries, ())) == []
    (note,) = kernels_file.own_targets(entries, ["h100"])
    assert note == "--target applies to kernels without targets; 1 of 2 have their own"
    assert list(kernels_file.own_targets(entries[1:], ["h100"])) == []
