"""`layout` and `passes.show --layouts`, by the newest wheel."""

from __future__ import annotations

import json
import random
import re
import subprocess
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.integration.harness import Smith
from tritonsmith.compiler import up
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.inspect.layouts import convert
from tritonsmith.ir import layouts
from tritonsmith.ir.layouts import LayoutType

MATMUL = Path(up.__file__).parent / "examples" / "tiled_matmul.py"
SIGNATURE = "*fp16:16,*fp16:16,*fp32:16,i32:16,i32:16,i32:16,TILE_M=64,TILE_N=64,TILE_K=32"
BLOCKED = (
    "#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>"
)
SHARED = "#ttg.swizzled_shared<{{vec = {}, perPhase = 1, maxPhase = {}, order = [1, 0]}}>"
SEED, MANY = 18, 200

# Prints what `triton-tensor-layout` prints: both call getLayoutStr of Triton's TritonGPU dialect.
VIEW = """
import json, sys
from triton._C.libtriton import gluon_ir, ir, nvidia, amd
import triton.experimental.gluon.language
context = ir.context()
for part in (ir, nvidia, amd):
    part.load_dialects(context)
builder = gluon_ir.GluonOpBuilder(context)
for text, shape in json.load(sys.stdin):
    with open(sys.argv[1], "w") as file:
        file.write("module { tt.func public @f(%%0: %s) { tt.return } }" % text)
    module = ir.parse_mlir_module(sys.argv[1], context)
    module.context = context
    value = module.get_function("f").args(0)
    get = builder.get_gluon_layout_from_tensor if text[0] == "t" else builder.get_gluon_layout_from_memdesc
    print(json.dumps(gluon_ir.get_layout_view(get(value), shape, False)))
"""


@pytest.fixture(scope="module")
def smith(with_wheel: Smith, tmp_path_factory: pytest.TempPathFactory) -> Smith:
    return with_wheel.beside(tmp_path_factory.mktemp("my layouts"))


# Kinds of layouts, with places for random numbers; those of `PARENTS` in others.
PARENTS = (
    "#ttg.blocked<{{sizePerThread = {each}, threadsPerWarp = {lanes}, warpsPerCTA = {warps}, order = {by}}}>",
    "#ttg.nvidia_mma<{{versionMajor = 2, versionMinor = 0, warpsPerCTA = {warps}, instrShape = [16, 8]}}>",
    "#ttg.amd_mfma<{{version = 3, warpsPerCTA = {warps}, instrShape = {tile}, isTransposed = {flag}}}>",
)
KINDS = (
    *PARENTS,
    "#ttg.nvidia_mma<{{versionMajor = 3, versionMinor = 0, warpsPerCTA = {wide}, instrShape = {mma}}}>",
    "#ttg.dot_op<{{opIdx = {bit}, parent = " + PARENTS[1] + ", kWidth = {small}}}>",
    "#ttg.dot_op<{{opIdx = {bit}, parent = " + PARENTS[2] + ", kWidth = 4}}>",
    *("#ttg.slice<{{dim = {bit}, parent = " + parent + "}}>" for parent in PARENTS),
    "#ttg.swizzled_shared<{{vec = {small}, perPhase = {small}, maxPhase = {n}, order = {by}}}>",
    "#ttg.nvmma_shared<{{swizzlingByteWidth = 32, transposed = {flag}, elementBitWidth = 16}}>",
)


