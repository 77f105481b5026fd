"""`pipeline`, by the newest wheel: what it says is what a compile does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.integration.harness import Smith
from tests.support import slow
from tritonsmith.compiler import up

MATMUL = Path(up.__file__).parent / "examples" / "tiled_matmul.py"
SIGNATURE = "*fp16:16,*fp16:16,*fp32:16,i32:16,i32:16,i32:16,TILE_M=64,TILE_N=64,TILE_K=32"


@pytest.fixture(scope="module")
def smith(with_wheel: Smith, tmp_path_factory: pytest.TempPathFactory) -> Smith:
    return with_wheel.beside(tmp_path_factory.mktemp("my pipelines"))


def answer(smith: Smith, *argv: str) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = json.loads(smith("pipeline", *argv, "--json").out)
    return made


@pytest.mark.parametrize("target", ["cuda:80:32", *slow("cuda:90:32", "hip:gfx942:64")])
def test_passes_of_a_real_compile_are_those_that_are_taken(smith: Smith, target: str) -> None:
    out = target.replace(":", "-")
    smith(
        "kernel.compile",
        MATMUL,
        "--signature",
        SIGNATURE,
        "--target",
        target,
        "--skip-pass",
        "cse",
        "--out",
        out,
    )
    (point,) = json.loads((smith.cwd / out / "manifest.json").read_text(encoding="utf-8"))["points"]
    real = [one["pass"] for one in point["passes"]]
    rows = answer(smith, "--target", target)
    taken = [row["pass"] for row in rows for _ in row["sides"][target]["calls"]]
    assert taken == real
    assert len(taken) > 50


def test_targets_side_by_side(smith: Smith) -> None:
    rows = answer(smith, "--target", "a100,b200", "--taken")
    sides = {row["pass"]: [bool(one and one["calls"]) for one in row["sides"].values()] for row in rows}
    assert sides["tritongpu-prefetch"] == [True, False]
    assert sides["tritongpu-automatic-warp-specialization"] == [False, True]
    when = {row["pass"]: one["when"] for row in rows if (one := row["sides"]["cuda:80:32"])}
    assert when["tritongpu-prefetch"] == ["capability // 10 == 8"]
    assert smith("pipeline", "--backend", "intel", code=2).error.startswith(
        "error: --backend intel: nvidia or amd"
    )