def layout(source: random.Random) -> LayoutType:
    """A random layout of a random shape, of any kind that both vendors have."""
    kind = source.choice(KINDS)
    shape = [1 << source.randrange(4, 7) for _ in range(1 if kind.startswith("#ttg.slice") else 2)]
    lanes, warps = 1 << source.randrange(6), 1 << source.randrange(3)
    text = kind.format(
        each=[1 << source.randrange(3), 1 << source.randrange(3)],
        lanes=[lanes, 32 // lanes],
        warps=[warps, 4 // warps],
        by=source.choice([[0, 1], [1, 0]]),
        wide=[4, 1],
        mma=[16, source.choice([16, 32, 64]), 16],
        tile=source.choice([[32, 32, 8], [16, 16, 16]]),
        flag=source.choice(["true", "false"]),
        bit=source.randrange(2),
        small=source.choice([1, 2, 4]),
        n=source.choice([8, 16]),
    )
    return layouts.layout_of(text, "x".join(map(str, shape)), "fp16")


def cells(view: str) -> list[str]:
    """The elements of what Triton prints: `T0:0|T1:0`; of shared memory `(0:1)`, the element at an offset."""
    return [cell for cell in re.split(r"[][,\n]+", view.replace(" ", "")) if cell]


@pytest.mark.slow
def test_random_layouts_are_what_triton_prints(smith: Smith, tmp_path: Path) -> None:
    source = random.Random(SEED)  # noqa: S311 - not for secrets
    types = list(dict.fromkeys(layout(source) for _ in range(2 * MANY)))[:MANY]
    assert len(types) == MANY
    python = smith.home / "envs" / "wheel" / "venv" / "bin" / "python"
    made = convert(types, python, Workspace(tmp_path))
    asked = json.dumps([(one.text, one.shape) for one in types])
    done = subprocess.run(
        (python, "-c", VIEW, tmp_path / "module.mlir"),
        input=asked,
        capture_output=True,
        text=True,
        check=True,
    )
    views = [json.loads(line) for line in done.stdout.splitlines()]
    for one, view in zip(made, views, strict=True):
        assert one.linear is not None, one
        linear, shown = one.linear, cells(view)
        elements = list(product(*map(range, linear.shape)))
        if linear.distributed:
            assert shown == [linear.spelled(element) for element in elements], one.type.text
        else:
            at = [f"({row}:{column})" for row, column in sorted(elements, key=linear.offset)]
            assert shown == at, one.type.text


def answer(smith: Smith, *argv: str) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(smith("layout", *argv, "--json").out)
    return made


@pytest.mark.slow
def test_a_swizzle_takes_conflicts_away(smith: Smith) -> None:
    plain, swizzled = (SHARED.format(*one) for one in ((1, 1), (8, 8)))
    ways = [
        [one["ways"] for one in answer(smith, text, "--shape", "64x64", "--dtype", "fp16")["banks"]]
        for text in (plain, swizzled)
    ]
    assert ways == [[32, 1], [4, 1]]
    (by,) = answer(smith, swizzled, "--shape", "64x64", "--dtype", "fp16", "--by", BLOCKED)["banks"]
    assert (by["width"], by["ways"]) == (8, 2)


def test_what_triton_does_not_take_is_an_error(smith: Smith) -> None:
    said = smith("layout", "#ttg.bogus<{}>", "--shape", "8x8", code=1).error
    assert "unknown attribute `bogus`" in said
    assert "--shape is missing" in smith("layout", BLOCKED, code=2).error
    said = smith("layout", BLOCKED, "--shape", "8x8", "--by", BLOCKED, code=2).error
    assert "--by counts the bank conflicts of threads in shared memory" in said


@pytest.mark.slow
def test_a_picture(smith: Smith) -> None:
    pytest.importorskip("matplotlib")
    smith("layout", BLOCKED, "--shape", "16x32", "--plot", "blocked.svg")
    assert (smith.cwd / "blocked.svg").read_text(encoding="utf-8").count('<g id="text_') > 16 * 32
    said = smith("layout", BLOCKED, "--shape", "16x1024", "--plot", "blocked.svg", code=2).error
    assert "--shape 16x128 shows the pattern" in said


@pytest.mark.slow
def test_layouts_of_a_dump(smith: Smith) -> None:
    smith("passes.dump", MATMUL, "--signature", SIGNATURE, "--target", "a100", "--out", "dump")
    argv = ("passes.show", "dump", "allocate-shared-memory-nv", "--layouts")
    made = json.loads(smith(*argv, "--json").out)
    assert {one["where"] for one in made["layouts"]} == {"registers", "shared memory"}
    assert not [one for one in made["layouts"] if one["error"]]
    copies = [one for one in made["accesses"] if one["operation"] == "async_copy_global_to_local"]
    assert copies
    assert {one["ways"] for one in copies} == {1}  # which is what the swizzle is for
    loads = [one for one in made["accesses"] if one["operation"] == "local_load"]
    assert {one["uncounted"] for one in loads} == {"ldmatrix or stmatrix"}
    done = smith(*argv)
    assert "not counted: ldmatrix or stmatrix" in done.err
    assert "this IR has no layouts" in smith("passes.show", "dump", "1", "--layouts", code=1).error
    assert "require --layouts" in smith("passes.show", "dump", "1", "--env", "wheel", code=2).error
